"""`python -m tests.pictures [NAME ...]`: draw the pictures of the docs from the sample project into `docs/images/`."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from core.demo.sample import copy_sample
from tests.e2e import play_claude, play_frankbria, play_open_ralph, play_snarktank
from tests.fence_token import fix_fence_token
from tests.tui.user import NOW, User, make_app
from tui.screens.file_export import make_portable

FOLDER: Final = Path(__file__).parents[1] / "docs/images"


@dataclass(frozen=True, slots=True)
class Picture:
    """One screen.

    Attributes:
        place: Where it is taken.
        keys: What is pressed there, as Textual names keys; `question:KIND` goes to a question of that kind.
        theme: The theme.
        size: Columns and rows.
        runners: Whether agents and other runners worked in the project, too.
    """

    place: str
    keys: str = ""
    theme: str = "dark"
    size: tuple[int, int] = (120, 36)
    runners: bool = False


PICTURES: Final = {
    "loops": Picture("loops"),
    "patterns": Picture("patterns", "j j j right_square_bracket right_square_bracket"),
    "review": Picture("review", "question:inversion", size=(140, 42)),
    "context": Picture("context", theme="light"),
    "what-if": Picture("patterns", "t 3 0 j j j 2 j j j . 4"),
    "memory": Picture("memory", "j j j j"),
    "metrics": Picture("metrics"),
    "compare": Picture("patterns", "H"),
    "runners": Picture("loops", "g", size=(120, 40), runners=True),
    "lesson": Picture("review", "question:lesson", size=(120, 40), runners=True),
    "agents-files": Picture("context", "v", size=(150, 40), runners=True),
}
"""By the name of the file in `docs/images/`."""


def write_runners(project: Path, home: Path) -> None:
    """Let runners and an agent work in a project in its last hour; some are not ready."""
    start = iter(range(10_000))

    def clock() -> datetime:
        return NOW - timedelta(minutes=40) + timedelta(seconds=20 * next(start))

    for steps, count in ((play_snarktank.steps, 99), (play_open_ralph.steps, 9), (play_frankbria.steps, 99)):
        list(islice(steps(project, home, clock), count))
    session = home / ".claude" / "projects" / play_claude.slug(project.resolve())
    (session / "memory").mkdir(parents=True)
    records = play_claude.goal_session(play_claude.Records(project.resolve(), now=clock))
    (session / f"{play_claude.SESSION}.jsonl").write_bytes(play_claude.lines(records))
    (session / "memory" / "MEMORY.md").write_text("- [Fake clock](fake-clock.md) — cart tests fail at night\n")
    (session / "memory" / "fake-clock.md").write_text(
        f"---\nname: fake-clock\nmetadata:\n  type: feedback\n  originSessionId: {play_claude.SESSION}\n---\n\n"
        "Use the fake clock of tests/clock.ts in every cart test.\n\n**Why:** a run at 00:10 UTC failed.\n"
    )
    (project / "CLAUDE.md").write_text(
        "# Rules\n\n- Run npm test before you commit\n- Fix type errors from the declarations outward\n"
    )


async def draw(picture: Picture) -> str:
    """The screen as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "acme-api"
        copy_sample(project, NOW)
        os.environ["HOME"] = folder
        if picture.runners:
            write_runners(project, Path(folder))
        app = make_app(project, Path(folder), searches=True, theme=picture.theme)
        app.user_state.set_here("place", picture.place)
        app.user_state.set_here("context-task", "Fix TypeScript type errors in user validation")
        async with app.run_test(size=picture.size) as pilot:
            story = User(app, pilot)
            if picture.runners:
                await story.settled()
                await story.until(lambda: any(loop.runner for loop in app.view.snapshot.loops.values()), "runners")
            await story.searched()
            for key in picture.keys.split():
                if key.startswith("question:"):
                    kind = key.partition(":")[2]
                    story.place.go_to(next(item.question_key for item in app.view.queue if item.kind == kind))
                else:
                    await story.press(key)
                await story.settled()
            app.clear_notifications()
            await story.settled()
            picture_text = make_portable(app.export_screenshot())
            return picture_text.replace(play_claude.slug(project.resolve()), "-home-ana-acme-api")


def main(names: list[str]) -> None:
    """Draw the pictures of these names, or all."""
    os.environ |= {"TZ": "UTC", "RALPHDECK_SEMANTIC": "off"}
    time.tzset()
    fix_fence_token()
    for name in names or PICTURES:
        (FOLDER / f"{name}.svg").write_text(asyncio.run(draw(PICTURES[name])), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
