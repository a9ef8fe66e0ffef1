"""The judgement of lessons accepts good ones and rejects each kind of bad one."""

from __future__ import annotations

from msgspec.structs import replace

from core.records.patterns import Pattern, PatternType
from tests.fix_sessions.lessons import contains_change, has_clean_holes, has_reason, is_quoted, on_another_day
from tests.fix_sessions.sessions import Label, Session

SESSION = Session(
    name="default",
    agent="claude",
    label=Label(learns=True, must=("amount ?? 10", ("limit", "bound")), ideal="Zero is falsy, so the default wins."),
    prompt="Fix it",
    files={"src/fee.js": "const fee = (amount) => amount || 10;"},
    steps=(),
    last="A fee of zero was replaced by the default.",
)
LESSON = Pattern(
    id="pat-error-a-001",
    type=PatternType.ERROR,
    title="10 !== 0",
    description="Zero is falsy, so || takes the default limit",
    diff_pattern="-amount || 10\n+amount ?? 10",
)


def test_a_lesson_contains_the_change_if_it_has_all_parts_of_it() -> None:
    assert contains_change(LESSON, SESSION)
    assert not contains_change(replace(LESSON, diff_pattern="+amount"), SESSION)
    assert not contains_change(replace(LESSON, description="Zero is falsy"), SESSION)


def test_a_hole_may_replace_a_name_that_was_there_before() -> None:
    template = replace(LESSON, diff_pattern="", template_code="{{name}}   ?? 10")
    assert contains_change(template, SESSION)
    assert not contains_change(replace(template, template_code="amount {{operator}} 10"), SESSION)


def test_a_description_that_only_names_the_file_contains_no_change() -> None:
    session = replace(SESSION, label=replace(SESSION.label, must=("amount ?? 10",)))
    assert contains_change(LESSON, session)
    assert not contains_change(replace(LESSON, description="Fix the error: change src/fee.js"), session)


def test_a_reason_shares_two_words_with_the_texts_of_the_session() -> None:
    assert has_reason(LESSON, SESSION)
    assert not has_reason(replace(LESSON, description="In fee.js: `amount || 10` → `amount ?? 10`"), SESSION)
    assert not has_reason(replace(LESSON, description="Change the default of the file"), SESSION)


def test_a_hole_must_be_a_whole_name_outside_of_quotes_and_imports() -> None:
    def is_clean(code: str) -> bool:
        return has_clean_holes(replace(LESSON, template_code=code))

    assert is_clean("return {{name}} ?? 10;")
    assert is_clean("amount ?? 10")
    assert not is_clean("return {{name}}Limit ?? 10;")
    assert not is_clean('return "{{name}}" ?? 10;')
    assert not is_clean("from {{module}} import parse")


def test_a_template_with_holes_must_not_keep_other_names_of_the_project() -> None:
    assert not has_clean_holes(replace(LESSON, template_code="return {{name}} ?? settings;"))
    assert has_clean_holes(replace(LESSON, template_code="return {{name}} ?? {{other}}.get(0);"))


def test_an_answer_quotes_a_lesson_with_other_white_space() -> None:
    assert is_quoted(LESSON, "Fix: Zero is falsy,\n  so || takes the default limit")
    assert not is_quoted(LESSON, "Fix: another one")
    assert not is_quoted(replace(LESSON, description=""), "Fix: another one")


def test_a_failure_on_another_day_has_other_places_and_times_but_the_same_message() -> None:
    assert on_another_day('a.py:5: TypeError\nFile "a.py", line 5') == 'a.py:22: TypeError\nFile "a.py", line 22'
    assert on_another_day("<A at 0x7fb78a655610>\n2 passed in 0.02s") == "<A at 0x7fc3a1b2d4e0>\n19 passed in 1.93s"
    assert on_another_day("duration_ms: 8.5\nassert 5 == 6") == "duration_ms: 9.25\nassert 5 == 6"
