"""Lessons whose files or names Git shows as removed or renamed: they rank lower, and Review asks."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from core.agents.hooks import background
from core.base.errors import BadInput
from core.base.paths import ProjectPaths
from core.base.pattern_titles import summarize_change
from core.base.settings import ReviewSettings, Settings
from core.decisions import commands
from core.decisions.case import verb_text
from core.index.contexts import prepare_task_injection
from core.index.project_state import ProjectState, all_findings
from core.index.review_items import RENAMED, STALE, ReviewItem
from core.project.kept_project import open_quick_state
from core.project.project import Project
from core.project.watch_loop import Daemon
from core.questions.doubts import describe_update
from core.questions.kinds import answer
from core.records.anchors import AnchorChange
from tests.core.agents.hooks.agents import EDIT, FAILING, PASSING, SimulatedAgent
from tests.core.agents.hooks.conftest import agent, project
from tests.git_history import BEGIN, History, body

__all__ = ["agent", "project"]  # fixtures

ONE = "pat-error-rounding-001"
OTHER = "pat-error-rounding-002"
TASK = "Fix the rounding of the cart total"


def record(id: str, *anchors: str, text: str = "Round the cart total once, at the end") -> dict[str, object]:
    return {
        "pattern_id": id,
        "error_signature": {"error_type": "AssertionError", "error_pattern": f"rounding of the cart total {id[-1]}"},
        "fix_approach": {"description": f"{text}: {id[-1]}", "fix_category": "fix_logic_error"},
        "source_loops": ["loop-1", "loop-2", "loop-3"],
        "success_rate": 1.0,
        "usage_count": 6,
        "successful_applications": 6,
        "failed_applications": 0,
        "first_discovered": BEGIN.isoformat(),
        "anchors": list(anchors),
    }


@dataclass
class Shop:
    """A project in a repository, with two lessons that fit the same task; the first one is about `cart.py`."""

    history: History

    @property
    def paths(self) -> ProjectPaths:
        return ProjectPaths(self.history.folder)

    @property
    def now(self) -> datetime:
        return self.history.at + timedelta(days=12)

    def open(self, settings: Settings | None = None, by: str = "ada") -> Project:
        opened = Project(self.paths, settings or Settings(), by=by, clock=lambda: self.now)
        opened.load()
        opened.search_all()
        return opened

    def questions(self) -> tuple[ReviewItem, ...]:
        return stale_questions(self.open().view)

    def scores(self) -> dict[str, float]:
        """Return the multiplier of each lesson for the task, as a hook sees it: without Git."""
        state, _ = open_quick_state(self.paths, Settings(), lambda: self.now)
        return {one.pattern_id: one.multiplier for one in prepare_task_injection(state, TASK).chosen}

    def decide(self, action: str) -> None:
        opened = self.open()
        (item,) = stale_questions(opened.view)
        chosen = answer(item, opened.view, action)
        assert chosen is not None
        opened.decide(chosen.command)


def stale_questions(state: ProjectState) -> tuple[ReviewItem, ...]:
    return tuple(item for item in state.queue if item.kind in (STALE, RENAMED))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


def make_shop(folder: Path) -> Shop:
    history = History(folder)
    history.write(cart=body("total") + body("tax"), keep=body("keep"))
    write_patterns(ProjectPaths(folder), record(ONE, "cart.py", "cart.py#total"), record(OTHER, "keep.py#keep"))
    history.commit()
    return Shop(history)


def write_patterns(paths: ProjectPaths, *records: dict[str, object]) -> None:
    file = paths.pattern_file("error")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"version": "1.0.0", "pattern_registry": {"error_patterns": records}}))


def test_nothing_is_asked_while_the_files_are_there_or_the_setting_switches_the_check_off(shop: Shop) -> None:
    assert shop.questions() == ()
    assert shop.scores().keys() == {ONE, OTHER}
    assert len(set(shop.scores().values())) == 1
    shop.history.git("rm", "-q", "cart.py")
    shop.history.commit()
    off = replace(Settings(), review=ReviewSettings(check_anchors=False))
    assert stale_questions(shop.open(off).view) == ()
    assert len(shop.questions()) == 1
    assert shop.open(off).view.stale == {}


def test_removed_file_ranks_lower_until_it_is_restored_or_a_person_calls_the_lesson_true(shop: Shop) -> None:
    shop.history.git("rm", "-q", "cart.py")
    commit = shop.history.commit()
    (item,) = shop.questions()
    assert item.question.startswith("cart.py was removed 12 d ago. Is “") and commit[:7] in item.reason
    assert item.is_worth_reading
    scores = shop.scores()
    assert scores[ONE] == pytest.approx(0.5 * scores[OTHER])
    file = shop.paths.project / "cart.py"
    shop.history.write(cart=body("total"))
    assert len(set(shop.scores().values())) == 1, "without a commit"
    file.unlink()
    shop.decide("accept")
    assert shop.questions() == ()
    assert len(set(shop.scores().values())) == 1
    shop.open().decide(commands.Undo())
    assert len(shop.questions()) == 1
    shop.decide("accept")
    shop.history.write(cart=body("total"))
    shop.history.commit()
    assert shop.questions() == ()
    shop.history.git("rm", "-q", "cart.py")
    shop.history.commit()
    assert len(shop.questions()) == 1, "another commit is another question"


def test_a_lesson_that_is_no_longer_true_is_deprecated(shop: Shop) -> None:
    shop.history.git("rm", "-q", "cart.py")
    commit = shop.history.commit()
    shop.decide("reject")
    opened = shop.open()
    assert opened.view.assessment(ONE).state == "deprecated"
    assert opened.view.snapshot.decisions[-1].reason == f"it is about cart.py, which was removed in {commit[:7]}"
    assert stale_questions(opened.view) == ()


def test_renamed_file_keeps_its_rank_and_its_anchor_is_updated(shop: Shop) -> None:
    before = shop.open().view.pattern(ONE).content_hash
    shop.history.git("mv", "cart.py", "basket.py")
    commit = shop.history.commit()
    (item,) = shop.questions()
    assert (item.kind, commit[:7] in item.reason) == (RENAMED, True)
    assert item.question.startswith("cart.py is now basket.py. Update “")
    assert len(set(shop.scores().values())) == 1
    shop.decide("accept")
    pattern = shop.open().view.pattern(ONE)
    assert (pattern.anchors, pattern.anchor_commit) == (("basket.py", "basket.py#total"), commit)
    assert pattern.content_hash == before, "what a person approved is the same"
    assert shop.questions() == ()
    shop.open().decide(commands.Undo())
    assert shop.open().view.pattern(ONE).anchors == ("cart.py", "cart.py#total")


DIFF = "--- a/cart.py\n+++ b/cart.py\n@@ -1 +1 @@\n-# lib/cart.py, cart.pyc\n+# see cart.py:3"


@pytest.mark.parametrize("promoter", ["ada", "ada (script)"])
def test_update_replaces_the_path_in_the_text_as_one_decision(shop: Shop, promoter: str) -> None:
    lesson = record(ONE, "cart.py", "cart.py#total", text="In cart.py, not in lib/cart.py, round once")
    lesson["fix_approach"] = {**cast(dict[str, str], lesson["fix_approach"]), "diff_pattern": DIFF}
    lesson["error_signature"] = {
        "error_type": "AssertionError",
        "error_pattern": "cart total",
        "error_message": "cart.py: cart total",
        "error_places": ["cart.py"],
    }
    write_patterns(shop.paths, lesson)
    shop.history.git("mv", "cart.py", "basket.py")
    shop.history.commit()
    shop.open(by=promoter).decide(commands.Promote(ONE))
    opened = shop.open()
    before, was_approved = opened.view.pattern(ONE), opened.view.board.is_approved(ONE)
    assert was_approved is (promoter == "ada")

    (item,) = stale_questions(shop.open().view)
    chosen = answer(item, opened.view, "accept")
    assert chosen is not None
    assert describe_update(before, item.anchors).split("\n") == [
        f"-{before.description}",
        "+In basket.py, not in lib/cart.py, round once: 1",
        *("-cart.py", "+basket.py"),
        *("---- a/cart.py", "+--- a/basket.py", "-+++ b/cart.py", "++++ b/basket.py"),
        *("-+# see cart.py:3", "++# see basket.py:3"),
    ]
    opened.decide(chosen.command)
    after = opened.view.pattern(ONE)
    assert after.anchors == ("basket.py", "basket.py#total") and after.places == ("basket.py",)
    assert after.description == "In basket.py, not in lib/cart.py, round once: 1"
    assert after.diff_pattern == DIFF.replace(" a/cart", " a/basket").replace(" b/cart", " b/basket").replace(
        "see cart", "see basket"
    )
    assert (after.error_message, after.title) == (before.error_message, before.title), "programs still print it"
    assert opened.view.board.is_approved(ONE) and not opened.view.assessment(ONE).pin_stale

    opened.decide(commands.Undo())
    assert opened.view.pattern(ONE) == before and opened.view.board.is_approved(ONE) is was_approved


def test_titles_of_long_paths_are_short() -> None:
    anchors = ("src/" + "deep/" * 20 + "a_file_with_a_long_name.py", "a_name_that_is_longer_than_most" * 2)
    for change, to in (("removed", ""), ("renamed", "lib/" * 20 + "another_long_file_name.py"), ("moved", "x" * 60)):
        for anchor in (anchors[0], f"{anchors[0]}#{anchors[1]}")[change == "moved" :]:
            one = AnchorChange(anchor=anchor, change=cast(Any, change), commit="a" * 40, at=BEGIN, to=to)
            title = summarize_change(one, BEGIN + timedelta(days=12))
            assert len(title) < 60 and title.isprintable()


def test_a_text_that_no_person_approved_is_not_approved_by_its_update(shop: Shop) -> None:
    write_patterns(shop.paths, record(ONE, "cart.py", text="See cart.py"))
    shop.history.git("mv", "cart.py", "basket.py")
    shop.history.commit()
    opened = shop.open()
    opened.ledger.origins.add_patterns(opened.view.snapshot.patterns.values())  # as trusting the project does
    state = opened.view.assessment(ONE).state
    shop.decide("accept")
    view = shop.open().view
    assert [verb_text(one) for one in view.snapshot.decisions] == ["set anchors", "edit text"]
    assert view.pattern(ONE).description.startswith("See basket.py") and not view.board.is_approved(ONE)
    assert view.assessment(ONE).state == state


def test_history_that_cannot_be_read_is_a_finding(shop: Shop) -> None:
    shop.history.git("rm", "-q", "cart.py")
    shop.history.commit()
    os.mkfifo(shop.paths.project / ".git/objects/info/alternates")
    shop.open()
    view = shop.open().view
    (found,) = [one for one in all_findings(view) if one.code == "anchors-not-checked"]
    assert "alternates" in found.message
    assert stale_questions(view) == () and len(set(shop.scores().values())) == 1


def test_hook_checks_in_the_background_after_another_commit_and_watch_when_it_is_idle(shop: Shop) -> None:
    background.sweep(str(shop.paths.project))
    opened = shop.open()
    shop.history.git("rm", "-q", "cart.py")
    shop.history.commit()
    assert len(set(shop.scores().values())) == 1, "no hook runs Git"
    assert open_quick_state(shop.paths, Settings(), lambda: shop.now)[1], "the background is started"
    background.sweep(str(shop.paths.project))
    assert len(set(shop.scores().values())) == 2
    shop.history.write(cart=body("total"))
    shop.history.commit()
    Daemon(opened, lambda event: None).idle()
    assert len(set(shop.scores().values())) == 1


def test_invalid_anchors_are_refused(shop: Shop) -> None:
    opened = shop.open()
    for text, defect in (("../secret", "not a path inside the project"), ("-rf", "cannot begin with `-`")):
        with pytest.raises(BadInput, match=defect):
            opened.decide(commands.SetAnchors(ONE, (text,)))
    with pytest.raises(BadInput, match="at most 10"):
        opened.decide(commands.SetAnchors(ONE, tuple(f"f{n}.py" for n in range(11))))
    opened.decide(commands.SetAnchors(ONE, ()))
    assert (
        "anchors"
        not in json.loads(shop.paths.pattern_file("error").read_text())["pattern_registry"]["error_patterns"][0]
    )


def test_story_from_a_fix_to_the_question_after_git_mv(agent: SimulatedAgent, project: ProjectPaths) -> None:
    history = History(project.project)
    code = "export function title(user) {\n  return user.name;\n}\n" + "// more\n" * 20
    file = project.project / "src" / "account.ts"
    file.parent.mkdir()
    file.write_text(code)
    history.at = agent.at - timedelta(hours=2)
    learned = history.commit()
    agent.send("SessionStart", source="startup")
    agent.prompt("Fix the title of the account")
    agent.tool(FAILING)
    file.write_text(code.replace("user.name", 'user?.name ?? ""'))
    agent.tool(EDIT)
    agent.tool(PASSING)
    agent.send("Stop")
    agent.send("SessionEnd", reason="exit")
    history.at = agent.at
    history.commit()
    shop = Shop(history)
    (pattern,) = shop.open().view.snapshot.patterns.values()
    assert (pattern.anchors[0], pattern.anchor_commit) == ("src/account.ts", learned)
    history.git("mv", "src/account.ts", "src/profile.ts")
    commit = history.commit()
    (item,) = shop.questions()
    assert item.question.startswith("account.ts is now profile.ts. Update “") and commit[:7] in item.reason
    shop.decide("accept")
    (pattern,) = shop.open().view.snapshot.patterns.values()
    assert pattern.anchors[0] == "src/profile.ts"
