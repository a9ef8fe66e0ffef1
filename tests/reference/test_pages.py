"""The generated pages of the docs match the code."""

from __future__ import annotations

import pytest

from tests.reference.__main__ import GENERATORS


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.PAGE.name)
def test_generated_page_is_up_to_date(generator: object) -> None:
    page, render = generator.PAGE, generator.render_page  # type: ignore[attr-defined]
    assert page.read_text(encoding="utf-8") == render(), "run: python -m tests.reference"
