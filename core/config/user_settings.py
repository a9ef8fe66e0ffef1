"""The user's own settings: `settings.toml` in the user's configuration folder (docs/settings.md#your-own-settings).

They say whose word counts. No file of a project has a say in that, so these settings have no counterpart in `aiwg.yml`.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import platformdirs
from msgspec import Struct

from core.base.text import visible_line
from core.records.findings import Finding, Severity

MAX_BYTES: Final = 64 << 10  # maximum size of the file
Claims = Literal["count", "candidate"]
Scripts = Literal["all", "unheld", "none"]


class TrustSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether numbers in the files of trusted projects count, or leave a pattern a candidate."""

    claims: Claims = "count"


class DecisionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may decide what.

    `scripts` is what a script without a terminal may decide: all, all but the release of held and blocked texts, or
    nothing. `names` are further names of the user, besides those of the system and of Git.
    """

    scripts: Scripts = "unheld"
    names: tuple[str, ...] = ()


class JudgeSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Command, as a list of arguments, that advises on held texts; empty if there is none."""

    judge: tuple[str, ...] = ()


class UserSettings(Struct, frozen=True):
    """The settings in effect; `findings` has what is wrong with the file, whose valid groups are used."""

    trust: TrustSettings = TrustSettings()
    decisions: DecisionSettings = DecisionSettings()
    scan: JudgeSettings = JudgeSettings()
    findings: tuple[Finding, ...] = ()


_GROUPS: Final[dict[str, Any]] = {"trust": TrustSettings, "decisions": DecisionSettings, "scan": JudgeSettings}
OWN_NAMES: Final = frozenset(
    {f"{name}.{field}" for name, group in _GROUPS.items() for field in group.__struct_fields__} | {"trust", "decisions"}
)
"""Settings, and groups that have no others, which the files of a project cannot set."""


def user_settings_file() -> Path:
    return platformdirs.user_config_path("ralphdeck") / "settings.toml"


def read_user_settings() -> UserSettings:
    """Read the file; a missing one gives the defaults, an invalid group its defaults and a finding."""
    file = user_settings_file()
    try:
        with file.open("rb") as opened:
            document = tomllib.loads(opened.read(MAX_BYTES).decode())
    except FileNotFoundError:
        return UserSettings()
    except (OSError, ValueError) as error:  # not readable, not UTF-8, not TOML
        return UserSettings(findings=(_finding(file, "", str(error)),))
    values: dict[str, Any] = {}
    findings = []
    for name, group in document.items():
        if name not in _GROUPS:
            near = difflib.get_close_matches(name[:80], _GROUPS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"valid groups: {', '.join(_GROUPS)}"
            findings.append(_finding(file, name, f"unknown group; {hint}"))
            continue
        try:
            values[name] = msgspec.convert(group, _GROUPS[name])
        except msgspec.ValidationError as error:
            findings.append(_finding(file, name, f"{error}; the defaults of this group are used"))
    return UserSettings(**values, findings=tuple(findings))


def _finding(file: Path, group: str, message: str) -> Finding:
    pointer = f"/{visible_line(group, 80)}" if group else ""
    return Finding(str(file), pointer, Severity.ERROR, "bad-user-setting", visible_line(message, 300))
