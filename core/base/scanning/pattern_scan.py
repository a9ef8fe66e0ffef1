"""Scan of a pattern: each field, and all fields as one text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from core.base.masking import mask_secrets
from core.base.scanning.engine import get_engine
from core.base.scanning.normalization import find_scripts, list_readings
from core.base.scanning.rules import BROAD, HIDING, SECRET
from core.base.scanning.scan import MAX_SCANNED, is_clean, keep_worst, scan_text, sort_suspicions
from core.base.secret_prefilter import may_contain_secret
from core.records.patterns import PatternType, Severity, Suspicion

TRIGGERS: Final = ("error_pattern", "task_pattern")
_AVOIDED: Final = frozenset({"title", "description", "category"})  # what an anti-pattern avoids
_HARM: Final = frozenset({"symptoms", "why_it_fails", "limitations"})  # these describe failures
_NOT_LITERAL: Final = re.compile(r"\(\?[a-z]{1,8}\)|\\[a-zA-Z]|\[[^\]]{0,100}\]|\{[^}]{0,20}\}|[^\w|]|_")
_MIN_LITERAL: Final = 3  # letters and digits in a trigger below which it matches nearly any text
_MAX_TRIGGER: Final = 2_000  # characters of a trigger that are checked


def scan_pattern(kind: PatternType, title: str, text: Mapping[str, Any]) -> tuple[Suspicion, ...]:
    """Find possible harm of a pattern, given by field name as in `content_hash`."""
    fields = [("title", title), *_fields(text)]
    joined = "\n".join(part for _, part in fields)
    found: list[Suspicion] = []
    if len(joined) > MAX_SCANNED or not joined.isascii() or not all(map(is_clean, list_readings(joined))):
        across = {one.rule: one for one in _across(kind, joined)}
        avoided = _AVOIDED if kind is PatternType.ANTI else ()
        by_field = keep_worst(
            one
            for name, part in fields
            for one in scan_text(part, name, avoided=name in avoided, happened=name in _HARM)
        )
        stopping = {one.rule for one in by_field if one.severity.stops or one.rule not in across}
        found += [one for one in by_field if one.rule in stopping]
        found += [one for rule, one in across.items() if rule not in stopping]
    if _has_secret(joined):
        field = next((name for name, part in fields if _has_secret(part)), "")
        found.append(Suspicion(rule=SECRET.id, severity=Severity.FLAGGED, field=field, excerpt=""))
    for name in TRIGGERS:
        trigger = text.get(name)
        if trigger and is_broad(trigger):
            found.append(Suspicion(rule=BROAD.id, severity=Severity.FLAGGED, field=name, excerpt=trigger[:60]))
    return sort_suspicions(found)


def find_pattern_scripts(title: str, text: Mapping[str, Any]) -> tuple[str, ...]:
    """Find the scripts other than Latin in the texts of a pattern; see `find_scripts`."""
    parts = [title, *(part for _, part in _fields(text))]
    return () if all(map(str.isascii, parts)) else find_scripts("\n".join(parts)[:MAX_SCANNED])


def is_broad(trigger: str) -> bool:
    """Return whether a regex or a branch of it matches nearly everything."""
    branches = _NOT_LITERAL.sub("", trigger[:_MAX_TRIGGER]).split("|")
    return any(len(branch) < _MIN_LITERAL for branch in branches) and (
        len(branches) == 1 or any(not branch for branch in branches)
    )


def _fields(text: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in text.items():
        if isinstance(value, str):
            if value:
                yield name, value
        elif isinstance(value, tuple):
            parts = (chain.from_iterable(value) if name == "placeholders" else value) if value else ()
            for part in parts:
                yield name, part


def _across(kind: PatternType, joined: str) -> Iterator[Suspicion]:
    """Return matches that span several fields."""
    made = get_engine()
    for plain in list_readings(joined[:MAX_SCANNED]):
        for rule, pattern in made.finds(plain):
            if rule is HIDING or (rule.advice and kind is PatternType.ANTI):
                continue
            for start, end in made.places(rule, pattern, plain):
                if "\n" in plain[start:end]:
                    yield Suspicion(rule.id, rule.severity, "", plain[start:end][:60], rule.since)
                    break


def _has_secret(text: str) -> bool:
    start = text[:MAX_SCANNED]
    return may_contain_secret(start) and mask_secrets(start) != start
