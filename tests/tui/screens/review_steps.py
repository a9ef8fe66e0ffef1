"""Shared steps of the tests of Review."""

from __future__ import annotations

import json
from pathlib import Path

from core.index.review_items import ReviewItem
from core.records.decisions import Verb
from tests.tui.user import User
from tui.kit.drawing import AnswerList, TextPane
from tui.screens.dialogs import Choose
from tui.screens.review import ReviewScreen

TWIN = "pat-error-type-mismatch-003"
OTHER_TWIN = "pat-error-type-not-assignable-001"
POOL = "pat-error-pool-timeout-009"


def desk(user: User) -> ReviewScreen:
    """The Review screen, in front."""
    place = user.place
    assert isinstance(place, ReviewScreen)
    return place


def front(user: User) -> str:
    """What the question in front is about."""
    item = desk(user).item
    assert item is not None
    return item.subject


def newest(user: User) -> Verb:
    """What was decided last."""
    return user.app.view.snapshot.decisions[-1].verb


async def choose_more(user: User, label: str) -> None:
    """Choose an answer of the menu by its label, and wait until it has acted."""
    await user.press("full_stop")
    dialog = user.app.screen
    assert isinstance(dialog, Choose)
    labels = [choice.plain for _, choice in dialog._choices]
    place = next(n for n, text in enumerate(labels) if label in text)
    await user.press(*["down"] * place)
    await user.decides("enter")


def waiting(user: User) -> list[str]:
    """What all questions are about."""
    return [item.subject for item in user.app.view.queue]


async def at_question(user: User, kind: str) -> str:
    """Go to the first question of a kind, with its forecasts shown; returns its subject."""
    if user.place.place != "review":
        await user.go("review")

    def found() -> list[ReviewItem]:
        return [item for item in (*user.app.view.queue, *user.app.view.agenda) if item.kind == kind]

    await user.until(lambda: bool(found()), f"a question of the kind {kind}")
    item = found()[0]
    desk(user).go_to(item.question_key)
    await user.settled()
    return front(user)


def card(user: User) -> str:
    """The text of the card."""
    return user.place.query_one("#review-card", TextPane).plain


def flat(user: User) -> str:
    """The same, with all blanks as one."""
    return " ".join(card(user).split())


def preview(user: User) -> str:
    """What the highlighted answer changes."""
    return user.place.query_one("#review-preview", TextPane).plain


def row(user: User, key: str) -> str:
    """The line of the answer on a key."""
    lines = [line.plain for line in user.place.query_one(AnswerList).rows]
    return next(line for line in lines if line.split()[0] == key)


def add_twin(sample: Path) -> None:
    """A second pattern that says what `TWIN` says, in a word or two less, after two uses of its own."""
    path = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    content = json.loads(path.read_text())
    (records,) = content["pattern_registry"].values()
    (record,) = [one for one in records if one["pattern_id"] == TWIN]
    fix = record["fix_approach"]
    twin = {key: value for key, value in record.items() if not key.endswith(("applications", "trend"))} | {
        "pattern_id": OTHER_TWIN,
        "fix_approach": fix | {"description": fix["description"].replace("the interface", "an interface")},
        "source_loops": [{"loop_id": "ralph-elsewhere-00000001", "timestamp": "2026-11-01T10:00:00Z"}],
        "success_rate": 0.5,
        "usage_count": 2,
    }
    records.append(twin)
    path.write_text(json.dumps(content, indent=2))
