"""What Git shows about files and names that a project no longer has, in real histories."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic

import pytest

from core.base.pattern_titles import describe_change
from core.files.git import GitFailed, read_head, read_head_at
from core.records.anchors import AnchorChange, parse_anchor
from core.sources.anchor_check import Wanted, find_changes
from tests.git_history import BEGIN, History, body


def check(project: Path, *anchors: str, since: datetime | None = BEGIN, commit: str = "") -> dict[str, AnchorChange]:
    wanted = [Wanted(anchor, since, commit) for text in anchors if (anchor := parse_anchor(text)) is not None]
    return {one.anchor.text: change for one, change in find_changes(project, wanted).items()}


def begin(folder: Path, **files: str) -> History:
    history = History(folder)
    history.write(**(files or {"cart": body("total")}))
    history.commit()
    return history


def test_removed(tmp_path: Path) -> None:
    history = begin(tmp_path, cart=body("total"), other=body("other"))
    (tmp_path / "cart.py").unlink()
    commit = history.commit()
    history.write(other=body("more"))
    history.commit()
    found = check(tmp_path, "cart.py", "cart.py#total", "other.py")
    assert found == {
        anchor: AnchorChange(anchor=anchor, change="removed", commit=commit, at=BEGIN + timedelta(hours=2))
        for anchor in ("cart.py", "cart.py#total")
    }


def test_renamed_twice_and_moved_with_its_folder(tmp_path: Path) -> None:
    history = begin(tmp_path, src__cart=body("total"), src__tax=body("tax"))
    history.git("mv", "src/cart.py", "src/basket.py")
    first = history.commit()
    history.git("mv", "src/basket.py", "src/order.py")
    history.commit()
    history.git("mv", "src", "shop")
    last = history.commit()
    found = check(tmp_path, "src/cart.py", "src/cart.py#total", "src/tax.py")
    assert {(name, one.change, one.to, one.commit) for name, one in found.items()} == {
        ("src/cart.py", "renamed", "shop/order.py", first),
        ("src/cart.py#total", "renamed", "shop/order.py#total", first),
        ("src/tax.py", "renamed", "shop/tax.py", last),
    }


def test_renamed_then_removed_and_a_dependency_that_left_the_manifest(tmp_path: Path) -> None:
    history = begin(tmp_path, cart=body("total"), tax=body("tax"))
    history.git("mv", "cart.py", "basket.py")
    history.git("mv", "tax.py", "Tax.py")
    manifest = tmp_path / "package.json"
    manifest.write_text('{"dependencies": {"left-pad": "1", "left-pad-2": "1", "@acme/kit": "2"}}')
    history.commit()
    history.git("rm", "-q", "basket.py")
    manifest.write_text('{"dependencies": {"left-pad-2": "1", "@acme/kit": "2"}}')
    last = history.commit()
    assert [(one.change, one.commit) for one in check(tmp_path, "cart.py").values()] == [("removed", last)]
    assert check(tmp_path, "tax.py")["tax.py"].to == "Tax.py", "a change of case is a rename"
    found = check(tmp_path, "package.json#left-pad", "package.json#left-pad-2", "package.json#@acme/kit")
    assert [(name, one.commit) for name, one in found.items()] == [("package.json#left-pad", last)]


def test_name_in_a_renamed_file_that_lost_it(tmp_path: Path) -> None:
    history = begin(tmp_path, cart=body("total") + body("tax", 30))
    history.git("mv", "cart.py", "basket.py")
    history.commit()
    history.write(basket=body("tax", 30))
    last = history.commit()
    found = check(tmp_path, "cart.py#total", "cart.py#tax", "cart.py#never")
    assert {(name, one.change, one.to, one.commit) for name, one in found.items() if one.change == "removed"} == {
        ("cart.py#total", "removed", "", last)
    }
    assert found["cart.py#tax"].to == "basket.py#tax"
    assert "cart.py#never" not in found


@pytest.mark.parametrize("keeps", [True, False])
def test_file_is_split(tmp_path: Path, keeps: bool) -> None:
    history = begin(tmp_path, cart=body("total") + body("tax") + body("left"))
    parts = {"pricing": body("total"), "duties": body("tax")}
    if keeps:
        history.write(cart=body("left"), **parts)
    else:
        history.git("rm", "-q", "cart.py")
        history.write(**parts, rest="left = None\n")
    commit = history.commit()
    found = check(tmp_path, "cart.py#total", "cart.py#tax", "cart.py#left")
    assert {(name, one.change, one.to, one.commit) for name, one in found.items() if "left" not in name} == {
        ("cart.py#total", "moved", "pricing.py#total", commit),
        ("cart.py#tax", "moved", "duties.py#tax", commit),
    }
    assert ("cart.py#left" in found) == (not keeps)


def test_nothing_is_stale_that_was_not_removed_in_a_commit_since(tmp_path: Path) -> None:
    history = begin(tmp_path, cart=body("total"), back=body("back"), early=body("early"), open=body("open"))
    history.git("rm", "-q", "back.py", "early.py")
    history.commit()
    later = history.at
    history.write(back=body("back"))
    history.commit()
    (tmp_path / "cart.py").unlink()  # not committed
    (tmp_path / "open.py").write_text("# rewritten, not committed\n")
    never = ("plan.py", "cart.py#never", "src/", "../secret.py", "/etc/passwd")
    assert check(tmp_path, "cart.py", "back.py", "open.py#open", *never) == {}
    assert check(tmp_path, "early.py", since=later) == {}  # the lesson is newer than the removal
    assert check(tmp_path, "early.py", since=None)["early.py"].change == "removed"
    other = "0123456789abcdef0123456789abcdef01234567"
    assert check(tmp_path, "early.py", commit=other) == {}  # learned in another repository


def test_shallow_clone_knows_only_what_it_has(tmp_path: Path) -> None:
    history = begin(tmp_path / "origin", cart=body("total"), tax=body("tax"))
    learned = history.git("rev-parse", "HEAD")
    history.git("rm", "-q", "cart.py")
    history.commit()
    history.git("rm", "-q", "tax.py")
    history.commit()
    clone = History(tmp_path / "clone", begins=False)
    clone.git("clone", "-q", "--depth=2", f"file://{history.folder}", ".")
    assert list(check(clone.folder, "cart.py", "tax.py")) == ["tax.py"]
    assert check(clone.folder, "cart.py", "tax.py", commit=learned) == {}


def test_worktree_submodule_and_project_in_a_folder(tmp_path: Path) -> None:
    history = begin(tmp_path / "origin", parts__shop__cart=body("total"), cart=body("total"))
    history.git("mv", "parts/shop/cart.py", "parts/shop/basket.py")
    commit = history.commit()
    folder = history.folder / "parts" / "shop"
    assert check(folder, "cart.py")["cart.py"].to == "basket.py"
    history.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    tree = History(tmp_path / "tree", begins=False)
    tree.at = history.at
    tree.git("rm", "-q", "cart.py")
    removed = tree.commit()
    assert (read_head(tree.folder), read_head(folder)) == (removed, commit)
    assert check(tree.folder, "cart.py")["cart.py"].commit == removed
    assert check(history.folder, "cart.py") == {}
    main = begin(tmp_path / "main", app=body("app"))
    main.git("submodule", "--quiet", "add", str(history.folder), "lib")
    main.commit()
    assert read_head(main.folder / "lib") == commit
    assert check(main.folder / "lib" / "parts" / "shop", "cart.py")["cart.py"].to == "basket.py"
    assert check(main.folder, "lib/parts/shop/cart.py") == {}


def test_head_is_read_from_files(tmp_path: Path) -> None:
    history = begin(tmp_path)
    first = history.git("rev-parse", "HEAD")
    at = history.at.timestamp()
    history.write(cart=body("more"))
    second = history.commit()
    assert read_head(tmp_path) == read_head(tmp_path / "src" / "deep") == second
    assert (read_head_at(tmp_path, at + 1), read_head_at(tmp_path, at - 1)) == (first, "")
    history.git("pack-refs", "--all")
    assert read_head(tmp_path) == second
    history.git("checkout", "-q", first)
    assert read_head(tmp_path) == first
    (tmp_path / ".git" / "HEAD").write_text("ref: ../../../etc/passwd\n")
    assert read_head(tmp_path) == ""
    assert read_head(Path("/")) == ""


def test_names_that_are_not_utf8_and_special_ones(tmp_path: Path) -> None:
    strange = "*.py", ":(glob)cart.py", "a -b.py", "größe.py"
    history = History(tmp_path)
    for name in strange:
        (tmp_path / name).write_text(body("total"))
    history.write(cart=body("cart"), tax=body("tax"))
    history.commit()
    for name in strange[2:]:
        (tmp_path / name).unlink()
    (tmp_path / "tax.py").rename(os.fsdecode(os.fsencode(tmp_path) + b"/t\xe4x.py"))
    history.commit()
    found = check(tmp_path, *strange, "cart.py", "tax.py")
    assert set(found) == {*strange[2:], "tax.py"}
    assert (found["tax.py"].change, found["tax.py"].to) == ("removed", "")  # a name that no record can store


def test_a_rename_to_a_name_with_control_characters_is_not_described_as_a_removal(tmp_path: Path) -> None:
    history = begin(tmp_path, cart=body("total"), tax=body("tax"))
    history.git("mv", "cart.py", "ca\x1b[31mrt.py")
    (tmp_path / "tax.py").unlink()
    history.commit()
    found = check(tmp_path, "cart.py", "tax.py")
    described = describe_change(found["cart.py"], BEGIN + timedelta(days=1))
    assert "was renamed to an unusable name in" in described and "\x1b" not in described
    assert "was removed in" in describe_change(found["tax.py"], BEGIN + timedelta(days=1))


def test_partial_clone_fetches_nothing(tmp_path: Path) -> None:
    history = begin(tmp_path / "origin", cart=body("total"), tax=body("tax") + body("duty"))
    history.git("config", "uploadpack.allowFilter", "true")
    history.git("mv", "cart.py", "basket.py")
    history.write(tax=body("tax"))
    history.commit()
    clone = History(tmp_path / "clone", begins=False)
    clone.git("clone", "-q", "--filter=blob:none", f"file://{history.folder}", ".")
    marker = tmp_path / "fetched"
    clone.git("config", "remote.origin.uploadpack", f"touch {marker}; git-upload-pack")
    found = check(clone.folder, "cart.py", "tax.py#duty")
    assert found["cart.py"].to == "basket.py"
    assert not marker.exists()


def test_nothing_of_a_hostile_repository_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = begin(tmp_path / "repo", cart=body("total"), tax=body("tax") + body("duty"))
    history.git("rm", "-q", "cart.py")
    history.write(tax=body("tax"))
    history.commit()
    marker, program = tmp_path / "ran", tmp_path / "repo" / "evil"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    program.chmod(0o755)
    shutil.copy(program, history.folder / "git")
    hooks = history.folder / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman", "post-checkout"):
        shutil.copy(program, hooks / hook)
    (history.folder / ".gitattributes").write_text("* diff=evil filter=evil\n")
    for key in (
        *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy"),
        *(
            "core.alternateRefsCommand",
            "pager.log",
            "pager.rev-list",
            "pager.diff-tree",
            "diff.external",
            "gpg.program",
        ),
        *("diff.evil.command", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
        *("credential.helper", "trace2.eventTarget", "uploadpack.packObjectsHook", "remote.origin.uploadpack"),
    ):
        history.git("config", key, str(program))
    for alias in ("rev-list", "diff-tree", "cat-file", "rev-parse"):
        history.git("config", f"alias.{alias}", f"!{program}")
    history.git("config", "core.hooksPath", str(hooks))
    history.git("config", "log.showSignature", "true")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("PATH", f".{os.pathsep}{history.folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(history.folder)
    with pytest.raises(GitFailed, match="outside of the repository"):
        check(history.folder, "cart.py")
    monkeypatch.setenv("PATH", os.environ["PATH"].split(os.pathsep, 2)[2])
    marker.unlink(missing_ok=True)
    assert set(check(history.folder, "cart.py", "tax.py#duty")) == {"cart.py", "tax.py#duty"}
    assert not marker.exists()


def test_fifos_outside_of_the_objects_are_not_opened(tmp_path: Path) -> None:
    history = begin(tmp_path)
    history.git("config", "include.path", "evil")
    history.git("rm", "-q", "cart.py")
    history.commit()
    for place in ("config", "evil", "info/attributes", "refs/heads/evil", "index"):
        (tmp_path / ".git" / place).unlink(missing_ok=True)
        os.mkfifo(tmp_path / ".git" / place)
    assert check(tmp_path, "cart.py")["cart.py"].change == "removed"


def test_fifos_among_the_objects_are_refused_at_once(tmp_path: Path) -> None:
    history = begin(tmp_path)
    history.git("rm", "-q", "cart.py")
    history.commit()
    for place in ("objects/info/alternates", "objects/pack/pack-1.idx", "objects/ab/cdef", "shallow"):
        fifo = tmp_path / ".git" / place
        fifo.parent.mkdir(exist_ok=True)
        os.mkfifo(fifo)
        with pytest.raises(GitFailed, match=fifo.name):
            check(tmp_path, "cart.py")
        fifo.unlink()


def test_fifos_among_borrowed_objects_are_refused_however_their_path_is_written(tmp_path: Path) -> None:
    history = begin(tmp_path / "repo")
    history.git("rm", "-q", "cart.py")
    history.commit()
    for name in ("other", "ot\x0bher"):
        (tmp_path / name / "pack").mkdir(parents=True)
        os.mkfifo(tmp_path / name / "pack" / "pack-1.idx")
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "below")
    for line in ("{top}/other", '"{top}/other"', "{top}/other\0", "{top}/link/../other", "{top}/ot\x0bher"):
        (history.folder / ".git/objects/info/alternates").write_text(line.format(top=tmp_path))
        with pytest.raises(GitFailed, match=r"alternates|pack-1"):
            check(history.folder, "cart.py")


def test_paths_with_line_breaks_are_left_out_and_a_project_below_one_is_refused(tmp_path: Path) -> None:
    history = begin(tmp_path)
    (tmp_path / "cart.py").unlink()
    for name in ("a\nb", "a\rb"):
        (tmp_path / f"{name}.py").write_text("other = None\n")
        (tmp_path / name).mkdir()
        (tmp_path / name / "tax.py").write_text(body("tax"))
    history.commit()
    assert [one.change for one in check(tmp_path, "cart.py#total").values()] == ["removed"]
    for name in ("a\nb", "a\rb"):
        with pytest.raises(GitFailed, match="line break"):
            check(tmp_path / name, "gone.py")


def test_objects_of_other_repositories_and_long_commit_names_are_read(tmp_path: Path) -> None:
    history = begin(tmp_path / "origin")
    history.git("rm", "-q", "cart.py")
    commit = history.commit()
    shared = History(tmp_path / "shared", begins=False)
    shared.git("clone", "-q", "--shared", str(history.folder), ".")
    assert check(shared.folder, "cart.py")["cart.py"].commit == commit
    os.mkfifo(history.folder / ".git/objects/pack/pack-1.idx")
    with pytest.raises(GitFailed, match="pack-1"):
        check(shared.folder, "cart.py")
    long = History(tmp_path / "long", begins=False)
    long.git("init", "-q", "--object-format=sha256")
    long.write(cart=body("total"))
    long.commit()
    long.git("mv", "cart.py", "basket.py")
    assert len(long.commit()) == 64
    assert check(long.folder, "cart.py")["cart.py"].to == "basket.py"


def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GitFailed):
        check(tmp_path, "cart.py")
    begin(tmp_path / "repo")
    assert check(tmp_path / "repo", "cart.py") == {}
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitFailed):
        check(tmp_path / "repo", "other.py")


def test_time_is_limited(tmp_path: Path) -> None:
    history = begin(tmp_path)
    history.git("rm", "-q", "cart.py")
    history.commit()
    anchor = parse_anchor("cart.py")
    assert anchor is not None
    begun = monotonic()
    with pytest.raises(GitFailed):
        find_changes(tmp_path, [Wanted(anchor, BEGIN)], seconds=0.0)
    assert monotonic() - begun < 1


def test_a_commit_of_an_impossible_time_is_dated_to_the_last_year(tmp_path: Path) -> None:
    history = begin(tmp_path, cart=body("total"), other=body("other"))
    (tmp_path / "cart.py").unlink()
    history.commit()
    text = history.git("cat-file", "commit", "HEAD").replace(history.git("log", "-1", "--format=%at"), "99999999999999")
    written = history.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", text=text + "\n")
    history.git("update-ref", "HEAD", written)
    assert check(tmp_path, "cart.py")["cart.py"].at.year == 9999
