"""Injected texts that an agent's own files contain too (docs/adapters.md#agents-own-files)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

THRESHOLD: Final = 0.85  # similarity of two texts with sorted words, 0..1, from which one repeats the other
MIN_WORDS: Final = 4  # fewer words are too common to compare
MAX_LINES: Final = 5_000  # lines of files that are compared


class Repetition(NamedTuple):
    """Where a text is repeated: `file` as shown, and the line, from 1."""

    file: str
    line: int


def find_repeated(
    texts: Mapping[str, Iterable[str]], files: Iterable[tuple[str, Iterable[str]]]
) -> dict[str, Repetition]:
    """Return by key the first line that repeats one of its `texts`; `files` are names and lines."""
    import numpy as np
    from rapidfuzz import fuzz, process

    places = [
        (Repetition(file, number), words)
        for file, lines in files
        for number, line in enumerate(lines, start=1)
        if (words := _sorted_words(line))
    ][:MAX_LINES]
    wanted = [(key, words) for key, some in texts.items() for text in some if (words := _sorted_words(text))]
    if not places or not wanted:
        return {}
    similar = process.cdist(
        [words for _, words in wanted],
        [words for _, words in places],
        scorer=fuzz.ratio,
        score_cutoff=THRESHOLD * 100,
        dtype=np.float32,
    )
    found: dict[str, Repetition] = {}
    for row, (key, _) in enumerate(wanted):
        columns = np.flatnonzero(similar[row])
        if len(columns) and key not in found:
            found[key] = places[int(columns[0])][0]
    return found


def _sorted_words(text: str) -> str:
    """Return the words of a text in order of the alphabet, without signs; "" if there are too few to compare."""
    words = sorted("".join(char if char.isalnum() else " " for char in text.lower()).split())
    return " ".join(words) if len(words) >= MIN_WORDS else ""
