"""Relevance of patterns for a task, by the words, terms and regexes of both."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import core.retrieval.relevance
from core.base.settings import InjectionSettings
from core.base.text import Matcher, safe_matcher
from core.records.debug_sessions import Failure
from core.records.patterns import Pattern, PatternType
from core.retrieval.embeddings import SAME, UNRELATED
from core.retrieval.injection import InjectedContext, prepare_context, prepare_injection
from core.retrieval.relevance import (
    RELEVANCE_PARTS,
    SEMANTIC_WEIGHTS,
    TAG,
    TYPES,
    WEIGHTS,
    WORD,
    PatternIndex,
    Term,
    list_places,
    matches_failure,
    measure_relevance,
    occurs_in,
    pattern_terms,
)
from core.retrieval.task import CATEGORIES, analyse_task, content_words
from tests.factories import NOW, days_ago, make_board, make_pattern, make_recorded_counts, rank
from tests.fence_token import FENCE_TOKEN


def parts_for(task: str, *patterns: Pattern, closeness: Sequence[float] | None = None) -> dict[str, dict[str, float]]:
    found = {pattern.id: pattern for pattern in patterns}
    index = PatternIndex.build(found)
    close = None if closeness is None else np.array(closeness, np.float32)
    relevant = measure_relevance(analyse_task(task), index, found, close)
    return {
        index.ids[row]: relevant.parts_of(place, found[index.ids[row]].type)
        for place, row in enumerate(relevant.rows.tolist())
    }


def parts(task: str, **fields: object) -> dict[str, float]:
    kind = fields.pop("type", PatternType.ERROR)
    pattern = make_pattern("sample", kind, **{"title": "", **fields})  # type: ignore[arg-type]
    return parts_for(task, pattern).get("sample", {})


def test_weights_sum_to_one() -> None:
    rows = (*WEIGHTS.values(), *SEMANTIC_WEIGHTS.values())
    assert [sum(weights.values()) for weights in rows] == pytest.approx([1.0] * 8)
    assert {name for weights in rows for name in weights} == set(RELEVANCE_PARTS)


def test_a_vector_finds_a_pattern_without_common_words() -> None:
    lost, other = make_pattern("lost", title="jwt expired"), make_pattern("other", title="jwt expired")
    found = parts_for("People lose their session", lost, other, closeness=[0.5, UNRELATED - 0.01])
    assert found.keys() == {"lost"}
    weight = SEMANTIC_WEIGHTS[PatternType.ERROR]["meaning"]
    assert found["lost"]["meaning"] == pytest.approx(weight * (0.5 - UNRELATED) / (SAME - UNRELATED), abs=1e-4)
    assert sum(found["lost"].values()) == pytest.approx(found["lost"]["meaning"])


def test_a_common_word_finds_no_pattern_of_another_meaning() -> None:
    same, other = make_pattern("same", title="null user"), make_pattern("other", title="null island")
    assert parts_for("null user", same, other, closeness=[0.4, UNRELATED - 0.01]).keys() == {"same"}


def test_the_meaning_part_is_clipped() -> None:
    patterns = [make_pattern(id, title="TypeError null user", error_type="TypeError") for id in ("opposite", "same")]
    found = parts_for("TypeError null user", *patterns, closeness=[-0.9, 1.0])
    weight = SEMANTIC_WEIGHTS[PatternType.ERROR]["meaning"]
    assert [found[id]["meaning"] for id in ("opposite", "same")] == pytest.approx([0.0, weight])


def test_a_pattern_without_a_vector_is_found_by_words() -> None:
    read, unread = make_pattern("read", title="null user"), make_pattern("unread", title="null user")
    found = parts_for("null user", read, unread, closeness=[0.4, math.nan])
    assert found["unread"] == parts_for("null user", read, unread)["unread"]
    assert "meaning" not in found["unread"] and found["read"]["words"] < found["unread"]["words"]


def test_a_literal_error_ranks_before_similar_meaning() -> None:
    quoted = make_pattern("quoted", title="null access", error_pattern="Cannot read property '.*' of null")
    near = make_pattern("near", title="undefined customer")
    found = parts_for("Cannot read property 'email' of null", near, quoted, closeness=[0.6, 0.5])
    assert sum(found["quoted"].values()) > sum(found["near"].values())


def test_unrelated_texts_are_not_found() -> None:
    assert parts("Translate the poem", title="Null check", tags=("python",)) == {}


def test_a_common_language_alone_is_not_enough() -> None:
    assert parts("Fix the python importer", title="Null", tags=("rust",)) == {}
    template = parts("Fix main.go in Go", type=PatternType.TEMPLATE, category="go")
    assert template == {}


def test_an_error_is_matched_by_regex_name_or_words() -> None:
    fields = {"error_type": "TypeError", "error_pattern": "Cannot read property '.*' of null"}
    assert parts("Cannot read property 'email' of null", **fields)["error"] == 0.4
    assert parts("a TypeError in login", **fields)["error"] == pytest.approx(0.28)
    assert parts("type errors in login", **fields)["error"] == pytest.approx(0.16)


def test_a_regex_that_matches_everything_does_not_count() -> None:
    for source in [".*", "", ".", "[a-z]*", "(?s).+"]:
        assert parts("Null user", title="null user", error_pattern=source)["error"] == 0.0, source


def test_a_regex_that_no_engine_should_run_is_harmless() -> None:
    assert parts("null aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", title="null", error_pattern="(a|a)*$(?=x)")["error"] == 0


def test_a_success_pattern_is_found_by_its_own_regex_for_tasks() -> None:
    found = parts(
        "Generate tests for the parser",
        type=PatternType.SUCCESS,
        task_pattern="(?i)(add|write|generate).*tests?",
        category="testing",
    )
    assert (found["task"], found["category"]) == (0.30, 0.25)


def test_the_category_alone_finds_success_and_anti_patterns_only() -> None:
    task = "Refactor the store"
    assert parts(task, type=PatternType.SUCCESS, category="refactoring")
    assert parts(task, type=PatternType.ANTI, category="scope_creep")
    assert not parts("Fix it", type=PatternType.ERROR, category="add_null_check")


def test_two_matching_tags_give_the_full_part() -> None:
    task = "Fix null safety in TypeScript validation"
    assert parts(task, tags=("typescript", "null-safety", "x"))["tags"] == 0.10
    assert parts(task, tags=("typescript", "x", "y"))["tags"] == 0.05
    assert parts(task, tags=("validation",))["tags"] == 0.10


def test_rare_words_count_more_than_common_ones() -> None:
    common = [make_pattern(f"c{n}", title="cache") for n in range(20)]
    rare = make_pattern("rare", title="mutex")
    found = parts_for("mutex in the cache", *common, rare)
    assert found["rare"]["words"] > 2 * found["c0"]["words"]


def test_a_long_task_does_not_lower_the_relevance() -> None:
    words = " ".join(f"filler{letter}{other}" for letter in "abcdefgh" for other in "abcdefgh")
    others = [make_pattern(f"c{n}", title="filleraa") for n in range(3)]
    found = parts_for(f"mutex deadlock {words}", make_pattern("x", title="mutex deadlock"), *others)
    assert found["x"]["words"] > 0.05


def test_the_relevance_without_parts_is_the_same() -> None:
    patterns = {id: make_pattern(id, title="jwt expired") for id in ("one", "other")}
    whole = measure_relevance(analyse_task("the jwt expired"), PatternIndex.build(patterns), patterns)
    lean = whole.without_parts()
    assert whole.parts_of(0, PatternType.ERROR) and not lean.parts_of(0, PatternType.ERROR)
    assert lean.values.tolist() == whole.values.tolist()
    assert lean.only(whole.rows[:1]).values.tolist() == whole.only(whole.rows[:1]).values.tolist()


FAILED = Failure(
    message="assert 3 == 4",
    error_type="AssertionError",
    test_name="tests/test_cart.py::test_total[2-3]",
    test_file="tests/test_cart.py",
    file="cart.py",
    function="total",
)


def pattern(regex: str, *places: str) -> Pattern:
    return Pattern(id="pat-error-x-001", type=PatternType.ERROR, title="x", error_pattern=regex, places=places)


def test_the_places_of_a_failure_are_its_test_its_function_and_its_files() -> None:
    assert list_places(FAILED) == (
        *("tests/test_cart.py::test_total", "cart.py::total"),
        *("cart.py", "tests/test_cart.py"),
    )
    assert list_places(Failure(message="x")) == ()


def test_a_trigger_applies_in_its_places() -> None:
    for regex, places, expected in [
        (r"assert \d+ == \d+", ("tests/test_cart.py::test_total",), True),
        (r"AssertionError: assert \d+ == \d+", ("cart.py::total",), True),
        (r"assert \d+ == \d+", ("/copy/of/project/tests/test_cart.py::test_total",), True),
        (r"assert \d+ == \d+", ("tests/test_cart.py::test_other",), False),
        (r"assert \d+ == \d+", ("tests/test_user.py::test_total",), False),
        (r"assert \d+ == \d+", ("art.py",), False),
        (r"assert \d+ == \d+", (), True),
        (r"assert \d+ != \d+", (), False),
        ("", ("cart.py",), False),
    ]:
        assert matches_failure(pattern(regex, *places), FAILED) is expected, (regex, places, expected)


def test_a_text_names_a_place_with_its_file_and_its_name() -> None:
    places = ["tests/test_cart.py::test_total"]
    assert occurs_in(places, "test_total in test_cart.py fails")
    assert not occurs_in(places, "test_total fails")
    assert not occurs_in([], "test_total in test_cart.py fails")


def test_a_failure_of_unknown_place_needs_the_same_message() -> None:
    for message, expected in [("assert 3 == 4", True), ("assert 3 == 5", False)]:
        trigger = replace(pattern(r"assert \d+ == \d+", "cart.py"), error_message="AssertionError: assert 3 == 4")
        assert matches_failure(trigger, Failure(message=message)) is expected, (message, expected)


WORDS = (
    *("auth", "token", "session", "cart", "order", "null", "undefined", "cache"),
    *("retry", "timeout", "lock", "export", "report", "type", "index"),
)
ERRORS = ("TypeError", "ValueError", "TimeoutError", "")


def words(source: random.Random, count: int) -> str:
    return " ".join(source.choices(WORDS, k=count))


def some_pattern(source: random.Random, number: int) -> Pattern:
    """A pattern of any type; some share all fields that order them, some their text."""
    uses = source.randint(0, 3)
    regex = source.choice(("", words(source, 1), f"(?i){words(source, 1)}.*{words(source, 1)}", ".*", "(", "x{2000}"))
    return make_pattern(
        f"pat-{source.choice('abc')}-{number:03}",
        source.choice(list(PatternType)),
        title=words(source, 2),
        description=words(source, source.choice((1, 5, 60))),
        error_type=source.choice(ERRORS),
        error_pattern=regex,
        task_pattern=regex,
        places=source.choice(((), (), ("src/cart.py::test_cart",))),
        category=source.choice(("", "debugging", "implementation")),
        tags=tuple(source.sample(WORDS, 2)),
        average_iterations=source.choice((None, 2.0)),
        recorded_counts=make_recorded_counts(uses, source.randint(0, 1)),
        last_used=source.choice((NOW, days_ago(90))),
    )


def test_a_delivered_context_is_that_of_the_preview() -> None:
    orders: tuple[Literal["score", "lower-bound"], ...] = ("score", "lower-bound")
    for order in orders:
        for seed in range(6):
            source = random.Random(seed)
            patterns = [some_pattern(source, number) for number in range(source.choice((3, 40, 700)))]
            found = {pattern.id: pattern for pattern in patterns}
            board = make_board(*patterns)
            settings = InjectionSettings(
                order=order, top_k_patterns=source.choice((1, 5, 20)), min_success_rate=source.choice((0.0, 0.5))
            )
            past = np.array([source.choice((0.0, 0.1, 0.7)) for _ in patterns]) if seed % 3 else None
            for _ in range(4):
                profile = analyse_task(
                    f"{source.choice(ERRORS)} {words(source, source.randint(1, 6))} in src/cart.py test_cart"
                )
                preview = prepare_injection(profile, rank(profile, found, board, settings, past), token=FENCE_TOKEN)
                ranking = rank(profile, found, board, settings, past, defers_regexes=True)
                given = prepare_context(ranking, token=FENCE_TOKEN)
                assert given.context == preview.context, (order, seed)
                assert given.pattern_ids == preview.pattern_ids, (order, seed)
                assert given.pattern_ids or len(patterns) < 700, (order, seed)


def deliver(task: str, patterns: list[Pattern]) -> InjectedContext:
    found = {pattern.id: pattern for pattern in patterns}
    limits = InjectionSettings(top_k_patterns=1)
    return prepare_context(rank(analyse_task(task), found, make_board(*patterns), limits, defers_regexes=True))


def test_a_regex_that_cannot_change_the_context_is_not_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    matched: list[str] = []

    def record(source: str) -> Matcher:
        matched.append(source)
        return safe_matcher(source)

    monkeypatch.setattr(core.retrieval.relevance, "safe_matcher", record)
    task = "TypeError: cannot read the auth token of a null session"
    counts = make_recorded_counts(9, 0)
    first = make_pattern(
        "pat-error-first-001",
        title="Auth token",
        description="read the auth token of a null session",
        error_type="TypeError",
        error_pattern="auth token",
        recorded_counts=counts,
    )
    faint = make_pattern(
        "pat-error-faint-002", error_pattern="null", title="", description="null reports", recorded_counts=counts
    )
    assert deliver(task, [first, faint]).pattern_ids == (first.id,)
    assert matched == ["auth token"]


_TEXTS = st.sampled_from(["null check", "parse cache", "user token null", "", "修复 cache"])
_TAGS = st.lists(st.sampled_from(["python", "Auth", "null-safety", " "]), max_size=3).map(tuple)
_PATTERNS = st.dictionaries(
    st.sampled_from([f"pat-error-{letter}-001" for letter in "abcdefghij"]),
    st.tuples(_TEXTS, _TAGS, st.sampled_from(list(PatternType)), st.sampled_from(["", "TypeError"])),
    max_size=10,
)


def made(drawn: dict[str, tuple[str, tuple[str, ...], PatternType, str]]) -> dict[str, Pattern]:
    return {
        id: make_pattern(id, kind, title=title, tags=tags, error_type=error)
        for id, (title, tags, kind, error) in drawn.items()
    }


def content(index: PatternIndex, patterns: Iterable[Pattern]) -> object:
    """What an index has of the terms of these patterns."""

    def named(term: Term) -> list[str]:
        rows = index.terms.get(*term)
        return sorted(index.ids[row] for row in rows) if rows is not None else []

    terms = set().union(*map(pattern_terms, patterns))
    facts = {id: (TYPES[index.types[row]], int(index.tag_counts[row])) for row, id in enumerate(index.ids) if id}
    words = {text for kind, text in terms if kind == WORD}
    tags = {word: sorted(tag for tag in index.terms.find_tags(word) if named((TAG, tag))) for word in words}
    return facts, {term: named(term) for term in terms}, index.terms.count(WORD, words), tags, set(index.rows)


@given(_PATTERNS, _PATTERNS, _PATTERNS)
def test_updated_is_a_new_index_of_what_changed(one: dict, two: dict, three: dict) -> None:  # type: ignore[type-arg]
    index = PatternIndex.build(made(one))
    before = made(one)
    for after in (made(two), made(three)):
        changed = {id for id in before.keys() | after.keys() if before.get(id) != after.get(id)}
        index = index.updated(after, changed)
        known = [*before.values(), *after.values()]
        assert content(index, known) == content(PatternIndex.build(after), known)
        before = after


def test_an_update_does_not_change_the_old_index() -> None:
    patterns = {id: make_pattern(id, title="cache") for id in (f"pat-error-x-{n:03}" for n in range(20))}
    index = PatternIndex.build(patterns)
    changed = {**patterns, "pat-error-x-003": make_pattern("pat-error-x-003", title="token")}
    newer = index.updated(changed, {"pat-error-x-003"})
    assert index.terms.count(WORD, ["cach", "token"]) == {"cach": 20}
    assert newer.terms.count(WORD, ["cach", "token"]) == {"cach": 19, "token": 1}
    assert (rows := newer.terms.get(WORD, "token")) is not None and rows.tolist() == [3]


def test_categories_of_natural_descriptions() -> None:
    for text, category in [
        ("Fix TypeScript type errors in user validation", "debugging"),
        ("Investigate why the nightly job hangs", "debugging"),
        ("Fix failing tests in CI", "debugging"),
        ("Cannot read property 'email' of null", "debugging"),
        ("Write tests for the auth module", "testing"),
        ("Add unit tests for payment.py", "testing"),
        ("Raise the coverage of the parser", "testing"),
        ("Refactor the session store", "refactoring"),
        ("Clean up dead code in utils", "refactoring"),
        ("Document the REST api in the README", "documentation"),
        ("Migrate from Jest to Vitest", "migration"),
        ("Upgrade React to 19", "migration"),
        ("Make the dashboard faster", "optimization"),
        ("Speed up slow queries in the report endpoint", "optimization"),
        ("Design the plugin architecture", "architecture"),
        ("Implement OAuth login", "implementation"),
        ("Add pagination to /users", "implementation"),
        ("Translate the poem about winter", ""),
        ("", ""),
    ]:
        assert analyse_task(text).category == category, (text, category)
        assert category in (*CATEGORIES, ""), (text, category)


def test_languages() -> None:
    for text, languages in [
        ("Fix src/auth/validate.ts", ("typescript",)),
        ("make pytest pass", ("python",)),
        ("port the JavaScript client to Rust", ("javascript", "rust")),
        ("a Java service behind go.mod", ("go", "java")),
        ("go through the list and let it go", ()),
        ("javascript", ("javascript",)),
    ]:
        assert analyse_task(text).languages == languages, (text, languages)


def test_named_errors_come_before_likely_ones() -> None:
    profile = analyse_task("PaymentError and TypeError: validation of the total timed out")
    assert profile.named_errors == ("PaymentError", "TypeError")
    assert profile.error_types == ("PaymentError", "TypeError", "TimeoutError", "ValidationError")


def test_content_words_compare_across_forms_and_skip_common_words() -> None:
    assert content_words("Fixing the failing tests for userValidation") == content_words(
        "test user validations uservalidation"
    )
    assert content_words("add, fix and update the code") == set()
    assert content_words("größe 修复 用户") == {"größe", "修复", "用户"}


def test_hostile_text_is_only_text() -> None:
    profile = analyse_task("\ud800\x1b[2J" + "(" * 10_000 + "[red]" * 10_000)
    assert profile.category == ""
