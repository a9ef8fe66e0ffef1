from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from textual.notifications import Notification
from textual.widgets import TextArea

from core.debug_memory.hooks import on_escalation
from core.deck import Deck
from core.paths import ProjectPaths
from core.records.decisions import Verb
from core.records.patterns import Maturity, PatternType
from core.review.items import BURST, CONTRADICTED, DUPLICATE, ESCALATION, EXTRACTED, INVERSION, OFFER, QUARANTINE
from core.settings import Settings
from tests.sample.events import BLAMED
from tests.tui.story import NOW, Story, story
from tui.present.decisions import decision_text
from tui.present.marks import DRAWN
from tui.present.memory_tree import TASKS, session_key
from tui.screens.dialogs import AskText
from tui.screens.review import ReviewPlace
from tui.widgets.text_pane import TextPane


def front(told: Story) -> str:
    place = told.place
    assert isinstance(place, ReviewPlace)
    item = place.item
    assert item is not None
    return item.subject


def waiting(told: Story) -> list[str]:
    return [item.subject for item in told.app.view.queue]


async def at_question(told: Story, kind: str) -> str:
    """Go to the first question of a kind; returns what it is about."""
    await told.go("review")
    for _ in told.app.view.queue:
        place = told.place
        assert isinstance(place, ReviewPlace)
        if place.item is not None and place.item.kind == kind:
            await told.settled()
            return place.item.subject
        await told.press("n")
    raise AssertionError("no such question")


def pane(told: Story, name: str) -> str:
    return told.place.query_one(f"#review-{name}", TextPane).plain


async def test_the_question_that_matters_most_stands_first(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("review")
        worths = [item.worth for item in told.app.view.queue]
        assert worths == sorted(worths, reverse=True)
        assert front(told) == waiting(told)[0]
        await told.sees(f"1 of {len(worths)}", "worth:")
        assert told.app.view.queue[0].reason.split(";")[0] in " ".join(pane(told, "subject").split())


async def test_an_accepted_inversion_makes_an_anti_pattern_and_the_next_question_comes(
    sample: Path, home: Path
) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, INVERSION)
        before = waiting(told)
        assert "AVOID" in pane(told, "proposal")
        assert "accept → anti-pattern, original ⊘" in told.key_line()
        await told.decides("a")
        decision = told.app.view.snapshot.decisions[-1]
        anti = told.app.view.pattern(decision.after["anti_id"])
        assert anti.type is PatternType.ANTI
        assert told.app.view.assessment(subject).state is Maturity.DEPRECATED
        assert waiting(told) == [key for key in before if key != subject]
        assert front(told) != subject
        await told.sees(f"of {len(before) - 1}")


async def test_an_answered_question_leaves_at_once_and_a_second_key_answers_the_next(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        first = await at_question(told, INVERSION)
        questions = len(waiting(told))
        place = told.place
        assert isinstance(place, ReviewPlace)
        place.do_accept()  # and before the engine has had a moment to carry it out:
        assert front(told) != first
        await told.settled()
        await told.until(lambda: len(waiting(told)) == questions - 1, "the answer on disk")
        assert front(told) != first


async def test_a_refused_answer_brings_its_question_back(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        first = await at_question(told, INVERSION)
        place = told.place
        assert isinstance(place, ReviewPlace)
        place._answered()
        assert front(told) != first
        place.answered(decided=False)
        assert first in [item.subject for item in place.open_items]


async def test_what_is_undone_is_in_front_again(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, INVERSION)
        await told.decides("a")
        assert subject not in waiting(told)
        await told.decides("u")
        assert subject in waiting(told)
        assert front(told) == subject


async def test_a_rejected_question_says_when_it_comes_again(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(200, 50)) as told:
        subject = await at_question(told, INVERSION)
        assert "reject → asks again after 3 failures" in told.key_line()
        await told.decides("x")
        assert subject not in waiting(told)


async def test_a_snoozed_question_goes_and_says_for_how_long(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(200, 50)) as told:
        subject = await at_question(told, INVERSION)
        assert "snooze 7 d" in told.key_line()
        await told.decides("s")
        assert subject not in waiting(told)


async def test_an_inversion_can_be_put_in_other_words(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_question(told, INVERSION)
        await told.press("e")
        assert isinstance(told.app.screen, AskText)
        area = told.app.screen.query_one(TextArea)
        assert area.text.startswith("AVOID")
        area.text = "AVOID: splitting by file type; types depend on each other"
        await told.decides("f2")
        anti = told.app.view.pattern(told.app.view.snapshot.decisions[-1].after["anti_id"])
        assert "splitting by file type; types depend" in f"{anti.title} {anti.description}"


async def test_escape_leaves_the_rewriting_and_decides_nothing(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, INVERSION)
        await told.press("e")
        await told.press("escape")
        assert front(told) == subject


async def test_a_contradicted_pin_is_shown_with_what_came_since(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, CONTRADICTED)
        assert "Since then: 2 ✓  4 ✗" in pane(told, "proposal")
        computed = told.app.view.assessment(subject).computed
        assert f"reset, evidence says {computed.value}" in told.key_line()
        await told.decides("a")
        assert told.app.view.assessment(subject).state is computed
        assert subject not in waiting(told)


async def test_a_contradicted_pin_can_be_confirmed(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, CONTRADICTED)
        await told.decides("p")
        assert told.app.view.assessment(subject).state is Maturity.PROVEN
        assert subject not in waiting(told)


async def test_a_contradicted_pin_can_be_turned_around(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, CONTRADICTED)
        await told.press("d")
        await told.type("four of six failed")
        await told.decides("enter")
        assert told.app.view.assessment(subject).state is Maturity.DEPRECATED
        assert subject not in waiting(told)


async def test_a_key_of_another_kind_of_question_says_so(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_question(told, CONTRADICTED)
        await told.press("x")
        assert "only what is proposed can be rejected" in told.toasts()[-1]


async def test_what_an_answer_changes_is_shown_before_it_is_given(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_question(told, CONTRADICTED)
        await told.until(lambda: "working out" not in pane(told, "consequence"), "the forecast")
        text = pane(told, "consequence")
        assert "running loop" in text or "No loop runs now" in text


async def test_n_and_capital_n_go_around_without_deciding(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("review")
        queue = waiting(told)
        seen = [front(told)]
        for _ in queue[1:]:
            await told.press("n")
            seen.append(front(told))
        assert seen == queue
        await told.press("n")
        assert front(told) == queue[0]
        await told.press("N")
        assert front(told) == queue[-1]
        assert waiting(told) == queue


async def test_when_all_is_answered_it_says_so(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("review")
        for _ in range(len(waiting(told))):
            await told.decides("a")
        assert waiting(told) == []
        await told.sees("Nothing waits for a decision")
        await told.press("a")
        assert "nothing waits for a decision" in told.toasts()[-1]
        assert "Review·" not in told.text()
        await told.decides("u")
        await told.sees("1 of 1")


async def test_w_leads_to_the_rules_of_the_pattern(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, INVERSION)
        await told.press("w")
        await told.until(lambda: told.place.place == "patterns", "Patterns in front")
        await told.until(lambda: told.table.cursor_key == subject, "the pattern under the cursor")
        place = told.place
        assert place._tab == "Why"  # type: ignore[attr-defined]


async def test_the_question_in_front_stays_while_others_change(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("review")
        await told.press("n")
        second = front(told)
        first = waiting(told)[0]
        told.app.decide(lambda deck: deck.deprecate(first, reason="elsewhere"))
        await told.settled()
        assert front(told) == second


async def test_a_burst_shows_whom_it_blames_and_what_would_change(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_question(told, BURST)
        assert all(id in pane(told, "subject") for id in BLAMED)
        assert "8 of them, as far as anything tells" in " ".join(pane(told, "proposal").split())
        await told.sees("If you confirm:")
        assert "revoke → the marks never count" in told.key_line()


async def test_a_revoked_burst_is_one_decision_that_u_takes_back(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        source = await at_question(told, BURST)
        await told.press("a")
        await told.until(lambda: source not in waiting(told))
        (decision,) = [one for one in told.app.view.snapshot.decisions if one.subject == source]
        assert decision.verb.value == "revoke"
        assert {aside.revoked for id in BLAMED for aside in told.app.view.board.set_aside(id)} == {True}
        await told.press("u")
        await told.until(lambda: source in waiting(told))


async def test_a_confirmed_burst_counts(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        source = await at_question(told, BURST)
        await told.press("x")
        await told.until(lambda: source not in waiting(told))
        for id in BLAMED:
            marks = [
                seen for seen in told.app.view.observations(id) if seen.loop_id == source and seen.kind == "feedback"
            ]
            assert [one.success for one in marks] == [False]


async def test_a_burst_is_no_pattern_to_promote(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_question(told, BURST)
        await told.press("p")
        assert "about many patterns at once" in told.toasts()[-1]


async def test_a_burst_can_be_snoozed(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        source = await at_question(told, BURST)
        await told.press("s")
        await told.until(lambda: source not in waiting(told))
        assert len(told.app.view.board.bursts) == 1


TWIN = "pat-error-type-mismatch-003"
OTHER_TWIN = "pat-error-type-not-assignable-001"
POOL = "pat-error-pool-timeout-009"


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


async def forecasted(told: Story) -> str:
    """What would change, once that is worked out."""
    await told.until(lambda: "working out" not in pane(told, "consequence"), "the forecast")
    return pane(told, "consequence")


async def quarantined(told: Story) -> str:
    told.app.decide(lambda deck: deck.quarantine(POOL, reason="who wrote [b]this[/]?"))
    await told.settled()
    assert await at_question(told, QUARANTINE) == POOL
    return POOL


async def test_a_text_in_quarantine_is_shown_to_the_letter_and_released_as_it_was_seen(
    sample: Path, home: Path
) -> None:
    async with story(sample, home) as told:
        await quarantined(told)
        await forecasted(told)
        assert "put into quarantine, 21:00:00, by ana" in pane(told, "subject")
        assert "who wrote [b]this[/]?" in pane(told, "subject")
        shown = pane(told, "proposal")
        assert '   - Error: "Timed out fetching a new connection from the connection pool"' in shown
        assert "src/db/pool.ts" in shown.split("In its record, and not in that text:")[1]
        assert "release → loops may get it" in told.key_line()
        assert "archive → out of the registry" in told.key_line()
        await told.decides("a")
        assert not told.app.view.assessment(POOL).quarantined
        assert POOL not in waiting(told)
        await told.decides("u")
        assert front(told) == POOL
        path = sample / told.app.view.pattern(POOL).file
        path.write_text(path.read_text().replace("Raise the connection limit", "Remove the connection limit"))
        await told.decides("a")
        assert any("another one by now" in toast for toast in told.toasts())
        assert told.app.view.assessment(POOL).quarantined


async def test_a_rejected_text_goes_to_the_archive(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await quarantined(told)
        await told.decides("x")
        assert POOL not in told.app.view.snapshot.patterns
        decision = told.app.view.snapshot.decisions[-1]
        assert (decision.verb, decision.reason) == (Verb.ARCHIVE, "rejected in review")
        await told.decides("u")
        assert front(told) == POOL


async def test_an_offer_shows_each_pattern_with_its_trace_and_is_one_decision(sample: Path, home: Path) -> None:
    async with story(sample, home, looks_further=True) as told:
        source = await at_question(told, OFFER)
        offer = told.app.view.offers[source]
        await forecasted(told)
        for proposal in offer.proposals:
            assert proposal.trace[0] in pane(told, "proposal")
        assert told.app.view.loop(source).task in pane(told, "subject")
        assert f"extract → {len(offer.new)} pattern" in told.key_line()
        assert "never → not asked again" in told.key_line()
        await told.press("p")
        assert "about no pattern yet" in told.toasts()[-1]
        await told.decides("a")
        await told.looked()
        decision = told.app.view.snapshot.decisions[-1]
        assert decision.verb is Verb.EXTRACT
        assert len(decision.after["patterns"]) == len(offer.new)
        assert source not in told.app.view.offers
        await told.press("u")
        await told.looked()
        assert front(told) == source
        for key in "sx":
            await told.decides(key)
            assert source not in waiting(told)
            await told.decides("u")
            assert front(told) == source


async def test_what_was_extracted_unattended_is_kept_or_archived(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        source = "ralph-move-the-settlement-jobs-from--18be2e49"
        told.app.decide(lambda deck: deck.extract(source, unattended=True))
        await told.settled()
        first = await at_question(told, EXTRACTED)
        assert source in pane(told, "subject")
        assert "keep → not asked again" in told.key_line()
        await told.decides("a")
        assert first in told.app.view.snapshot.patterns
        second = await at_question(told, EXTRACTED)
        assert second != first
        await told.decides("x")
        assert second not in told.app.view.snapshot.patterns


async def test_two_that_say_the_same_stand_side_by_side_with_what_a_merge_gives(sample: Path, home: Path) -> None:
    add_twin(sample)
    async with story(sample, home, looks_further=True) as told:
        assert await at_question(told, DUPLICATE) == TWIN
        text = await forecasted(told)
        for side in ("subject", "proposal"):
            lines = pane(told, side).splitlines()
            assert any(line.startswith("≠ Says: Correct") for line in lines)
            assert "  Error type: TypeError" in lines
        assert [line.split()[-1] for line in text.splitlines() if line.split()[:1] == ["state"]] == ["proven"]
        assert "goes to the archive" in text
        await told.press("d")
        assert "about two patterns" in told.toasts()[-1]
        await told.sees("merge → 20 uses, proven")
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
        await told.press("u")
        await told.looked()
        await told.decides("x")
        assert DUPLICATE not in {item.kind for item in told.app.view.queue}
        assert {TWIN, OTHER_TWIN} <= told.app.view.snapshot.patterns.keys()


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
        assert await at_question(told, ESCALATION) == "dm-stuck"
        assert waiting(told)[0] == "dm-stuck"
        await told.sees("An agent is stuck. Seen?", "src/stuck.ts", "seen → not asked again", "It changes nothing")
        assert "Run 1" in pane(told, "subject") and "[/] broke" in pane(told, "proposal")
        assert "enter  to the session in Memory" in pane(told, "consequence")
        assert told.place.why_not("promote") == "this question is about no pattern; here: a, s, enter or o"
        await told.press("enter")
        await told.settled()
        assert told.place.place == "memory" and told.table.cursor_key == session_key("dm-stuck")
        await told.press("3")
        await told.settled()
        assert told.place.why_not("edit_file") is None
        await told.decides("a")
        assert "dm-stuck" not in waiting(told)
        await told.decides("u")
        assert front(told) == "dm-stuck"
        await told.decides("s")
        assert "dm-stuck" not in waiting(told)
        for decision in told.app.view.snapshot.decisions[-3:]:
            assert "escalation at src/stuck.ts" in decision_text(decision, told.app.view, DRAWN)[1].plain


async def test_both_sides_of_an_escalation_break_for_their_own_width(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(120, 40), looks_further=False) as told:
        await at_question(told, ESCALATION)
        for name in ("subject", "proposal"):
            room = told.place.query_one(f"#review-{name}", TextPane).scrollable_content_region.width
            beside = [line for line in pane(told, name).split("\n") if line.startswith("    cause")]
            assert beside and all(len(line) <= room for line in beside)
        assert told.place.why_not("open") is None
        told.place.go_to(next(item.question_key for item in told.app.view.queue if item.kind == INVERSION))
        await told.settled()
        assert told.place.why_not("open") == "only an escalation leads on to Memory"


async def test_a_call_from_another_process_raises_a_notice_and_stands_first_in_memory(sample: Path, home: Path) -> None:
    deck = Deck(ProjectPaths(sample), Settings(), by="ada", clock=lambda: NOW, cache=False)
    deck.load()
    session = next(one for one in deck.view.snapshot.debug_sessions.values() if one.status == "in_progress")
    async with story(sample, home, size=(200, 50)) as told:
        await told.go("memory")
        on_escalation(deck, session.id, reason="needs credentials")
        await told.until(lambda: session.id in waiting(told), "the question")
        await told.until(lambda: any("needs credentials" in note.message for note in notes(told)), "the notice")
        told.place.go_to(session_key(session.id))
        await told.settled()
        assert told.table.keys.index(session_key(session.id)) < told.table.keys.index(TASKS)
        await told.sees("Wants a person: needs credentials", "called by ada", "context kept in")
        assert await at_question(told, ESCALATION)
        told.place.go_to(session.id)
        await told.settled()
        assert "needs credentials" in pane(told, "subject") and "context kept in" in pane(told, "subject")


def notes(told: Story) -> list[Notification]:
    return list(told.app._notifications)
