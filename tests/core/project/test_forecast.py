from __future__ import annotations

import gc
import json
import tempfile
import weakref
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import RalphdeckError, Refused
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.cli.demo.sample import copy_sample
from core.decisions.commands import (
    Archive,
    Command,
    Deprecate,
    Extract,
    Merge,
    Promote,
    Quarantine,
    Reset,
    Undo,
    bulk,
    command_for,
)
from core.index.contexts import prepare_task_injection, task_context, task_relevance
from core.index.project_state import ProjectState, pattern_lineage
from core.index.review_items import (
    CONTRADICTED,
    DUPLICATE,
    EXTRACTED,
    INVERSION,
    OFFER,
    QUARANTINE,
    RECURRING,
    STALE_PIN,
    ReviewItem,
)
from core.project.forecast import Forecast, Forecaster, dry_run, forecast_bulk
from core.project.project import Project
from core.questions import context_recipients
from core.questions.answer import Answer
from core.questions.context_recipients import PAUSED, list_recipients
from core.questions.kinds import answer, answers
from core.records.decisions import Verb
from core.records.patterns import Maturity, Pattern
from core.sources.pattern_text import slice_file
from tests.conftest import WriteSample
from tests.core.meaning import meaning
from tests.factories import forecast, record_calls

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
ONE, TWO, THREE = (f"pat-error-x-00{number}" for number in (1, 2, 3))


def record(pattern_id: str, text: str = "guard", **more: Any) -> dict[str, Any]:
    return {"pattern_id": pattern_id, "fix_approach": text, "usage_count": 4, "success_rate": 0.75, **more}


def open_file(folder: Path, content: str, name: str = "error-patterns.json") -> Project:
    paths = ProjectPaths(folder)
    paths.patterns.mkdir(parents=True)
    (paths.patterns / name).write_text(content)
    open_project = Project(paths, Settings(), by="ana", clock=lambda: NOW, cache=False)
    open_project.load()
    return open_project


def known(view: ProjectState) -> dict[str, tuple[Pattern, Maturity]]:
    """Everything about the patterns except their place in the file."""
    return {
        id: (msgspec.structs.replace(pattern, pointer=""), view.assessment(id).state)
        for id, pattern in view.snapshot.patterns.items()
    }


RECORDS = [record(ONE), record(TWO, "wait"), record(THREE, "guard it"), record("pat-error-x-004", "retry")]
SHAPES = {
    "(3)": ("error-patterns.json", json.dumps({"pattern_registry": {"error_patterns": RECORDS, "anti_patterns": []}})),
    "list": ("error-patterns.json", json.dumps(RECORDS)),
    "patterns": ("error-patterns.json", "\N{ZERO WIDTH NO-BREAK SPACE}" + json.dumps({"patterns": RECORDS})),
    "by id": ("error-patterns.json", json.dumps({one["pattern_id"]: one for one in RECORDS})),
    "lines": ("error-patterns.jsonl", "".join(json.dumps(one) + "\n" for one in RECORDS)),
    "not a number": ("error-patterns.json", json.dumps([*RECORDS, record("pat-error-y-001", odd=float("nan"))])),
}


def test_a_dry_run_is_freed_at_once(tmp_path: Path) -> None:
    project = open_file(tmp_path, SHAPES["list"][1])
    gc.collect()
    gc.disable()
    try:
        board = weakref.ref(dry_run(project, Promote(TWO)).state.board)
        assert board() is None
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_dry_run_matches_the_decision_for_every_file_shape(tmp_path: Path, shape: str) -> None:
    name, content = SHAPES[shape]
    open_project = open_file(tmp_path, content, name)
    decisions: tuple[Command, ...] = (Promote(ONE), Merge(ONE, THREE), Archive(ONE, reason="old"), Undo())
    for command in decisions:
        expected = known(dry_run(open_project, command).state)
        assert expected != known(open_project.view)
        open_project.decide(command)
        assert known(open_project.view) == expected


def test_dry_run_reads_a_file_changed_meanwhile_whole(tmp_path: Path) -> None:
    open_project = open_file(tmp_path, json.dumps(RECORDS))
    path = open_project.project.patterns / "error-patterns.json"
    path.write_text(json.dumps([record("pat-error-new-001"), *RECORDS]))
    predicted = dry_run(open_project, Merge(ONE, THREE)).state
    assert predicted.pattern(THREE).id == ONE
    open_project.decide(Merge(ONE, THREE))
    assert open_project.view.pattern(ONE).recorded_counts == predicted.pattern(ONE).recorded_counts


def test_copy_replaces_an_archived_pattern(tmp_path: Path) -> None:
    open_project = open_file(tmp_path, json.dumps(RECORDS))
    (open_project.project.patterns / "further.json").write_text(json.dumps([record(ONE, "another text")]))
    open_project.apply(None)
    predicted = dry_run(open_project, Archive(ONE, reason="old")).state
    assert predicted.pattern(ONE).description == "another text"
    open_project.decide(Archive(ONE, reason="old"))
    assert known(open_project.view) == known(predicted)


def test_dry_run_of_several_decisions_of_one_act(tmp_path: Path) -> None:
    open_project = open_file(tmp_path, json.dumps(RECORDS))
    open_project.decide(Deprecate(ONE, reason="so"))
    before = open_project.project.ledger.read_bytes()
    predicted = dry_run(open_project, Promote(ONE, re_enable=True)).state
    assert predicted.assessment(ONE).state is Maturity.PROVEN
    assert open_project.project.ledger.read_bytes() == before
    open_project.decide(Promote(ONE, re_enable=True))
    assert known(open_project.view) == known(predicted)


def test_file_slice_preserves_the_bytes_of_its_records() -> None:
    data = b'{"version": 1, "pattern_registry": {"error_patterns": [{"a": 1.50}, {"b":2}], "anti_patterns": [{}]}}'
    found = slice_file(data, ["/pattern_registry/error_patterns/0"])
    assert found == b'{"pattern_registry":{"error_patterns":[{"a": 1.50}],"anti_patterns":[]}}'
    assert slice_file(data, ["/pattern_registry/error_patterns/7"]) is None
    assert slice_file(b'{"pat-error-x-001": {"fix_approach": "a"}}', ["/pat-error-x-001"]) is None
    assert slice_file(b"{", []) is None


@pytest.fixture
def sample(tmp_path: Path, write_sample: WriteSample) -> Project:
    write_sample(tmp_path, NOW)
    project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    project.load()
    return project


@pytest.fixture
def open_project(sample: Project) -> Project:
    """The sample with all its questions."""
    sample.search_all()
    return sample


def opened(folder: Path) -> Project:
    open_project = Project(ProjectPaths(folder), Settings(), by="ana", clock=lambda: NOW, cache=False)
    open_project.load()
    open_project.search_all()
    return open_project


def question(view: ProjectState, kind: str) -> ReviewItem:
    return next(item for item in view.queue if item.kind == kind)


def answer_of(open_project: Project, item: ReviewItem, action: str) -> Answer:
    found = answer(item, open_project.view, action)
    assert found is not None
    return found


def contexts(view: ProjectState) -> dict[str, str]:
    return {reader.id: prepare_task_injection(view, reader.task).context for reader in list_recipients(view.snapshot)}


def in_short(view: ProjectState) -> dict[str, str]:
    """The same in a third of the time."""
    return {
        reader.id: task_context(view, task_relevance(view, reader.task)).context
        for reader in list_recipients(view.snapshot)
    }


def states(view: ProjectState) -> dict[str, str]:
    return {id: view.assessment(id).shown for id in view.snapshot.patterns}


def files(open_project: Project) -> dict[Path, bytes]:
    vectors = open_project.project.ralph / "memory" / "embeddings"
    folders = (open_project.project.patterns, open_project.project.archive, open_project.project.ledger.parent, vectors)
    return {path: path.read_bytes() for folder in folders for path in folder.glob("*") if path.is_file()}


def make_vectors(open_project: Project) -> None:
    """As `inject` does before it looks for patterns."""
    open_project.embeddings.make_few(open_project.view.snapshot.patterns)


def check_outcome(
    open_project: Project,
    item: ReviewItem,
    given: Answer,
    injected: Callable[[ProjectState], dict[str, str]] = contexts,
) -> Forecast:
    """Forecast an answer, give it, and compare; the forecast writes nothing."""
    before, states_before, files_before = injected(open_project.view), states(open_project.view), files(open_project)
    typed = "the types come first" if given.action == "rewrite" and item.inversion else ""
    predicted = forecast(open_project, item, given, typed)
    assert files(open_project) == files_before
    open_project.decide(given.with_text(typed or ("because" if given.needs_reason else "")))
    make_vectors(open_project)
    after, states_after = injected(open_project.view), states(open_project.view)
    assert {change.id: (change.before, change.after) for change in predicted.changed} == {
        id: (before[id], after[id]) for id in before if before[id] != after[id]
    }
    assert (predicted.loops + predicted.paused + predicted.tasks) == len(before)
    assert {
        (id, states_before[id], state)
        for id, state in states_after.items()
        if id in states_before and states_before[id] != state
    } == set(predicted.turned)
    assert set(predicted.added) == states_after.keys() - states_before.keys()
    assert set(predicted.removed) == states_before.keys() - states_after.keys()
    for id, _, place in predicted.places:
        score = open_project.view.board.score
        rank = (
            1 + int((score > score[open_project.view.board.row(id)]).sum()) if id in open_project.view.board else None
        )
        assert place.rank == rank
    return predicted


@pytest.mark.slow
def test_every_answer_of_the_sample_matches_its_forecast(
    open_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_recipients = list_recipients
    for module in ("core.project.forecast", __name__):  # a fifth of the recipients shows the same, five times as fast
        monkeypatch.setattr(f"{module}.list_recipients", lambda snapshot: all_recipients(snapshot)[::5])
    asked: set[tuple[str, str]] = set()
    for item in open_project.view.queue:
        for one in answers(item, open_project.view):
            own = one.action in ("accept", "reject", "rewrite")  # others are the same for all kinds
            asking = item.kind if own else "", one.action
            if one.matters and not one.why_not and asking not in asked:
                asked.add(asking)
                check_outcome(open_project, item, one, in_short)
                open_project.decide(Undo())
    assert len(asked) > 8


WORDS = ("auth", "token", "cache", "retry", "timeout", "parse", "schema", "queue")
words = st.lists(st.sampled_from(WORDS), min_size=2, max_size=4).map(" ".join)


@st.composite
def records(draw: st.DrawFn) -> dict[str, object]:
    """A pattern's record, of any type, some of them alike."""
    number = draw(st.integers(1, 9))
    kind = draw(st.sampled_from(("error", "success", "anti")))
    failed, total = sorted((draw(st.integers(0, 6)), draw(st.integers(0, 6))))
    text = draw(words)
    record: dict[str, object] = {
        "pattern_id": f"pat-{kind}-{text.split()[0]}-{number:03}",
        "tags": draw(st.lists(st.sampled_from(WORDS), max_size=2)),
        "source_loops": [f"ralph-{number}"],
        "last_used": (NOW - timedelta(days=draw(st.integers(0, 200)))).isoformat(),
    }
    rate = (total - failed) / total if total else 1.0
    if kind == "anti":
        return record | {"approach_description": text, "failure_rate": rate, "occurrence_count": total}
    record |= {"success_rate": rate, "usage_count": total}
    if kind == "error":
        return record | {"error_signature": {"error_type": "TypeError", "error_pattern": text}, "fix_approach": text}
    return record | {"task_category": "debugging", "approach": {"description": text, "steps": [text]}}


def made(folder: Path, patterns: list[dict[str, object]], tasks: list[str]) -> Project:
    """A project with these patterns, and a loop for each task, every second one of them still running."""
    paths = ProjectPaths(folder)
    paths.patterns.mkdir(parents=True)
    unique = {str(record["pattern_id"]): record for record in patterns}
    content = {"pattern_registry": {"error_patterns": list(unique.values())}}
    paths.pattern_file("error").write_text(json.dumps(content))
    for number, task in enumerate(tasks):
        loop = paths.ralph / "loops" / f"ralph-task-{number}"
        loop.mkdir(parents=True)
        status = "completed" if number % 2 else "running"
        state = {"loop_id": loop.name, "task": f"Fix {task}", "status": status, "started_at": NOW.isoformat()}
        (loop / "state.json").write_text(json.dumps(state))
    return opened(folder)


@pytest.mark.slow
@settings(max_examples=12)
@given(
    st.lists(records(), min_size=2, max_size=12),
    st.lists(words, min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from(("promote", "deprecate", "quarantine")), st.integers(0, 11)), max_size=3),
    st.integers(0, 100),
    st.integers(0, 100),
    st.booleans(),
)
def test_forecast_matches_the_decision(
    patterns: list[dict[str, object]],
    tasks: list[str],
    decisions: list[tuple[str, int]],
    which: int,
    way: int,
    with_semantic_search: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder, meaning(on=with_semantic_search):
        open_project = made(Path(folder), patterns, tasks)
        make_vectors(open_project)
        ids = tuple(open_project.view.snapshot.patterns)
        for verb, number in decisions:
            try:
                open_project.decide(command_for(Verb(verb), ids[number % len(ids)], "so"))
            except Refused:
                continue
        subject = ids[which % len(ids)]
        anything = ReviewItem(kind="borderline", subject=subject, question="?", reason="?", priority=0.5)
        asked = (*open_project.view.queue, anything)
        item = asked[which % len(asked)]
        possible = [given for given in answers(item, open_project.view) if not given.why_not]
        given = possible[way % len(possible)]
        try:
            predicted = check_outcome(open_project, item, given)
            assert given.matters or not (predicted.changed or predicted.turned)
        except RalphdeckError:
            with pytest.raises(RalphdeckError):  # what is refused now is refused then
                open_project.decide(given.with_text("because"))


@pytest.mark.slow
def test_forecast_with_semantic_search_includes_new_texts(tmp_path: Path) -> None:
    with meaning():
        copy_sample(tmp_path, NOW)
        open_project = opened(tmp_path)
        make_vectors(open_project)
        for kind, action in ((INVERSION, "accept"), (RECURRING, "accept"), (STALE_PIN, "restore_text")):
            item = question(open_project.view, kind)
            predicted = check_outcome(open_project, item, answer_of(open_project, item, action), in_short)
            assert predicted.by_words is None
            open_project.decide(Undo())


def test_forecast_reports_missing_vectors_and_updates_later(tmp_path: Path) -> None:
    with meaning():
        copy_sample(tmp_path, NOW)
        open_project = opened(tmp_path)
        forecaster, view, item = Forecaster(open_project), open_project.view, question(open_project.view, INVERSION)
        accept = answer_of(open_project, item, "accept")
        early = forecaster.forecast(view, item, accept)
        assert early is not None and early.by_words is not None
        assert early.by_words.text == "compared by words: 0 of 40 texts have a vector"
        make_vectors(open_project)
        late = forecaster.forecast(view, item, accept)
        assert late is not None and late.by_words is None
        assert late.tokens[0] == sum(
            prepare_task_injection(view, reader.task).tokens for reader in list_recipients(view.snapshot)
        )
        assert late.changed != early.changed


def test_accepted_anti_pattern_is_injected_despite_its_counts(open_project: Project) -> None:
    item = next(
        item
        for item in open_project.view.queue
        if item.inversion and item.inversion.total * 0.3 < item.inversion.total - item.inversion.failures
    )
    given = answer_of(open_project, item, "accept")
    anti = str(open_project.decide(given.with_text("")).decision.after["anti_id"])
    assessment = open_project.view.assessment(anti)
    assert assessment.failures > 0.3 * assessment.uses
    assert assessment.state is Maturity.ESTABLISHED and assessment.injectable
    assert not assessment.contradicted and not assessment.pin_stale
    with pytest.raises(Refused, match="already inverted"):
        forecast(open_project, item, given)
    open_project.decide(Undo())
    assert anti not in open_project.view.snapshot.patterns
    assert anti not in open_project.view.snapshot.curation.pins


NULL = "pat-error-null-001"
NULL_RECORD: dict[str, object] = {
    "pattern_id": NULL,
    "fix_approach": "guard",
    "usage_count": 4,
    "success_rate": 1.0,
    "error_signature": {"error_pattern": "null"},
}
NULL_QUESTION = ReviewItem(kind="borderline", subject=NULL, question="?", reason="?", priority=0.5)


def test_forecast_without_loops_uses_the_topic_of_the_pattern(tmp_path: Path) -> None:
    open_project = made(tmp_path, [NULL_RECORD], [])
    given = answer_of(open_project, NULL_QUESTION, "deprecate")
    predicted = forecast(open_project, NULL_QUESTION, given)
    assert (predicted.loops, predicted.tasks) == (0, 0)
    assert [(change.kind, change.id, change.after) for change in predicted.changed] == [("topic", NULL, "")]
    assert [(before.given, after.given) for _, before, after in predicted.places] == [(1, 0)]
    forecaster = Forecaster(open_project)
    assert forecaster.forecast(open_project.view, NULL_QUESTION, given, stop=lambda: True) is None


def test_a_decision_changes_what_a_paused_loop_gets_when_it_resumes(tmp_path: Path) -> None:
    open_project = made(tmp_path, [NULL_RECORD], ["null"])
    state = open_project.project.ralph / "loops/ralph-task-0/state.json"
    state.write_text(state.read_text().replace("running", "paused"))
    open_project.apply(None)
    found = forecast(open_project, NULL_QUESTION, answer_of(open_project, NULL_QUESTION, "deprecate"))
    assert (found.loops, found.paused, found.tasks) == (0, 1, 0)
    (change,) = found.changed
    assert (change.kind, change.id, change.after) == (PAUSED, "ralph-task-0", "")
    assert "guard" in change.before
    assert forecast_bulk(open_project, Verb.DEPRECATE, [NULL], stop=lambda: True) is None
    bulk = forecast_bulk(open_project, Verb.DEPRECATE, [NULL])
    assert bulk is not None
    assert (bulk.effect.loops, bulk.effect.paused, bulk.effect.changed_of("paused")) == (0, 1, 1)


def test_release_and_archive_match_their_forecast(open_project: Project) -> None:
    subject = next(
        id for reader in list_recipients(open_project.view.snapshot) for id in _given(open_project, reader.task)
    )
    open_project.decide(Quarantine(subject, reason="who wrote this?"))
    item = question(open_project.view, QUARANTINE)
    predicted = check_outcome(open_project, item, answer_of(open_project, item, "accept"))
    assert predicted.changed
    open_project.decide(Extract(question(open_project.view, OFFER).subject, unattended=True))
    item = question(open_project.view, EXTRACTED)
    check_outcome(open_project, item, answer_of(open_project, item, "reject"))


def _given(open_project: Project, task: str) -> list[str]:
    return [one.pattern_id for one in prepare_task_injection(open_project.view, task).chosen]


def duplicated(open_project: Project, subject: str) -> str:
    """Add a duplicate of a pattern with its own loops and counts; returns its ID."""
    pattern = open_project.view.pattern(subject)
    path = open_project.project.pattern_file(pattern.type.value)
    content = json.loads(path.read_text())
    records = next(iter(content["pattern_registry"].values()))
    (record,) = [one for one in records if one["pattern_id"] == subject]
    copy = {
        **record,
        "pattern_id": f"{subject[:-3]}901",
        "source_loops": [{"loop_id": "ralph-elsewhere-00000001", "timestamp": "2026-11-01T10:00:00Z"}],
        "success_rate": 0.5,
        "usage_count": 2,
    }
    records.append({key: value for key, value in copy.items() if not key.endswith(("applications", "trend"))})
    path.write_text(json.dumps(content))
    open_project.apply(None)
    open_project.search_all()
    return str(copy["pattern_id"])


@pytest.mark.slow
def test_merge_matches_its_forecast(open_project: Project) -> None:
    duplicated(open_project, "pat-error-type-mismatch-003")
    item = question(open_project.view, DUPLICATE)
    for action, target in (("accept", item.subject), ("rewrite", item.other)):
        merger = check_outcome(open_project, item, answer_of(open_project, item, action), in_short).merger
        assert merger is not None
        assert merger.target.id == target
        assert merger.after == open_project.view.assessment(target)
        assert merger.after.uses == sum(assessment.uses for assessment in merger.before)
        assert merger.other.id in merger.result.aliases
        assert merger.saved > 0
        events = pattern_lineage(open_project.view, target)
        assert [event for event in events if event in merger.lineage] == list(merger.lineage)
        open_project.decide(Undo())


def test_relevance_is_computed_once_for_equal_texts(open_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    open_project.view.prepare()  # as the dashboard does before it forecasts
    calls = record_calls(monkeypatch, context_recipients, "task_relevance")
    forecaster = Forecaster(open_project)
    item = question(open_project.view, CONTRADICTED)
    tasks = len({reader.task for reader in list_recipients(open_project.view.snapshot)})
    for action in ("accept", "deprecate"):
        assert forecaster.forecast(open_project.view, item, answer_of(open_project, item, action))
    open_project.decide(Reset(item.subject))
    other = question(open_project.view, INVERSION)
    assert forecaster.forecast(open_project.view, other, answer_of(open_project, other, "deprecate"))
    assert len(calls) == tasks


def test_only_contexts_that_a_decision_may_change_are_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def about(word: str) -> dict[str, object]:
        signature = {"error_type": "RareError", "error_pattern": word}
        return record(f"pat-error-{word}-001", f"Use {word}", error_signature=signature, success_rate=1.0)

    with meaning(on=False):
        open_project = made(tmp_path, list(map(about, WORDS)), [f"Change the {word} page" for word in WORDS[:4]])
        item = ReviewItem(kind="borderline", subject="pat-error-auth-001", question="?", reason="?", priority=0.5)
        forecaster, given = Forecaster(open_project), answer_of(open_project, item, "deprecate")
        assert forecaster.forecast(open_project.view, item, given)
        calls = record_calls(monkeypatch, context_recipients, "task_context")
        found = forecaster.forecast(open_project.view, item, given)
        assert found is not None
        assert (len(calls), len(found.changed), found.loops + found.tasks) == (1, 1, 4)


def active_contexts(view: ProjectState) -> list[str]:
    tasks = [loop.task for loop in view.snapshot.loops.values() if loop.status.active and loop.task]
    return [prepare_task_injection(view, task).context for task in tasks]


def test_bulk_forecast_matches_the_decision(sample: Project) -> None:
    open_project, before = sample, sample.view
    states = {id: before.assessment(id).state for id in before.board.ids}
    ids = [id for id, state in states.items() if state is not Maturity.CANDIDATE]
    ledger = len(before.snapshot.decisions)
    found = forecast_bulk(open_project, Verb.DEPRECATE, ids)
    assert found is not None
    assert open_project.view is before and len(open_project.view.snapshot.decisions) == ledger
    decided = open_project.decide(bulk(Verb.DEPRECATE, ids, "obsolete"))
    assert (found.asked, found.decided) == (len(ids), len(decided.decisions))
    assert sum(count for _, count in found.refused) == len(decided.refused) > 0
    turned = [id for id in ids if open_project.view.assessment(id).state is not states[id]]
    assert sum(count for _, _, count in found.turned) == len(turned)
    assert {after for _, after, _ in found.turned} == {Maturity.DEPRECATED}
    now, then = active_contexts(open_project.view), active_contexts(before)
    assert found.effect.loops == len(now)
    assert found.effect.changed_of("loop") == sum(one != other for one, other in zip(then, now, strict=True)) > 0
    assert found.effect.tokens[1] < found.effect.tokens[0]


def test_bulk_forecast_reports_refusals_and_an_approval_of_what_stays(sample: Project) -> None:
    view = sample.view
    proven = [one for one in map(view.assessment, view.board.ids) if one.state is Maturity.PROVEN and one.pin is None]
    found = forecast_bulk(sample, Verb.RESET, [one.pattern_id for one in proven[:2]])
    assert found is not None and (found.decided, found.turned) == (0, ())
    assert "is not pinned" in found.refused[0][0]
    given = next(
        one.pattern_id
        for reader in list_recipients(view.snapshot)
        for one in prepare_task_injection(view, reader.task).chosen
        if one.voice == "unreviewed"
    )
    found = forecast_bulk(sample, Verb.PROMOTE, [given])
    assert found is not None
    assert any("<approved-" in change.after and "<approved-" not in change.before for change in found.effect.changed)
