"""The user's own names, with which decisions may be signed (docs/curation.md#who-decides)."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from core.base.regexes import lazy_regex
from core.base.user_settings import read_user_settings

_MAX_BYTES: Final = 64 << 10  # of a configuration file of Git that is read
_SECTION: Final = lazy_regex(r"\[\s*([A-Za-z0-9.-]+)\s*(\".*\")?\s*\]")
_VALUE: Final = lazy_regex(r"(name|email)\s*=\s*(.+)", re.IGNORECASE)


def own_names() -> tuple[str, ...]:
    """Return the names of the user who runs this process, each once; the first one is the login name.

    The system knows login and full name, Git name and email address; further ones are in `decisions.names` of the
    user's own settings. Environment variables such as `USER` have no say.
    """
    found = [*_system_names(), *_git_names(), *(name.strip() for name in read_user_settings().decisions.names)]
    return tuple(dict.fromkeys(filter(None, found)))


def find_own_name(name: str, names: tuple[str, ...]) -> str:
    """Return the own name that equals a name except for upper and lower case, "" if none does."""
    wanted = name.strip().casefold()
    return next((one for one in names if one.casefold() == wanted), "")


def _system_names() -> Iterator[str]:
    try:
        user = pwd.getpwuid(os.getuid())
    except KeyError:
        yield f"uid {os.getuid()}"
        return
    yield user.pw_name
    yield user.pw_gecos.partition(",")[0].strip()


def _git_names() -> Iterator[str]:
    """Yield name and email address of the user's own configuration of Git; no program is run."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config")
    for file in (Path("~/.gitconfig"), config / "git" / "config"):
        try:
            with file.expanduser().open("rb") as opened:
                lines = opened.read(_MAX_BYTES).decode("utf-8", "replace").splitlines()
        except (OSError, RuntimeError):
            continue
        section = ""
        for line in map(str.strip, lines):
            if found := _SECTION.match(line):
                section = "" if found[2] else found[1].lower()
            elif section == "user" and (value := _VALUE.fullmatch(line)):
                yield value[2].strip().strip('"')
