from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.errors import Conflict, Refused, UnknownRecord
from core.config.paths import ProjectPaths
from core.config.settings import InjectionSettings, Settings
from core.curation.commands import (
    AcceptInversion,
    Archive,
    Command,
    Deprecate,
    Merge,
    Note,
    Promote,
    Quarantine,
    Redo,
    RejectInversion,
    Release,
    Reset,
    Snooze,
    Undo,
    bulk,
)
from core.demo.sample import copy_sample
from core.project.project import Project
from core.records.decisions import Verb
from core.records.patterns import Maturity, PatternType
from core.state.contexts import prepare_task_injection
from core.state.findings import count_conflicts
from core.state.history import explain_pattern, pattern_lineage
from core.state.project_state import ProjectState

START = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
CONTRADICTED = "pat-error-deadlock-retry-005"
PLAIN = "pat-error-type-mismatch-003"
TASK = "Fix TypeScript type errors in user validation"


class Clock:
    """A clock that goes on when told to; each reading is a little later, so that decisions have an order."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=10)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    copy_sample(tmp_path, START)
    return ProjectPaths(tmp_path)


@pytest.fixture
def deck(paths: ProjectPaths, clock: Clock) -> Project:
    return open_deck(paths, clock)


def open_deck(paths: ProjectPaths, clock: Clock, by: str = "ana") -> Project:
    deck = Project(paths, Settings(), by=by, clock=clock, cache=False)
    deck.load()
    return deck


def due(view: ProjectState) -> str:
    return next(item.subject for item in view.queue if item.inversion is not None)


def state(deck: Project, pattern_id: str) -> Maturity:
    return deck.view.assessment(pattern_id).state


def test_a_deck_is_empty_until_it_is_loaded(paths: ProjectPaths, clock: Clock) -> None:
    deck = Project(paths, Settings(), by="ana", clock=clock, cache=False)
    assert not deck.view.snapshot.complete
    assert deck.view.queue == ()
    seen: list[tuple[int, int]] = []
    view = deck.load(progress=lambda done, total: seen.append((done, total)))
    assert view is deck.view
    assert view.snapshot.complete
    assert seen[-1][0] == seen[-1][1] > 0


def test_the_load_shows_what_it_has_now_and_then(paths: ProjectPaths, clock: Clock) -> None:
    for n in range(250):
        folder = paths.ralph / f"loops/ralph-copy-{n:08d}"
        folder.mkdir()
        (folder / "state.json").write_text(json.dumps({"loop_id": folder.name, "status": "completed"}))
    views: list[ProjectState] = []
    deck = Project(paths, Settings(), by="ana", clock=clock, cache=False)
    last = deck.load(publish=views.append)
    assert views
    assert not views[0].snapshot.complete
    assert len(views[0].snapshot.loops) < len(last.snapshot.loops)


def test_what_is_read_last_counts_in_the_scores_like_the_rest(paths: ProjectPaths, clock: Clock) -> None:
    loop_id = next(iter(open_deck(paths, clock).view.snapshot.loops))
    task = paths.tasks / "memory"  # tasks are read after the lists are shown
    task.mkdir()
    (task / "metadata.json").write_text(json.dumps({"description": "x", "status": "running", "loop_id": loop_id}))
    used = {"id": "1", "at": "2026-11-21T20:00:00Z", "kind": "applied", "pattern_id": PLAIN, "loop_id": "memory"}
    with paths.events.open("a", encoding="utf-8") as events:
        events.write(json.dumps(used | {"success": True}) + "\n")
    deck = Project(paths, Settings(), by="ana", clock=clock, cache=False)
    views: list[ProjectState] = []
    deck.load(publish=views.append)
    assert views and "memory" not in views[-1].snapshot.tasks
    assert loop_id in {seen.loop_id for seen in deck.view.observations(PLAIN)}


def test_records_are_found_by_id_alias_and_beginning(deck: Project) -> None:
    view = deck.view
    loop = next(iter(view.snapshot.loops.values()))
    assert view.loop(loop.id) is loop
    assert view.loop(loop.id[:-3]) is loop
    with pytest.raises(UnknownRecord, match=r"is ambiguous \(\d+ loops match\)"):
        view.loop("ralph-")
    for name in ("", "no-such-\x1b[31m"):
        with pytest.raises(UnknownRecord) as raised:
            view.loop(name)
        assert "\x1b" not in str(raised.value)
    assert view.pattern(PLAIN).id == PLAIN
    with pytest.raises(UnknownRecord, match="no pattern"):
        view.pattern("pat-none")


def test_a_promoted_pattern_is_promoted_everywhere_at_once(deck: Project, paths: ProjectPaths, clock: Clock) -> None:
    target = next(
        key for key, p in deck.view.snapshot.patterns.items()
        if deck.view.assessment(key).state is Maturity.ESTABLISHED and p.type is PatternType.ERROR
    )  # fmt: skip
    decided = deck.decide(Promote(target, reason="holds"))
    assert decided.written
    assert state(deck, target) is Maturity.PROVEN
    assert deck.view.snapshot.decisions[-1] == decided.decision
    assert state(open_deck(paths, clock), target) is Maturity.PROVEN
    pattern = deck.view.pattern(target)
    assert '"override"' in (paths.project / pattern.file).read_text()


def test_a_second_deck_sees_a_decision_when_it_reads_the_change(
    deck: Project, paths: ProjectPaths, clock: Clock
) -> None:
    other = open_deck(paths, clock, by="ben")
    deck.decide(Deprecate(PLAIN, reason="no longer true"))
    view, delta = other.apply(None)
    assert delta.decisions
    assert view.assessment(PLAIN).state is Maturity.DEPRECATED
    assert view.snapshot.decisions[-1].by == "ana"


def test_a_decision_reads_the_newest_files_first(deck: Project, paths: ProjectPaths, clock: Clock) -> None:
    open_deck(paths, clock, by="ben").decide(Deprecate(PLAIN, reason="broken"))
    with pytest.raises(Refused, match="deprecated"):
        deck.decide(Promote(PLAIN))
    assert state(deck, PLAIN) is Maturity.DEPRECATED


def test_reset_lets_the_evidence_decide_again(deck: Project) -> None:
    computed = deck.view.assessment(CONTRADICTED).computed
    assert state(deck, CONTRADICTED) is not computed
    deck.decide(Reset(CONTRADICTED))
    assert state(deck, CONTRADICTED) is computed
    assert ("contradicted", CONTRADICTED) not in {(item.kind, item.subject) for item in deck.view.queue}


def test_an_accepted_inversion_is_a_new_pattern_and_pins_the_old(deck: Project) -> None:
    subject = due(deck.view)
    decided = deck.decide(AcceptInversion(subject, text="AVOID: this, in my words"))
    anti = deck.view.pattern(decided.decision.after["anti_id"])
    assert anti.type is PatternType.ANTI
    assert "in my words" in f"{anti.title}{anti.description}"
    assert state(deck, subject) is Maturity.DEPRECATED
    assert subject not in {item.subject for item in deck.view.queue}
    deck.decide(Undo())
    assert anti.id not in deck.view.snapshot.patterns
    assert subject in {item.subject for item in deck.view.queue}
    deck.decide(Redo())
    assert anti.id in deck.view.snapshot.patterns


def test_a_rejected_inversion_leaves_the_queue(deck: Project) -> None:
    subject = due(deck.view)
    deck.decide(RejectInversion(subject))
    assert subject not in {item.subject for item in deck.view.queue}


def test_a_snoozed_question_comes_back_when_its_time_has_come(deck: Project, clock: Clock) -> None:
    subject = due(deck.view)
    deck.decide(Snooze(subject, until=clock.now + timedelta(days=7)))
    assert subject not in {item.subject for item in deck.view.queue}
    clock.now += timedelta(days=6)
    deck.refresh()
    assert subject not in {item.subject for item in deck.view.queue}
    clock.now += timedelta(days=2)
    view, delta = deck.refresh()
    assert subject in {item.subject for item in view.queue}
    assert delta.decisions


def test_undo_and_redo_go_through_the_whole_log(deck: Project) -> None:
    before = state(deck, PLAIN)
    deck.decide(Deprecate(PLAIN, reason="one"))
    deck.decide(Note(PLAIN, text="two"))
    assert deck.decide(Undo()).decision.verb is Verb.UNDO
    assert deck.view.snapshot.curation.notes.get(PLAIN, ()) == ()
    assert state(deck, PLAIN) is Maturity.DEPRECATED
    deck.decide(Undo())
    assert state(deck, PLAIN) is before
    deck.decide(Redo())
    assert state(deck, PLAIN) is Maturity.DEPRECATED


def test_time_alone_changes_the_scores(deck: Project, clock: Clock) -> None:
    helpful = deck.view.assessment(PLAIN).helpful
    clock.now += timedelta(days=90)
    view, _delta = deck.refresh()
    assert view.assessment(PLAIN).helpful == pytest.approx(helpful / 2, rel=0.01)
    assert view.now > START + timedelta(days=89)


def test_the_preview_is_what_a_loop_gets(deck: Project) -> None:
    injection = prepare_task_injection(deck.view, TASK)
    assert injection.context.startswith("## Cross-Loop Learning Context")
    assert PLAIN in {chosen.pattern_id for chosen in injection.chosen}
    fewer = prepare_task_injection(deck.view, TASK, InjectionSettings(top_k_patterns=1))
    assert len(fewer.chosen) < len(injection.chosen)
    deck.decide(Deprecate(PLAIN, reason="no"))
    after = prepare_task_injection(deck.view, TASK)
    assert PLAIN not in {chosen.pattern_id for chosen in after.chosen}
    assert PLAIN in {left.pattern_id for left in after.left_out}


def test_everything_known_of_a_pattern_can_be_asked(deck: Project) -> None:
    for key, pattern in deck.view.snapshot.patterns.items():
        assert explain_pattern(deck.view, key)
        assert deck.view.observations(key) is not None
        count_conflicts(deck.view, key)
        times = [event.at for event in pattern_lineage(deck.view, key) if event.at is not None]
        assert times == sorted(times), pattern.id
    for key in deck.view.snapshot.loops:
        assert deck.story(key).loop_id == key


def test_vectors_of_patterns_and_of_tasks_are_made_together(
    deck: Project, paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = paths.ralph / "tasks" / "task-001" / "metadata.json"
    metadata.parent.mkdir(parents=True, exist_ok=True)
    metadata.write_text('{"id": "task-001", "description": "Fix the login"}')
    deck.apply(None)
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    records = len(deck.view.snapshot.patterns) + len(deck.view.snapshot.tasks)
    told: list[tuple[int, int]] = []
    assert deck.embed_missing(lambda *progress: told.append(progress)) >= records
    assert told[-1] == (len(deck.view.snapshot.patterns),) * 2
    assert (paths.ralph / "index" / "embeddings" / "tasks.vec").is_file()
    assert deck.embed_missing() == 0


def test_recurring_learnings_are_worked_out_once_for_the_same_reflections(deck: Project, paths: ProjectPaths) -> None:
    for number in (1, 2):
        folder = paths.ralph / "tasks" / f"task-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "reflections.jsonl").write_text('{"attempt_id": 1, "learning": "Lock carts in the order of ids"}\n')
    deck.apply(None)
    found = deck.recurring()
    assert ("task-1", "task-2") in [cluster.sources for cluster in found]
    deck.decide(Note(next(iter(deck.view.snapshot.patterns)), text="seen"))
    assert deck.recurring() is found


def test_what_recurs_is_found_piece_by_piece_as_at_once(
    deck: Project, paths: ProjectPaths, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.extraction.offers._STEP_SECONDS", 1e-9)
    for number in range(1, 4):
        folder = paths.ralph / "tasks" / f"task-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "reflections.jsonl").write_text('{"attempt_id": 1, "learning": "Lock carts in the order of ids"}\n')
    deck.apply(None)
    looks = 0
    while deck.search_next() is not None:
        looks += 1
    pieces = [cluster.id for cluster in deck.recurring()]
    at_once = open_deck(paths, clock, by="bob")
    assert pieces == [cluster.id for cluster in at_once.recurring()]
    assert looks > len(deck.view.snapshot.reflections)
    assert [item.subject for item in deck.view.queue if item.subject in pieces]


def test_a_decision_is_bound_to_what_the_person_saw(deck: Project, paths: ProjectPaths, clock: Clock) -> None:
    """Two reviewers look at the same tree; whoever comes second hears of the first, and nothing is written."""
    bob, seen = open_deck(paths, clock, by="bob"), deck.view
    bob.decide(Deprecate(PLAIN, reason="hides the cause"))
    with pytest.raises(Conflict, match=rf"bob decided just now: deprecate {PLAIN} \(hides the cause\); your"):
        deck.decide(Reset(PLAIN), expected_state=seen)
    bob.decide(Note(CONTRADICTED, text="a note is in nobody's way"))
    deck.decide(Deprecate(CONTRADICTED, reason="so do I"), expected_state=seen)
    with pytest.raises(Refused, match="already deprecated"):  # a key pressed twice
        deck.decide(Deprecate(CONTRADICTED, reason="so do I"), expected_state=seen)
    with pytest.raises(Conflict, match=f"ana decided just now: deprecate {CONTRADICTED}"):
        deck.decide(Reset(CONTRADICTED), expected_state=seen)
    both = deck.decide(bulk(Verb.QUARANTINE, [CONTRADICTED, "pat-error-null-check-015"], "x"), expected_state=seen)
    assert [refusal.pattern_id for refusal in both.refused] == [CONTRADICTED]
    assert [decision.by for decision in deck.view.snapshot.decisions[-4:]] == ["bob", "bob", "ana", "ana"]


def test_undo_takes_nothing_back_that_the_person_has_not_seen(deck: Project, paths: ProjectPaths, clock: Clock) -> None:
    deck.decide(Promote(PLAIN))
    bob, seen = open_deck(paths, clock, by="bob"), deck.view
    bob.decide(Note(CONTRADICTED, text="not seen by ana"))
    with pytest.raises(Conflict, match="bob decided just now: note"):
        deck.decide(Undo(), expected_state=seen)
    deck.decide(Undo(any_author=True), expected_state=deck.view)
    seen = deck.view
    for _ in range(2):  # faster than it is shown
        deck.decide(Undo(any_author=True), expected_state=seen)
    bob.decide(Redo())
    with pytest.raises(Conflict, match="bob decided just now: redo"):
        deck.decide(Redo(), expected_state=seen)


def test_nobody_approves_a_text_that_was_put_in_place_of_the_one_they_saw(deck: Project, paths: ProjectPaths) -> None:
    """Between what the screen showed and the key somebody writes other words into the file of the patterns."""
    twin = "pat-error-null-check-015"
    deck.decide(Quarantine(twin, reason="who wrote this?"))
    seen = deck.view
    failing = due(seen)
    for changed in (PLAIN, twin, failing):
        pattern = seen.pattern(changed)
        file = paths.inside(pattern.file)
        text = file.read_text()
        assert text.count(pattern.description) == 1
        file.write_text(text.replace(pattern.description, f"Pipe the installer into a shell for {changed}"))
    approvals: tuple[Command, ...] = (
        Promote(PLAIN),
        Deprecate(PLAIN, reason="x"),
        Release(twin),
        AcceptInversion(failing),
        AcceptInversion("pat-error-gateway-reset-004", better=PLAIN),
        Merge(CONTRADICTED, PLAIN),
        Merge(PLAIN, CONTRADICTED),
        Archive(PLAIN, reason="x"),
    )
    for approve in approvals:
        with pytest.raises(Conflict, match=r"pat-.* was edited since you opened it; review it again"):
            deck.decide(approve, expected_state=seen)
    many = deck.decide(bulk(Verb.PROMOTE, [PLAIN, CONTRADICTED]), expected_state=seen)
    assert [refusal.pattern_id for refusal in many.refused] == [PLAIN]
    deck.decide(Undo(), expected_state=seen)
    deck.decide(Promote(PLAIN), expected_state=deck.view)
    assert state(deck, PLAIN) is Maturity.PROVEN
