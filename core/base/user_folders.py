"""The user's own folders of ralphdeck, for settings, state and caches."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from core.base.errors import BadInput

_APP: Final = "ralphdeck"
# On Linux the folders are those of the XDG specification. Importing platformdirs for them takes 5 ms in each hook.
_HAS_XDG: Final = sys.platform == "linux" and "ANDROID_ROOT" not in os.environ


def config_folder() -> Path:
    """Return the folder of settings and keys, which may not exist."""
    if _HAS_XDG:
        return _xdg_folder("XDG_CONFIG_HOME", "~/.config")
    from platformdirs import user_config_path

    return user_config_path(_APP)


def state_folder() -> Path:
    """Return the folder of the user's state, which may not exist."""
    if _HAS_XDG:
        return _xdg_folder("XDG_STATE_HOME", "~/.local/state")
    from platformdirs import user_state_path

    return user_state_path(_APP)


def cache_folder() -> Path:
    """Return the folder of files that may be deleted at any time, which may not exist."""
    if _HAS_XDG:
        return _xdg_folder("XDG_CACHE_HOME", "~/.cache")
    from platformdirs import user_cache_path

    return user_cache_path(_APP)


def _xdg_folder(variable: str, default: str) -> Path:
    """Return the folder below the one that a variable names; the specification ignores relative paths.

    Raises BadInput if the home folder is not known: a relative one would be in the project, whose files would count as
    the user's.
    """
    named = os.environ.get(variable, "")
    folder = named if named.startswith("/") else os.path.expanduser(default)  # noqa: PTH111 (as platformdirs)
    if not folder.startswith("/"):
        raise BadInput(f"your home folder is not known: set HOME, or {variable}, to an absolute path")
    return Path(folder) / _APP
