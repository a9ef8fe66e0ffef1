"""Tables of regular expressions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.base import negation, value_shapes
from core.base import polarity as base_polarity
from core.base.regex_table import RegexTable, read_blocks
from core.base.scanning import polarity
from core.retrieval import task

CORE = Path(__file__).parents[3] / "core"
TABLES = {
    "core/base/negation": negation._REGEX,
    "core/base/polarity": base_polarity._REGEX,
    "core/base/secret_patterns": value_shapes.REGEX,
    "core/base/value_shapes": value_shapes.REGEX,
    "core/retrieval/task": task._REGEX,
    "core/base/scanning/polarity": polarity._REGEX,
}


def test_parts_are_inserted_and_line_breaks_removed(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text("word: |-\n  [a-z]\n  {2,}\npair: |-\n  {word}{gap}{word}\n", encoding="utf-8")
    table = RegexTable(path, gap="-+")
    assert table.sources["pair"] == "[a-z]{2,}-+[a-z]{2,}"
    assert table["pair"].fullmatch("ab--cd") and table["pair"] is table["pair"]
    with pytest.raises(KeyError):
        table["unknown"]


@pytest.mark.parametrize("line", ["word: [a-z]", "word:", "- word", " word: |-"])
def test_other_forms_of_yaml_are_an_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(f"# comment\n{line}\n")
    with pytest.raises(ValueError, match="line 2"):
        read_blocks(path)


@pytest.mark.parametrize("place", TABLES)
def test_every_expression_that_the_code_names_exists(place: str) -> None:
    code = (CORE.parent / place).with_suffix(".py").read_text(encoding="utf-8")
    names = set(re.findall(r'REGEX\["(\w+)"\]', code))
    assert names
    for name in names:
        assert TABLES[place][name].pattern
