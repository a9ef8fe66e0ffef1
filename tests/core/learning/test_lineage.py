"""Lineage: the text of the example, and all kinds of events."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from core.config.paths import ProjectPaths
from core.index.refresh import Index
from core.learning.lineage import LineageEvent, build_lineage, format_lineage, loop_results
from core.learning.scoreboard import Scoreboard
from core.records.decisions import Decision, Verb
from core.records.loops import Loop
from core.records.patterns import Pattern, PatternType, SourceLoop
from core.records.snapshot import Snapshot
from tests.factories import (
    NOW,
    NULL_CHECK_015,
    SETTINGS,
    TYPE_MISMATCH,
    days_ago,
    example_loops,
    example_patterns,
    make_board,
    make_event,
    make_pattern,
    make_recorded_counts,
    make_source,
    make_use,
)

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


def test_the_lineage_block_of_the_example_tree() -> None:
    tree = Path(__file__).parents[2] / "trees/spec-examples"
    snapshot = Index(ProjectPaths(tree), SETTINGS, clock=lambda: NOW, is_kept=False).load()
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    pattern, found = snapshot.patterns[NULL_CHECK_015], board.assessment(NULL_CHECK_015)
    events = build_lineage(pattern, board.observations(pattern.id), snapshot.decisions, snapshot.loops)
    assert format_lineage(pattern, events, found) == DOCUMENT


def test_each_loop_has_its_result_in_the_documented_words() -> None:
    pattern = make_pattern(source_loops=(make_source("a", days_ago(9)),), first_discovered=days_ago(9))
    loops = {
        id: Loop(id=id, ended_at=days_ago(days), injected=(make_use(pattern.id, success),))
        for id, days, success in (("b", 5, True), ("c", 3, False))
    }
    lineage = lineage_of(pattern, make_board(pattern, loops=loops), **loops)
    assert [f"{one.loop_id} ({one.result})" for one in loop_results(pattern, lineage)] == [
        "a (discovered)",
        "b (applied successfully)",
        "c (applied, failed)",
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
    assert (seen.kind, seen.success, seen.text) == ("injected", None, "injected, not applied: Fix it")


def test_a_loop_that_finds_a_pattern_again_merges() -> None:
    pattern = make_pattern(source_loops=(make_source("a", days_ago(9)),))
    again = make_event(1, "extracted", days_ago(4), loop_id="b")
    found = lineage_of(pattern, make_board(pattern, events=(again,)))
    assert [(one.kind, one.loop_id) for one in found] == [("discovered", "a"), ("merged", "b")]


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
        "discovered",
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
