"""Write the files of snarktank/ralph as its agent does: plan and progress log in place, for live tests.

Run `python -m tests.e2e.play_snarktank PROJECT --home HOME`; it ends after the second of two stories.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.e2e.play_runner import Clock, in_place, in_place_json, local, play

FOLDER: Final = "scripts/ralph"
STORIES: Final = (("US-001", "Round totals once"), ("US-002", "Show cents"))
PATTERN: Final = "Money is Decimal; quantize once, in money.py"
LEARNINGS: Final = ("The templates formatted, they must not round", "Run pytest with -p no:randomly")


def steps(project: Path, home: Path, now: Clock) -> Iterator[str]:
    """Write the plan, then for each story an entry of the log and the passed story."""
    folder = project / FOLDER
    log = f"# Ralph Progress Log\nStarted: {local(now())}\n---\n## Codebase Patterns\n- {PATTERN}\n---\n"
    yield from in_place_json(folder / "prd.json", _plan(0))
    yield "planned"
    yield from in_place(folder / "progress.txt", log)
    for number, (story, title) in enumerate(STORIES, start=1):
        yield f"story {number}"
        log += f"\n## {local(now())[:16]} - {story}\n- {title}\n- Files changed: shop/money.py\n"
        log += f"- **Learnings for future iterations:**\n  - {LEARNINGS[number - 1]}\n---\n"
        yield from in_place(folder / "progress.txt", log)
        yield from in_place_json(folder / "prd.json", _plan(number))
    yield "done"


def _plan(done: int) -> dict[str, object]:
    stories = [
        {"id": id, "title": title, "acceptanceCriteria": ["Tests pass"], "passes": place < done, "notes": ""}
        for place, (id, title) in enumerate(STORIES)
    ]
    return {"project": "Shop", "branchName": "ralph/cart", "description": "Round once", "userStories": stories}


if __name__ == "__main__":
    play(__doc__ or "", steps, f"{FOLDER}/ralph.sh")
