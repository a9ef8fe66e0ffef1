"""A walk for every kind of question, by keyboard alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from textual.widgets import TextArea

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.project.project import Project
from core.records.decisions import Verb
from core.records.patterns import Maturity, PatternType
from core.state.review_items import (
    BORDERLINE,
    BROAD,
    BURST,
    CONTRADICTED,
    DUPLICATE,
    ESCALATION,
    EXTRACTED,
    INVERSION,
    OFFER,
    QUARANTINE,
    RECURRING,
    STALE_PIN,
    UNRECONCILED,
)
from tests.sample.events import BLAMED
from tests.tui.screens.review_story import (
    OTHER_TWIN,
    POOL,
    TWIN,
    add_twin,
    at_question,
    desk,
    flat,
    front,
    pane,
    row,
    waiting,
)
from tests.tui.story import NOW, Story, story
from tui.app import RalphdeckApp
from tui.present.decisions import decision_text
from tui.present.glyphs import DRAWN
from tui.present.memory_tree import session_key
from tui.screens.dialogs import AskText
from tui.widgets.text_pane import TextPane

NULL = "pat-error-null-check-015"


def deck_of(sample: Path) -> Project:
    deck = Project(ProjectPaths(sample), Settings(), by="ana", clock=lambda: NOW, cache=False)
    deck.load()
    return deck


def newest(told: Story) -> Verb:
    return told.app.view.snapshot.decisions[-1].verb


async def test_an_inversion_is_reworded_and_given_an_alternative_before_it_is_accepted(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, INVERSION)
        before = waiting(told)
        assert "AVOID" in pane(told, "proposal") and "polarity reads well" in pane(told, "proposal")
        assert "▶ Types first" in pane(told, "proposal")
        failed = [line for line in pane(told, "subject").splitlines() if line.startswith("✗ ralph-")]
        assert len(failed) == 5
        assert "231 errors: the shared types changed" in flat(told, "subject")
        await told.press("v")
        await told.settled()
        assert "▶ Characterise" in pane(told, "proposal")
        await told.press("e")
        assert isinstance(told.app.screen, AskText)
        area = told.app.screen.query_one(TextArea)
        assert area.text.startswith("AVOID")
        area.text = "AVOID: never splitting by file type"
        await told.press("f2")
        await told.settled()
        assert "in your words" in pane(told, "proposal") and "double negative" in flat(told, "proposal")
        await told.press("e", "escape")
        assert waiting(told) == before
        monkeypatch.setattr(RalphdeckApp, "edit_text", lambda app, text: text.replace("never splitting", "splitting"))
        await told.press("E")
        await told.settled()
        assert "polarity reads well" in pane(told, "proposal")
        assert front(told) == subject and waiting(told) == before
        foretold = row(told, "a")
        await told.decides("a")
        decision = told.app.view.snapshot.decisions[-1]
        anti = told.app.view.pattern(decision.after["anti_id"])
        assert anti.type is PatternType.ANTI
        assert "AVOID: splitting by file type" in f"{anti.title} {anti.description}"
        assert anti.better_pattern_id == "pat-success-characterise-011"
        assert told.app.view.assessment(subject).state is Maturity.DEPRECATED
        assert "accept, reworded" in foretold
        assert sorted(waiting(told)) == sorted(key for key in before if key != subject)
        await told.decides("u")
        assert front(told) == subject
        await told.decides("x")
        assert newest(told) is Verb.REJECT_INVERSION


async def test_a_decision_in_doubt_is_given_up_confirmed_or_turned_around(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, CONTRADICTED)
        assert "Since then: 2 ✓ 4 ✗" in flat(told, "proposal")
        assert "rests on" in pane(told, "proposal") and "calendar" in pane(told, "proposal")
        assert "**RuntimeError: deadlock retry**" in pane(told, "subject")
        computed = told.app.view.assessment(subject).computed
        assert f"→ ⊘ {computed.value}" in row(told, "a")
        await told.decides("a")
        assert told.app.view.assessment(subject).state is computed
        await told.decides("u")
        await told.decides("x")
        assert told.app.view.assessment(subject).state is Maturity.PROVEN
        assert subject not in waiting(told)
        await told.decides("u")
        await told.press("d")
        await told.type("four of six failed")
        await told.decides("enter")
        assert told.app.view.snapshot.decisions[-1].reason == "four of six failed"
        assert told.app.view.assessment(subject).state is Maturity.DEPRECATED
        await told.decides("u")
        await told.press("d")
        seen = told.app.view.pattern(subject)
        path = sample / seen.file
        path.write_text(path.read_text().replace(seen.description, "Run the statement twice"))
        await told.until(lambda: told.app.view.pattern(subject).content_hash != seen.content_hash)
        await told.type("four of six failed")
        await told.decides("enter")
        assert any("another one by now" in toast for toast in told.toasts()), "the dialog covered the new text"


async def test_a_text_that_has_changed_since_it_was_approved_is_approved_again_or_put_back(
    sample: Path, home: Path
) -> None:
    deck_of(sample).promote(NULL)
    path = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    approved = path.read_text()
    path.write_text(approved.replace("Guard the object", "Guard no object"))
    async with story(sample, home) as told:
        assert await at_question(told, STALE_PIN) == NULL
        assert "Guard [-the-] {+no+} object" in flat(told, "subject")
        assert "proven" in row(told, "R")
        await told.decides("R")
        assert "Guard the object" in path.read_text()
        assert NULL not in waiting(told)
        assert told.app.view.assessment(NULL).state is Maturity.PROVEN
        await told.decides("u")
        assert front(told) == NULL
        assert "keep" in row(told, "a") and "remove" in row(told, "x")
        await told.decides("a")
        assert NULL not in waiting(told)
        assert told.app.view.assessment(NULL).state is Maturity.PROVEN
        assert "Guard no object" in path.read_text()


async def test_marks_in_a_burst_are_revoked_or_confirmed_as_one_decision(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        source = await at_question(told, BURST)
        assert all(id in pane(told, "subject") for id in BLAMED)
        assert "8 of them, as far as anything tells" in flat(told, "proposal")
        assert "these reports never count" in row(told, "a") and "turn" in row(told, "x")
        await told.decides("a")
        (decision,) = [one for one in told.app.view.snapshot.decisions if one.subject == source]
        assert decision.verb is Verb.REVOKE
        assert {aside.revoked for id in BLAMED for aside in told.app.view.board.set_aside(id)} == {True}
        await told.decides("u")
        assert front(told) == source
        await told.decides("x")
        for id in BLAMED:
            marks = [
                seen for seen in told.app.view.observations(id) if seen.loop_id == source and seen.kind == "feedback"
            ]
            assert [one.success for one in marks] == [False]
        await told.decides("u")
        await told.decides("s")
        assert source not in waiting(told) and len(told.app.view.board.bursts) == 1


async def test_a_text_in_quarantine_is_shown_to_the_letter_and_released_as_it_was_seen(
    sample: Path, home: Path
) -> None:
    deck_of(sample).quarantine(POOL, reason="who wrote [b]this[/]?")
    async with story(sample, home) as told:
        assert await at_question(told, QUARANTINE) == POOL
        assert "put into quarantine, 21:00:00, by ana" in flat(told, "proposal")
        assert "who wrote [b]this[/]?" in flat(told, "proposal")
        shown = flat(told, "subject")
        assert '- Error: "Timed out fetching a new connection from the connection pool"' in shown
        assert "src/db/pool.ts" in shown.split("In its record, and not in that text:")[1]
        assert "loops may get it" in row(told, "a") and "out of the registry" in row(told, "x")
        await told.decides("a")
        assert not told.app.view.assessment(POOL).quarantined
        await told.decides("u")
        assert front(told) == POOL
        await told.decides("x")
        decision = told.app.view.snapshot.decisions[-1]
        assert (decision.verb, decision.reason) == (Verb.ARCHIVE, "rejected in review")
        await told.decides("u")
        assert front(told) == POOL
        path = sample / told.app.view.pattern(POOL).file
        async with told.engine_held():
            path.write_text(path.read_text().replace("Raise the connection limit", "Remove the connection limit"))
            await told.press("a")
        await told.settled()
        assert any("another one by now" in toast for toast in told.toasts())
        assert told.app.view.assessment(POOL).quarantined


async def test_what_is_offered_or_came_unread_and_what_says_the_same_twice(sample: Path, home: Path) -> None:
    add_twin(sample)
    source = "ralph-move-the-settlement-jobs-from--18be2e49"
    deck_of(sample).extract(source, unattended=True)
    async with story(sample, home, looks_further=True) as told:
        first = await at_question(told, EXTRACTED)
        assert source in flat(told, "proposal")
        await told.decides("a")
        assert first in told.app.view.snapshot.patterns
        second = await at_question(told, EXTRACTED)
        assert second != first
        await told.decides("x")
        assert second not in told.app.view.snapshot.patterns

        offering = await at_question(told, OFFER)
        offer = told.app.view.offers[offering]
        for proposal in offer.proposals:
            assert proposal.trace[0] in flat(told, "proposal")
        assert told.app.view.loop(offering).task in flat(told, "subject")
        await told.press("p")
        assert "about no pattern yet" in told.toasts()[-1]
        await told.decides("a")
        await told.looked()
        decision = told.app.view.snapshot.decisions[-1]
        assert decision.verb is Verb.EXTRACT
        assert len(decision.after["patterns"]) == len(offer.new)
        await told.press("u")
        await told.looked()
        assert front(told) == offering
        await told.decides("x")
        assert offering not in waiting(told)

        assert await at_question(told, DUPLICATE) == TWIN
        for side in ("subject", "proposal"):
            lines = pane(told, side).splitlines()
            assert any(line.startswith("≠ Says: Correct") for line in lines)
            assert "  Error type: TypeError" in lines
        text = pane(told, "consequence")
        assert [line.split()[-1] for line in text.splitlines() if line.split()[:1] == ["state"]] == ["proven"]
        assert "goes to the archive" in text and "tokens shorter" in text
        await told.press("d")
        assert "about two patterns" in told.toasts()[-1]
        await told.decides("a")
        assert OTHER_TWIN not in told.app.view.snapshot.patterns
        assert told.app.view.assessment(TWIN).uses == 20
        await told.press("u")
        await told.looked()
        assert front(told) == TWIN
        await told.press("e")
        await told.settled()
        assert front(told) == OTHER_TWIN
        await told.decides("a")
        assert told.app.view.snapshot.decisions[-1].after["merged"] == TWIN
        assert TWIN in told.app.view.pattern(OTHER_TWIN).aliases


async def test_what_idle_moments_find_is_asked_too(sample: Path, home: Path) -> None:
    path = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    content = json.loads(path.read_text().replace("Cannot read propert(y|ies) .* of (null|undefined)", ".*"))
    (records,) = content["pattern_registry"].values()
    (record,) = [one for one in records if one["pattern_id"] == POOL]
    for key in [key for key in record if key.endswith(("applications", "trend"))]:
        del record[key]
    record |= {"usage_count": 1, "success_rate": 1.0}
    path.write_text(json.dumps(content))
    async with story(sample, home, looks_further=True) as told:
        assert await at_question(told, BROAD) == NULL
        assert "Trigger: .*" in flat(told, "proposal") and "fits 100 % of everyday errors" in flat(told, "proposal")
        assert await at_question(told, UNRECONCILED) == POOL
        assert any(line.split() == ["≠", "uses", "1", "3"] for line in pane(told, "subject").splitlines())
        subject = await at_question(told, BORDERLINE)
        await told.sees("Re-enable this deprecated pattern?", "a  re-enable", "x  leave")
        assert "more failure" in pane(told, "proposal") or "more success" in pane(told, "proposal")
        await told.decides("a")
        assert told.app.view.assessment(subject).state is Maturity.PROVEN
        await told.decides("u")
        assert told.app.view.assessment(subject).state is Maturity.DEPRECATED
        assert front(told) == subject
        await told.decides("x")
        assert (BORDERLINE, subject) not in [(item.kind, item.subject) for item in told.app.view.queue]
        await at_question(told, RECURRING)
        assert "told by 2 loops or tasks" in pane(told, "subject") and "+ new" in pane(told, "proposal")
        await told.decides("a")
        assert newest(told) is Verb.EXTRACT


async def test_an_escalation_is_seen_and_no_more(sample: Path, home: Path) -> None:
    folder = sample / ".aiwg/ralph/debug-memory/sessions"
    stuck = {
        "session_id": "dm-stuck",
        "file_path": "src/stuck.ts",
        "status": "escalated",
        "updated_at": datetime.now(UTC).isoformat(),
        "executions": [{"attempt": 1, "failures": [{"error_type": "TypeError", "error_message": "[/] broke"}]}],
    }
    (folder / "stuck.json").write_text(json.dumps(stuck))
    async with story(sample, home, size=(200, 50)) as told:
        await told.go("review")
        told.place.go_to("dm-stuck")
        await told.settled()
        await told.sees("Escalated at this file: an agent needs help. Acknowledge?", "an agent waits")
        await told.sees("src/stuck.ts", "not asked again", "It changes nothing")
        assert "Run 1" in pane(told, "subject") and "[/] broke" in pane(told, "proposal")
        assert told.place.why_not("promote") == (
            "that is decided about one pattern alone: this question is about no pattern; here: a, s, W"
        )
        await told.press("o")
        await told.settled()
        assert told.place.place == "memory" and told.table.cursor_key == session_key("dm-stuck")
        await told.go("review")
        await told.decides("a")
        assert "dm-stuck" not in waiting(told)
        await told.decides("u")
        assert front(told) == "dm-stuck"
        await told.press("S", "down")
        await told.decides("enter")
        assert "dm-stuck" not in waiting(told)
        for decision in told.app.view.snapshot.decisions[-3:]:
            assert "escalation at src/stuck.ts" in decision_text(decision, told.app.view, DRAWN)[1].plain
        assert told.app.view.snapshot.decisions[-1].after["until"].startswith(f"{NOW + timedelta(days=7):%Y-%m-%d}")
        await told.pilot.resize_terminal(120, 40)
        await at_question(told, ESCALATION)
        for name in ("subject", "proposal"):
            room = desk(told).query_one(f"#review-{name}", TextPane).scrollable_content_region.width
            beside = [line for line in pane(told, name).split("\n") if line.startswith("    cause")]
            assert beside and all(len(line) <= room for line in beside)


async def test_the_minutes_that_one_has_are_planned_and_come_to_an_end(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(160, 40)) as told:
        await told.go("review")
        await told.sees("b 12 min: 9 of 13")
        await told.press("b", "ctrl+u")
        await told.type("1")
        await told.press("enter")
        await told.settled()
        plan = desk(told).sitting.plan
        assert plan is not None and 0 < len(plan.items) < len(waiting(told))
        await told.sees(f"1 of 1 min left: 0 of {len(plan.items)}")
        for item in plan.items:
            assert front(told) == item.subject
            await told.decides("s")
        await told.sees("You can stop here", "of the impact", f"{len(plan.items)} decided")
        await told.press("a")
        assert "you can stop here; n goes on" in told.toasts()[-1]
        await told.press("n")
        assert front(told) not in [item.subject for item in plan.items]
        await told.decides("s")
        assert "You can stop here" not in told.text()


async def test_where_nothing_may_be_written_every_answer_says_so(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        told.app.project.is_readonly = True
        await at_question(told, INVERSION)
        assert UNRECONCILED not in {item.kind for item in told.app.view.queue}
        await told.sees("read-only", "if you press a")
        before = waiting(told)
        for key in "axdsSe":
            await told.press(key)
            assert "--readonly" in told.toasts()[-1]
        assert waiting(told) == before
