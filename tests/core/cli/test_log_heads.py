"""Heads of the log on the command line: written elsewhere, compared, refused."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.base.paths import ProjectPaths
from core.files.hash_chain import Chain, link_lines, strip_link, write_anchor
from tests.core.cli.conftest import Call

NULL = "pat-error-null-check-015"


@pytest.fixture
def head(sample: Path, tmp_path: Path, call: Call) -> Path:
    file = tmp_path / "heads" / "acme.json"
    file.parent.mkdir()
    done = call("log", "--head", "--output", file, "--project", sample)
    assert done.code == 0 and done.out.startswith(f"wrote {file}: line ")
    return file


def compute_anew(project: Path) -> None:
    ledger = ProjectPaths(project).ledger
    documents = [strip_link(line) for line in ledger.read_bytes().splitlines()]
    lines, end = link_lines([document.replace(b'"dana"', b'"mallory"') for document in documents], Chain().place)
    ledger.write_bytes(b"".join(line + b"\n" for line in lines))
    write_anchor(ledger, end)


def test_a_recomputed_log_passes_verify_and_fails_against_a_head(sample: Path, head: Path, call: Call) -> None:
    call("pattern", "promote", NULL)
    done = call("log", "--verify", "--against", head)
    assert done.code == 0 and "hash chain intact; contains 1 head saved elsewhere\n" in done.out and not done.err
    compute_anew(sample)
    done = call("log", "--verify")
    assert done.code == 0 and "only detected with --against" in done.err, "and the output says what it does not find"
    done = call("log", "--verify", "--against", head, "--json")
    assert done.code == 3 and done.document["heads"] == 1
    (problem,) = done.document["problems"]
    assert problem["what"].endswith("lines up to this one were rewritten")


def test_a_head_is_printed_and_read_from_standard_input(
    sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = call("log", "--head")
    document = printed.document
    assert set(document) == {"kind", "project", "lines", "hash", "at"} and len(document["project"]) == 16
    assert call("log", "--head", "--json").document["hash"] == document["hash"]

    def verified(text: str) -> int:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        return call("log", "--verify", "--against", "-").code

    assert verified(printed.out) == 0
    assert verified(printed.out.replace(document["hash"], "0" * 64)) == 3
    assert verified("noise") == 1 and verified(" " * 2_000_000) == 1


def test_a_file_that_is_not_a_head_of_this_project_is_refused(
    sample: Path, examples: Path, head: Path, call: Call
) -> None:
    refused = call("log", "--verify", "--against", head.with_name("missing.json"), "--project", sample)
    assert refused.code == 1 and "does not exist" in refused.err
    call("log", "--head", "--project", examples)
    refused = call("log", "--verify", "--against", head, "--project", examples)
    assert refused.code == 1 and "is the head of project" in refused.err
    inside = call("log", "--head", "--output", sample / ".aiwg/head.json", "--project", sample)
    assert inside.code == 1 and not (sample / ".aiwg/head.json").exists()


def test_options_that_do_not_go_together_are_refused(sample: Path, call: Call) -> None:
    for words in ("--head --verify", "--against x", "--output x", "--verify --limit 2", "--head --by ada"):
        assert call("log", *words.split()).code == 2, words


def test_the_head_of_a_broken_log_is_given_with_a_warning(sample: Path, head: Path, call: Call) -> None:
    ledger = ProjectPaths(sample).ledger
    ledger.write_bytes(ledger.read_bytes().replace(b'"dana"', b'"mallory"', 1))
    done = call("log", "--head")
    assert done.code == 0 and "break" in done.err and json.loads(done.out)["lines"]


@pytest.mark.skipif(not (shutil.which("git") and shutil.which("ssh-keygen")), reason="git and ssh-keygen are missing")
def test_the_recipes_of_the_documentation_work(sample: Path, head: Path, call: Call, tmp_path: Path) -> None:
    def run(*words: str | Path, text: bytes | None = None) -> bytes:
        return subprocess.run(words, cwd=tmp_path, input=text, capture_output=True, check=True).stdout

    name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    run("git", "init", "-q", ".")
    run("git", *name, "commit", "-q", "--allow-empty", "-m", "x")
    run("git", *name, "notes", "--ref=ralphdeck", "add", "-F", head)
    noted = tmp_path / "noted.json"
    noted.write_bytes(run("git", "notes", "--ref=ralphdeck", "show"))
    assert call("log", "--verify", "--against", noted).code == 0
    run("git", *name, "tag", "-a", "log-head", "-F", head)
    noted.write_bytes(run("git", "tag", "-l", "--format=%(contents:subject)", "log-head"))
    assert call("log", "--verify", "--against", noted).code == 0
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key")
    run("ssh-keygen", "-Y", "sign", "-f", "key", "-n", "ralphdeck", head)
    (tmp_path / "signers").write_text(f"ada {(tmp_path / 'key.pub').read_text()}")
    signed = f"{head}.sig"
    verify = ("ssh-keygen", "-Y", "verify", "-f", "signers", "-I", "ada", "-n", "ralphdeck", "-s", signed)
    run(*verify, text=head.read_bytes())
    with pytest.raises(subprocess.CalledProcessError):
        run(*verify, text=head.read_bytes().replace(b'"lines"', b'"lines" '))
