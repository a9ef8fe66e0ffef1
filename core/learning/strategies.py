"""Detection of strategies in free text; docs/scoring.md#decomposition-strategies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from core.base.polarity import Negations, normalize_sentences
from core.base.validation import check_text

_PART: Final = re.compile(r"\{([a-z_]+)\}")


@cache
def load_expressions() -> dict[str, re.Pattern[str]]:
    """Load the regular expressions in `strategies.yaml`, by title of the strategy."""
    text = Path(__file__).with_name("strategies.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    parts, found = table["parts"], {}
    for title, strategy in table["strategies"].items():
        wordings = []
        if noun := strategy.get("split_by"):
            whole = {**parts, "noun": f"{parts[noun]}{parts['whole']}"}
            wordings += [_expand(wording, {**parts, "noun": parts[noun]}) for wording in table["split_by"]]
            wordings += [_expand(wording, whole) for wording in table["one_per"]]
        if noun := strategy.get("one_per"):
            wordings += [_expand(wording, {**parts, "noun": parts[noun]}) for wording in table["one_per"]]
        wordings += [_expand(wording, parts) for wording in strategy.get("expressions", ())]
        found[title] = re.compile(rf"\b(?:{'|'.join(wordings)})\b")
    return found


def _expand(wording: str, parts: Mapping[str, str]) -> str:
    return _PART.sub(lambda name: _expand(parts[name[1]], parts), wording)


def extract_strategies(description: str) -> list[str]:
    """Return the titles of the common strategies that a description uses.

    A mention that is negated within its clause ("don't split by file type", "by feature instead of by layer",
    "one file per subtask is not an option") does not count. Only the first `core.base.polarity.MAX_TEXT` characters
    are read. Each title is returned once, first use first. Raises BadInput if `description` is not a text.
    """
    check_text(description, "description")
    text = normalize_sentences(description)
    expressions = load_expressions().items()
    mentions = sorted((found.end(), title) for title, regex in expressions for found in regex.finditer(text))
    negations = Negations(text)
    return list(dict.fromkeys(title for end, title in mentions if not negations.covers(end)))
