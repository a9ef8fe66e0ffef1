"""How each place looks, as SVG. Look at every change: `pytest tests/tui/test_snapshots.py --snapshot-update`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import unified_diff
from html import unescape
from pathlib import Path

import pytest
from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual.widgets import Input

from core.decisions.commands import Quarantine
from core.index.review_items import DUPLICATE, FURTHER, INVERSION, LESSON, OFFER, QUARANTINE, STALE_PIN
from core.records.loops import Loop, LoopStatus
from core.records.reflections import LessonKind
from core.show.now import Setup
from tests.agent_lessons import CLOCK, NO_CLOCK, find_when_loaded, make_agent_lesson
from tests.fix_sessions.transcripts import leave_transcripts
from tests.tui.screens.review_steps import POOL, add_twin
from tests.tui.user import NOW, User, copy_tree, make_app
from tui.app import RalphdeckApp
from tui.kit.actions import PLACES

TASK = "Fix TypeScript type errors in user validation"
WHAT_IF = "t 3 0 j j j 2 j j j . 4"
"""A shorter half-life, a share above 1, and another failure ratio."""
ATTEMPT = "j " * 11 + "right j j enter n n"
"""To the second error of the second attempt in Memory."""
SIZES = [(80, 24), (120, 40), (200, 50)]
ACCEPTED = Path(__file__).parent / "__snapshots__" / "test_snapshots"

Accept = Callable[[Mapping[str, str]], None]


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch, all_tasks: None) -> None:
    """Switch off blinking, toasts and clocks."""
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.setattr(RalphdeckApp, "_tick", lambda self: None)
    monkeypatch.setattr(RalphdeckApp, "say", lambda self, text, *, severity="information": None)


@pytest.fixture
def accept(snapshot: SnapshotAssertion, request: pytest.FixtureRequest) -> Accept:
    """Compare with the accepted pictures of the test, one SVG file for each size."""
    accepted = snapshot.use_extension(SVGImageExtension)

    def compare(pictures: Mapping[str, str]) -> None:
        names = {size: size if len(pictures) > 1 else None for size in pictures}
        wrong = [size for size, picture in pictures.items() if accepted(name=names[size]) != picture]
        for size in wrong:
            file = ACCEPTED / f"{request.node.name}{f'[{size}]' * (len(pictures) > 1)}.svg"
            before = words(file.read_text()) if file.exists() else []
            changes = "\n".join(unified_diff(before, words(pictures[size]), "accepted", "now", lineterm="", n=0))
            print(f"{size} looks different from the accepted picture:\n{changes or 'in its colours only'}")  # noqa: T201
        assert not wrong

    return compare


def words(picture: str) -> list[str]:
    """What is written in a picture, each piece with its place."""
    pieces = re.findall(r'<text [^>]*? x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', picture)
    return [f"{y},{x}: {unescape(text)}" for x, y, text in pieces if text.strip("&#160;\n ")]


async def pictures(
    project: Path,
    home: Path,
    place: str,
    *sizes: tuple[int, int],
    theme: str = "dark",
    keys: str = "",
    question: str = "",
) -> dict[str, str]:
    """The dashboard at one place in some sizes, when all is read and drawn, after some keys in the first size.

    Args:
        question: Look for all that Review could ask; there, show a question of this kind.
    """
    waits = bool(question) and place == "review"  # a sitting that begins during the search shows what it found so far
    app = make_app(project, home, place="now" if waits else place, searches=bool(question), theme=theme)
    app.user_state.set_here("context-task", TASK)
    async with app.run_test(size=sizes[0]) as pilot:
        user = User(app, pilot)
        await user.until(lambda: app.progress is None, "the load")
        await user.until(lambda: app.watch_state is not None, "the watch")
        await (user.searched() if question else user.settled())
        if waits:
            await user.go(place)
            questions = (*app.view.queue, *app.view.agenda)
            user.place.go_to(next(item.question_key for item in questions if item.kind == question))
            await user.settled()
        if keys:
            for opening in keys.replace(" enter ", " enter| ").split("|"):
                await user.press(*opening.split())
                await user.settled()  # what `enter` opens reads its record first
            await user.settled()  # what was read for the last row may ask for more
        found = {}
        for width, height in sizes:
            await pilot.resize_terminal(width, height)
            await user.settled()
            found[f"{width}x{height}"] = app.export_screenshot(simplify=True)
        return found


@pytest.mark.parametrize("place", PLACES)
async def test_place(accept: Accept, sample: Path, home: Path, place: str) -> None:
    accept(await pictures(sample, home, place, *SIZES))


@pytest.mark.parametrize(
    ("place", "theme"),
    [
        ("patterns", "high-contrast"),
        ("review", "ansi"),
        ("metrics", "light"),
    ],
)
async def test_theme(accept: Accept, sample: Path, home: Path, place: str, theme: str) -> None:
    accept(await pictures(sample, home, place, (120, 40), theme=theme))


async def test_first_start(accept: Accept, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository without `.aiwg` in which an agent has left sessions."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    leave_transcripts(project, tmp_path / "person", NOW, 4)
    accept(await pictures(project, home, "now", *SIZES[:2], question=OFFER))


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(
            Setup(
                agent="claude", writes=((".claude/settings.json", "hooks"), ("CLAUDE.md", "how the agent uses them"))
            ),
            id="not-connected",
        ),
        pytest.param(Setup(connected=("Claude Code",), hooks="hooks answer in 0.1 s"), id="connected"),
    ],
)
async def test_empty_now(
    accept: Accept, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, setup: Setup
) -> None:
    monkeypatch.setattr("tui.screens.now.read_setup", lambda paths: setup)
    monkeypatch.setattr("tui.screens.now.try_hooks", lambda paths: (setup.hooks, False))
    project = tmp_path / "shop"
    (project / ".aiwg" / "ralph").mkdir(parents=True)
    accept(await pictures(project, home, "now", *SIZES[:2]))


async def test_what_if(accept: Accept, sample: Path, home: Path) -> None:
    accept(await pictures(sample, home, "patterns", *SIZES, keys=WHAT_IF))


@pytest.mark.parametrize(
    ("size", "theme"),
    [
        pytest.param((80, 24), "dark", id="80x24"),
        pytest.param((120, 40), "light", id="120x40-light"),
        pytest.param((200, 50), "high-contrast", id="200x50-high-contrast"),
    ],
)
async def test_replay(accept: Accept, sample: Path, home: Path, size: tuple[int, int], theme: str) -> None:
    accept(await pictures(sample, home, "loops", size, theme=theme, keys=ATTEMPT))


@pytest.mark.parametrize(
    ("size", "theme", "keys"),
    [
        pytest.param((80, 24), "dark", "right", id="80x24"),
        pytest.param((120, 40), "light", "j " * 11 + "right", id="task-light"),
        pytest.param((120, 40), "high-contrast", "j " * 11 + "right j j", id="attempt-high-contrast"),
        pytest.param((200, 50), "dark", "right " + "j " * 7, id="session-200x50"),
    ],
)
async def test_work_below_a_loop(
    accept: Accept, sample: Path, home: Path, size: tuple[int, int], theme: str, keys: str
) -> None:
    accept(await pictures(sample, home, "loops", size, theme=theme, keys=keys))


async def test_turned_knobs(accept: Accept, sample: Path, home: Path) -> None:
    keys = "right full_stop j j j j right j right escape j"
    accept(await pictures(sample, home, "context", (80, 24), keys=keys))


async def test_upstream_loops(accept: Accept, tmp_path: Path, home: Path) -> None:
    tree = copy_tree("upstream", tmp_path / "upstream")
    accept(await pictures(tree, home, "loops", (120, 40)))


@pytest.mark.parametrize("question", [INVERSION, DUPLICATE])
async def test_question(accept: Accept, sample: Path, home: Path, question: str) -> None:
    if question == DUPLICATE:
        add_twin(sample)
    accept(await pictures(sample, home, "review", *SIZES, question=question))


async def test_offer(accept: Accept, sample: Path, home: Path) -> None:
    accept(await pictures(sample, home, "review", (120, 40), question=OFFER))


async def test_row(accept: Accept, sample: Path, home: Path) -> None:
    accept(await pictures(sample, home, "review", (120, 40), (80, 24), question=FURTHER))


async def test_changed_text(accept: Accept, sample: Path, home: Path) -> None:
    accept(await pictures(sample, home, "review", (120, 40), theme="light", question=STALE_PIN))


async def test_past(accept: Accept, sample: Path, home: Path) -> None:
    accept(await pictures(sample, home, "log", *SIZES, keys="H"))


async def test_quarantine(accept: Accept, sample: Path, home: Path) -> None:
    project = make_app(sample, home).open_project()
    with project.curator.signing("dana"):  # Review does not ask a reviewer about their own decision
        project.decide(Quarantine(POOL, reason="who wrote [b]this[/]?"))
    accept(await pictures(sample, home, "review", (120, 40), question=QUARANTINE))


async def test_loops_that_offer(accept: Accept, sample: Path, home: Path) -> None:
    accept(await pictures(sample, home, "loops", (80, 24), keys=" ".join("j" * 10), question=OFFER))


@pytest.mark.parametrize(
    ("place", "keys", "question"), [("review", "", LESSON), ("reflections", "v v", "")], ids=["review", "reflections"]
)
async def test_lessons(
    accept: Accept,
    sample: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    keys: str,
    question: str,
) -> None:
    """A question about a lesson of an agent, and the list of all."""
    session = Loop(id="claude:1", runner="claude", owner="claude", task="Fix the cart", status=LoopStatus.COMPLETED)
    lessons = (
        make_agent_lesson(loaded=True, uses=2, loop_id=session.id, at=NOW, why="A run at 00:10 UTC failed"),
        make_agent_lesson(f"{CLOCK}.", "snarktank", file="progress.txt", line=9),
        make_agent_lesson(NO_CLOCK, "codex", at=NOW - timedelta(days=3)),
        make_agent_lesson("The staging server is in Oslo", kind=LessonKind.FACT),
    )
    find_when_loaded(monkeypatch, *lessons, loops=[session])
    accept(await pictures(sample, home, place, *SIZES[:2], keys=keys, question=question))
