"""None"""

from __future__ import annotations

import json
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.paths import project_at
from core.base.settings import Settings
from core.index.contexts import prepare_task_injection
from core.project.reader import ProjectReader
from core.retrieval.embeddings import VectorFile
from tests.core.cli.conftest import Call

TASK = "Fix TypeScript type errors in user validation"
LOOP = "ralph-fix-validation-b2c3d4e5"
EVENTS = Path(".aiwg/ralph/shared/curation/events.jsonl")


def test_json_has_the_stable_shape(examples: Path, call: Call) -> None:
    document = call("loop", "inject", "--task", TASK, "--json", "--project", examples).document
    assert set(document) >= {"context", "tokens", "bytes", "patterns", "left_out"}
    assert document["context"].startswith("<unreviewed-")
    assert document["bytes"] == len(document["context"].encode())
    assert 0 < document["tokens"] <= 2000
    for pattern in document["patterns"]:
        assert set(pattern) >= {"id", "type", "score", "relevance", "effectiveness", "multiplier", "parts"}
        product = pattern["relevance"] * pattern["effectiveness"] * pattern["multiplier"]
        assert pattern["score"] == pytest.approx(product)
        assert sum(pattern["parts"].values()) == pytest.approx(pattern["relevance"])
    assert all(set(left) >= {"id", "reason"} for left in document["left_out"])
    ids = [record["id"] for record in (*document["patterns"], *document["left_out"])]
    assert len(ids) == len(set(ids))


def test_plain_output_is_the_context_and_nothing_else(examples: Path, call: Call) -> None:
    plain = call("loop", "inject", "--task", TASK, "--project", examples)
    assert plain.err == ""
    assert plain.out == call("loop", "inject", "--task", TASK, "--json", "--project", examples).document["context"]


def test_it_is_byte_for_byte_what_the_dashboard_previews(
    sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ProjectReader] = []
    load = ProjectReader.load

    def remember(opened: ProjectReader, *args: object) -> object:
        made.append(opened)
        return load(opened)

    monkeypatch.setattr(ProjectReader, "load", remember)
    out = call("loop", "inject", "--task", TASK, "--project", sample).out
    assert out and out == prepare_task_injection(made[0].view, TASK, Settings().injection).context


def test_a_task_alone_is_a_question_and_records_nothing(examples: Path, call: Call) -> None:
    call("loop", "inject", "--task", TASK, "--project", examples)
    assert not (examples / EVENTS).exists()


def test_a_loop_gets_the_context_of_its_task_and_it_is_recorded(examples: Path, call: Call) -> None:
    document = call("loop", "inject", LOOP, "--json", "--project", examples).document
    events = [json.loads(line) for line in (examples / EVENTS).read_text().splitlines()]
    assert [event["pattern_id"] for event in events] == [pattern["id"] for pattern in document["patterns"]]
    assert {(event["kind"], event["loop_id"], event["by"]) for event in events} == {("injected", LOOP, "ada")}
    assert len({event["id"] for event in events}) == len(events) > 0


def test_no_record_and_the_beginning_of_an_id(examples: Path, call: Call) -> None:
    assert call("loop", "inject", "ralph-fix-val", "--no-record", "--project", examples).out
    assert not (examples / EVENTS).exists()


def test_an_injection_is_recorded_once(examples: Path, call: Call) -> None:
    call("loop", "inject", LOOP, "--top-k", "1", "--project", examples)
    assert len((examples / EVENTS).read_text().splitlines()) == 1
    got = call("loop", "inject", LOOP, "--json", "--project", examples).document["patterns"]
    events = [json.loads(line) for line in (examples / EVENTS).read_text().splitlines()]
    assert [event["pattern_id"] for event in events] == [pattern["id"] for pattern in got] and len(got) > 1


def test_an_undelivered_context_is_not_recorded(examples: Path, call: Call) -> None:
    result = call("loop", "inject", LOOP, "--output", examples / "no" / "such.md", "--project", examples)
    assert result.code == 1
    assert not (examples / EVENTS).exists()


def test_the_context_is_printed_even_if_it_cannot_be_recorded(examples: Path, call: Call) -> None:
    (examples / ".aiwg/ralph/shared/curation").write_text("in the way")
    result = call("loop", "inject", LOOP, "--project", examples)
    assert result.code == 0
    assert result.out.startswith("<unreviewed-")
    assert result.err.startswith("Warning: the injection was not recorded: ") and result.err.count("\n") == 1


def test_the_reason_for_an_empty_context_is_printed(examples: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "context.md"
    for words in (["--task", TASK], ["--task", TASK, "--output", file], [LOOP]):
        result = call("loop", "inject", *words, "--min-success-rate", "1", "--project", examples)
        assert (result.code, result.out, result.err.count("\n")) == (0, "", 1)
        assert "ralphdeck gives no lesson: low rate (" in result.err
    (examples / "aiwg.yml").write_text("ralph: {cross_loop_learning: {injection: {enabled: false}}}")
    result = call("loop", "inject", "--task", TASK, "--project", examples)
    assert result.out == "" and "disabled in the settings (injection.enabled)" in result.err
    assert call("loop", "inject", "--task", TASK, "--json", "--project", examples).err == ""


def test_options_replace_settings(sample: Path, call: Call) -> None:
    def ids(*args: str) -> list[str]:
        document = call("loop", "inject", "--task", TASK, "--json", "--project", sample, *args).document
        return [pattern["id"] for pattern in document["patterns"]]

    assert len(ids()) == 5
    assert ids("--top-k", "2") == ids()[:2]
    assert len(ids("--top-k", "99")) == 10
    assert ids("--top-k", "0") == []
    rates = {
        pattern["id"]: pattern["success_rate"]
        for pattern in call("pattern", "list", "--json", "--project", sample).document["patterns"]
    }
    assert {id.split("-")[1] for id in ids("--types", "anti,success", "--top-k", "9")} == {"anti", "success"}
    small = call("loop", "inject", "--task", TASK, "--json", "--max-tokens", "150", "--project", sample).document
    assert 0 < small["tokens"] <= 150
    strict = ids("--min-success-rate", "90%")
    assert strict and all(rates[pattern_id] >= 0.9 for pattern_id in strict)
    assert any(rates[pattern_id] < 0.9 for pattern_id in ids("--top-k", "10"))
    by_category = call(
        "loop", "inject", "--task", TASK, "--category", "testing", "--json", "--project", sample
    ).document
    assert by_category["category"] == "testing"


def test_output_is_written_to_the_file_only(examples: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "context.md"
    file.write_text("older")
    result = call("loop", "inject", "--task", TASK, "--output", file, "--project", examples)
    assert (result.code, result.out) == (0, "")
    assert file.read_text() == call("loop", "inject", "--task", TASK, "--project", examples).out
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["context.md"]


@pytest.mark.parametrize("task", ["", " \n"])
def test_an_empty_task_is_wrong_usage(task: str, examples: Path, call: Call) -> None:
    result = call("loop", "inject", "--task", task, "--project", examples)
    assert (result.code, result.out) == (2, "")
    assert result.err.endswith("Error: --task is empty\n")


def test_output_keeps_who_may_read_the_file(examples: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "context.md"
    for mode in (0o600, 0o664):
        file.write_text("older")
        file.chmod(mode)
        call("loop", "inject", "--task", TASK, "--output", file, "--project", examples)
        assert file.read_text() != "older"
        assert stat.S_IMODE(file.stat().st_mode) == mode


def test_output_never_replaces_a_device(examples: Path, call: Call) -> None:
    result = call("loop", "inject", "--task", TASK, "--output", "/dev/null", "--project", examples)
    assert (result.code, result.out) == (1, "")
    assert Path("/dev/null").is_char_device()


def test_a_missing_output_folder_is_one_line(examples: Path, tmp_path: Path, call: Call) -> None:
    result = call("loop", "inject", "--task", TASK, "--output", tmp_path / "no" / "file", "--project", examples)
    assert result.code == 1
    assert result.err.startswith("Error: cannot write ") and result.err.count("\n") == 1


@pytest.mark.parametrize("words", [["no-such-loop"], ["ralph-fix-"]])
def test_a_pattern_that_cannot_be_injected_is_one_line(words: list[str], examples: Path, call: Call) -> None:
    result = call("loop", "inject", *words, "--project", examples)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: ") and result.err.count("\n") == 1


def test_a_promoted_pattern_is_injected_as_proven_at_once(sample: Path, call: Call) -> None:
    def multiplier() -> float:
        document = call("loop", "inject", "--task", TASK, "--json", "--top-k", "10", "--project", sample).document
        found = {pattern["id"]: pattern["multiplier"] for pattern in document["patterns"]}
        return float(found["pat-error-null-check-015"])

    assert multiplier() == 1.0
    assert call("pattern", "promote", "pat-error-null-check-015", "--project", sample).code == 0
    assert multiplier() == 1.5


PARAPHRASE = "An endpoint answers twice for one request"
HELPFUL = "pat-error-headers-sent-014"


def test_semantic_search_finds_a_reworded_task(sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> tuple[str, dict[str, dict[str, float]]]:
        document = call("loop", "inject", "--task", PARAPHRASE, "--json", "--project", sample).document
        return document["matched_by"], {pattern["id"]: pattern["parts"] for pattern in document["patterns"]}

    matched_by, by_words = found()
    assert matched_by == "words" and HELPFUL not in by_words
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    matched_by, by_meaning = found()
    assert matched_by == "meaning" and by_meaning[HELPFUL]["meaning"] > 0
    monkeypatch.setattr(VectorFile, "writing", lambda *_: pytest.fail("they are kept"))
    assert found() == (matched_by, by_meaning)


def test_the_dashboard_previews_the_same_by_semantic_search(
    sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    assert call("doctor", "--embed", "--project", sample).code == 0
    opened = ProjectReader(project_at(sample), Settings(), by="ada", clock=lambda: datetime.now(UTC), cache=False)
    preview = prepare_task_injection(opened.load(), PARAPHRASE)
    assert preview.matched_by == "meaning"
    assert preview.context == call("loop", "inject", "--task", PARAPHRASE, "--project", sample).out


def test_many_missing_vectors_are_a_hint_and_no_wait(sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    monkeypatch.setattr("core.retrieval.embeddings.MAX_ON_DEMAND", 10)
    result = call("loop", "inject", "--task", TASK, "--json", "--project", sample)
    assert result.document["matched_by"] == "words"
    assert (
        result.err
        == "40 patterns and 27 tasks found by words only; to compute their vectors: ralphdeck doctor --embed\n"
    )


def test_words_are_compared_if_vectors_cannot_be_saved(
    examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    folder = examples / ".aiwg/ralph/memory/embeddings"
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("in the way")
    result = call("loop", "inject", "--task", TASK, "--project", examples)
    assert result.code == 0 and result.out.startswith("<unreviewed-")
    assert result.err.startswith("Warning: some patterns are found by words only: ")
    assert result.err.count("\n") == 1


def test_a_loop_gets_the_learnings_of_similar_loops_and_shows_that_it_got_them(sample: Path, call: Call) -> None:
    (loop,) = (
        one
        for one in call("loop", "list", "--json", "--project", sample).document["loops"]
        if one["id"] == "ralph-fix-user-validation-in-sign-up-c4c69b76"
    )
    document = call("loop", "inject", loop["id"], "--json", "--project", sample).document
    ids = [one["id"] for one in document["reflections"]]
    assert ids and "### Reflections" in document["context"]
    assert call("loop", "inject", "--task", loop["task"], "--project", sample).out == document["context"]
    events = [json.loads(line) for line in (sample / EVENTS).read_text().splitlines()]
    assert [event["reflection_id"] for event in events if event["kind"] == "injected-reflection"] == ids
    call("loop", "inject", loop["id"], "--project", sample)
    shown = next(
        one for one in call("loop", "list", "--json", "--project", sample).document["loops"] if one["id"] == loop["id"]
    )
    assert shown["injected_reflections"] == ids
    assert shown["injected"] and not set(ids) & set(shown["injected"])


@pytest.mark.parametrize(
    ("options", "has_patterns", "has_reflections"),
    [
        (("--types", "error,success"), True, False),
        (("--types", "reflection"), False, True),
        (("--max-reflections", "0"), True, False),
        (("--top-k", "0"), False, True),
    ],
)
def test_types_and_limits_choose_between_patterns_and_reflections(
    options: tuple[str, ...], has_patterns: bool, has_reflections: bool, sample: Path, call: Call
) -> None:
    document = call("loop", "inject", "--task", TASK, *options, "--json", "--project", sample).document
    assert (bool(document["patterns"]), bool(document["reflections"])) == (has_patterns, has_reflections)
    assert ("### Reflections" in document["context"]) == has_reflections
    assert document["tokens"] <= 2000
    assert all(one["reason"] for one in document["reflections_left_out"])


SNARKTANK_LOOP = "snarktank:scripts/ralph/types"
PLAN = {"branchName": "ralph/types", "description": "Fix TypeScript type errors in user validation", "userStories": []}


@pytest.fixture
def project(sample: Path) -> Path:
    folder = sample / "scripts/ralph"
    folder.mkdir(parents=True)
    stories = [{"id": "US-001", "title": "Type the user", "passes": False, "priority": 1}]
    (folder / "prd.json").write_text(json.dumps(PLAN | {"userStories": stories}))
    (folder / "progress.txt").write_text("# Ralph Progress Log\n## Codebase Patterns\n- Use zod\n---\n")
    return sample


def test_a_change_of_the_runners_file_can_be_applied(call: Call, project: Path) -> None:
    before = (project / "scripts/ralph/progress.txt").read_text()
    result = call("loop", "inject", SNARKTANK_LOOP, "--deliver", "--project", project)
    assert (project / "scripts/ralph/progress.txt").read_text() == before
    subprocess.run(["patch", "-p1"], input=result.out.encode(), cwd=project, check=True, stdout=subprocess.DEVNULL)
    after = (project / "scripts/ralph/progress.txt").read_text()
    assert "- Use zod\n" in after
    assert "<!-- BEGIN ralphdeck -->" in after


def test_a_loop_in_aiwg_has_its_own_command(call: Call, project: Path) -> None:
    loops = call("loop", "list", "--source", "aiwg", "--json", "--project", project).document["loops"]
    found = call("loop", "inject", loops[0]["id"], "--deliver", "--json", "--project", project).document
    assert found["command"] == []
    assert found["diff"] is None
    assert "ralphdeck loop inject" in found["explanation"]


def test_an_unknown_loop_is_an_error(call: Call, project: Path) -> None:
    assert call("loop", "inject", "codex:none", "--deliver", "--project", project).code == 1


def test_without_a_context_the_way_is_explained(call: Call, project: Path) -> None:
    plan = project / "scripts/ralph/prd.json"
    for description, obstacle in (("Zzyzx", "Nothing is injected now for the task of this loop"), ("", "")):
        plan.write_text(json.dumps(json.loads(plan.read_text()) | {"description": description}))
        result = call("loop", "inject", SNARKTANK_LOOP, "--deliver", "--project", project)
        assert (result.code, result.out) == (0, "")
        assert f"{obstacle}. When there is a context: Each iteration reads the Codebase Patterns first" in result.err
