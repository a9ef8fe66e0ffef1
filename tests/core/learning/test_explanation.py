"""Explanations of states, lineage, and counts that disagree with the evidence."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.explanation import (
    Explanation,
    LineageEvent,
    RuleLine,
    build_lineage,
    explain_state,
    format_lineage,
    loop_results,
    reconcile_record,
)
from core.learning.maturity import maturity_state
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState, Decision, Verb
from core.records.loops import Loop
from core.records.patterns import Maturity, Pattern, PatternType, SourceLoop, TrendPoint
from core.records.snapshot import Snapshot
from tests.factories import (
    NOW,
    NULL_CHECK_015,
    SETTINGS,
    TYPE_MISMATCH,
    collect_observations,
    days_ago,
    example_loops,
    example_patterns,
    make_board,
    make_event,
    make_pattern,
    make_pin,
    make_recorded_counts,
    make_source,
    make_use,
)


def explained(board: Scoreboard, pattern: Pattern) -> Explanation:
    return explain_state(board.assessment(pattern.id), board.observations(pattern.id), board.now, SETTINGS)


def why(board: Scoreboard, pattern: Pattern) -> dict[str, list[RuleLine]]:
    lines: dict[str, list[RuleLine]] = {}
    for line in explained(board, pattern).lines:
        lines.setdefault(line.rule, []).append(line)
    return lines


@pytest.mark.parametrize(
    ("successes", "failures", "verdict"),
    [
        (1, 0, "Not established yet: 2 more successes needed"),
        (4, 0, "Not proven yet: 1 more success needed (4.00 of 5"),
        (9, 1, "Proven: 9.00 successes"),
        (2, 2, "Deprecated: 50 % of its results failed, more than 30 %; 3 more successes would make it established."),
        (3, 1, "Not proven yet: 3 more successes needed"),
    ],
)
def test_the_first_line_is_the_verdict(successes: int, failures: int, verdict: str) -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(successes, failures), last_used=NOW)
    first, *_ = explained(make_board(pattern), pattern).lines
    assert first.rule == "verdict" and first.text.startswith(verdict)


def test_the_verdict_warns_of_the_next_failure_and_names_who_pinned_the_state() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(3, 1), last_used=NOW)
    assert why(make_board(pattern), pattern)["verdict"][0].text.endswith(" One more failure makes it deprecated.")
    curation = CurationState(pins={pattern.id: make_pin(Maturity.PROVEN, NOW)})
    text = why(make_board(pattern, curation=curation), pattern)["verdict"][0].text
    assert text.startswith("Proven, because ada ") and text.endswith("by its results it would be established.")


def test_the_explanation_of_an_example_pattern() -> None:
    patterns = example_patterns()
    board = Scoreboard.build(Snapshot(patterns=patterns, loops=example_loops()), NOW, SETTINGS)
    lines = why(board, patterns[NULL_CHECK_015])
    assert lines["decided"][0].text == "established by rule"
    ratio, total = lines["deprecated"]
    assert (ratio.holds, total.holds) == (False, True)
    assert ratio.distance == pytest.approx(-0.05, abs=0.001)
    assert lines["to proven"][0].text == "takes 3 more successes"
    assert lines["to deprecated"][0].text == "takes 1 more failure"
    assert lines["to candidate"][0].text == "not by successes alone or failures alone"
    assert lines["one failure"][0].text == "makes it deprecated"
    assert lines["calendar"][0].text == "changes to candidate in 38 days (2026-03-12) if unused"


def test_a_decisive_loop_is_named() -> None:
    pattern = make_pattern()

    def rests(*names: str) -> RuleLine:
        loops = {name: Loop(id=name, ended_at=NOW, injected=(make_use(pattern.id, True),)) for name in names}
        return why(make_board(pattern, loops=loops), pattern)["rests on"][0]

    assert rests("a", "b", "c", "d").text == "4 loops; no single one is decisive"
    named = "without a it would be candidate, without b it would be candidate, without c it would be candidate"
    assert rests("a", "b", "c").text == f"3 loops; {named}"
    assert rests().text == "no result yet"


def test_explanations_name_who_decided_and_a_pending_inversion() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(2, 5))
    assert "inversion is pending" in why(make_board(pattern), pattern)["decided"][0].text
    made = make_pin(Maturity.DEPRECATED, days_ago(3), reason="leaks\x1b]0;x\x07")
    curation = CurationState(pins={pattern.id: made})
    text = why(make_board(pattern, curation=curation), pattern)["decided"][0].text
    assert text.startswith("decided by a person: deprecated by ada on 2026-01-31: leaks") and "\x1b" not in text


def test_no_result_changes_a_pinned_state_and_no_rule_has_fired() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(7, 3), last_used=NOW)
    curation = CurationState(pins={pattern.id: make_pin(Maturity.DEPRECATED, NOW)})
    lines = why(make_board(pattern, curation=curation), pattern)
    assert [line.rule for found in lines.values() for line in found if line.fired] == ["decided"]
    (once,) = lines["once reset"]
    assert once.text == "results do not change a pinned state; after a reset it is established"


def test_small_distances_and_times_are_not_shown_as_zero() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(3, 0), last_used=days_ago(0.4))
    lines = why(make_board(pattern), pattern)
    assert "0.0" not in lines["calendar"][0].text and " hour (" in lines["calendar"][0].text
    just = make_pattern(recorded_counts=make_recorded_counts(100_001, 17_649), last_used=NOW)
    assert "no, 1e-05 away" in why(make_board(just), just)["proven"][1].text


def test_an_anti_pattern_has_no_rule_of_inversion() -> None:
    board = make_board(make_pattern())
    found = explain_state(board.assessment(board.ids[0]), (), NOW, SETTINGS, invertible=False)
    assert not any(line.rule == "inversion" for line in found.lines)


def test_only_the_deciding_rule_has_fired() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(6, 0), last_used=NOW)
    fired = [line for lines in why(make_board(pattern), pattern).values() for line in lines if line.fired]
    assert {(line.rule, line.holds) for line in fired} == {("proven", True)}


def test_each_event_shows_its_weight_when_new_and_today() -> None:
    pattern = make_pattern()
    old = (("a", 180), ("b", 90), ("c", 0))
    loops = {name: Loop(id=name, ended_at=days_ago(age), injected=(make_use(pattern.id, True),)) for name, age in old}
    events = explained(make_board(pattern, loops=loops), pattern).events
    assert [(event.raw, event.today) for event in events] == [(1, 1.0), (1, 0.5), (1, 0.25)]


_RESULTS = st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.sampled_from("abc")), max_size=12)


@given(_RESULTS)
def test_predicted_changes_happen(results: list[tuple[int, bool, str]]) -> None:
    pattern = make_pattern()
    events = tuple(
        make_event(number, "applied", days_ago(age), success=success, loop_id=loop, iteration=number)
        for number, (age, success, loop) in enumerate(results)
    )
    board = make_board(pattern, events=events)
    state = board.assessment(pattern.id).computed
    seen = board.observations(pattern.id)
    found = explained(board, pattern)

    def after(count: int, helpful: bool) -> Maturity:
        more = [make_event(900 + n, "applied", NOW, success=helpful, loop_id=f"new{n}") for n in range(count)]
        return make_board(pattern, events=(*events, *more)).assessment(pattern.id).computed

    for step in found.steps:
        if step.count < 40:
            assert after(step.count, step.helpful) is step.state
            assert after(step.count - 1, step.helpful) is not step.state
    for share in found.loops:
        rest = [one for one in seen if one.loop_id != share.loop_id]
        assert share.state_without is maturity_state(rest, NOW, SETTINGS.maturity)
    for at, change in found.calendar:
        assert maturity_state(seen, at - timedelta(seconds=2), SETTINGS.maturity) is state
        state = change
        assert maturity_state(seen, at, SETTINGS.maturity) is state


DOCUMENT = """\
Pattern: pat-error-null-check-015

Discovered: ralph-fix-auth-a1b2c3d4 (2026-02-02T15:00:00Z)
Applied:    ralph-fix-validation-b2c3d4e5 (2026-02-02T16:30:00Z) ✓
Applied:    ralph-fix-user-c3d4e5f6 (2026-02-02T18:00:00Z) ✓
Applied:    ralph-fix-api-d4e5f6a7 (2026-02-02T19:15:00Z) ✗

Success rate: 75% (3/4)
"""


def lineage_of(pattern: Pattern, board: Scoreboard, *decisions: Decision, **loops: Loop) -> tuple[LineageEvent, ...]:
    return build_lineage(pattern, board.observations(pattern.id), decisions, loops)


def test_the_lineage_block_has_its_exact_text() -> None:
    patterns, loops = example_patterns(), example_loops()
    board = Scoreboard.build(Snapshot(patterns=patterns, loops=loops), NOW, SETTINGS)
    pattern, found = patterns[NULL_CHECK_015], board.assessment(NULL_CHECK_015)
    events = build_lineage(pattern, board.observations(pattern.id), (), loops)
    assert format_lineage(pattern, events, found) == DOCUMENT


def test_each_loop_has_its_result_in_the_words_of_the_screens() -> None:
    pattern = make_pattern(source_loops=(make_source("a", days_ago(9)),), first_discovered=days_ago(9))
    loops = {
        id: Loop(id=id, ended_at=days_ago(days), injected=(make_use(pattern.id, success),))
        for id, days, success in (("b", 5, True), ("c", 3, False))
    }
    lineage = lineage_of(pattern, make_board(pattern, loops=loops), **loops)
    assert [f"{one.loop_id} ({one.result})" for one in loop_results(pattern, lineage)] == [
        "a (found)",
        "b (used, worked)",
        "c (used, failed)",
    ]


def test_uses_without_a_record_are_one_line() -> None:
    patterns, loops = example_patterns(), example_loops()
    board = Scoreboard.build(Snapshot(patterns=patterns, loops=loops), NOW, SETTINGS)
    events = build_lineage(patterns[TYPE_MISMATCH], board.observations(TYPE_MISMATCH), (), loops)
    # 18 uses: the discovery, a recorded one, two of source loops without a record, and the rest.
    assert [(one.kind, one.count) for one in events if one.kind == "unrecorded"] == [("unrecorded", 14)]
    assert sum(one.count for one in events) == 18
    # It is unknown which of the uses known only as counts failed.
    assert [one.success for one in events if one.loop_id in ("ralph-b", "ralph-c")] == [None, None]


def test_injected_only_is_shown_and_gives_no_result() -> None:
    pattern = make_pattern()
    loop = Loop(id="a", task="Fix it", ended_at=days_ago(1), injected=(make_use(pattern.id, None, applied=False),))
    (seen,) = lineage_of(pattern, make_board(pattern, loops={"a": loop}), a=loop)
    assert (seen.kind, seen.success, seen.text) == ("injected", None, "given, no recorded use: Fix it")


def test_a_loop_that_finds_a_pattern_again_merges() -> None:
    pattern = make_pattern(source_loops=(make_source("a", days_ago(9)),))
    again = make_event(1, "extracted", days_ago(4), loop_id="b")
    found = lineage_of(pattern, make_board(pattern, events=(again,)))
    assert [(one.kind, one.loop_id) for one in found] == [("discovered", "a"), ("merged", "b")]
    given = make_event(2, "injected", days_ago(5), loop_id="b")
    first = make_event(0, "extracted", days_ago(9), loop_id="a")
    found = lineage_of(pattern, make_board(pattern, events=(first, given, again)))
    assert found[-1].loop_id == "b" and "given" in found[-1].text, "it was not found without the lesson"


def test_a_source_loop_beyond_the_uses_found_it_again() -> None:
    sources = (make_source("a", days_ago(9)), make_source("b", days_ago(8)), make_source("c", days_ago(7)))
    pattern = make_pattern(recorded_counts=make_recorded_counts(2, 0), source_loops=sources)
    found = lineage_of(pattern, make_board(pattern))
    assert [(one.kind, one.loop_id) for one in found] == [("discovered", "a"), ("applied", "b"), ("merged", "c")]
    assert found[2].success is None and found[2].text == "found again"


def test_a_source_loop_keeps_its_own_outcome() -> None:
    pattern = make_pattern(
        recorded_counts=make_recorded_counts(2, 1),
        source_loops=(make_source("a", days_ago(9)), SourceLoop(loop_id="b", at=days_ago(8), outcome="failure")),
    )
    assert [one.success for one in lineage_of(pattern, make_board(pattern)) if one.loop_id == "b"] == [False]


def test_inversions_and_decisions_are_in_both_lineages() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(2, 5), last_used=days_ago(9))
    anti = make_pattern("pat-anti-sample-001", PatternType.ANTI, inverted_from=pattern.id)

    def decide(number: int, verb: Verb, subject: str, **after: str) -> Decision:
        at = NOW + timedelta(minutes=number)
        return Decision(id=f"d{number}", at=at, by="ada", verb=verb, subject=subject, after=dict(after))

    decisions = (
        decide(1, Verb.NOTE, "pat-error-other-001"),
        decide(2, Verb.ACCEPT_INVERSION, pattern.id, anti_id=anti.id),
        decide(3, Verb.UNDO, "d2"),
        decide(4, Verb.UNDO, "d1"),
    )
    board = make_board(pattern, anti)
    assert [one.text for one in lineage_of(pattern, board, *decisions) if one.kind in ("inverted", "decided")] == [
        "inverted to pat-anti-sample-001 by ada",
        "undo accept inversion by ada",
    ]
    assert "inverted from pat-error-sample-001 by ada" in [one.text for one in lineage_of(anti, board, *decisions)]


def test_the_discovery_comes_first_even_without_a_date() -> None:
    pattern = make_pattern(source_loops=(make_source("a"),))
    feedback = make_event(1, "feedback", days_ago(4), success=True)
    assert [one.kind for one in lineage_of(pattern, make_board(pattern, events=(feedback,)))] == [
        "discovered",
        "applied",
    ]


def test_the_lineage_of_an_anti_pattern_lists_failures() -> None:
    pattern = make_pattern(
        "pat-anti-sample-001",
        PatternType.ANTI,
        recorded_counts=make_recorded_counts(3, 1),
        source_loops=(make_source("a", days_ago(9)), SourceLoop(loop_id="b", at=days_ago(8), iteration=12)),
    )
    loop = Loop(id="c", ended_at=days_ago(1), injected=(make_use(pattern.id, False, at=days_ago(2)),))
    board = make_board(pattern, loops={"c": loop})
    found = lineage_of(pattern, board, c=loop)
    assert [one.text for one in found] == [
        "found",
        "+1 occurrence without a record",
        "the approach failed in iteration 12, recorded only as a count",
        "the approach did not fail",
    ]
    lines = format_lineage(pattern, found, board.assessment(pattern.id)).splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["Discovered:", "Unrecorded:", "Failed:", "Worked:"]
    assert lines[-1] == "Failure rate: 75% (3/4)"


def test_hostile_ids_leave_no_control_character_in_the_block() -> None:
    pattern = make_pattern("x\x1b[2J\n", source_loops=(make_source("a\x07\nInjected:"),))
    board = make_board(pattern)
    text = format_lineage(pattern, lineage_of(pattern, board), board.assessment(pattern.id))
    assert "\x1b" not in text and "\x07" not in text
    assert len(text.splitlines()) == 5


def test_decisions_about_many_patterns_are_in_each_lineage() -> None:
    merged, removed = make_pattern("pat-error-kept-001"), make_pattern("pat-error-gone-002")
    both = [merged.id, removed.id]

    def decide(number: int, verb: Verb, subject: str, **after: object) -> Decision:
        at = NOW + timedelta(minutes=number)
        return Decision(id=f"d{number}", at=at, by="ada", verb=verb, subject=subject, after=dict(after))

    decisions = (
        decide(1, Verb.EXTRACT, "ralph-a", patterns=[merged.id], joined=[removed.id]),
        decide(2, Verb.IMPORT, "team.json", patterns=both),
        decide(3, Verb.QUARANTINE, removed.id),
        decide(4, Verb.MERGE, merged.id, merged=removed.id, patterns=both),
        decide(5, Verb.ARCHIVE, "prune", patterns=both),
        decide(6, Verb.UNDO, "d5"),
        decide(7, Verb.REVOKE, "ralph-b", patterns=[merged.id]),
        decide(8, Verb.ARCHIVE, "prune", patterns=["pat-error-other-003"]),
    )
    board = make_board(merged, removed)
    assert format_lineage(merged, lineage_of(merged, board, *decisions), board.assessment(merged.id)) == (
        "Pattern: pat-error-kept-001\n\n"
        "Decided:    extract from ralph-a by ada (2026-02-03T00:01:00Z)\n"
        "Decided:    import from team.json by ada (2026-02-03T00:02:00Z)\n"
        "Merged:     pat-error-gone-002 into it by ada (2026-02-03T00:04:00Z)\n"
        "Decided:    archive (prune) by ada (2026-02-03T00:05:00Z)\n"
        "Decided:    undo archive by ada (2026-02-03T00:06:00Z)\n"
        "Decided:    revoke (ralph-b) by ada (2026-02-03T00:07:00Z)\n"
    )
    assert [(one.kind, one.text) for one in lineage_of(removed, board, *decisions)] == [
        ("decided", "extract from ralph-a, joined to it by ada"),
        ("decided", "import from team.json by ada"),
        ("decided", "quarantine by ada"),
        ("merged", "into pat-error-kept-001 by ada"),
        ("decided", "archive (prune) by ada"),
        ("decided", "undo archive by ada"),
    ]


ID = "pat-error-sample-001"


def test_reconcile_reports_unrecorded_uses() -> None:
    uses = [(Loop(id=id), make_use(ID, True)) for id in "abc"]
    pattern = make_pattern(
        recorded_counts=make_recorded_counts(12, 0), source_loops=(make_source("d", days_ago(4)),), file="f.json"
    )
    findings = reconcile_record(pattern, collect_observations(pattern, uses), NOW, {"a", "b", "c", "d"})
    assert [finding.message for finding in findings] == [
        "its file counts 12 uses: 4 of recorded sessions, 8 without one"
    ]
    assert findings[0].file == "f.json" and findings[0].pointer == "/usage_count"


def test_reconcile_reports_invalid_data() -> None:
    future = NOW + timedelta(days=3)
    pattern = make_pattern(
        recorded_counts=make_recorded_counts(1, 0),
        source_loops=(make_source("a", future), make_source("gone\x1b[2J"), make_source("a")),
        trend=(TrendPoint(at=days_ago(1)),),
    )
    uses = [(Loop(id="b"), make_use(ID, False, at=days_ago(1)))]
    findings = reconcile_record(pattern, collect_observations(pattern, uses), NOW, {"a", "b"})
    assert [finding.code for finding in findings] == [
        "claim-below-evidence",
        "future-time",
        "bad-trend",
        "orphan-loop",
        "duplicate-loop",
    ]
    assert not any("\x1b" in finding.message for finding in findings)


def test_reconcile_reports_a_failure_missing_in_the_record() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(4, 0))
    uses = [(Loop(id="b", ended_at=days_ago(1)), make_use(ID, False))]
    codes = [finding.code for finding in reconcile_record(pattern, collect_observations(pattern, uses), NOW)]
    assert codes == ["unrecorded-uses", "claim-disagrees"]


def test_matching_counts_give_no_finding() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(1, 0), source_loops=(make_source("a", days_ago(2)),))
    assert reconcile_record(pattern, collect_observations(pattern), NOW, {"a"}) == ()


def test_a_pattern_record_with_fewer_uses_gives_no_warning() -> None:
    uses = [(Loop(id=id, ended_at=NOW), make_use(ID, True)) for id in "abc"]
    pattern = make_pattern(recorded_counts=make_recorded_counts(2, 0), last_used=days_ago(3))
    findings = reconcile_record(pattern, collect_observations(pattern, uses), NOW, {"a", "b", "c"})
    assert [(finding.code, finding.message) for finding in findings] == [
        ("later-uses", "3 uses since the last one that the registry counts"),
        ("unrecorded-uses", "its file counts 2 uses: 0 of recorded sessions, 2 without one"),
    ]


def test_lessons_and_loops_of_other_runners_are_not_orphans() -> None:
    pattern = make_pattern("p", source_loops=(make_source("lesson:0c1d"), make_source("codex:0199")))
    assert not [one for one in reconcile_record(pattern, (), NOW, {"a"}) if one.code == "orphan-loop"]


def test_a_source_with_any_known_record_is_not_an_orphan() -> None:
    pattern = make_pattern("p", source_loops=(make_source("task-001"), make_source("gone")))
    findings = reconcile_record(pattern, (), NOW, {"a"}, {"task-001"})
    assert [finding.message for finding in findings if finding.code == "orphan-loop"] == [
        "loop gone is not in this project"
    ]
