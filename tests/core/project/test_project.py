from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.errors import Conflict, Refused
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.base.steps import Steps
from core.decisions.commands import (
    AcceptInversion,
    Archive,
    Command,
    Deprecate,
    Extract,
    ExtractMany,
    Merge,
    Note,
    Promote,
    Quarantine,
    Redo,
    Release,
    Reset,
    Snooze,
    Undo,
    bulk,
)
from core.index.project_state import ProjectState
from core.index.review_items import OFFER, RECURRING, ReviewItem
from core.index.similarity import has_similarity
from core.project import review_queue
from core.project.project import Project
from core.records.decisions import Verb
from core.records.patterns import Maturity, PatternType
from tests.conftest import WriteSample
from tests.core.project.views import STEP, Clock

START = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
CONTRADICTED = "pat-error-deadlock-retry-005"
PLAIN = "pat-error-type-mismatch-003"


@pytest.fixture
def clock() -> Clock:
    return Clock(START, STEP)


@pytest.fixture
def paths(tmp_path: Path, write_sample: WriteSample) -> ProjectPaths:
    write_sample(tmp_path, START)
    return ProjectPaths(tmp_path)


@pytest.fixture
def open_project(paths: ProjectPaths, clock: Clock) -> Project:
    return make_project(paths, clock)


def make_project(paths: ProjectPaths, clock: Clock, by: str = "ana") -> Project:
    open_project = Project(paths, Settings(), by=by, clock=clock, cache=False)
    open_project.load()
    return open_project


def due(view: ProjectState) -> str:
    return next(item.subject for item in view.queue if item.inversion is not None)


def state(open_project: Project, pattern_id: str) -> Maturity:
    return open_project.view.assessment(pattern_id).state


def test_load_publishes_partial_states(paths: ProjectPaths, clock: Clock) -> None:
    for n in range(250):
        folder = paths.ralph / f"loops/ralph-copy-{n:08d}"
        folder.mkdir()
        (folder / "state.json").write_text(json.dumps({"loop_id": folder.name, "status": "completed"}))
    views: list[ProjectState] = []
    progress_calls: list[tuple[int, int]] = []
    open_project = Project(paths, Settings(), by="ana", clock=clock, cache=False)
    assert not open_project.view.snapshot.complete
    last = open_project.load(lambda *figures: progress_calls.append(figures), views.append)
    assert last is open_project.view and last.snapshot.complete
    assert views and not views[0].snapshot.complete
    assert len(views[0].snapshot.loops) < len(last.snapshot.loops)
    assert progress_calls[-1][0] == progress_calls[-1][1] > 0


def test_files_read_last_are_scored(paths: ProjectPaths, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr("core.index.refresh.monotonic", lambda: next(ticks))  # each file takes a second
    loop_id = next(iter(make_project(paths, clock).view.snapshot.loops))
    task = paths.tasks / "memory"  # tasks are read after the lists are shown
    task.mkdir()
    (task / "metadata.json").write_text(json.dumps({"description": "x", "status": "running", "loop_id": loop_id}))
    used = {"id": "1", "at": "2026-11-21T20:00:00Z", "kind": "applied", "pattern_id": PLAIN, "loop_id": "memory"}
    with paths.events.open("a", encoding="utf-8") as events:
        events.write(json.dumps(used | {"success": True}) + "\n")
    open_project = Project(paths, Settings(), by="ana", clock=clock, cache=False)
    views: list[ProjectState] = []
    open_project.load(publish=views.append)
    assert "memory" not in views[0].snapshot.tasks
    assert loop_id in {use.loop_id for use in open_project.view.board.observations(PLAIN)}
    at_once = Project(paths, Settings(), by="ana", clock=clock, cache=False).load()
    for id in at_once.snapshot.patterns:
        found, expected = open_project.view.board.assessment(id), at_once.board.assessment(id)
        assert (found.state, found.uses, found.failures) == (expected.state, expected.uses, expected.failures)
        assert found.score == pytest.approx(expected.score)
    assert [one.question_key for one in open_project.view.queue] == [one.question_key for one in at_once.queue]


def test_a_decision_of_another_person_is_read_with_the_next_change_or_decision(
    open_project: Project, paths: ProjectPaths, clock: Clock
) -> None:
    decided = make_project(paths, clock, by="ben").decide(Deprecate(PLAIN, reason="no longer true"))
    assert '"override"' in (paths.project / open_project.view.pattern(PLAIN).file).read_text()
    other = make_project(paths, clock, by="cy")
    with pytest.raises(Refused, match="deprecated"):
        open_project.decide(Promote(PLAIN))
    assert state(open_project, PLAIN) is state(other, PLAIN) is Maturity.DEPRECATED
    open_project.decide(Promote(CONTRADICTED))
    view, delta = other.apply(None)
    assert delta.decisions and view.assessment(CONTRADICTED).state is Maturity.PROVEN
    assert [one.by for one in view.snapshot.decisions[-2:]] == ["ben", "ana"]
    assert view.snapshot.decisions[-2] == decided.decision


def test_an_accepted_inversion_is_a_new_pattern_and_pins_the_old(open_project: Project) -> None:
    subject = due(open_project.view)
    decided = open_project.decide(AcceptInversion(subject, text="AVOID: this, in my words"))
    anti = open_project.view.pattern(decided.decision.after["anti_id"])
    assert anti.type is PatternType.ANTI
    assert "in my words" in f"{anti.title}{anti.description}"
    assert state(open_project, subject) is Maturity.DEPRECATED
    assert subject not in {item.subject for item in open_project.view.queue}
    open_project.decide(Undo())
    assert anti.id not in open_project.view.snapshot.patterns
    assert subject in {item.subject for item in open_project.view.queue}
    open_project.decide(Redo())
    assert anti.id in open_project.view.snapshot.patterns


def test_snoozed_question_returns_at_its_time(open_project: Project, clock: Clock) -> None:
    subject = due(open_project.view)
    open_project.decide(Snooze(subject, until=clock.now + timedelta(days=7)))
    assert subject not in {item.subject for item in open_project.view.queue}
    clock.now += timedelta(days=6)
    open_project.refresh()
    assert subject not in {item.subject for item in open_project.view.queue}
    clock.now += timedelta(days=2)
    view, delta = open_project.refresh()
    assert subject in {item.subject for item in view.queue}
    assert delta.decisions


def test_a_file_without_news_leaves_the_queue_until_it_is_old(
    open_project: Project, paths: ProjectPaths, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def build(*_args: object) -> Steps[tuple[ReviewItem, ...]]:
        built.append(clock.now)
        yield
        return ()

    monkeypatch.setattr(review_queue, "review_queue_in_steps", build)
    before = open_project.view
    clock.now += timedelta(seconds=30)
    view, delta = open_project.apply([paths.ralph / "notes.txt"])
    assert view.queue is before.queue and not delta and not built
    assert view.now == view.board.now == clock.now, "decisions are dated with the time of the state"
    clock.now += timedelta(seconds=30)
    open_project.apply([paths.ralph / "notes.txt"])
    assert len(built) == 1


def test_vectors_of_patterns_and_tasks_are_computed_together(
    open_project: Project, paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = paths.ralph / "tasks" / "task-001" / "metadata.json"
    metadata.parent.mkdir(parents=True, exist_ok=True)
    metadata.write_text('{"id": "task-001", "description": "Fix the login"}')
    open_project.apply(None)
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    records = len(open_project.view.snapshot.patterns) + len(open_project.view.snapshot.tasks)
    progress_calls: list[tuple[int, int]] = []
    assert open_project.embed_missing(lambda *progress: progress_calls.append(progress)) >= records
    assert progress_calls[-1] == (len(open_project.view.snapshot.patterns),) * 2
    assert (paths.ralph / "index" / "embeddings" / "tasks.vec").is_file()
    assert open_project.embed_missing() == 0


def test_recurring_learnings_found_in_steps_equal_those_found_at_once(
    open_project: Project, paths: ProjectPaths, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.questions.search._STEP_SECONDS", 1e-9)
    for number in range(1, 4):
        folder = paths.ralph / "tasks" / f"task-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "reflections.jsonl").write_text('{"attempt_id": 1, "learning": "Lock carts in the order of ids"}\n')
    open_project.apply(None)
    looks = 0
    while open_project.search_next() is not None:
        looks += 1
    found = open_project.recurring()
    pieces = [cluster.id for cluster in found]
    assert ("task-1", "task-2", "task-3") in [cluster.sources for cluster in found]
    at_once = make_project(paths, clock, by="bob")
    assert pieces == [cluster.id for cluster in at_once.recurring()]
    assert looks > len(open_project.view.snapshot.reflections)
    assert [item.subject for item in open_project.view.queue if item.subject in pieces]
    open_project.decide(Note(PLAIN, text="seen"))
    assert open_project.recurring() is found, "searched once for the same reflections"


def test_the_queue_made_in_steps_equals_one_made_at_once(
    open_project: Project, paths: ProjectPaths, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = make_project(paths, clock, by="bob").search_all().queue
    monkeypatch.setattr(review_queue, "_STEP_SECONDS", 0)
    before = open_project.view.queue
    assert open_project.search_all().queue == at_once != before


def test_decision_is_refused_if_the_state_changed(open_project: Project, paths: ProjectPaths, clock: Clock) -> None:
    """Two reviewers open the same project; the decision of the second is refused and nothing is written."""
    bob, before = make_project(paths, clock, by="bob"), open_project.view
    bob.decide(Deprecate(PLAIN, reason="hides the cause"))
    with pytest.raises(Conflict, match=rf"bob decided just now: deprecate {PLAIN} \(hides the cause\); your"):
        open_project.decide(Reset(PLAIN), expected_state=before)
    bob.decide(Note(CONTRADICTED, text="a note conflicts with nothing"))
    open_project.decide(Deprecate(CONTRADICTED, reason="so do I"), expected_state=before)
    with pytest.raises(Refused, match="already deprecated"):  # a key pressed twice
        open_project.decide(Deprecate(CONTRADICTED, reason="so do I"), expected_state=before)
    with pytest.raises(Conflict, match=f"ana decided just now: deprecate {CONTRADICTED}"):
        open_project.decide(Reset(CONTRADICTED), expected_state=before)
    both = open_project.decide(
        bulk(Verb.QUARANTINE, [CONTRADICTED, "pat-error-null-check-015"], "x"), expected_state=before
    )
    assert [refusal.pattern_id for refusal in both.refused] == [CONTRADICTED]
    assert [decision.by for decision in open_project.view.snapshot.decisions[-4:]] == ["bob", "bob", "ana", "ana"]


def test_undo_is_refused_after_an_unseen_decision(open_project: Project, paths: ProjectPaths, clock: Clock) -> None:
    open_project.decide(Promote(PLAIN))
    bob, before = make_project(paths, clock, by="bob"), open_project.view
    bob.decide(Note(CONTRADICTED, text="not seen by ana"))
    with pytest.raises(Conflict, match="bob decided just now: note"):
        open_project.decide(Undo(), expected_state=before)
    open_project.decide(Undo(any_author=True), expected_state=open_project.view)
    before = open_project.view
    for _ in range(2):  # faster than it is shown
        open_project.decide(Undo(any_author=True), expected_state=before)
    bob.decide(Redo())
    with pytest.raises(Conflict, match="bob decided just now: redo"):
        open_project.decide(Redo(), expected_state=before)


def test_approval_is_refused_if_the_text_was_replaced(open_project: Project, paths: ProjectPaths) -> None:
    """Another program changes the pattern file after the screen showed it."""
    twin = "pat-error-null-check-015"
    open_project.decide(Quarantine(twin, reason="who wrote this?"))
    before = open_project.view
    failing = due(before)
    for changed in (PLAIN, twin, failing):
        pattern = before.pattern(changed)
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
            open_project.decide(approve, expected_state=before)
    many = open_project.decide(bulk(Verb.PROMOTE, [PLAIN, CONTRADICTED]), expected_state=before)
    assert [refusal.pattern_id for refusal in many.refused] == [PLAIN]
    open_project.decide(Undo(), expected_state=before)
    open_project.decide(Promote(PLAIN), expected_state=open_project.view)
    assert state(open_project, PLAIN) is Maturity.PROVEN


def test_the_texts_of_similar_patterns_are_indexed_when_nothing_else_waits(open_project: Project) -> None:
    texts = open_project.view.texts
    assert texts.is_stored and not has_similarity(texts.reader)
    before = texts.similarity.pairs(0.3)
    open_project.search_all()
    texts = open_project.view.texts
    assert texts.is_stored and has_similarity(texts.reader)
    assert texts.similarity.pairs(0.3) == before != ()


def test_a_source_whose_extraction_is_undone_is_asked_about_at_once(open_project: Project) -> None:
    for kind in (OFFER, RECURRING):
        item = next(one for one in open_project.search_all().queue if one.kind == kind and one.offer is not None)
        decision = open_project.decide(Extract(item.subject, expected=item.offer)).decision
        assert item.question_key not in {one.question_key for one in open_project.view.queue}
        open_project.decide(Undo(decision_id=decision.id))
        assert item.question_key in {one.question_key for one in open_project.view.queue}, kind


def test_several_extractions_are_one_act_and_a_shared_lesson_is_extracted_once(open_project: Project) -> None:
    state = open_project.search_all()
    offers = [item for item in state.queue if item.kind == OFFER and item.offer is not None and item.offer.new][:2]
    before = state.snapshot.patterns.keys()
    done: list[tuple[int, int]] = []
    sources = [*(item.subject for item in offers), offers[0].subject]
    command = ExtractMany(tuple(Extract(source, unattended=True) for source in sources))
    decided = open_project.decide(command, progress=lambda *step: done.append(step))
    new = open_project.view.snapshot.patterns.keys() - before
    headlines = {one.headline for item in offers if item.offer is not None for one in item.offer.new}
    assert len(decided.decisions) == 2 and len({decision.group for decision in decided.decisions}) == 1
    assert 0 < len(new) <= len(headlines) and done == [(1, 3), (2, 3), (3, 3)]
    open_project.decide(Undo(decision_id=decided.decision.group))
    assert open_project.view.snapshot.patterns.keys() == before
