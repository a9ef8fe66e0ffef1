"""Similar patterns are found by stored words."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.index.texts import Texts
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.retrieval.similarity import measure_pairs, measure_similarity
from tests.factories import make_pattern

_NULL = "Cannot read property '.*' of null"


FIX = "Add a null check before the property is read"


def error(number: int, pattern: str = _NULL, description: str = FIX, error_type: str = "TypeError") -> Pattern:
    id = f"pat-error-made-{number:03}"
    return make_pattern(id, error_type=error_type, error_pattern=pattern, description=description)


def test_different_types_and_empty_texts_are_not_similar() -> None:
    anti = make_pattern("pat-anti-made-001", PatternType.ANTI, description=FIX, category=_NULL)
    assert measure_similarity(error(1), anti) == 0
    empty = error(1, "", "", ""), error(2, "", "", "")
    assert measure_similarity(*empty) == 0
    assert not Texts(Snapshot(patterns={pattern.id: pattern for pattern in empty})).similarity.pairs(0.5)


def test_nearest_is_best_first_and_never_itself_and_a_threshold_is_exceeded_not_reached() -> None:
    made = error(1), error(2, description=f"{FIX} twice"), error(3), error(4, "connection refused", "Retry later")
    patterns = {pattern.id: pattern for pattern in made}
    index = Texts(Snapshot(patterns=patterns)).similarity
    found = index.nearest(patterns["pat-error-made-001"], 0.8)
    assert [id for id, _ in found] == ["pat-error-made-003", "pat-error-made-002"]
    assert found[0][1] == 1
    assert index.nearest(error(9, "never seen", "nothing like it", "Other"), 0.8) == ()
    assert not index.pairs(1.0)
    assert len(index.pairs(0.999)) == 1


def pairs_of_equal_words() -> object:
    texts = ["cachea cacheb cachec cached", *(f"cache{x} cache{x}1 cache{x}2 cache{x}3" for x in "abcd")]
    made = [error(number, text, "", "") for number, text in enumerate(texts)]
    return Texts(Snapshot(patterns={pattern.id: pattern for pattern in made})).similarity.pairs(0.5)


@pytest.mark.slow
def test_pairs_do_not_depend_on_the_hash_seed() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    code = f"from {__name__} import pairs_of_equal_words as find; print(find())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout.decode() == f"{pairs_of_equal_words()}\n"


def test_huge_texts_cost_little() -> None:
    index = Texts(
        Snapshot(patterns={p.id: p for p in (error(1, "word " * 2_000_000), error(2, "word " * 1_000_000))})
    ).similarity
    assert len(index.pairs(0.8)) == 1


_WORDS = ["null", "check", "parse", "cache", "user", "token", "read", "write"]


_TEXTS = st.lists(st.sampled_from(_WORDS), max_size=6, unique=True).map(" ".join)


_DRAWN = st.dictionaries(st.integers(1, 12), st.tuples(_TEXTS, _TEXTS), max_size=12)


def _made(drawn: dict[int, tuple[str, str]]) -> dict[str, Pattern]:
    return {pattern.id: pattern for pattern in (error(number, *texts) for number, texts in drawn.items())}


@given(_DRAWN)
@example({1: ("", "check"), 2: ("", "cache")})  # alike in their letters, but in one word of two
def test_candidates_include_pairs_that_share_most_words(drawn: dict[int, tuple[str, str]]) -> None:
    patterns = _made(drawn)
    words = {
        id: {pattern.error_type, *f"{pattern.error_pattern} {pattern.description}".split()}
        for id, pattern in patterns.items()
    }
    alike = {
        (one, other)
        for one, other in combinations(sorted(patterns), 2)
        if measure_similarity(patterns[one], patterns[other]) > 0.85
    }
    found = {(one, other) for one, other, _ in Texts(Snapshot(patterns=patterns)).similarity.pairs(0.85)}
    assert found <= alike
    assert {(one, other) for one, other in alike - found if _share(words[one], words[other]) > 0.75} == set()


def _share(one: set[str], other: set[str]) -> float:
    """Return the number of shared words divided by that of the longer text."""
    return len(one & other) / max(len(one), len(other))


def test_equal_steps_of_another_category_are_not_duplicates() -> None:
    steps = ("Run the suite and read what fails", "Mend one thing at a time", "Run the suite once more")
    one = Pattern(id="pat-success-a-001", type=PatternType.SUCCESS, title="a", category="debugging", steps=steps)
    other = Pattern(id="pat-success-b-001", type=PatternType.SUCCESS, title="b", category="refactoring", steps=steps)
    alike = Pattern(id="pat-success-c-001", type=PatternType.SUCCESS, title="c", category="debugging", steps=steps)
    index = Texts(Snapshot(patterns={pattern.id: pattern for pattern in (one, other, alike)})).similarity
    assert measure_similarity(one, other) == 0.0
    assert measure_similarity(one, alike) == 1.0
    assert [id for id, _ in index.nearest(one, 0.8)] == [alike.id]
    assert [pair[:2] for pair in index.pairs(0.8)] == [(one.id, alike.id)]


def test_texts_that_are_not_kept_change_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = {one.id: one for one in (error(number, description=f"{FIX} word{number % 3}") for number in range(12))}
    monkeypatch.setattr("core.index.similarity._MAX_READ", 0)  # so that min-hashes are used

    def results() -> list[object]:
        index = Texts(Snapshot(patterns=patterns)).similarity
        return [index.pairs(0.6), index.some_nearest(patterns["pat-error-made-005"], 0.6)]

    kept = results()
    monkeypatch.setattr("core.index.similarity._MAX_STORED", 0)
    assert results() == kept and all(kept)


def test_among_thousands_of_frequent_words_few_texts_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.index.similarity._MAX_READ", 0)
    compared: Counter[str] = Counter()
    measure = measure_pairs

    def ratios(ones: list[str], others: list[str], threshold: float) -> list[float]:
        compared.update(ones)
        return measure(ones, others, threshold)

    monkeypatch.setattr("core.index.similarity.measure_pairs", ratios)
    source = random.Random(1)
    words = [f"word{number:02}" for number in range(60)]
    made = [error(number, " ".join(source.sample(words, 24)), "", "") for number in range(500)]
    made += [error(number + 500, one.error_pattern + " more", "", "") for number, one in enumerate(made[::50])]
    index = Texts(Snapshot(patterns={pattern.id: pattern for pattern in made})).similarity
    found = {pair[:2] for pair in index.pairs(0.8)}
    assert {(f"pat-error-made-{number * 50:03}", f"pat-error-made-{number + 500:03}") for number in range(10)} <= found
    assert max(compared.values()) <= 32
    assert index.nearest(made[50], 0.8)[0][0] == "pat-error-made-501"
