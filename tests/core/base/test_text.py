from __future__ import annotations

import unicodedata
from time import perf_counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.base.text import (
    ELLIPSIS,
    HIDDEN_CHAR,
    MAX_PATTERN,
    MAX_SUBJECT,
    UNKNOWN_CHAR,
    MatchedTexts,
    Matcher,
    plural,
    remove_hidden,
    safe_matcher,
    visible,
    visible_line,
)

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


@pytest.mark.parametrize("char", "\u180b\u180c\u180d\u180f")
def test_selectors_of_other_scripts_are_marked(char: str) -> None:
    assert visible(char) == HIDDEN_CHAR


@given(ANY_TEXT)
def test_visible_text_stays_as_it_is(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(ANY_TEXT, st.integers(0, 70))
def test_visible_respects_the_limit(text: str, limit: int) -> None:
    for shown in (visible(text, limit), visible_line(text, limit)):
        assert len(shown) <= max(limit, 1)
    if len(text) > limit:
        assert visible(text, limit).endswith(ELLIPSIS)


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


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred", "\u241b[31mred"),
        ("a\x00b", "a\u2400b"),
        ("\x7f\x9b31m", f"{UNKNOWN_CHAR}{UNKNOWN_CHAR}31m"),
        ("abc\u202etxt.exe", f"abc{HIDDEN_CHAR}txt.exe"),
        ("zero\u200bwidth", f"zero{HIDDEN_CHAR}width"),
        ("hangul\u3164filler", f"hangul{HIDDEN_CHAR}filler"),
        ("a\u2028b", f"a{HIDDEN_CHAR}b"),
        ("thumb\U0001f44d\U0001f3fd\ufe0f", "thumb\U0001f44d"),
        ("tag\U000e0041", f"tag{HIDDEN_CHAR}"),
        ("\udcff", UNKNOWN_CHAR),
        ("naïve café", "naïve café"),
    ],
)
def test_marks_in_place_of_characters(raw: str, shown: str) -> None:
    assert visible(raw) == shown


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


@pytest.mark.parametrize("source", ["(unclosed", "(?<=look)behind", r"back\1reference", "a{5000}", "*"])
def test_unsafe_regexes_are_matched_literally_with_a_problem(source: str) -> None:
    found = Matcher(source)
    assert found.problem is not None
    assert found.matches(f"before {source} after")
    assert not found.matches("something else")


def test_a_regex_that_runs_matches_as_a_regex() -> None:
    found = safe_matcher(r"Cannot read propert(y|ies) '.*' of (null|undefined)")
    assert found.problem is None
    assert found.matches("TypeError: Cannot read property 'id' of null")
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
