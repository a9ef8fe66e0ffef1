"""No command fails on hostile files, and no output contains terminal control sequences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.cli.demo.sample import copy_sample
from tests.copying import copy_folder
from tests.core.cli.conftest import TREES, Call

PAYLOADS = (
    "\x1b]52;c;cHduZWQ=\x07",
    "\x1b]0;pwned\x07\x1b[2J\x1b[31m",
    "\x9b31m\x90q\x9c\x00\x7f",
    "\u202eevil\u2066\u200b\ufeff\u2028",
    "[@click=app.promote('x')]here[/] [/etc/passwd] \\",
    "\udfff\ud800",
    "\r\nError: forged\n\ttab",
)
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
READING = (
    ["loop", "list"],
    ["pattern", "list"],
    ["lesson", "--reflections"],
    ["log"],
    ["pattern", "invert"],
    ["doctor"],
    ["loop", "score"],
    ["review", "--suspicious"],
    ["metrics", "--tasks"],
    ["loop", "extract", "--all", "--dry-run"],
    ["changes", "maturity.half_life_days=20"],
    ["loop", "inject", "--task", "Fix TypeScript type errors in user validation", "--top-k", "10"],
)


class Poison:
    """Puts a payload into every string, a different one each time."""

    def __init__(self, only_texts: bool) -> None:
        self._only_texts = only_texts
        self._count = 0

    def __call__(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self(child) for key, child in value.items()}
        if isinstance(value, list):
            return [self(child) for child in value]
        if isinstance(value, str) and (" " in value or not self._only_texts):
            self._count += 1
            payload = PAYLOADS[self._count % len(PAYLOADS)]
            return f"{value[: len(value) // 2]}{payload}{value[len(value) // 2 :]}"
        return value


def poisoned(project: Path, poison: Callable[[Any], Any]) -> Path:
    for file in project.rglob("*.json*"):
        if file.suffix not in {".json", ".jsonl"} or file.is_symlink():
            continue
        lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
        try:
            file.write_text("".join(f"{json.dumps(poison(json.loads(line)))}\n" for line in lines))
        except ValueError:
            continue
    loop = project / ".aiwg/ralph/loops" / "evil\x1b]0;x\x07[/b]"
    loop.mkdir(parents=True, exist_ok=True)
    (loop / "state.json").write_text(json.dumps({"loopId": "\x1b[2J", "status": "running\x1b[2J"}))
    return project


@pytest.fixture
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    project = tmp_path / "project"
    if request.param == "sample":
        copy_sample(project, datetime.now(UTC))
    else:
        copy_folder(TREES / request.param, project)
    return project


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tree", "only_texts"), [("sample", True), ("sample", False), ("upstream", False)], indirect=["tree"]
)
def test_no_raw_payload_is_printed(only_texts: bool, tree: Path, call: Call) -> None:
    poisoned(tree, Poison(only_texts))
    shown = ""
    listing = call("pattern", "list", "--json", "--project", tree).document
    ids = [pattern["id"] for pattern in listing["patterns"][:4] if "\x00" not in pattern["id"]]
    about = [
        [*words, pattern_id] for pattern_id in ids for words in (["pattern", "show"], ["pattern", "show", "--why"])
    ]
    for work in [one["id"] for one in call("loop", "score", "--json", "--project", tree).document["outcomes"][:2]]:
        if "\x00" not in work:
            about += [
                ["loop", "score", work, "--errors", "--all"],
                ["loop", "record", work, "--outcome", "--success", "--dry-run"],
            ]
    for words in (*READING, *about):
        for options in (["--project", str(tree)], ["--project", str(tree), "--json"]):
            result = call(*words, *options)
            assert not RAW.search(result.out), words
            assert not RAW.search(result.err), words
            assert result.code == 0, (words, result.err)
            shown += result.out
    assert "␛" in shown and "\\u001b" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "payload", [payload for payload in PAYLOADS if "\x00" not in payload and "\ud800" not in payload]
)
def test_typed_text_is_shown_as_plain_text(payload: str, sample: Path, call: Call) -> None:
    pattern_id = "pat-error-null-check-015"
    results = [
        call("pattern", "promote", pattern_id, "--reason", payload, "--by", f"a{payload}"),
        call("pattern", "note", pattern_id, f"note {payload}"),
        call("log"),
        call("pattern", "show", pattern_id),
        call("pattern", "show", pattern_id, "--why"),
        call("pattern", "show", f"no {payload}"),
        call("loop", "inject", f"no {payload}"),
        call("loop", "list", "--status", payload),
        call("loop", "record", f"bd{payload}", pattern_id, "--failure", "--by", f"a{payload}"),
        call("loop", "record", f"bd{payload}", "--criterion", payload, "--success", "--context", payload),
        call("loop", "record", f"bd{payload}", "--outcome", "--failure", "--strategy", payload),
        call("loop", "record", f"bd{payload}", "--outcome", "--failure", "--duration", payload),
        call("loop", "score", f"bd{payload}"),
        call("loop", "score", "--criteria"),
        call("loop", "record", f"bd{payload}", "--error", payload, "--context", payload),
        call("loop", "score", f"bd{payload}", "--errors"),
        call("loop", "record", f"bd{payload}", "--resolve", payload),
        call("review", payload, "--suspicious", "--revoke"),
        call("changes", f"{payload}={payload}"),
        call("changes", f"max_harmful={payload}"),
        call(f"no{payload}"),
        call("loop", "list", "--project", f"/no/{payload}"),
    ]
    for result in results:
        assert not RAW.search(result.out + result.err)
        assert "internal error" not in result.err


@pytest.mark.parametrize("tree", ["spec-examples"], indirect=True)
def test_hopeless_files_are_findings(tree: Path, call: Call) -> None:
    patterns = tree / ".aiwg/ralph/shared/patterns"
    patterns.mkdir(parents=True, exist_ok=True)
    (patterns / "error-patterns.json").write_text('{"patterns": ' + "[" * 3000 + "]" * 3000 + "}")
    (patterns / "anti-patterns.json").write_bytes(b"\xff\xfe\x00")
    (patterns / "success-patterns.json").write_text('[{"pattern_id": "x", "success_rate": NaN, "usage_count": 1e400}]')
    loops = tree / ".aiwg/ralph/loops"
    loops.mkdir(parents=True, exist_ok=True)
    (loops / "huge").mkdir()
    (loops / "huge" / "state.json").write_text('{"loopId": "huge", "currentIteration": ' + "9" * 5000 + "}")
    for words in READING:
        result = call(*words, "--json", "--project", tree)
        assert result.code == 0, (words, result.err)
        files = {finding["file"] for finding in result.document["findings"] if finding["severity"] == "error"}
        assert ".aiwg/ralph/shared/patterns/error-patterns.json" in files
        assert ".aiwg/ralph/shared/patterns/anti-patterns.json" in files
