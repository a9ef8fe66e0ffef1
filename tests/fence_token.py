"""A fixed token for the fences of contexts, which otherwise differ in each rendering."""

from __future__ import annotations

from typing import Final

import pytest

FENCE_TOKEN: Final = "0123456789abcdef"


def fix_fence_token() -> None:
    """Let all contexts of this process have `FENCE_TOKEN`."""
    pytest.MonkeyPatch().setattr("core.base.prompt_text.draw_token", lambda: FENCE_TOKEN)
