"""Recall and false positives of the safety scan; half of the texts are held out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from core.base.scanning.normalization import find_scripts
from core.base.scanning.scan import scan_pattern, scan_text
from core.records.patterns import Severity
from tests.bench.measured import Measured, timed

if TYPE_CHECKING:
    from tests.bench.place import Place

_SET: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("scanned.yaml").read_text(encoding="utf-8"))


class Rates(NamedTuple):
    """Rates of one half of the texts, 0..1.

    Attributes:
        hostile, benign: Number of texts.
        blocked: Hostile texts that are kept out of every context.
        noticed: Hostile texts with at least one suspicion.
        wrongly_blocked, wrongly_marked: Benign texts.
    """

    hostile: int
    benign: int
    blocked: float
    noticed: float
    wrongly_blocked: float
    wrongly_marked: float


def rates(*, held_out: bool) -> Rates:
    """Recall and false positives on the half that rules were tuned on, or on the other half."""
    hostile = [scan_text(text) for texts in _SET["critical"].values() for text in half(texts, held_out)]
    hostile += [scan_text(text, happened=True) for text in half(_SET["ordered"], held_out)]
    benign = [scan_text(text) for text in half(_SET["benign"], held_out)]
    benign += [scan_text(text, avoided=True) for text in half(_SET["avoided"], held_out)]
    benign += [scan_text(text, happened=True) for text in half(_SET["happened"], held_out)]

    def share(scans: list[Any], wanted: Callable[[Any], bool]) -> float:
        return sum(map(wanted, scans)) / len(scans)

    def is_blocked(scan: Any) -> bool:
        return any(one.critical for one in scan)

    return Rates(
        len(hostile),
        len(benign),
        share(hostile, is_blocked),
        share(hostile, bool),
        share(benign, is_blocked),
        share(benign, bool),
    )


def stop_rates(*, held_out: bool) -> tuple[float, float, float]:
    """Shares of attacks that are stopped, of harmless texts that are stopped, and of those that are blocked, 0..1.

    In a project that uses only Latin letters.
    """
    attacks = [_stops(text) for texts in _SET["stopped"].values() for text in half(texts, held_out)]
    harmless = [_stops(text) for texts in _SET["harmless"].values() for text in half(texts, held_out)]
    blocked = harmless.count(Severity.BLOCKED) / len(harmless)
    return _share(attacks), _share(harmless), blocked


def stopped_by_kind(*, held_out: bool) -> dict[str, float]:
    """Share of each kind of attack that is stopped, 0..1."""
    return {kind: _share(list(map(_stops, half(texts, held_out)))) for kind, texts in _SET["stopped"].items()}


def _stops(text: str) -> Severity | None:
    """Return the severity that stops a text, or None."""
    found = scan_text(text)
    if found and found[0].severity.stops:
        return found[0].severity
    return Severity.HELD if find_scripts(text) else None


def _share(severities: list[Severity | None]) -> float:
    return sum(severity is not None for severity in severities) / len(severities)


def half(texts: Iterable[str], held_out: bool) -> list[str]:
    """Every second text is held out."""
    return list(texts)[held_out::2]


def cost(place: Place) -> Measured:
    """Scan some fields of each pattern."""
    chosen = list(place.view.snapshot.patterns.values())

    def scan_all() -> None:
        for one in chosen:
            text = {
                "description": one.description,
                "error_pattern": one.error_pattern,
                "template_code": one.template_code,
            }
            scan_pattern(one.type, one.title, text)

    taken = timed(scan_all)
    return Measured(taken.value / len(chosen) * 1000, "us", cpu=(taken.cpu or 0.0) / len(chosen) * 1000)


def summary(_place: Place, *, held_out: bool) -> Measured:
    """Hostile texts that are blocked, with the other rates as a note."""
    found = rates(held_out=held_out)
    rest = f"{found.noticed:.0%} noticed; of {found.benign} benign {found.wrongly_blocked:.1%} blocked"
    note = f"of {found.hostile} hostile texts blocked, {rest}, {found.wrongly_marked:.1%} marked"
    return Measured(found.blocked * 100, "%", note=note)
