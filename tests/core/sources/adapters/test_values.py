"""Texts of adapters are cut before they are masked, so a cut must not divide a secret."""

from __future__ import annotations

import pytest

from core.sources.adapters.values import clip, cut

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.mark.parametrize("limit", [30, 44, 48, 80])
def test_a_secret_that_a_cut_would_divide_is_masked(limit: int) -> None:
    text = f"{'x' * 40} {TOKEN} {'y' * 200}"
    for made in (clip(text, limit), cut(text, limit)):
        assert len(made) == limit
        assert TOKEN[:6] not in made


def test_a_text_that_is_not_cut_stays_as_it_is() -> None:
    assert clip(TOKEN, len(TOKEN)) == TOKEN
