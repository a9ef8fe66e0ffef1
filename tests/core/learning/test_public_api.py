"""Public names of core.learning, and the code examples of docs/learning-api.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import core.learning

PAGE = Path(__file__).parents[3] / "docs" / "learning-api.md"
RECIPES = re.findall(r"^## (\w+)\n(?:(?!## ).*\n)*?```python\n((?:.*\n)*?)```", PAGE.read_text(), re.MULTILINE)


def test_the_page_has_five_examples() -> None:
    assert [title for title, _ in RECIPES] == ["Outcomes", "Criteria", "Maturity", "Inversion", "Errors"]


@pytest.mark.parametrize(("title", "code"), RECIPES, ids=[title for title, _ in RECIPES])
def test_an_example_runs_as_printed(title: str, code: str) -> None:
    exec(compile(code, f"{PAGE.name}#{title.lower()}", "exec"), {})  # noqa: S102


def test_every_public_name_can_be_imported() -> None:
    assert len(set(core.learning.__all__)) == len(core.learning.__all__)
    for name in core.learning.__all__:
        assert getattr(core.learning, name).__module__.startswith("core.learning.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        core.learning.no_such_name  # noqa: B018
