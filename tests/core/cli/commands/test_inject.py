"""`loop inject`: what an agent gets for a task or a loop, what is recorded, and semantic search."""

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


def test_a_task_alone_is_a_question_and_a_loop_is_recorded_once(examples: Path, call: Call) -> None:
    plain = call("loop", "inject", "--task", TASK)
    assert (plain.err, plain.out) == ("", call("loop", "inject", "--task", TASK, "--json").document["context"])
    assert call("loop", "inject", "ralph-fix-val", "--no-record").out, "the beginning of an ID is enough"
    undelivered = call("loop", "inject", LOOP, "--output", examples / "no" / "such.md")
    assert undelivered.code == 1 and undelivered.err.startswith("Error: cannot write ")
    assert not (examples / EVENTS).exists()
    call("loop", "inject", LOOP, "--top-k", "1")
    assert len((examples / EVENTS).read_text().splitlines()) == 1
    got = call("loop", "inject", LOOP, "--json").document["patterns"]
    events = [json.loads(line) for line in (examples / EVENTS).read_text().splitlines()]
    assert [event["pattern_id"] for event in events] == [pattern["id"] for pattern in got] and len(got) > 1
    assert {(event["kind"], event["loop_id"], event["by"]) for event in events} == {("injected", LOOP, "ada")}


def test_what_cannot_be_injected_is_one_line(examples: Path, call: Call) -> None:
    for words, code in ((["no-such-loop"], 1), (["ralph-fix-"], 1), (["codex:none", "--deliver"], 1)):
        result = call("loop", "inject", *words)
        assert (result.code, result.out) == (code, "")
        assert result.err.startswith("Error: ") and result.err.count("\n") == 1
    empty = call("loop", "inject", "--task", " \n")
    assert (empty.code, empty.out) == (2, "") and empty.err.endswith("Error: --task is empty\n")


def test_the_context_is_printed_even_if_it_cannot_be_recorded(examples: Path, call: Call) -> None:
    (examples / ".aiwg/ralph/shared/curation").write_text("in the way")
    result = call("loop", "inject", LOOP)
    assert result.code == 0
    assert result.out.startswith("<unreviewed-")
    assert result.err.startswith("Warning: the injection was not recorded: ") and result.err.count("\n") == 1


def test_the_reason_for_an_empty_context_is_printed(examples: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "context.md"
    for words in (["--task", TASK], ["--task", TASK, "--output", file], [LOOP]):
        result = call("loop", "inject", *words, "--min-success-rate", "1")
        assert (result.code, result.out, result.err.count("\n")) == (0, "", 1)
        assert "ralphdeck gives no lesson: low rate (" in result.err
    (examples / "aiwg.yml").write_text("ralph: {cross_loop_learning: {injection: {enabled: false}}}")
    result = call("loop", "inject", "--task", TASK)
    assert result.out == "" and "disabled in the settings (injection.enabled)" in result.err
    assert call("loop", "inject", "--task", TASK, "--json").err == ""


def test_options_replace_settings(sample: Path, call: Call) -> None:
    def ids(*args: str) -> list[str]:
        document = call("loop", "inject", "--task", TASK, "--json", *args).document
        return [pattern["id"] for pattern in document["patterns"]]

    assert len(ids()) == 5
    assert ids("--top-k", "2") == ids()[:2]
    assert len(ids("--top-k", "99")) == 10
    assert ids("--top-k", "0") == []
    rates = {
        pattern["id"]: pattern["success_rate"] for pattern in call("pattern", "list", "--json").document["patterns"]
    }
    assert {id.split("-")[1] for id in ids("--types", "anti,success", "--top-k", "9")} == {"anti", "success"}
    small = call("loop", "inject", "--task", TASK, "--json", "--max-tokens", "150").document
    assert 0 < small["tokens"] <= 150
    strict = ids("--min-success-rate", "90%")
    assert strict and all(rates[pattern_id] >= 0.9 for pattern_id in strict)
    assert any(rates[pattern_id] < 0.9 for pattern_id in ids("--top-k", "10"))
    by_category = call("loop", "inject", "--task", TASK, "--category", "testing", "--json").document
    assert by_category["category"] == "testing"
    for options, has_patterns in ((("--types", "reflection"), False), (("--max-reflections", "0"), True)):
        document = call("loop", "inject", "--task", TASK, *options, "--json").document
        assert (bool(document["patterns"]), bool(document["reflections"])) == (has_patterns, not has_patterns)
        assert ("### Reflections" in document["context"]) is not has_patterns


def test_output_is_written_to_the_file_only(examples: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "context.md"
    for mode in (0o600, 0o664):
        file.write_text("older")
        file.chmod(mode)
        result = call("loop", "inject", "--task", TASK, "--output", file)
        assert (result.code, result.out) == (0, "")
        assert file.read_text() == call("loop", "inject", "--task", TASK).out
        assert stat.S_IMODE(file.stat().st_mode) == mode, "who may read it stays"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["context.md"]
    device = call("loop", "inject", "--task", TASK, "--output", "/dev/null")
    assert (device.code, device.out) == (1, "") and Path("/dev/null").is_char_device()


PARAPHRASE = "An endpoint answers twice for one request"
HELPFUL = "pat-error-headers-sent-014"


def test_semantic_search_finds_a_reworded_task(sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> tuple[str, dict[str, dict[str, float]]]:
        document = call("loop", "inject", "--task", PARAPHRASE, "--json").document
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
    assert call("doctor", "--embed").code == 0
    opened = ProjectReader(project_at(sample), Settings(), by="ada", clock=lambda: datetime.now(UTC), cache=False)
    preview = prepare_task_injection(opened.load(), PARAPHRASE)
    assert preview.matched_by == "meaning"
    assert preview.context == call("loop", "inject", "--task", PARAPHRASE).out


def test_many_missing_vectors_are_a_hint_and_no_wait(sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    monkeypatch.setattr("core.retrieval.embeddings.MAX_ON_DEMAND", 10)
    result = call("loop", "inject", "--task", TASK, "--json")
    assert result.document["matched_by"] == "words"
    assert (
        result.err
        == "40 patterns and 27 tasks found by words only; to compute their vectors: ralphdeck doctor --embed\n"
    )


def test_a_loop_gets_the_learnings_of_similar_loops_and_shows_that_it_got_them(sample: Path, call: Call) -> None:
    (loop,) = (
        one
        for one in call("loop", "list", "--json").document["loops"]
        if one["id"] == "ralph-fix-user-validation-in-sign-up-c4c69b76"
    )
    document = call("loop", "inject", loop["id"], "--json").document
    ids = [one["id"] for one in document["reflections"]]
    assert ids and "### Reflections" in document["context"]
    assert call("loop", "inject", "--task", loop["task"]).out == document["context"]
    events = [json.loads(line) for line in (sample / EVENTS).read_text().splitlines()]
    assert [event["reflection_id"] for event in events if event["kind"] == "injected-reflection"] == ids
    call("loop", "inject", loop["id"])
    shown = next(one for one in call("loop", "list", "--json").document["loops"] if one["id"] == loop["id"])
    assert shown["injected_reflections"] == ids
    assert shown["injected"] and not set(ids) & set(shown["injected"])


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
    result = call("loop", "inject", SNARKTANK_LOOP, "--deliver")
    assert (project / "scripts/ralph/progress.txt").read_text() == before
    subprocess.run(["patch", "-p1"], input=result.out.encode(), cwd=project, check=True, stdout=subprocess.DEVNULL)
    after = (project / "scripts/ralph/progress.txt").read_text()
    assert "- Use zod\n" in after
    assert "<!-- BEGIN ralphdeck -->" in after
    own = call("loop", "list", "--source", "aiwg", "--json").document["loops"][0]["id"]
    found = call("loop", "inject", own, "--deliver", "--json").document
    assert (found["command"], found["diff"]) == ([], None) and "ralphdeck loop inject" in found["explanation"]


def test_without_a_context_the_way_is_explained(call: Call, project: Path) -> None:
    plan = project / "scripts/ralph/prd.json"
    for description, obstacle in (("Zzyzx", "Nothing is injected now for the task of this loop"), ("", "")):
        plan.write_text(json.dumps(json.loads(plan.read_text()) | {"description": description}))
        result = call("loop", "inject", SNARKTANK_LOOP, "--deliver")
        assert (result.code, result.out) == (0, "")
        assert f"{obstacle}. When there is a context: Each iteration reads the Codebase Patterns first" in result.err
