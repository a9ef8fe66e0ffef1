"""The project's settings: `aiwg.yml` or `.aiwg/config.yml`, which are only read.

The section `ralph.cross_loop_learning` has the groups of `core.config.settings` under their own names. Missing
`pruning` settings are read from the registry's own `pruning_policy`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from operator import attrgetter
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, get_origin

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.text import visible_line
from core.base.validation import format_value
from core.config.paths import ProjectPaths
from core.config.settings import DEFAULTS, GROUPS, SETTINGS, Settings
from core.records.findings import Finding, Severity
from core.sources import normalize
from core.sources.fields import Fields, document
from core.sources.key_style import camel, snake_keys, snake_own_keys
from core.storage.decoded import Problem
from core.storage.file_reader import MAX_PATTERN_BYTES, RawFile, as_utf8, decode, read_file

POLICY: Final = "pruning_policy"
METRICS: Final = "effectiveness_metrics"
_SUFFIXES: Final = (".json", ".yaml", ".yml")

_S = TypeVar("_S", bound=Struct)

PLACES: Final = ("aiwg.yml", ".aiwg/config.yml")
"""Files that may contain settings; the first one with any counts."""
MAX_BYTES: Final = 256 << 10
"""Maximum size of a configuration."""
DEFAULT: Final = "default"
_SECTION: Final = ("ralph", "cross_loop_learning")
_MIN_USES: Final = "pruning.min_usage_count"
_EVALUATED: Final = "extraction.min_usage_count_for_evaluation"
"""Also used for pruning by default."""
_ARCHIVE: Final = ("archive_instead_of_delete", "archive_path")
"""Options of a pruning policy that cannot be changed in ralphdeck."""
_ARCHIVE_PATH: Final = ".aiwg/ralph/shared/archive/"
_NAME_CHARS: Final = 80
"""Maximum length of a key that is compared with names."""
_CLOSE: Final = 0.8
"""Minimum similarity of a key to the name of the section for it to count as misspelled."""
_MAX_KEYS: Final = 1000
"""Maximum keys of one object that are compared; a configuration has a few dozen."""
_MAX_PROBLEMS: Final = 20
_READERS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    bool: normalize.flag,
    int: normalize.count,
    float: normalize.number,
}


class SettingValue(NamedTuple):
    """One setting in effect, such as `injection.top_k_patterns`.

    `source` is a file and JSON pointer, `aiwg.yml:/ralph/…`, or "default".
    """

    name: str
    value: Any
    source: str


class Configuration(Struct, frozen=True, kw_only=True):
    """The defaults with the valid values of `file`, which is "" if there is none.

    `sources` are the sources of the settings by name, see `SettingValue`. `findings` are rejected values.
    """

    settings: Settings = DEFAULTS
    file: str = ""
    sources: Mapping[str, str] = MappingProxyType(dict.fromkeys(SETTINGS, DEFAULT))
    findings: tuple[Finding, ...] = ()

    @classmethod
    def read(cls, paths: ProjectPaths) -> Configuration:
        """Read the settings of a project; defects become findings."""
        findings: list[Finding] = []
        sections = [section for file in PLACES if (section := _section(paths, file, findings)) is not None]
        if not sections:
            return cls(findings=tuple(findings))
        chosen, *others = sections
        for other in others:
            other.add("unused-settings", f"not used, since {chosen.file} has settings too", other.pointer)
        settings, found = _settings(chosen)
        sources = {name: found.get(name, DEFAULT) for name in SETTINGS}
        if sources[_MIN_USES] == DEFAULT != sources[_EVALUATED]:
            least = settings.extraction.min_usage_count_for_evaluation
            settings = replace(settings, pruning=replace(settings.pruning, min_usage_count=least))
            sources[_MIN_USES] = sources[_EVALUATED]
        return cls(settings=settings, file=chosen.file, sources=sources, findings=tuple(findings))

    def with_registry(self, paths: ProjectPaths) -> Configuration:
        """Add the pruning policy of the registry where the settings files do not set it."""
        findings: list[Finding] = []
        policies = [extras.policy for extras in read_registry_extras(paths, findings) if extras.policy is not None]
        if not policies:
            return replace(self, findings=(*self.findings, *findings))
        chosen, *others = policies
        for other in others:
            other.add("unused-settings", f"not used, since {chosen.file} has a pruning policy too", other.pointer)
        policy, sources = self.settings.pruning, dict(self.sources)
        for field in GROUPS["pruning"].declarations:
            name = f"pruning.{field}"
            if sources[name] in (DEFAULT, sources[_EVALUATED]):
                policy = _put(policy, chosen, field, name, sources)
        _check_archive(chosen)
        _report_unknown(chosen, (*GROUPS["pruning"].declarations, *_ARCHIVE))
        settings = replace(self.settings, pruning=policy)
        return replace(self, settings=settings, sources=sources, findings=(*self.findings, *findings))

    @property
    def unusable(self) -> tuple[str, ...]:
        """Files that exist but cannot be used because of an error."""
        faulty = {found.file for found in self.findings if found.severity is Severity.ERROR}
        return tuple(file for file in PLACES if file in faulty and file != self.file)

    def listed(self) -> tuple[SettingValue, ...]:
        """All settings, group by group."""
        return tuple(
            SettingValue(name, attrgetter(name)(self.settings), source) for name, source in self.sources.items()
        )


def _section(paths: ProjectPaths, file: str, findings: list[Finding]) -> Fields | None:
    """The section of one file with settings; None without one."""
    root = paths.aiwg if file.startswith(f"{paths.aiwg.name}/") else paths.project
    raw = read_file(paths.project / file, root, MAX_BYTES)
    if raw is None:
        return None
    if isinstance(raw, Problem):
        findings.append(raw.finding(file))
        return None
    # Imported here for speed: many projects have no such file.
    from core.storage.yaml_reader import decode_yaml

    decoded = decode_yaml(raw.data)
    findings += (problem.finding(file) for problem in decoded.problems[:_MAX_PROBLEMS] if problem.code != "empty")
    if decoded.value is None:
        return None
    fields = document(file, decoded.value, findings)
    for name in _SECTION:
        if fields is None:
            return None
        if name not in fields.mapping:
            # Report a key that resembles the name of the section; others belong to other programs.
            keys = (key for key in fields.mapping if len(key) <= _NAME_CHARS)
            for key in difflib.get_close_matches(_SECTION[-1], islice(keys, _MAX_KEYS), n=1, cutoff=_CLOSE):
                message = f"{format_value(key)} is not a section of settings; did you mean {'.'.join(_SECTION)}?"
                fields.add("unknown-key", message, fields.place(key))
        fields = fields.inside(name)
    return fields


def _settings(section: Fields) -> tuple[Settings, dict[str, str]]:
    """Apply a section to the defaults; also returns the source of each setting."""
    settings = DEFAULTS
    sources: dict[str, str] = {}
    alone = Settings.declarations
    for name in alone:
        settings = _put(settings, section, name, name, sources)
    for name, kind in GROUPS.items():
        known: tuple[str, ...] = tuple(kind.declarations)
        fields = section.inside(name)
        if fields is None:
            continue
        group = getattr(settings, name)
        for field in known:
            group = _put(group, fields, field, f"{name}.{field}", sources)
        settings = replace(settings, **{name: group})
        if name == "pruning":
            _check_archive(fields)
            known = (*known, *_ARCHIVE)
        _report_unknown(fields, known)
    _report_unknown(section, (*GROUPS, *alone))
    return settings, sources


def _put(group: _S, fields: Fields, field: str, name: str, sources: dict[str, str]) -> _S:
    """`group` with the value of one field from the file, if it is valid."""
    given = fields.mapping.get(field)
    if given is None:
        return group
    try:
        changed = replace(group, **{field: _read(given, SETTINGS[name].kind)})
    except BadInput as error:
        fields.add("bad-value", f"{error}; the default is used", fields.place(field), Severity.ERROR)
        return group
    sources[name] = f"{fields.file}:{fields.place(field)}"
    return changed


def _read(given: Any, kind: Any) -> Any:
    """Convert a YAML value to the type of a setting; an invalid one stays as it is."""
    if get_origin(kind) is tuple and isinstance(given, list):
        return tuple(_read(item, float) for item in given)
    read = _READERS.get(kind)
    value = read(given) if read is not None else None
    return given if value is None else value


def _check_archive(fields: Fields) -> None:
    archive, path = _ARCHIVE
    if fields.flag(archive) is False:
        message = f"{archive} is always true here: pruned patterns can be restored"
        fields.add("bad-value", message, fields.place(archive), Severity.ERROR)
    given = fields.text(path)
    if given and PurePosixPath(given) != PurePosixPath(_ARCHIVE_PATH):
        message = f"{path} is always {_ARCHIVE_PATH} here, not {format_value(given)}"
        fields.add("bad-value", message, fields.place(path), Severity.ERROR)


def _report_unknown(fields: Fields, known: Iterable[str]) -> None:
    """Report keys that are not in `known`, with the nearest setting of any group."""
    nearest = {setting.field: name for name, setting in SETTINGS.items()}
    nearest |= {name: name for name in known}
    for key in islice((key for key in fields.mapping if key not in known), _MAX_PROBLEMS):
        near = difflib.get_close_matches(key[:_NAME_CHARS].casefold(), nearest, n=1)
        hint = f"did you mean {nearest[near[0]]}?" if near else f"there are {', '.join(known)}"
        message = f"no setting {format_value(key)}; {hint}"
        fields.add("unknown-key", message, fields.place(visible_line(key, _NAME_CHARS)))


class RegistryExtras(NamedTuple):
    """A registry file, with its pruning policy and metrics; None if it has none."""

    document: Fields
    policy: Fields | None
    metrics: dict[str, Any] | None


def read_registry_extras(paths: ProjectPaths, findings: list[Finding]) -> list[RegistryExtras]:
    """Read the registry files with a policy or metrics, ordered by name."""
    try:
        names = sorted(entry.name for entry in paths.patterns.iterdir() if entry.name.endswith(_SUFFIXES))
    except OSError:
        return []
    found = []
    for name in names:
        raw = read_file(paths.patterns / name, paths.aiwg, MAX_PATTERN_BYTES)
        if not isinstance(raw, RawFile):
            continue
        data = as_utf8(raw.data)[0]
        if not any(key.encode() in data for name in (POLICY, METRICS) for key in (name, camel(name))):
            continue
        value = decode(name, data).value
        if isinstance(value, dict):
            value = {
                key: snake_keys(item) if key in (POLICY, METRICS) else item
                for key, item in snake_own_keys(value).items()
            }
        if not isinstance(value, dict) or not {POLICY, METRICS} & value.keys():
            continue
        document = Fields(paths.relative(paths.patterns / name), value, findings)
        metrics = value.get(METRICS)
        found.append(RegistryExtras(document, document.inside(POLICY), metrics if isinstance(metrics, dict) else None))
    return found
