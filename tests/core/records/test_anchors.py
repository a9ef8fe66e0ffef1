"""Anchors as texts, and names found in files."""

from __future__ import annotations

import pytest

from core.records.anchors import MAX_ANCHORS, Anchor, list_anchors, parse_anchor, rename_in_text


def test_texts_of_anchors() -> None:
    for text, anchor in {
        "src/cart.py": Anchor("src/cart.py"),
        "./src\\cart.py#Cart.total": Anchor("src/cart.py", "Cart.total"),
        "package.json#@acme/kit": Anchor("package.json", "@acme/kit"),
        "go.mod#github.com/acme/kit": Anchor("go.mod", "github.com/acme/kit"),
        "docs/c#.md": Anchor("docs/c#.md"),
    }.items():
        assert parse_anchor(text) == anchor
    for text in (
        "",
        "#total",
        "/etc/passwd",
        "../a",
        "a/../b",
        "a//b",
        "~/a",
        "C:/a",
        ".git/config",
        "a\nb",
        "a\x9b31mb",
        "a\u202eb",
        "-rf",
        "./--output=a",
        "x" * 401,
    ):
        assert parse_anchor(text) is None, text
    assert len(list_anchors(["a", "a", "", *(f"f{n}" for n in range(20))])) == MAX_ANCHORS


@pytest.mark.parametrize(
    ("anchor", "content", "is_in"),
    [
        ("a.py#total", "def total(): ...", True),
        ("a.py#total", "def subtotal(): ... total_2", False),
        ("a.py#Cart.total", "class Cart:\n  def total(self): ...", True),
        ("a.py#Cart.total", "def total(self): ...", False),
        ("a.js#$total", "const $total = 1", True),
        ("package.json#pad", '{"left-pad": "1"}', False),
        ("requirements-dev.txt#Left_Pad", "left-pad[all]>=1", True),
        ("requirements.txt#pytest", "pytest-asyncio==1", False),
        ("pyproject.toml#httpx", '"httpx>=1"', True),
        ("a.py", "", True),
    ],
)
def test_name_in_a_file(anchor: str, content: str, is_in: bool) -> None:
    parsed = parse_anchor(anchor)
    assert parsed is not None
    assert parsed.is_in(content) is is_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see src/cart.py.", "see src/basket.py."),
        ("./src/cart.py:12 and `src/cart.py::total`", "./src/basket.py:12 and `src/basket.py::total`"),
        ("cart.py, lib/src/cart.py, ../src/cart.py, src/cart.py.bak, src/cart.pyc", None),
        ("a/src/cart.py", None),
        ("diff --git a/src/cart.py b/src/cart.py", "diff --git a/src/basket.py b/src/basket.py"),
        ("src/cart.py src/tax.py", "src/basket.py src/cart.py"),
    ],
)
def test_a_renamed_path_is_replaced_only_where_it_is_that_path(text: str, expected: str | None) -> None:
    renames = {"src/cart.py": "src/basket.py", "src/tax.py": "src/cart.py"}
    assert rename_in_text(text, renames) == (text if expected is None else expected)


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("Measure the query plan", "Measure", "Never", None),
        ("the test fails", "test", "tests/test", None),
        ("--- a/Makefile\n+the Makefile", "Makefile", "build/Makefile", "--- a/build/Makefile\n+the Makefile"),
        ("see src/cart.py", "src/cart.py", "src/never do this.py", None),
        ("see src/cart.py", "src/cart.py", "src/no,never.py", None),
        ("see src/cart.py", "src/cart.py", "src/größe.py", "see src/größe.py"),
    ],
)
def test_a_rename_changes_no_ordinary_words_and_adds_none(text: str, old: str, new: str, expected: str | None) -> None:
    assert rename_in_text(text, {old: new}) == (text if expected is None else expected)
