"""Texts, numbers, times and names, as people read and write them."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.base import polarity, value_shapes
from core.base.errors import BadInput, UnknownRecord
from core.base.formatting import (
    format_age,
    format_cost,
    format_count,
    format_decimal,
    format_duration,
    format_percent,
    format_span,
    parse_past_time,
)
from core.base.pattern_titles import name_apart, pattern_title, sample_message
from core.base.regexes import RegexTable, lazy_regex, read_blocks
from core.base.scanning import scan
from core.base.steps import Steps, Work, run_all, sort_in_steps
from core.base.text import (
    DELETED,
    ELLIPSIS,
    EQUAL,
    HIDDEN_CHAR,
    INSERTED,
    MAX_LINE,
    MAX_PATTERN,
    MAX_SLUG,
    MAX_SUBJECT,
    UNKNOWN_CHAR,
    MatchedTexts,
    Matcher,
    field_changes,
    line_changes,
    make_slug,
    one_line,
    plural,
    remove_hidden,
    safe_matcher,
    strip_label,
    visible,
    visible_line,
    word_changes,
)
from core.base.validation import (
    MAX_COUNT,
    check_amount,
    check_count,
    check_flag,
    check_text,
    check_texts,
    find_matching_ids,
    format_value,
    require_one,
    suggest_id,
)
from core.records.patterns import Pattern, PatternType
from core.retrieval import task
from tests.factories import NOW, make_pattern

ANY_CHARACTER = st.integers(0, 0x10FFFF).map(chr)
"""Lone surrogates included."""
ANY_TEXT = st.one_of(st.text(ANY_CHARACTER, max_size=60), st.text(st.characters(max_codepoint=0x2FF), max_size=60))
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def is_harmless(char: str) -> bool:
    code = ord(char)
    return not (
        (code < 0x20 and char not in "\n\t")
        or 0x7F <= code < 0xA0
        or 0xD800 <= code < 0xE000
        or unicodedata.category(char) in {"Cf", "Zl", "Zp", "Cn"}
    )


@given(ANY_TEXT)
@example("\x1b]52;c;aGk=\x07")
@example(BIDI)
@example("\ud800x\udfff")
def test_visible_text_has_no_active_or_hidden_characters(text: str) -> None:
    shown = visible(text)
    assert all(is_harmless(char) for char in shown)
    shown.encode("utf-8")


@pytest.mark.slow
def test_every_character_of_unicode_becomes_harmless() -> None:
    shown = visible("".join(map(chr, range(0x110000))))
    assert all(is_harmless(char) for char in set(shown))
    shown.encode("utf-8")


@given(ANY_CHARACTER)
@example("\U0001f3fb")
@example("\ufe0f")
@example("\u180b")
@example("\u180f")
@example("\x00")
def test_remove_hidden_gives_the_same_before_and_after_visible(char: str) -> None:
    text = f"Ig{char}nore"
    if visible(text) != text and not char.isspace():
        assert remove_hidden(text) == remove_hidden(visible(text)) == "Ignore"


@given(ANY_TEXT)
def test_visible_text_stays_as_it_is(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(ANY_TEXT, st.integers(0, 70))
def test_visible_respects_the_limit(text: str, limit: int) -> None:
    for shown in (visible(text, limit), visible_line(text, limit)):
        assert len(shown) <= max(limit, 1)
    if len(text) > limit:
        assert visible(text, limit).endswith(ELLIPSIS)


def test_a_text_that_is_cut_after_an_ellipsis_ends_with_one() -> None:
    for limit in (13, 14):
        assert visible_line("Timeout of … ms for a test", limit) == "Timeout of …"


@given(ANY_TEXT)
def test_a_visible_line_is_one_line(text: str) -> None:
    line = visible_line(text)
    assert all(is_harmless(char) and char not in "\n\t" for char in line)
    assert len(line.splitlines()) <= 1


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=40))
def test_plain_text_takes_the_fast_path_unchanged(text: str) -> None:
    assert visible(text) == visible_line(text) == text
    # One character that needs the table sends the whole text down the slow path; the rest must not change.
    assert visible(f"{text}\xe9") == f"{text}\xe9"


def test_marks_in_place_of_characters() -> None:
    for raw, shown in (
        ("\x1b[31mred", "\u241b[31mred"),
        ("a\x00b", "a\u2400b"),
        ("\x7f\x9b31m", f"{UNKNOWN_CHAR}{UNKNOWN_CHAR}31m"),
        ("abc\u202etxt.exe", f"abc{HIDDEN_CHAR}txt.exe"),
        ("zero\u200bwidth", f"zero{HIDDEN_CHAR}width"),
        ("\u180b\u180c\u180d\u180f", HIDDEN_CHAR * 4),
        ("hangul\u3164filler", f"hangul{HIDDEN_CHAR}filler"),
        ("a\u2028b", f"a{HIDDEN_CHAR}b"),
        ("thumb\U0001f44d\U0001f3fd\ufe0f", "thumb\U0001f44d"),
        ("tag\U000e0041", f"tag{HIDDEN_CHAR}"),
        ("\udcff", UNKNOWN_CHAR),
        ("naïve café", "naïve café"),
    ):
        assert visible(raw) == shown, raw


def test_newlines_become_marks_on_a_line_only() -> None:
    assert visible("a\n\tb") == "a\n\tb"
    assert visible_line("a\r\nb\tc\n") == "a␤b c"


def test_plural_agrees_with_its_count() -> None:
    assert [plural(n, "loop") for n in (0, 1, 2, 1200)] == ["0 loops", "1 loop", "2 loops", "1,200 loops"]
    assert plural(3, "entry", "entries") == "3 entries"


@pytest.mark.parametrize("source", ["(a+)+$", "(a|a)*$", "(.*a){25}$", "([a-zA-Z]+)*$", "(x+x+)+y"])
def test_catastrophic_regexes_are_fast(source: str) -> None:
    subject = "a" * 30 + "x" * 3000 + "!"
    start = perf_counter()
    safe_matcher(source).matches(subject)
    assert perf_counter() - start < 0.5


def test_unsafe_regexes_are_matched_literally_with_a_problem() -> None:
    for source in ("(unclosed", "(?<=look)behind", r"back\1reference", "a{5000}", "*"):
        found = Matcher(source)
        assert found.problem is not None and found.matches(f"before {source} after"), source
        assert not found.matches("something else"), source
    found = safe_matcher(r"Cannot read propert(y|ies) '.*' of (null|undefined)")
    assert found.problem is None and found.matches("TypeError: Cannot read property 'id' of null")
    assert not found.matches("Cannot read property of null")


def test_long_regexes_and_subjects_are_cut_off() -> None:
    assert Matcher("a" * (MAX_PATTERN + 1)).problem is not None
    assert not safe_matcher("needle").matches("x" * MAX_SUBJECT + "needle")


@given(ANY_TEXT, ANY_TEXT)
@example("", "")
@example("\ud800", "\ud800")
@example("x", "\udfff")
def test_no_regex_and_no_subject_raises(source: str, subject: str) -> None:
    Matcher(source).matches(subject)


@given(
    st.lists(st.text("ab\n é", max_size=30), max_size=200),
    st.sampled_from(["a", "^a", "b$", "a.*b", "a\\sb", "^$", "[^a]b", "(", "\\Aa", "b\\z", "\\bb\\b", "(?i)A|B$"]),
)
@example(["x" * (MAX_SUBJECT + 5), "a", "x" * (MAX_SUBJECT - 1), "a"], "a")
@example(["a" * 300] * 40, "^a+$")
def test_texts_in_chunks_are_matched_like_each_text_alone(texts: list[str], regex: str) -> None:
    assert list(MatchedTexts(texts).matching(regex)) == [text for text in texts if Matcher(regex).matches(text)]


def test_slugs() -> None:
    for text, expected in (
        ("Cannot read property of null", "cannot-read-property-null"),
        ("The user is not the owner", "user-not-owner"),
        ("ERR_42 2fast", "err-fast"),
        ("修正 日本語", "other"),
        ("../../etc/passwd; rm -rf ~", "etc-passwd-rm-rf"),
        ("supercalifragilistic expialidocious antidisestablishment x", "supercalifragilistic-expialidocious"),
        ("a" * 1000, "a" * MAX_SLUG),
        ("", "other"),
    ):
        assert make_slug(text, "other") == expected, text


@given(st.text())
def test_any_text_has_a_slug_and_a_line(text: str) -> None:
    name = make_slug(text, "other")
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*", name) and len(name) <= MAX_SLUG
    assert "\n" not in one_line(text) and len(one_line(text)) <= MAX_LINE
    one_line(text).encode()


def test_labels_are_removed_at_the_start_only() -> None:
    assert strip_label("Attempt 2: guard before\naccess") == "guard before access"
    assert strip_label("Undid attempt 2: it was worse") == "Undid attempt 2: it was worse"


def test_the_title_of_an_anti_pattern_is_a_warning() -> None:
    for title, shown in (
        ("Global state", "Avoid: Global state"),
        ("Avoid global state", "Avoid global state"),
        ("NEVER use global state", "NEVER use global state"),
        ("Do not use global state", "Do not use global state"),
        ("Neverending retries", "Avoid: Neverending retries"),
    ):
        assert pattern_title(make_pattern(type=PatternType.ANTI, title=title)) == shown, title
        assert pattern_title(make_pattern(type=PatternType.SUCCESS, title=title)) == title, title


def test_a_sample_message_is_what_the_expression_matches() -> None:
    for expression, sample in (
        (r"Cannot read propert(y|ies) .* of (null|undefined)", "Cannot read property … of null"),
        (r"Field required \[type=missing, .*\]", "Field required [type=missing, …]"),
        (r"Exceeded timeout of \d+ ?ms for a test", "Exceeded timeout of … ms for a test"),
        (r"^jwt (?:expired|not active)$", "jwt expired"),
        (r"index [0-9]{1,3} .+ .+ out of range", "index … out of range"),
    ):
        assert sample_message(expression) == sample, expression


def test_an_expression_without_one_readable_message_has_no_sample() -> None:
    for expression in ("(?i)error|timeout", "a(b", "x[", "a)b", ".*", r"\d+", "(" * 300, "(" * 20, "a" * 301, ""):
        assert sample_message(expression) == "", expression
        pattern = make_pattern(type=PatternType.ERROR, title="Other: import cycle", error_pattern=expression)
        assert pattern_title(pattern) == "import cycle", expression


def test_rows_with_the_same_name_have_their_id() -> None:
    assert name_apart([("a", "Null user"), ("b", "Null user"), ("c", "Typo")]) == {
        "a": "Null user (a)",
        "b": "Null user (b)",
        "c": "Typo",
    }


def test_numbers_are_formatted() -> None:
    rows: tuple[tuple[Callable[[Any], str], dict[Any, str]], ...] = (
        (format_decimal, {0: "0.00", 0.6: "0.60", 0.145: "0.15", 0.144: "0.14", 0.995: "1.00", 1.35: "1.35"}),
        (format_percent, {0: "0 %", 0.125: "13 %", 5 / 7: "71 %", 0.995: "100 %", 1: "100 %"}),
        (format_count, {0: "0", 999: "999", 1000: "1.0 k", 12_345: "12.3 k", 999_960: "1.0 M", 10**17: "many"}),
        (format_cost, {0.0: "$0.00", 0.424: "$0.42", 1250.4: "$1,250"}),
        (format_span, {0: "0 s", 59.9: "59 s", 119: "1 m", 3599: "59 m", 7199: "1 h", 3 * 86400 - 1: "2 d"}),
        (format_span, {366 * 86400: "1.0 y"}),
        (format_duration, {0.42: "0.4 s", 9.96: "9 s", 119: "1 m"}),
    )
    for formatted, texts in rows:
        assert {number: formatted(number) for number in texts} == texts


def test_age_of_past_and_future_moments() -> None:
    assert format_age(None, NOW) == "—"
    assert format_age(NOW - timedelta(hours=5, minutes=59), NOW) == "5 h ago"
    assert format_age(NOW + timedelta(seconds=1.5), NOW) == format_age(NOW + timedelta(seconds=59), NOW) == "now"
    assert format_age(NOW + timedelta(days=3), NOW) == "in 3 d"


PRESENT = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)


def test_a_date_means_its_start_or_its_end() -> None:
    assert parse_past_time("2026-11-15", PRESENT, end_of_day=False) == datetime(2026, 11, 15, tzinfo=UTC)
    assert parse_past_time("2026-11-15", PRESENT, end_of_day=True) == datetime(
        2026, 11, 15, 23, 59, 59, 999999, tzinfo=UTC
    )
    assert parse_past_time("2026-11-22", PRESENT, end_of_day=True) == PRESENT


def test_times_and_ages_are_parsed() -> None:
    assert parse_past_time("2026-11-15T09:00:00+02:00", PRESENT, end_of_day=True) == datetime(
        2026, 11, 15, 7, tzinfo=UTC
    )
    assert [parse_past_time(text, PRESENT, end_of_day=True) for text in ("36h", "7d", " 2w ")] == [
        PRESENT - timedelta(hours=36),
        PRESENT - timedelta(days=7),
        PRESENT - timedelta(days=14),
    ]


def test_invalid_and_future_times_are_refused() -> None:
    for text in ("", "soon", "2026-13-01", "2026-11-23", "2026-11-22T10:01", "99999w", "1" * 100):
        with pytest.raises(BadInput):
            parse_past_time(text, PRESENT, end_of_day=True)


KNOWN = {"debug-1", "debug-10", "debug-2"}


def test_a_name_matches_the_id_or_a_prefix_and_where_allowed_a_part() -> None:
    alone = {"debug-1": ["debug-1"], "debug-10": ["debug-10"], "debug": sorted(KNOWN), "ebug": [], "": []}
    assert {name: find_matching_ids(name, KNOWN) for name in alone} == alone
    parts = {"bug-2": ["debug-2"], "BUG-1": ["debug-1", "debug-10"], "-2": []}  # the last one is too short
    assert {name: find_matching_ids(name, KNOWN, fragments=True) for name in parts} == parts


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("debug", "'debug' is ambiguous (debug-1, debug-10, debug-2); use a longer id"),
        ("x\x1b[31m", "no session 'x␛[31m'; see: ralphdeck debug list"),
    ],
)
def test_errors_for_no_or_several_matches_say_what_to_do(name: str, expected: str) -> None:
    with pytest.raises(UnknownRecord) as raised:
        require_one(find_matching_ids(name, KNOWN), name, what="session", command="debug list")
    assert str(raised.value) == expected


def test_a_mistyped_id_is_answered_with_the_nearest_one() -> None:
    for name, suggested in (
        ("nul-chek", "; did you mean pat-error-null-check-015?"),
        ("PAT-ERROR-NULL-CHEK-015", "; did you mean pat-error-null-check-015?"),
        ("tsk-001", "; did you mean task-001?"),
        ("xyzzy", ""),
        ("", ""),
    ):
        assert suggest_id(name, ["pat-error-null-check-015", "pat-success-types-first-006", "task-001"]) == suggested, (
            name
        )


"""A number with more digits than Python converts."""


HUGE: Final = 10**5000
"""A number with more digits than Python converts."""


def test_an_invalid_value_is_refused_with_its_field() -> None:
    for valid in (0, 1, MAX_COUNT):
        check_count(valid, "error_count")
    for share in (0, 0.0, 0.5, 1, 1.0):
        check_amount(share, "weight", 1)
    odd: tuple[Any, ...] = (HUGE, True, "1", None, float("nan"))
    rows: tuple[tuple[Callable[[Any], None], str, tuple[Any, ...]], ...] = (
        (lambda it: check_count(it, "n"), "n must be a whole number", (*odd, -1, MAX_COUNT + 1, 1.0)),
        (lambda it: check_amount(it, "w", 1), "w must be a number from 0 to 1, not", (*odd, -0.01, 1.01, float("inf"))),
        (lambda it: check_amount(it, "age"), "age must be a finite number of at least 0, not", (*odd, -0.01)),
        (lambda it: check_text(it, "text"), "text must be a text, not", (0, None, b"x", ["x"])),
        (lambda it: check_texts(it, "tags"), "tags must be", (None, "abc", 5, ("a", None), {"a": "b"})),
        (lambda it: check_flag(it, "done"), "done must be true or false, not", (0, 1, "true", None)),
    )
    for check, message, values in rows:
        for value in values:
            with pytest.raises(BadInput, match=message):
                check(value)


def test_format_value_returns_one_short_line() -> None:
    for value in (HUGE, "\x1b[31m\n" * 10**6, ("\u202e",) * 50, b"\xff" * 50):
        text = format_value(value)
        assert len(text) <= 80 and text.isprintable()


EXAMPLES = settings(max_examples=40)
texts = st.text(st.sampled_from("ab \n"), max_size=30)


def test_word_changes_mark_deleted_inserted_and_equal_words() -> None:
    changes = ((EQUAL, "Guard "), (DELETED, "the"), (INSERTED, "every"), (EQUAL, " value"), (DELETED, " first"))
    assert word_changes("Guard the value first", "Guard every value") == changes


@EXAMPLES
@given(texts, texts)
def test_pieces_form_both_texts(before: str, after: str) -> None:
    for changes in (word_changes(before, after), line_changes(before, after)):
        assert "".join(piece.text for piece in changes if piece.mark != INSERTED) == before
        assert "".join(piece.text for piece in changes if piece.mark != DELETED) == after


def test_long_texts_count_as_replaced() -> None:
    before, after = "same " + "x-" * 200_000 + " end", "same " + "y z " * 100_000 + "end"
    begun = time.process_time()
    assert [(piece.mark, len(piece.text)) for piece in word_changes(before, after)] == [
        (EQUAL, 5),
        (DELETED, 400_000),
        (INSERTED, 399_999),
        (EQUAL, 4),
    ]
    assert time.process_time() - begun < 2


def test_field_changes_list_only_fields_that_differ() -> None:
    one = Pattern(id="a", type=PatternType.SUCCESS, title="Split", steps=("look", "split"), tags=("x",))
    other = Pattern(id="b", type=PatternType.SUCCESS, title="Split", steps=("split",), placeholders=(("a", "b"),))
    assert field_changes(one, other) == (("steps", "look\nsplit", "split"), ("placeholders", "", "a: b"))


def test_a_lazy_regex_finds_what_a_compiled_one_finds() -> None:
    word = r"(?P<word>[a-z]+)\d?"
    lazy, compiled = lazy_regex(word, re.IGNORECASE), re.compile(word, re.IGNORECASE)
    for _ in range(2):
        assert lazy.findall("Ab1 c2") == compiled.findall("Ab1 c2")
        assert lazy.sub(r"<\g<word>>", "Ab1 c2") == compiled.sub(r"<\g<word>>", "Ab1 c2")
    assert lazy.pattern == compiled.pattern
    with pytest.raises(re.error):
        lazy_regex(b"(").search(b"x")


CORE = Path(__file__).parents[3] / "core"
TABLES = {
    "core/base/polarity": (polarity._NEGATION_REGEX, polarity._REGEX),
    "core/base/secret_patterns": (value_shapes.REGEX,),
    "core/base/value_shapes": (value_shapes.REGEX,),
    "core/retrieval/task": (task._REGEX,),
    "core/base/scanning/scan": (scan._REGEX,),
}


def test_parts_are_inserted_and_line_breaks_removed(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text("word: |-\n  [a-z]\n  {2,}\npair: |-\n  {word}{gap}{word}\n", encoding="utf-8")
    table = RegexTable(path, gap="-+")
    assert table.sources["pair"] == "[a-z]{2,}-+[a-z]{2,}"
    assert table["pair"].fullmatch("ab--cd") and table["pair"] is table["pair"]
    with pytest.raises(KeyError):
        table["unknown"]


@pytest.mark.parametrize("line", ["word: [a-z]", "word:", "- word", " word: |-"])
def test_other_forms_of_yaml_are_an_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(f"# comment\n{line}\n")
    with pytest.raises(ValueError, match="line 2"):
        read_blocks(path)


def test_every_expression_that_the_code_names_exists() -> None:
    for place in TABLES:
        code = (CORE.parent / place).with_suffix(".py").read_text(encoding="utf-8")
        names = set(re.findall(r'REGEX\["(\w+)"\]', code))
        assert names, place
        for name in names:
            (table,) = (table for table in TABLES[place] if name in table.sources)
            assert table[name].pattern


def count_to(number: int) -> Steps[int]:
    for _ in range(number):
        yield
    return number


def test_work_without_time_does_one_step() -> None:
    work = Work(count_to(2))
    assert [work.run_for(0) for _ in range(4)] == [None, None, 2, 2]


def test_work_can_be_finished_at_any_time() -> None:
    work = Work(count_to(5))
    assert work.run_for(0) is None
    assert work.finish() == work.finish() == 5
    assert work.run_for(0) == 5


@given(st.lists(st.tuples(st.integers(0, 5), st.integers()), max_size=20).map(lambda items: items * 60))
def test_sorting_in_steps_is_sorting(items: list[tuple[int, int]]) -> None:
    assert run_all(sort_in_steps(items, lambda item: item[0])) == sorted(items, key=lambda item: item[0])


def test_sorting_yields_between_parts() -> None:
    assert len(list(sort_in_steps(range(2_000), lambda number: -number))) > 2_000
