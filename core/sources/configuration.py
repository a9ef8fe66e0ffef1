"""Read the project's settings from `aiwg.yml` or `.aiwg/config.yml`.

The section `ralph.cross_loop_learning` contains the groups of `core.base.settings` by name. `pruning` settings that
it lacks are read from the `pruning_policy` of the pattern registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from operator import attrgetter
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, get_origin

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.settings import DEFAULTS, GROUPS, SETTINGS, Settings
from core.base.text import to_camel, visible_line
from core.base.user_settings import OWN_NAMES, read_user_settings, user_settings_file
from core.base.validation import format_value
from core.files.file_reader import MAX_PATTERN_BYTES, Problem, RawFile, convert_to_utf8, decode, decode_yaml, read_file
from core.records.findings import Finding, Severity
from core.sources import normalize
from core.sources.normalize import Fields, document

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

POLICY: Final = "pruning_policy"
METRICS: Final = "effectiveness_metrics"
_EXTRAS: Final = tuple(key.encode() for name in (POLICY, METRICS) for key in (name, to_camel(name)))
_SUFFIXES: Final = (".json", ".yaml", ".yml")

_S = TypeVar("_S", bound=Struct)

PLACES: Final = ("aiwg.yml", ".aiwg/config.yml")
"""Files that may contain settings; only the first one that has any is used."""
MAX_BYTES: Final = 256 << 10  # Maximum size of a configuration.
DEFAULT: Final = "default"
_STRICTNESS: Final = {"flag": 0, "by-type": 1, "hold": 1, "block": 2}
_SECTION: Final = ("ralph", "cross_loop_learning")
_MIN_USES: Final = "pruning.min_usage_count"
_EVALUATED: Final = "extraction.min_usage_count_for_evaluation"
"""This setting is also the default of the minimum uses for pruning."""
_ARCHIVE: Final = ("archive_instead_of_delete", "archive_path")
"""Options of a pruning policy that cannot be changed in ralphdeck."""
_ARCHIVE_PATH: Final = ".aiwg/ralph/shared/archive/"
_NAME_CHARS: Final = 80  # Longest key that is compared with setting names, in characters.
_CLOSE: Final = 0.8  # Minimum similarity of a key to the name of the section for it to count as misspelled.
_MAX_KEYS: Final = 1000  # Maximum keys of one object that are compared with setting names.
_MAX_PROBLEMS: Final = 20
_READERS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    bool: normalize.flag,
    int: normalize.count,
    float: normalize.number,
}


class SettingValue(NamedTuple):
    """The value in effect of one setting, such as `injection.top_k_patterns`.

    `source` is a file and JSON pointer, `aiwg.yml:/ralph/…`, or "default".
    """

    name: str
    value: Any
    source: str


class Configuration(Struct, frozen=True, kw_only=True):
    """The settings in effect: the defaults, overridden by the valid values of `file`.

    `file` is "" if no file has settings. `sources` has the source of each setting by name (see `SettingValue`),
    `findings` the rejected values.
    """

    settings: Settings = DEFAULTS
    file: str = ""
    sources: Mapping[str, str] = MappingProxyType(dict.fromkeys(SETTINGS, DEFAULT))
    findings: tuple[Finding, ...] = ()

    @classmethod
    def read(cls, paths: ProjectPaths) -> Configuration:
        """Read the settings of a project; invalid values become findings."""
        findings: list[Finding] = []
        sections = [section for file in PLACES if (section := _section(paths, file, findings)) is not None]
        if not sections:
            return _with_user_policy(cls(findings=tuple(findings)))
        chosen, *others = sections
        for other in others:
            other.add("unused-settings", f"ignored: {chosen.file} has settings too", other.pointer)
        settings, found = _settings(chosen)
        sources = {name: found.get(name, DEFAULT) for name in SETTINGS}
        if sources[_MIN_USES] == DEFAULT != sources[_EVALUATED]:
            least = settings.extraction.min_usage_count_for_evaluation
            settings = replace(settings, pruning=replace(settings.pruning, min_usage_count=least))
            sources[_MIN_USES] = sources[_EVALUATED]
        return _with_user_policy(cls(settings=settings, file=chosen.file, sources=sources, findings=tuple(findings)))

    def with_registry(self, paths: ProjectPaths) -> Configuration:
        """Add the pruning settings of the registry that the settings files do not set."""
        findings: list[Finding] = []
        policies = [extras.policy for extras in read_registry_extras(paths, findings) if extras.policy is not None]
        if not policies:
            return replace(self, findings=(*self.findings, *findings))
        chosen, *others = policies
        for other in others:
            other.add("unused-settings", f"ignored: {chosen.file} has a pruning policy too", other.pointer)
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
        """Settings files that exist but are not used because of an error."""
        faulty = {found.file for found in self.findings if found.severity is Severity.ERROR}
        return tuple(file for file in PLACES if file in faulty and file != self.file)

    def listed(self) -> tuple[SettingValue, ...]:
        """List all settings, group by group."""
        return tuple(
            SettingValue(name, attrgetter(name)(self.settings), source) for name, source in self.sources.items()
        )


def _with_user_policy(found: Configuration) -> Configuration:
    """Apply the user's policy for held texts; a project may only be stricter."""
    settings, sources = found.settings, dict(found.sources)
    for name, value in read_user_settings().scan.orders().items():
        setting = SETTINGS[f"scan.{name}"]
        if sources[setting.name] == DEFAULT or _STRICTNESS[value] > _STRICTNESS[setting.value(settings)]:
            settings, sources[setting.name] = setting.with_value(settings, value), str(user_settings_file())
    return replace(found, settings=settings, sources=sources)


def _section(paths: ProjectPaths, file: str, findings: list[Finding]) -> Fields | None:
    """Read the settings section of one file; None if it has none."""
    root = paths.aiwg if file.startswith(f"{paths.aiwg.name}/") else paths.project
    raw = read_file(paths.project / file, root, MAX_BYTES)
    if raw is None:
        return None
    if isinstance(raw, Problem):
        findings.append(raw.finding(file))
        return None
    decoded = decode_yaml(raw.data)
    findings += (problem.finding(file) for problem in decoded.problems[:_MAX_PROBLEMS] if problem.code != "empty")
    if decoded.value is None:
        return None
    fields = document(file, decoded.value, findings)
    for name in _SECTION:
        if fields is None:
            return None
        if name not in fields.mapping:
            # Only report keys similar to the name of the section; other keys belong to other programs.
            keys = (key for key in fields.mapping if len(key) <= _NAME_CHARS)
            import difflib  # only where sections are missing

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
        _report_unknown(fields, known, f"{name}.")
    _report_unknown(section, (*GROUPS, *alone))
    return settings, sources


def _put(group: _S, fields: Fields, field: str, name: str, sources: dict[str, str]) -> _S:
    """Copy `group` with the value of one field from the file, if it is valid."""
    raw_value = fields.mapping.get(field)
    if raw_value is None:
        return group
    try:
        changed = replace(group, **{field: _read(raw_value, SETTINGS[name].kind)})
        if name.startswith("scan.") and getattr(changed, field) == "flag":
            own = f"a project may only be stricter than the default; to loosen it, use your own {user_settings_file()}"
            raise BadInput(f"{name} is {format_value(raw_value)}: {own}")
    except BadInput as error:
        fields.add("bad-value", f"{error}; the default is used", fields.place(field), Severity.ERROR)
        return group
    sources[name] = f"{fields.file}:{fields.place(field)}"
    return changed


def _read(raw_value: Any, kind: Any) -> Any:
    """Convert a YAML value to the type of a setting; invalid values stay unchanged."""
    if get_origin(kind) is tuple and isinstance(raw_value, list):
        return tuple(_read(item, float) for item in raw_value)
    read = _READERS.get(kind)
    value = read(raw_value) if read is not None else None
    return raw_value if value is None else value


def _check_archive(fields: Fields) -> None:
    archive, path = _ARCHIVE
    if fields.flag(archive) is False:
        message = f"{archive} must be true: pruned patterns are always archived"
        fields.add("bad-value", message, fields.place(archive), Severity.ERROR)
    raw_value = fields.text(path)
    if raw_value and PurePosixPath(raw_value) != PurePosixPath(_ARCHIVE_PATH):
        message = f"{path} must be {_ARCHIVE_PATH}, not {format_value(raw_value)}"
        fields.add("bad-value", message, fields.place(path), Severity.ERROR)


def _report_unknown(fields: Fields, known: Iterable[str], group: str = "") -> None:
    """Report keys that are not in `known`, each with the most similar setting name.

    A setting that only the user's own file can have is ignored and reported as such.
    """
    nearest = {setting.field: name for name, setting in SETTINGS.items()}
    nearest |= {name: name for name in known}
    for key in islice((key for key in fields.mapping if key not in known), _MAX_PROBLEMS):
        if f"{group}{key}" in OWN_NAMES:
            message = f"{format_value(f'{group}{key}')} is ignored: only your own settings.toml can set it"
            fields.add("own-setting", message, fields.place(key), Severity.WARNING)
            continue
        import difflib  # only for an unknown name

        near = difflib.get_close_matches(key[:_NAME_CHARS].casefold(), nearest, n=1)
        hint = f"did you mean {nearest[near[0]]}?" if near else f"valid settings: {', '.join(known)}"
        message = f"unknown setting {format_value(key)}; {hint}"
        fields.add("unknown-key", message, fields.place(visible_line(key, _NAME_CHARS)))


class RegistryExtras(NamedTuple):
    """A registry file and its pruning policy and metrics, each None if missing."""

    document: Fields
    policy: Fields | None
    metrics: dict[str, Any] | None


def read_registry_extras(paths: ProjectPaths, findings: list[Finding]) -> list[RegistryExtras]:
    """Read the registry files that have a policy or metrics, in order of name."""
    try:
        names = sorted(entry.name for entry in paths.patterns.iterdir() if entry.name.endswith(_SUFFIXES))
    except OSError:
        return []
    found = []
    for name in names:
        raw = read_file(paths.patterns / name, paths.aiwg, MAX_PATTERN_BYTES)
        if not isinstance(raw, RawFile):
            continue
        data = convert_to_utf8(raw.data)[0]
        if not any(key in data for key in _EXTRAS):
            continue
        from core.sources.keys import snake_keys, snake_own_keys  # loads the schemas of records

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
