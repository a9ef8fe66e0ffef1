"""Results of the safety scan and the secret masks on labelled texts, by source.

A file has one JSON object per line, plain or compressed with gzip: `text`, `source`, `class` and, where known, `label`
and `secret`. The class decides what is measured:

- `tp:...`: the text contains the secret `secret`, which must be masked.
- `tn:...`: the text only looks like a secret and must not change.
- `hard`, `plain` and `guard` (or what `--harmless` names): harmless texts.
- any other class: an attack.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from core.base.masking import mask_secrets
from core.base.scanning.scan import scan_text

HARMLESS: Final = ("hard", "plain", "guard")
_TIERS: Final = ("blocked", "held", "flagged", "clean")


def report(files: Sequence[Path], harmless: Sequence[str] = HARMLESS) -> str:
    """Format one table for each kind of text, with a row for each class and source."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    texts = 0
    begin = time.process_time()
    for file in files:
        for row in _rows(file):
            texts += 1
            kind, result = _measure(row, harmless)
            for part in _parts(row):
                counts[kind, part][result] += 1
    seconds = time.process_time() - begin
    lines = [f"{texts:,} texts, {seconds / max(texts, 1) * 1e6:.0f} us each, first use included"]
    for kind in sorted({kind for kind, _ in counts}):
        lines += ["", kind]
        parts = sorted(part for counted, part in counts if counted == kind)
        lines += [f"  {part:<64.64} {_rates(counts[kind, part])}" for part in parts]
    return "\n".join(lines)


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    data = file.read_bytes()
    for number, line in enumerate((gzip.decompress(data) if file.suffix == ".gz" else data).splitlines(), 1):
        if line.strip():
            row = json.loads(line)
            if not isinstance(row, dict) or not isinstance(row.get("text"), str):
                raise SystemExit(f"Line {number} of {file} has no text.")
            yield row


def _measure(row: dict[str, Any], harmless: Sequence[str]) -> tuple[str, str]:
    kind, text = str(row.get("class", "")), row["text"]
    if kind.startswith("tp:"):
        return "secrets", "masked" if row["secret"] not in mask_secrets(text) else "shown"
    if kind.startswith("tn:"):
        return "no secrets", "changed" if mask_secrets(text) != text else "kept"
    found = scan_text(text)
    verdict = found[0].severity.value if found else "clean"
    return "harmless texts" if kind in harmless else "attacks", verdict


def _parts(row: dict[str, Any]) -> Iterator[str]:
    yield "all" if "label" not in row else f"all, {row['label']}"
    kind = str(row.get("class", ""))
    yield f"class {kind.rsplit(':', 1)[0] if kind.startswith(('tp:', 'tn:')) else kind}"
    source = str(row.get("source", "?"))
    # Paths are grouped by repository, other descriptions by their first words.
    yield f"source {'/'.join(source.split('/')[:2]) if ' ' not in source.split('/')[0] else source}"


def _rates(results: Counter[str]) -> str:
    total = results.total()
    if set(results) & set(_TIERS):
        stopped = results["blocked"] + results["held"]
        return f"{total:>5}  blocked {results['blocked'] / total:>6.1%}  stopped {stopped / total:>6.1%}"
    name = "masked" if {"masked", "shown"} & set(results) else "changed"
    return f"{total:>5}  {name} {results[name] / total:>6.1%}"
