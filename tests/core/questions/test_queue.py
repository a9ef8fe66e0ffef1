"""Review questions in their order, their impact, and how many of them fit into a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.settings import ReviewSettings, Settings
from core.index.review_items import BORDERLINE, ReviewItem
from core.learning.scoreboard import Scoreboard
from core.questions.asking import Asker, Found, Questions, QueueRecords
from core.questions.impact import PatternImpacts, beta_losses, net, priority
from core.questions.offer import join_offers
from core.questions.queue import Pace, measure_pace, plan, review_queue, review_queue_in_steps, time_text
from core.records.debug_sessions import DebugSession, Execution, Failure
from core.records.decisions import CurationState, Decision, InversionVerdict, Pin, UnreviewedText, Verb
from core.records.events import Event
from core.records.extractions import Extraction, Proposal
from core.records.findings import Finding, Severity
from core.records.patterns import Maturity, Pattern, PatternType, Suspicion
from core.records.patterns import Severity as SuspicionSeverity
from core.records.snapshot import Snapshot
from core.tasks.escalations import EscalatedSession
from tests.bench.queue import TRUTHS, spared
from tests.factories import CURATION_NOW, make_error_pattern

SETTINGS = Settings()
LATER = CURATION_NOW + timedelta(days=10)


def used(pattern_id: str, results: str, start: datetime = CURATION_NOW + timedelta(days=1)) -> list[Event]:
    """One `applied` event a minute, `+` a success and `-` a failure, each in a loop of its own."""
    return [
        Event(
            id=f"{pattern_id}-{start:%d}-{number}",
            at=start + timedelta(minutes=number),
            kind="applied",
            pattern_id=pattern_id,
            loop_id=f"loop-{start:%d}-{number}",
            success=result == "+",
        )
        for number, result in enumerate(results)
    ]


def pin(state: Maturity, **changes: Any) -> Pin:
    values: dict[str, Any] = {
        "state": state,
        "at": CURATION_NOW,
        "by": "alice",
        "reason": "",
        "content_hash": "v1",
        "decision_id": "d1",
    }
    return Pin(**(values | changes))


def records(
    patterns: Mapping[str, Pattern], board: Scoreboard, curation: CurationState | None = None, **more: Any
) -> QueueRecords:
    values = {"now": LATER, "settings": SETTINGS, "curation": curation or CurationState(), **more}
    return QueueRecords(patterns=patterns, board=board, **values)


def queue(
    patterns: Iterable[Pattern],
    events: list[Event],
    curation: CurationState | None = None,
    alike: Sequence[tuple[str, str, float]] = (),
    offers: Mapping[str, Extraction] = MappingProxyType({}),
) -> tuple[ReviewItem, ...]:
    by_id = {pattern.id: pattern for pattern in patterns}
    curation = curation or CurationState()
    board = Scoreboard.build(Snapshot(patterns=by_id, events=tuple(events), curation=curation), LATER, SETTINGS)
    return review_queue(
        records(by_id, board, curation, found=Found(alike=tuple(alike), offers=join_offers(offers, 0.8)))
    )


def arrival(kind: str, **changes: Any) -> UnreviewedText:
    values: dict[str, Any] = {
        "kind": kind,
        "at": CURATION_NOW,
        "by": "alice",
        "decision_id": "d1",
        "blocks": kind != "extraction",
    }
    return UnreviewedText(**(values | changes))


def offer(source_id: str, new: int = 0, merges: int = 0, refused: int = 0) -> Extraction:
    record = {"error_signature": {"error_type": "E", "error_pattern": "e"}, "fix_approach": {"description": "f"}}
    proposals = [Proposal(type=PatternType.ERROR, slug="a", record=record)] * new
    proposals += [Proposal(type=PatternType.ERROR, slug="a", record=record, duplicate_of="p")] * merges
    proposals += [Proposal(type=PatternType.ERROR, slug="a", record={}, refused="too broad")] * refused
    return Extraction(source_id=source_id, proposals=tuple(proposals))


def test_without_something_to_decide_nothing_is_asked() -> None:
    p = make_error_pattern("p")
    assert queue([p], used("p", "+++")) == ()
    assert queue([], [], CurationState(pins={"gone": pin(Maturity.PROVEN)})) == ()
    assert queue([], [], offers={"l": offer("l", refused=2)}) == ()
    mirror = make_error_pattern("m", copy_folder="memory")
    assert queue([p, mirror], [], alike=[("p", "gone", 0.95), ("p", "m", 0.95)]) == (), "two registered patterns"
    snoozed = InversionVerdict(verdict="snoozed", at=CURATION_NOW, until=LATER + timedelta(hours=1))
    curation = CurationState(pins={"p": pin(Maturity.PROVEN)}, inversions={"p": snoozed})
    assert queue([p], used("p", "--++--"), curation) == (), "a snooze covers a contradicted pin"


def test_failing_pattern_gives_an_inversion_question() -> None:
    (item,) = queue([make_error_pattern("p")], used("p", "++-----"))
    assert (item.kind, item.subject) == ("inversion", "p")
    assert item.question == "5 of 7 uses of “TypeError: x is not a function” failed. Warn agents of it instead?"
    assert item.reason == "5 of 7 uses failed; given 0, used 7 (2 worked)"
    assert item.inversion is not None
    assert (item.inversion.failures, item.inversion.total) == (5, 7)


def test_a_decision_that_results_contradict_or_whose_text_changed_is_asked_about() -> None:
    (item,) = queue([make_error_pattern("p")], used("p", "--++--"), CurationState(pins={"p": pin(Maturity.PROVEN)}))
    assert item.kind == "contradicted"
    assert (
        item.question
        == "alice promoted “TypeError: x is not a function”; 4 of 6 uses failed since. Undo the promotion?"
    )
    assert item.reason == (
        "promoted by alice on 3 May 2026; since then 4 of 6 uses failed; given 0, used 6 (2 worked); "
        "the limit of the success rate is 70%"
    )
    deprecated = CurationState(pins={"p": pin(Maturity.DEPRECATED)})
    (item,) = queue([make_error_pattern("p")], used("p", "+++++++"), deprecated)
    assert item.question == (
        "alice deprecated “TypeError: x is not a function”; 7 of 7 uses succeeded since. Undo the deprecation?"
    )
    assert "since then 7 of 7 uses succeeded" in item.reason
    hostile = CurationState(pins={"[b]\x1b]0;x": pin(Maturity.PROVEN, by="alice\x1b[31m")})
    (item,) = queue([make_error_pattern("[b]\x1b]0;x", content_hash="v2")], [], hostile)
    assert item.kind == "stale-pin" and "its text has changed since; given 0, never used" in item.reason
    assert "\x1b" not in item.question + item.reason


def test_patterns_with_most_uses_and_failures_come_first() -> None:
    patterns = [make_error_pattern(name) for name in ("rare", "often", "worse")]
    events = used("rare", "---") + used("often", "+-" * 3 + "-" * 9) + used("worse", "-" * 15)
    items = queue(patterns, events)
    assert [item.subject for item in items] == ["worse", "often", "rare"]
    assert all(0 <= item.priority <= 1 for item in items)


def test_decided_inversion_leaves_the_queue_until_further_failures() -> None:
    for verdict, asked in [
        (InversionVerdict(verdict="accepted", at=CURATION_NOW), False),
        (InversionVerdict(verdict="rejected", at=CURATION_NOW, failures=5), False),
        (InversionVerdict(verdict="rejected", at=CURATION_NOW, failures=3), False),
        (InversionVerdict(verdict="rejected", at=CURATION_NOW, failures=2), True),
        (InversionVerdict(verdict="snoozed", at=CURATION_NOW, until=LATER + timedelta(hours=1)), False),
        (InversionVerdict(verdict="snoozed", at=CURATION_NOW, until=LATER), True),
        (InversionVerdict(verdict="snoozed", at=CURATION_NOW, beyond=8), False),
        (InversionVerdict(verdict="snoozed", at=CURATION_NOW, beyond=7), True),
        (InversionVerdict(verdict="snoozed", at=CURATION_NOW, until=LATER + timedelta(hours=1), beyond=7), True),
    ]:
        curation = CurationState(inversions={"p": verdict})
        items = queue([make_error_pattern("p")], used("p", "++-----"), curation)
        assert bool(items) is asked, (verdict, asked)
        # A board that is older than the verdict does not ask either.
        board = Scoreboard.build(
            Snapshot(patterns={"p": make_error_pattern("p")}, events=tuple(used("p", "++-----"))), LATER, SETTINGS
        )
        assert bool(review_queue(records({"p": make_error_pattern("p")}, board, curation))) is asked, (verdict, asked)
        if asked and verdict.verdict == "rejected":
            assert "rejected on 3 May 2026, 3 further failures since" in items[0].reason, (verdict, asked)


def test_unreviewed_text_is_asked_about_until_released() -> None:
    for kind, came in [("import", "imported"), ("quarantine", "quarantined")]:
        (item,) = queue([make_error_pattern("p")], [], CurationState(arrivals={"p": arrival(kind, reason="odd")}))
        assert (item.kind, item.subject, item.question_key) == ("quarantine", "p", "p"), (kind, came)
        assert item.reason == f"{came} by alice on 3 May 2026: odd; no agent gets it until you say yes", (kind, came)
        curation = CurationState(arrivals={"p": arrival(kind, reviewed=frozenset({"v1"}))})
        assert queue([make_error_pattern("p")], [], curation) == (), (kind, came)
        assert queue([make_error_pattern("p", content_hash="v2")], [], curation)[0].kind == "quarantine", (kind, came)


def test_impact_of_unattended_extractions_grows_with_injections() -> None:
    curation = CurationState(arrivals={"p": arrival("extraction"), "q": arrival("extraction")})
    items = queue([make_error_pattern("p"), make_error_pattern("q")], used("q", "++"), curation)
    assert [(item.kind, item.subject) for item in items] == [("extracted", "q"), ("extracted", "p")]
    assert "found in a session on 3 May 2026" in items[0].reason


def test_duplicate_question_keeps_the_more_used_pattern_but_not_one_in_quarantine() -> None:
    patterns = [make_error_pattern("a"), make_error_pattern("b"), make_error_pattern("c")]
    (item,) = queue(patterns, used("b", "+++"), alike=[("a", "b", 0.95), ("b", "c", 0.9)])
    assert (item.kind, item.subject, item.other, item.similarity) == ("duplicate", "b", "a", 0.95)
    assert item.question == "Are “TypeError: x is not a function” and “TypeError: x is not a function” the same lesson?"
    assert item.reason == "95% similar; given 0, used 3 (3 worked); the other one: given 0, never used"
    curation = CurationState(arrivals={"b": arrival("quarantine")})
    items = queue(patterns[:2], used("b", "+++"), curation, alike=[("a", "b", 0.95)])
    assert [(item.subject, item.other) for item in items if item.kind == "duplicate"] == [("a", "b")]


def test_offer_lists_what_can_be_extracted_once_for_loops_with_the_same_offer() -> None:
    for found, reason in [
        (offer("l", new=3, refused=1), "3 new lessons"),
        (offer("l", new=1, merges=2), "1 new lesson, 2 further uses of known lessons"),
        (offer("l", merges=1), "1 further use of known lessons"),
    ]:
        (item,) = queue([], [], offers={"l": found})
        assert (item.kind, item.subject, item.reason, item.offer) == ("offer", "l", reason, found), (found, reason)
    asked = queue([], [], offers={id: offer(id, new=1) for id in ("l", "m", "n")} | {"o": offer("o", merges=1)})
    assert {item.subject for item in asked} == {"l", "o"}
    assert "1 new lesson; 2 other sessions offered the same" in {item.reason for item in asked}


def test_dismissed_duplicate_is_not_asked_in_either_order() -> None:
    patterns = [make_error_pattern("a"), make_error_pattern("b")]
    pair, offers = [("a", "b", 0.9)], {"l": offer("l", new=1)}
    asked = queue(patterns, [], alike=pair, offers=offers)
    assert {item.kind for item in asked} == {"duplicate", "offer"}
    curation = CurationState(dismissed=frozenset(item.question_key for item in asked))
    assert queue(patterns, [], curation, pair, offers) == ()
    assert queue(patterns, used("b", "+++"), curation, pair, offers) == ()


def test_question_without_a_single_pattern_can_be_snoozed() -> None:
    offers = {"l": offer("l", new=1)}
    (item,) = queue([], [], offers=offers)
    for hours, asked in ((1, False), (0, True)):
        verdict = InversionVerdict(verdict="snoozed", at=CURATION_NOW, until=LATER + timedelta(hours=hours))
        curation = CurationState(inversions={item.question_key: verdict})
        assert bool(queue([], [], curation, offers=offers)) is asked


def find_escalation(**changes: Any) -> DebugSession:
    failures = (Failure(error_type="TypeError", message="x is \x1b[31mnull"), Failure(error_type="Other", message="y"))
    runs = (Execution(failures=failures), Execution())
    values: dict[str, Any] = {"id": "s-1", "file_path": "src/a.ts", "status": "escalated", "executions": runs}
    return DebugSession(**(values | {"updated_at": LATER} | changes))


def stuck(*sessions: DebugSession, curation: CurationState | None = None) -> tuple[ReviewItem, ...]:
    board = Scoreboard.build(Snapshot(), LATER, SETTINGS)
    waiting = [EscalatedSession(session=session) for session in sessions]
    return review_queue(records({}, board, curation, escalated=waiting))


def test_recent_escalation_of_open_work_comes_first_without_impact() -> None:
    new, old = stuck(find_escalation(id="old", updated_at=LATER - timedelta(days=90)), find_escalation())
    assert (new.kind, new.subject, old.subject) == ("escalation", "s-1", "old")
    assert new.question == "Escalated at src/a.ts: an agent asks for help. Have you seen it?"
    assert new.reason == (
        "escalated after 2 runs, on 13 May 2026; TypeError: x is \N{SYMBOL FOR ESCAPE}[31mnull, and 1 further failure; "
        "an agent waits until a person helps"
    )
    assert (new.is_urgent, old.is_urgent, new.impact, old.impact) == (True, False, 0.0, 0.0)
    assert old.is_worth_reading
    (item,) = stuck(find_escalation(file_path="", executions=(), updated_at=None))
    assert item.question == "Escalated: an agent asks for help. Have you seen it?"
    assert item.reason == "escalated after 0 runs; no failed run is recorded; an agent waits until a person helps"
    board = Scoreboard.build(Snapshot(), LATER, SETTINGS)
    ended = [EscalatedSession(session=find_escalation(), has_ended=True)]
    assert review_queue(records({}, board, escalated=ended)) == ()


def test_known_failures_come_before_untried_texts() -> None:
    patterns = [make_error_pattern("good"), make_error_pattern("bad")]
    asked = queue(patterns, used("good", "+" * 20) + used("bad", "--+-+--"), offers={"l": offer("l", new=1)})
    assert [item.kind for item in asked] == ["inversion", "offer"]


def test_acknowledged_escalation_returns_only_after_a_new_call() -> None:
    (item,) = stuck(find_escalation())
    curation = CurationState(dismissed=frozenset({item.question_key}))
    assert stuck(find_escalation(), curation=curation) == ()
    assert stuck(find_escalation(updated_at=LATER - timedelta(minutes=1)), curation=curation) != ()
    until = InversionVerdict(verdict="snoozed", at=CURATION_NOW, until=LATER + timedelta(hours=1))
    assert stuck(find_escalation(), curation=CurationState(inversions={item.question_key: until})) == ()


def decided(verb: Verb, minutes: float = 5, by: str = "alice", **before: Any) -> Decision:
    at = LATER - timedelta(minutes=minutes)
    return Decision(id="d1", at=at, by=by, verb=verb, subject="good", before=before)


def test_a_text_that_the_reviewer_held_back_is_not_asked_about_for_a_day() -> None:
    for decision, is_asked in [
        (decided(Verb.QUARANTINE), False),
        (decided(Verb.QUARANTINE, minutes=25 * 60), True),
        (decided(Verb.QUARANTINE, by="agent:claude"), True),
        (decided(Verb.QUARANTINE, by="bob"), True),
        (decided(Verb.QUARANTINE, content_hash="before the edit"), True),
    ]:
        pattern = make_error_pattern("good")
        curation = CurationState(arrivals={"good": arrival("quarantine")})
        board = Scoreboard.build(Snapshot(patterns={"good": pattern}, curation=curation), LATER, SETTINGS)
        found = review_queue(records({"good": pattern}, board, curation, decisions=[decision], reviewer="alice"))
        assert bool(found) == is_asked, (decision, is_asked)


def test_a_reset_answers_the_question_about_the_state_until_a_new_result() -> None:
    for failures, is_asked in [(5, False), (4, True)]:
        patterns = {"good": make_error_pattern("good")}
        events = tuple(used("good", "++-" * 5, CURATION_NOW - timedelta(days=1)))
        board = Scoreboard.build(Snapshot(patterns=patterns, events=events), LATER, SETTINGS)
        assert [one.kind for one in review_queue(records(patterns, board))] == ["borderline"], (failures, is_asked)
        decision = decided(Verb.RESET, successes=10, failures=failures)
        found = review_queue(records(patterns, board, decisions=[decision], reviewer="alice"))
        assert bool(found) == is_asked, (failures, is_asked)


OFTEN = CURATION_NOW - timedelta(days=1)
"""Used of late, so that a verdict is worth the time."""


def test_a_state_that_one_more_result_or_time_changes_is_asked_about() -> None:
    (item,) = queue([make_error_pattern("p")], used("p", "+++-++-" * 2, OFTEN))
    assert (item.kind, item.subject, item.question_key) == ("borderline", "p", "state of p")
    assert item.question == "Keep giving “TypeError: x is not a function” to agents?"
    assert item.reason == (
        "established, 4 of 14 uses failed; one more failure makes it deprecated; given 0, used 14 (10 worked); "
        "the limit of the success rate is 70%"
    )
    assert item.evidence == 14
    (item,) = queue([make_error_pattern("p")], used("p", "++-" * 5, OFTEN))
    assert (item.question, item.asks) == (
        "Let agents have “TypeError: x is not a function” again?",
        "Let agents have this lesson again?",
    )
    assert "the limit of the success rate is 70%" in item.reason
    (item,) = queue([make_error_pattern("p", type=PatternType.ANTI)], used("p", "++-" * 5, OFTEN))
    assert "the warning was right in 10 of 15" in item.reason
    assert "the limit of the rate of right warnings is 70%" in item.reason
    (item,) = queue([make_error_pattern("p")], used("p", "+++++-", LATER - timedelta(days=20)))
    assert "by age alone it is" in item.reason or "one more" in item.reason


def test_borderline_state_of_low_impact_is_not_asked_about() -> None:
    snoozed = InversionVerdict(verdict="snoozed", at=CURATION_NOW, beyond=4)
    for results, curation in [
        ("+" * 30, CurationState()),  # sure
        ("++-" * 5, CurationState(pins={"p": pin(Maturity.PROVEN, at=LATER)})),  # decided
        ("", CurationState()),  # no uses
        ("++-", CurationState(dismissed=frozenset({"state of p"}))),
        ("++-", CurationState(inversions={"state of p": snoozed})),
    ]:
        asked = queue([make_error_pattern("p")], used("p", results, OFTEN), curation)
        assert "borderline" not in {item.kind for item in asked}, (results, curation)


def test_questions_with_one_key_are_asked_once() -> None:
    patterns = {"p": make_error_pattern("p", error_pattern=".*")}
    curation = CurationState(arrivals={"p": arrival("extraction")})
    snapshot = Snapshot(patterns=patterns, events=tuple(used("p", "++-----")), curation=curation)
    board = Scoreboard.build(snapshot, LATER, SETTINGS)
    doubt = Finding("f.json", "", Severity.WARNING, "claim-below-evidence", "registry records 2 uses")
    found = Found(broad={"p": 0.9}, unreconciled={"p": doubt})
    items = review_queue(records(patterns, board, curation, found=found))
    keys = [item.question_key for item in items]
    assert len(set(keys)) == len(keys)
    assert {"p", "counts of p"} <= set(keys)
    assert "trigger of p" not in keys  # no loop gets it while its inversion waits
    assert items == review_queue(records(patterns, board, curation, found=found))


def test_broad_trigger_question_shows_the_matched_share() -> None:
    patterns = {"p": make_error_pattern("p", error_pattern=".*\x1b")}
    board = Scoreboard.build(Snapshot(patterns=patterns, events=tuple(used("p", "+++"))), LATER, SETTINGS)
    items = review_queue(records(patterns, board, found=Found(broad={"p": 0.9, "gone": 1.0})))
    (item,) = [item for item in items if item.kind == "broad"]
    assert item.question == "The trigger of “TypeError: x is not a function” matches nearly everything. Hold it back?"
    assert item.reason == ".*\N{SYMBOL FOR ESCAPE} matches 90% of common messages; given 0, used 3 (3 worked)"


def test_queue_does_not_depend_on_time_alone() -> None:
    patterns, curation = {"p": make_error_pattern("p")}, CurationState()
    board = Scoreboard.build(Snapshot(patterns=patterns, events=tuple(used("p", "++-----"))), LATER, SETTINGS)
    later = LATER + timedelta(minutes=1)
    now, soon = (review_queue(records(patterns, board.rescored(at), curation, now=at)) for at in (LATER, later))
    assert now == soon
    assert now[0].impact > soon[0].impact


_IDS = ("p", "q", "r", "s")
_SUSPICION = Suspicion(rule="shell", severity=SuspicionSeverity.BLOCKED, field="description", excerpt="curl")


def test_held_texts_are_in_the_order_of_their_risk_and_other_questions_keep_their_places() -> None:
    """Blocked ones come first, then those with more marks, then those that more loops would get."""
    mark = partial(Suspicion, field="description", excerpt="x")
    held, blocked = SuspicionSeverity.HELD, SuspicionSeverity.BLOCKED
    marks = {
        "one-mark": (mark("a", held),),
        "one-mark-used": (mark("a", held),),
        "two-marks": (mark("a", held), mark("b", held)),
        "blocked": (mark("c", blocked),),
    }
    patterns = {id: replace(make_error_pattern(id, description=id), suspicions=found) for id, found in marks.items()}
    patterns |= {"failing": make_error_pattern("failing")}
    events = (*used("one-mark-used", "+" * 9), *used("two-marks", "+"), *used("failing", "-----"))
    board = Scoreboard.build(Snapshot(patterns=patterns, events=events), LATER, SETTINGS)
    queue = review_queue(records(patterns, board))
    assert [item.subject for item in queue if item.risk] == ["blocked", "two-marks", "one-mark-used", "one-mark"]
    place = [item.subject for item in queue].index("failing")
    by_impact = sorted(queue, key=lambda item: -item.priority)
    assert by_impact[place].subject == "failing"


@st.composite
def states(draw: st.DrawFn) -> tuple[dict[str, Pattern], list[Event], CurationState, datetime, Found]:
    """Records, decisions and results of searches of a small project; drawn from few values, so that many are equal."""

    def each(values: st.SearchStrategy[Any]) -> dict[str, Any]:
        drawn = {id: draw(values) for id in _IDS}
        return {id: value for id, value in drawn.items() if value is not None}

    def maybe(*values: Any) -> st.SearchStrategy[Any]:
        return st.sampled_from((None, *values))

    texts, suspicions = each(st.sampled_from("aab")), each(st.sampled_from(((), (), (_SUSPICION,))))
    patterns = {
        id: replace(make_error_pattern(id, description=text, content_hash=text), suspicions=suspicions[id])
        for id, text in texts.items()
    }
    verdicts = [InversionVerdict(verdict=verdict, at=CURATION_NOW) for verdict in ("accepted", "rejected", "snoozed")]
    pins = [pin(state, content_hash="a") for state in (Maturity.PROVEN, Maturity.DEPRECATED)]
    curation = CurationState(
        pins=each(maybe(None, None, *pins)),
        arrivals=each(maybe(None, None, arrival("import"), arrival("extraction"), arrival("extraction", by="bob"))),
        inversions=each(maybe(*verdicts)),
    )
    doubts = [Finding("f", "", Severity.WARNING, "claim-disagrees", text) for text in "xy"]
    found = Found(
        alike=(("p", "q", draw(st.sampled_from((0.8, 0.9)))), ("r", "s", 0.8)),
        broad=each(maybe(0.5, 0.6)),
        unreconciled=each(maybe(*doubts)),
    )
    results = each(st.sampled_from(("", "-----", "+-----", "++-++-", "+" * 9)))
    events = [event for id, uses in results.items() for event in used(id, uses)]
    return patterns, events, curation, LATER + timedelta(days=draw(st.sampled_from((0, 0, 100)))), found


@pytest.mark.slow
@given(st.lists(states(), min_size=2, max_size=4))
def test_queue_with_known_questions_equals_a_new_one(
    projects: list[tuple[dict[str, Pattern], list[Event], CurationState, datetime, Found]],
) -> None:
    known: Questions = {}
    for patterns, events, curation, now, found in projects:
        snapshot = Snapshot(patterns=patterns, events=tuple(events), curation=curation)
        board = Scoreboard.build(snapshot, now, SETTINGS)
        all_records = records(patterns, board, curation, now=now, found=found)
        left_out = review_queue_in_steps(all_records, known)
        assert all(step is None for step in islice(left_out, 2)), "the state changes before all steps are done"
        updated = review_queue(all_records, known)
        rebuilt = review_queue(all_records)
        assert updated == rebuilt
        assert [(one.impact, one.priority, one.question_key) for one in updated] == [
            (one.impact, one.priority, one.question_key) for one in rebuilt
        ]
        assert [one.inversion for one in updated] == [one.inversion for one in rebuilt]


def test_questions_of_unchanged_patterns_are_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def item(scales: Asker, kind: str, subject: str, **more: Any) -> ReviewItem:
        made.append(subject)
        return original(scales, kind, subject, **more)

    original = Asker.item
    monkeypatch.setattr(Asker, "item", item)
    patterns = {id: make_error_pattern(id) for id in _IDS}
    known: Questions = {}
    for results in ("+-----", "+------"):
        events = tuple(event for id in _IDS for event in used(id, results if id == "q" else "+-----"))
        board = Scoreboard.build(Snapshot(patterns=patterns, events=events), LATER, SETTINGS)
        made.clear()
        assert len(review_queue(records(patterns, board), known)) == len(_IDS)
    assert made == ["q"]


def stakes(**results: str) -> tuple[Scoreboard, PatternImpacts]:
    patterns: dict[str, Pattern] = {name: make_error_pattern(name) for name in results}
    events = [event for name, outcomes in results.items() for event in used(name, outcomes)]
    board = Scoreboard.build(Snapshot(patterns=patterns, events=tuple(events)), LATER, SETTINGS)
    return board, PatternImpacts.of(board, SETTINGS)


def test_impact_order_prevents_more_failures_than_simple_orders() -> None:
    for truth in ["most good, few bad", "good or bad", "anything"]:
        found = {name: values[0] for name, values in spared(TRUTHS[truth], 600, range(3), (20,)).items()}
        ours, hindsight = found.pop("ours"), found.pop("hindsight")
        assert ours >= 1.5 * max(found.values()), truth
        assert ours <= hindsight, truth


def test_impact_grows_with_uses_and_uncertainty_and_depends_on_whether_the_pattern_is_withheld() -> None:
    board, found = stakes(sure="+" * 30, unsure="++-+" * 3, often="+++-" * 20, rare="+++-", never="")
    held = {id: found.held[board.row(id)] for id in board.ids}
    assert held["unsure"] > held["sure"]
    assert held["often"] > 0
    assert held["never"] < held["rare"]
    board, found = stakes(failing="-" * 9 + "+", working="+" * 9 + "-")
    failing, working = board.row("failing"), board.row("working")
    assert found.is_withheld[failing] and not found.is_withheld[working]
    assert found.chance[failing] > 0.9
    assert found.chance[working] < 0.2
    np.testing.assert_allclose(found.held, found.uses * np.where(found.is_withheld, found.above, found.below))
    _, found = stakes(new="")
    assert 0 < found.unjudged[0] < 0.7
    assert 0 < found.unjudged[1] < 0.3


def test_priority_is_zero_if_reading_costs_more() -> None:
    assert net(1.0, 3600.0, SETTINGS) == 0.0
    assert priority(1.0, 7200.0, SETTINGS) == 0.0
    assert 0.0 < priority(0.1, 20.0, SETTINGS) < priority(1.0, 20.0, SETTINGS) < 1.0


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9])
def test_beta_losses_equal_numerical_integrals(threshold: float) -> None:
    from scipy.integrate import quad
    from scipy.stats import beta

    good, bad = np.array([1.5, 4.0, 30.0, 4.0]), np.array([2.0, 0.7, 12.0, 0.7])
    below, above, chance = beta_losses(good, bad, threshold)
    for row, (a, b) in enumerate(zip(good, bad, strict=True)):
        density = beta(a, b).pdf
        assert chance[row] == pytest.approx(quad(density, 0.0, threshold)[0])
        assert below[row] == pytest.approx(quad(lambda p, f=density: (threshold - p) * f(p), 0.0, threshold)[0])
        assert above[row] == pytest.approx(quad(lambda p, f=density: (p - threshold) * f(p), threshold, 1.0)[0])


def test_more_results_than_the_maximum_do_not_make_a_rate_more_certain() -> None:
    capped = beta_losses(np.array([6e8]), np.array([4e8]), 0.6)
    most = beta_losses(np.array([180.0]), np.array([120.0]), 0.6)
    np.testing.assert_allclose(capped, most)


PLAN_SETTINGS = Settings(review=ReviewSettings(worthwhile_per_hour=1.0))
HOUR = 3600.0


def planned(name: str, impact: float, seconds: float = 20.0) -> ReviewItem:
    return ReviewItem(
        kind=BORDERLINE, subject=name, question="?", reason="", priority=0.5, impact=impact, seconds=seconds
    )


def made_decisions(
    gaps: Iterable[float], by: str = "ada", verb: Verb = Verb.PROMOTE, group: str = ""
) -> list[Decision]:
    made, at = [], CURATION_NOW
    for number, gap in enumerate(gaps):
        at += timedelta(seconds=gap)
        made.append(Decision(id=f"{by}{number}", at=at, by=by, verb=verb, subject="p", group=group))
    return made


def names(items: Iterable[ReviewItem]) -> str:
    return "".join(planned.subject for planned in items)


def test_a_session_takes_the_most_impact_per_second() -> None:
    queue = [planned("a", 2.0, 60), planned("b", 1.5, 20), planned("c", 0.9, 20), planned("d", 0.1, 20)]
    found = plan(queue, 1.0, PLAN_SETTINGS)
    assert (names(found.items), found.seconds, found.later, found.left) == ("bcd", 60.0, 1, 0)
    assert found.share == pytest.approx(2.5 / 4.5)
    assert found.text == "3 questions, about 1 min; 1 more for later"
    assert plan([], 12.0, PLAN_SETTINGS).text == "12 min: no open questions"
    assert plan([], 12.0, PLAN_SETTINGS).share == 1.0
    assert plan([planned("a", 1.0)], 0.1, PLAN_SETTINGS).text == "0.1 min: too short for the next question"


def test_a_blocked_agent_comes_first_and_has_no_impact() -> None:
    waits = dataclasses.replace(planned("w", 0.0), is_urgent=True)
    found = plan([planned("a", 1.0), waits, planned("b", 3.0)], 0.7, PLAN_SETTINGS)
    assert (names(found.items), found.share) == ("wb", 0.75)
    assert "1 waiting agent first" in found.text


def test_questions_of_low_impact_are_left_out() -> None:
    threshold = 20 / HOUR
    queue = [planned("a", threshold * 1.01), planned("b", threshold * 0.99)]
    found = plan(queue, 60.0, PLAN_SETTINGS)
    assert (names(found.items), found.left) == ("a", 1)
    assert plan(queue[1:], 60.0, PLAN_SETTINGS).items == ()


def test_a_slow_reader_gets_fewer_questions() -> None:
    queue = [planned(name, 1.0, seconds) for name, seconds in (("a", 10.0), ("b", 20.0), ("c", 30.0))]
    assert names(plan(queue, 1.0, PLAN_SETTINGS).items) == "abc"
    slow = plan(queue, 1.0, PLAN_SETTINGS, Pace(seconds=40.0, pauses=200))
    assert names(slow.items) == "ab"
    assert slow.seconds == pytest.approx(30 * (20 * 20 + 200 * 40) / 220 / 20)
    assert names(plan(queue, 1.0, PLAN_SETTINGS, Pace()).items) == "abc"


def test_pace_is_the_median_pause_within_sessions_without_bulk_decisions_and_undo() -> None:
    assert measure_pace(made_decisions([0, 10, 12, 14, 16, 18, 3600, 20]), "ada") == Pace(seconds=15.0, pauses=6)
    assert measure_pace(made_decisions([0, 10, 12, 14, 16]), "ada").seconds is None
    assert measure_pace(made_decisions([0, 10, 12, 14, 16, 18]), "bob") == Pace()
    assert measure_pace(made_decisions([0, 1, 1, 1, 1, 1, 1], group="g"), "ada").pauses == 0
    assert measure_pace(made_decisions([0, 1, 1, 1, 1, 1, 1], verb=Verb.UNDO), "ada").pauses == 0


def test_a_few_quick_answers_change_the_estimate_little() -> None:
    queue = [planned(str(number), 1.0, 24.0) for number in range(30)]
    assert time_text(queue, Pace()) == "about 12 min"
    assert time_text(queue, Pace(seconds=4.0, pauses=5)) == "about 10 min"
    assert time_text(queue, Pace(seconds=4.0, pauses=200)) == "about 3 min"
