"""`ralphdeck compile` writes, checks and removes approved lessons, also in a fresh clone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.copying import copy_folder
from tests.core.cli.conftest import Call

EXTRACTED = "pat-error-event-loop-001"
"""A new lesson that a person has not read yet."""


def lessons(project: Path) -> list[str]:
    """The files that agents read."""
    found = (path.relative_to(project) for path in project.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if path.parts[0] != ".aiwg")


def test_it_writes_checks_and_removes(sample: Path, call: Call) -> None:
    known = lessons(sample)
    nothing = call("compile", "--check", "--project", sample)
    assert nothing.code == 1 and nothing.err.endswith("copilot, skills or all\n")
    shown = call("compile", "agents-md", "cursor", "--dry-run", "--project", sample)
    assert (shown.code, lessons(sample)) == (0, known) and "+## Approved lessons" in shown.out
    written = call("compile", "agents-md", "cursor", "--json", "--project", sample).document
    assert written["written"] and written["lessons"]
    assert {".cursor/rules/ralphdeck.mdc", "AGENTS.md"} <= {*lessons(sample)}
    assert call("compile", "--check", "--project", sample).code == 0

    section = sample / "AGENTS.md"
    section.write_text(section.read_text().replace("Lessons of", "Orders of"))
    checked = call("compile", "--check", "--project", sample)
    assert checked.code == 1 and "AGENTS.md: edited" in checked.out
    assert call("compile", "--project", sample).code == 1 and "Orders of" in section.read_text()
    assert call("compile", "--force", "--project", sample).code == 0
    section.write_text(section.read_text().replace("<!-- END", "<!-- end"))
    assert call("compile", "--check", "--project", sample).code == 3
    section.write_text(section.read_text().replace("<!-- end", "<!-- END"))
    assert call("compile", "--remove", "--project", sample).code == 0
    assert lessons(sample) == known


def test_it_reports_what_is_left_out_and_why(sample: Path, call: Call) -> None:
    document = call("compile", "agents-md", "--json", "--project", sample).document
    assert 0 < document["tokens"] <= document["budget"] == 2000
    why = {one["id"]: one["reason"] for one in document["left_out"]}
    assert why[EXTRACTED] == "not approved by a person" and "deprecated" in why.values()
    assert not why.keys() & {*document["lessons"]}
    before = (sample / "AGENTS.md").read_bytes()
    for number in (5, 0):
        small = call(
            "compile", "agents-md", "--budget", str(number), "--dry-run", "--json", "--project", sample
        ).document
        assert (small["lessons"], small["tokens"], small["budget"]) == ([], 0, number)
        assert "over the token budget" in {one["reason"] for one in small["left_out"]}
    shown = call("compile", "agents-md", "--project", sample)
    assert "left out: not approved by a person" in shown.err and (sample / "AGENTS.md").read_bytes() == before


def test_a_fresh_clone_is_checked_if_its_folder_is_trusted(
    sample: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = call("pattern", "release", EXTRACTED, "--project", sample)
    assert released.code == 0, released.err
    document = call("compile", "claude-md", "--json", "--project", sample).document
    assert EXTRACTED in document["lessons"]

    clone = copy_folder(sample, tmp_path / "builds/clone")
    for name in ("STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "other-user" / name))
    monkeypatch.delenv("RALPHDECK_TRUSTED_PATHS")
    refused = call("compile", "--check", "--project", clone)
    assert refused.code == 1 and "not trusted" in refused.err
    monkeypatch.setenv("RALPHDECK_TRUSTED_PATHS", str(tmp_path / "builds"))
    assert call("compile", "--check", "--project", clone).code == 0
    file = clone / "CLAUDE.md"
    file.write_text(file.read_text().replace(" <!-- ", " by hand <!-- ", 2))
    assert call("compile", "--check", "--project", clone).code == 1
