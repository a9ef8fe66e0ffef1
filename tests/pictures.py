"""`python -m tests.pictures [NAME ...]`: draw the pictures of the docs from the sample project into `docs/images/`.

`tour` is an animated picture: its frames follow each other by CSS, which also plays in an `<img>` of a page.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from core.base.paths import TRUSTED_PATHS
from core.cli.demo.sample import copy_sample
from tests.e2e import play_claude, play_frankbria, play_open_ralph, play_snarktank
from tests.fence_token import fix_fence_token
from tests.tui.user import NOW, User, make_app
from tui.screens.base_screen import make_portable

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
    "now": Picture("loops", "1", size=(120, 40)),
    "loops": Picture("loops"),
    "patterns": Picture("patterns", "j j j right_square_bracket right_square_bracket"),
    "review": Picture("review", "question:inversion", size=(140, 42)),
    "context": Picture("context", theme="light"),
    "what-if": Picture("patterns", "t 3 0 j j j 2 j j j . 4"),
    "session": Picture("loops", "right"),
    "metrics": Picture("metrics"),
    "compare": Picture("log", "H"),
    "runners": Picture("loops", "g", size=(120, 40), runners=True),
    "lesson": Picture("review", "question:lesson", size=(120, 40), runners=True),
    "agents-files": Picture("context", "v", size=(150, 40), runners=True),
}
"""By the name of the file in `docs/images/`."""


@dataclass(frozen=True, slots=True)
class Step:
    """A frame of the tour: `keys` lead to it from the frame before, and it is shown for some seconds."""

    caption: str
    keys: str
    seconds: float


TOUR: Final = (
    Step("Now: what needs you, what happened, whether lessons help", "1", 4),
    Step("Review: one lesson, its evidence, two keys", "2 question:extracted", 4),
    Step("Review: yes, and the next question", "a", 2),
    Step("Patterns: what your agents believe", "3", 2),
    Step("Loops: what your agents are doing, and what they did", "4", 2),
    Step("Context: the exact text that the next session gets", "6", 2),
    Step("Metrics: do lessons help?", "M", 2),
    Step("Log: every decision, with undo", "L", 2),
)


def animate(frames: Sequence[tuple[float, str]]) -> str:
    """Return an SVG that shows SVGs of equal size in turn, each for its seconds; the first one if motion is reduced."""
    total = sum(seconds for seconds, _ in frames)
    rules, groups, start = [], [], 0.0
    for number, (seconds, svg) in enumerate(frames):
        begin, end = 100 * start / total, 100 * (start + seconds) / total
        hidden = f"0%, {begin:.3f}% {{ visibility: hidden }} " if number else ""
        rules.append(
            f"@keyframes show{number} {{ {hidden}{begin:.3f}% {{ visibility: visible }} "
            f"{end:.3f}%, 100% {{ visibility: {'visible' if end == 100 else 'hidden'} }} }}"
        )
        rules.append(f"#frame{number} {{ animation: show{number} {total:g}s steps(1, end) infinite }}")
        is_hidden = ' style="visibility: hidden"' if number else ""
        groups.append(f'<g id="frame{number}"{is_hidden}>{svg}</g>')
        start += seconds
    box = re.search(r'viewBox="[^"]*"', frames[0][1])
    assert box
    style = f"<style>@media (prefers-reduced-motion: no-preference) {{ {' '.join(rules)} }}</style>"
    return f'<svg {box[0]} xmlns="http://www.w3.org/2000/svg">{style}{"".join(groups)}</svg>\n'


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


@asynccontextmanager
async def opened(picture: Picture) -> AsyncIterator[tuple[User, Path]]:
    """Open the sample project at the place of a picture; yields its user, and the folder of the project."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "acme-api"
        copy_sample(project, NOW)
        os.environ |= {"HOME": folder, TRUSTED_PATHS: folder}
        if picture.runners:
            write_runners(project, Path(folder))
        app = make_app(project, Path(folder), place=picture.place, searches=True, theme=picture.theme)
        app.user_state.set_here("context-task", "Fix TypeScript type errors in user validation")
        async with app.run_test(size=picture.size) as pilot:
            story = User(app, pilot)
            if picture.runners:
                await story.settled()
                await story.until(lambda: any(loop.runner for loop in app.view.snapshot.loops.values()), "runners")
            await story.searched()
            yield story, project


async def press(story: User, keys: str) -> None:
    """Press keys, as `Picture.keys` describes them."""
    for key in keys.split():
        if key.startswith("question:"):
            kind = key.partition(":")[2]
            story.place.go_to(next(item.question_key for item in story.app.view.queue if item.kind == kind))
        else:
            await story.press(key)
        await story.settled()


async def draw(picture: Picture) -> str:
    """Return a screen as SVG."""
    async with opened(picture) as (story, project):
        await press(story, picture.keys)
        story.app.clear_notifications()
        await story.settled()
        picture_text = make_portable(story.app.export_screenshot())
        return picture_text.replace(play_claude.slug(project.resolve()), "-home-ana-acme-api")


async def draw_tour() -> str:
    """Return the tour as an animated SVG."""
    frames = []
    async with opened(Picture("loops", size=(110, 30))) as (story, _):
        for step in TOUR:
            await press(story, step.keys)
            frames.append((step.seconds, make_portable(story.app.export_screenshot(title=step.caption))))
    return animate(frames)


def main(names: list[str]) -> None:
    """Draw the pictures of these names, or all."""
    os.environ |= {"TZ": "UTC", "RALPHDECK_SEMANTIC": "off"}
    time.tzset()
    fix_fence_token()
    for name in names or (*PICTURES, "tour"):
        picture = asyncio.run(draw_tour() if name == "tour" else draw(PICTURES[name]))
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
