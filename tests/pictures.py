"""`python -m tests.pictures [NAME ...]`: draw the pictures of the docs from the sample project into `docs/images/`."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.demo.sample import copy_sample
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
    """

    place: str
    keys: str = ""
    theme: str = "dark"
    size: tuple[int, int] = (120, 36)


PICTURES: Final = {
    "loops": Picture("loops"),
    "patterns": Picture("patterns", "j j j right_square_bracket right_square_bracket"),
    "review": Picture("review", "question:inversion", size=(140, 42)),
    "context": Picture("context", theme="light"),
    "what-if": Picture("patterns", "t 3 0 j j j 2 j j j . 4"),
    "memory": Picture("memory", "j j j j"),
    "metrics": Picture("metrics"),
    "compare": Picture("patterns", "H"),
}
"""By the name of the file in `docs/images/`."""


async def draw(picture: Picture) -> str:
    """The screen as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "acme-api"
        copy_sample(project, NOW)
        app = make_app(project, Path(folder), searches=True, theme=picture.theme)
        app.user_state.set_here("place", picture.place)
        app.user_state.set_here("context-task", "Fix TypeScript type errors in user validation")
        async with app.run_test(size=picture.size) as pilot:
            story = User(app, pilot)
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
            return make_portable(app.export_screenshot())


def main(names: list[str]) -> None:
    """Draw the pictures of these names, or all."""
    os.environ |= {"TZ": "UTC", "RALPHDECK_SEMANTIC": "off"}
    time.tzset()
    for name in names or PICTURES:
        (FOLDER / f"{name}.svg").write_text(asyncio.run(draw(PICTURES[name])), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
