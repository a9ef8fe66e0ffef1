"""The user's own settings in `settings.toml`; docs/settings.md#your-own-settings.

They say whose word counts. No file of a project has a say in that, so these settings have no counterpart in `aiwg.yml`.
With the user's own names, decisions may be signed (docs/curation.md#who-decides)."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

import msgspec
from msgspec import Meta, Struct

from core.base.paths import config_folder
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.records.findings import Finding, Severity

MAX_BYTES: Final = 64 << 10  # maximum size of the file
Claims = Literal["count", "candidate"]
Order = Literal["hold", "flag", "block"]
Scripts = Literal["all", "unheld", "none"]


class TrustSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether trusted projects' numbers count, or leave a pattern a candidate."""

    claims: Claims = "count"


class DecisionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may decide what.

    `scripts` is what a script without a terminal may decide: all, all but the release of held and blocked texts, or
    nothing. `names` are further names of the user, besides those of the system and of Git.
    """

    scripts: Scripts = "unheld"
    names: tuple[str, ...] = ()


class ScanPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to texts that the scan holds.

    `judge` is a command, as a list of arguments, that advises on them; empty if there is none. The others are those of
    `core.base.settings.ScanSettings`; None leaves the setting of the project.
    """

    judge: tuple[str, ...] = ()
    error_patterns: Order | None = None
    success_patterns: Order | None = None
    anti_patterns: Order | None = None
    code_templates: Order | None = None
    extracted: Order | Literal["by-type"] | None = None
    imported: Order | Literal["by-type"] | None = None
    other_texts: Literal["hold", "flag"] | None = None

    def orders(self) -> dict[str, str]:
        """Return the settings by name that have a value here, without the judge."""
        return {name: value for name in self.__struct_fields__[1:] if (value := getattr(self, name)) is not None}


class NotifySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The program that is notified of what needs a person, as arguments; () for none."""

    command: tuple[str, ...] = ()


LEAST_SHARE: Final = 0.1
MOST_SHARE: Final = 0.5


class ExperimentSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Experiment: `share` is the probability to hold a lesson out of a task, or None."""

    share: Annotated[float, Meta(ge=LEAST_SHARE, le=MOST_SHARE)] | None = None


class UserSettings(Struct, frozen=True):
    """Settings in effect; `findings` has faults of the file; its valid groups count."""

    trust: TrustSettings = TrustSettings()
    decisions: DecisionSettings = DecisionSettings()
    scan: ScanPolicy = ScanPolicy()
    notify: NotifySettings = NotifySettings()
    experiment: ExperimentSettings = ExperimentSettings()
    findings: tuple[Finding, ...] = ()


_GROUPS: Final[dict[str, Any]] = {
    "trust": TrustSettings,
    "decisions": DecisionSettings,
    "scan": ScanPolicy,
    "notify": NotifySettings,
    "experiment": ExperimentSettings,
}
_OWN_GROUPS: Final = ("trust", "decisions", "notify", "experiment")
OWN_NAMES: Final = frozenset(
    {"scan.judge", *_OWN_GROUPS}
    | {f"{name}.{field}" for name in _OWN_GROUPS for field in _GROUPS[name].__struct_fields__}
)
"""Settings, and groups that have no others, which the files of a project cannot set."""


def user_settings_file() -> Path:
    return config_folder() / "settings.toml"


def read_user_settings() -> UserSettings:
    """Read the file, else defaults; an invalid group gets its defaults and a finding."""
    file = user_settings_file()
    try:
        with file.open("rb") as opened:
            document = parse_user_settings(opened.read(MAX_BYTES).decode())
    except FileNotFoundError:
        return UserSettings()
    except (OSError, ValueError) as error:  # not readable, not UTF-8, not TOML
        return UserSettings(findings=(_finding(file, "", str(error)),))
    values: dict[str, Any] = {}
    findings = []
    for name, group in document.items():
        if name not in _GROUPS:
            import difflib

            near = difflib.get_close_matches(name[:80], _GROUPS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"valid groups: {', '.join(_GROUPS)}"
            findings.append(_finding(file, name, f"{name} is an unknown group; {hint}"))
            continue
        try:
            values[name] = msgspec.convert(group, _GROUPS[name])
        except msgspec.ValidationError:
            problem = _describe_problem(name, group)
            findings.append(_finding(file, name, f"{problem}; the defaults of this group are used"))
    return UserSettings(**values, findings=tuple(findings))


def parse_user_settings(text: str) -> dict[str, Any]:
    """Parse the text of the file; raises ValueError if it is not TOML."""
    import tomllib  # most users have no such file

    return tomllib.loads(text)


def _describe_problem(name: str, group: object) -> str:
    """Describe a group's first invalid value: `trust.claims is 'x'; it must be ...`."""
    if not isinstance(group, dict):
        return f"{name} is {_quoted(group)}; it must be a group"
    types = get_type_hints(_GROUPS[name], include_extras=True)
    for field, value in group.items():
        if field not in types:
            return f"{name}.{field[:80]} is unknown; valid settings: {', '.join(types)}"
        try:
            msgspec.convert(value, types[field])
        except msgspec.ValidationError:
            return f"{name}.{field} is {_quoted(value)}; it must be {_describe_type(types[field])}"
    raise AssertionError(name)  # the caller found the group invalid


def _describe_type(wanted: Any) -> str:
    """Describe the values of a setting: its words, a share, or a list of texts."""
    if wanted == get_type_hints(ExperimentSettings, include_extras=True)["share"]:
        return f"a number from {LEAST_SHARE} to {MOST_SHARE}"
    words = [word for one in (wanted, *get_args(wanted)) for word in get_args(one) if isinstance(word, str)]
    return f"{', '.join(words[:-1])} or {words[-1]}" if words else "a list of texts"


def _quoted(value: object) -> str:
    return visible_line(repr(value), 80)


def _finding(file: Path, group: str, message: str) -> Finding:
    pointer = f"/{visible_line(group, 80)}" if group else ""
    return Finding(str(file), pointer, Severity.ERROR, "bad-user-setting", visible_line(message, 300))


_MAX_BYTES: Final = 64 << 10  # of a configuration file of Git that is read
_SECTION: Final = lazy_regex(r"\[\s*([A-Za-z0-9.-]+)\s*(\".*\")?\s*\]")
_VALUE: Final = lazy_regex(r"(name|email)\s*=\s*(.+)", re.IGNORECASE)


def own_names() -> tuple[str, ...]:
    """Return each name of the user of this process once, the login name first.

    The system knows login and full name, Git name and email address; further ones are in `decisions.names` of the
    user's own settings. Environment variables such as `USER` have no say.
    """
    found = [*_system_names(), *_git_names(), *(name.strip() for name in read_user_settings().decisions.names)]
    return tuple(dict.fromkeys(filter(None, found)))


def find_own_name(name: str, names: tuple[str, ...]) -> str:
    """Return the own name equal to a name except for case; "" if none is."""
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
    """Yield name and email from the user's own Git configuration; runs no program."""
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
