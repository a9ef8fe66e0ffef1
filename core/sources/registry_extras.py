"""Read pruning policy and effectiveness metrics of registry files.

See docs/file-formats.md#registry-documents.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from core.config.paths import ProjectPaths
from core.records.findings import Finding
from core.sources.fields import Fields
from core.sources.key_style import camel, snake_keys
from core.sources.pattern_shapes import snaked
from core.storage.encodings import as_utf8
from core.storage.file_reader import MAX_PATTERN_BYTES, RawFile, decode, read_file

POLICY: Final = "pruning_policy"
METRICS: Final = "effectiveness_metrics"
_SUFFIXES: Final = (".json", ".yaml", ".yml")


class RegistryExtras(NamedTuple):
    """The parts of one registry file beside its patterns.

    Attributes:
        document: The whole file.
        policy: Its pruning policy; None if it has none.
        metrics: Its metrics; None if it has none.
    """

    document: Fields
    policy: Fields | None
    metrics: dict[str, Any] | None


def read_registry_extras(paths: ProjectPaths, findings: list[Finding]) -> list[RegistryExtras]:
    """Read the registry files with a policy or metrics, by name; other files are not decoded."""
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
            value = {key: snake_keys(item) if key in (POLICY, METRICS) else item for key, item in snaked(value).items()}
        if not isinstance(value, dict) or not {POLICY, METRICS} & value.keys():
            continue
        document = Fields(paths.relative(paths.patterns / name), value, findings)
        metrics = value.get(METRICS)
        found.append(RegistryExtras(document, document.inside(POLICY), metrics if isinstance(metrics, dict) else None))
    return found
