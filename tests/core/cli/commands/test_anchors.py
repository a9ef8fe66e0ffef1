"""`pattern anchors`: what a pattern is about, what became of it, and other anchors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from tests.core.cli.conftest import Call
from tests.core.questions.test_stale import ONE, record
from tests.git_history import History, body


@pytest.fixture
def shop(tmp_path: Path) -> History:
    history = History(tmp_path / "shop")
    history.write(cart=body("total"), tax=body("tax"))
    file = ProjectPaths(history.folder).pattern_file("error")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"error_patterns": [record(ONE, "cart.py", "cart.py#total", "tax.py")]}))
    history.commit()
    history.git("mv", "cart.py", "basket.py")
    history.commit()
    return history


def test_anchors_are_shown_updated_and_changed(shop: History, call: Call) -> None:
    at = ("--project", shop.folder)
    listed = call("pattern", "anchors", *at)
    assert "cart.py was renamed to basket.py in " in listed.out
    (pattern,) = call("pattern", "anchors", ONE, "--json", *at).document["patterns"]
    assert [(one["anchor"], one["change"], one["to"]) for one in pattern["anchors"]] == [
        ("cart.py", "renamed", "basket.py"),
        ("cart.py#total", "renamed", "basket.py#total"),
        ("tax.py", None, None),
    ]
    assert call("pattern", "anchors", ONE, "--update", "--remove", "tax.py", "--add", "tax.py#tax", *at).code == 0
    shown = call("pattern", "show", ONE, "--json", *at).document["pattern"]
    assert [one["anchor"] for one in shown["anchors"]] == ["basket.py", "basket.py#total", "tax.py#tax"]
    assert shown["anchor_commit"] == shop.git("rev-parse", "HEAD")
    assert "no pattern is about" in call("pattern", "anchors", *at).err
    assert call("log", "--limit", "1", "--json", *at).document["decisions"][0]["verb"] == "edit"


def test_states_of_anchors_are_in_lists_and_explanations(shop: History, call: Call) -> None:
    at = ("--project", shop.folder)
    shop.git("rm", "-q", "tax.py")
    commit = shop.commit()[:7]
    assert call("pattern", "anchors", ONE, "--add", "basket.py", *at).code == 0
    assert "  current" not in call("pattern", "show", ONE, "--why", *at).out
    assert call("review", *at).code == 0, "it checks the anchors"
    why = call("pattern", "show", ONE, "--why", *at).out
    assert f"tax.py  missing since commit {commit}" in why
    assert "cart.py  renamed to basket.py in commit" in why and "basket.py  current" in why
    assert " stale" in call("pattern", "list", *at).out
    (row,) = call("pattern", "list", "--json", *at).document["patterns"]
    assert row["stale"] and call("pattern", "show", ONE, "--json", *at).document["pattern"]["stale"]
    questions = call("review", "--json", *at).document["questions"]
    assert {one["kind"] for one in questions} == {"stale", "renamed"}


def test_a_check_that_failed_is_not_taken_for_a_result(shop: History, call: Call) -> None:
    os.mkfifo(shop.folder / ".git/objects/info/alternates")
    at = ("--project", shop.folder)
    assert "not checked with Git" in call("pattern", "anchors", *at).err
    assert "alternates" in call("pattern", "anchors", "--json", *at).document["problem"]


def test_wrong_uses(shop: History, call: Call) -> None:
    at = ("--project", shop.folder)
    for words, why in (
        (("--add", "a.py"), "need the ID of a pattern"),
        ((ONE, "--remove", "a.py"), "has no anchor 'a.py'"),
        ((ONE, "--add", "/etc/passwd"), "Invalid anchor"),
        (("nothing",), "no pattern"),
    ):
        done = call("pattern", "anchors", *words, *at)
        assert done.code in (1, 2)
        assert why in done.err
