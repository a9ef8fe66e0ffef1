"""Analysis of task descriptions."""

from __future__ import annotations

import pytest

from core.retrieval.task import CATEGORIES, analyse_task, content_words


@pytest.mark.parametrize(
    ("text", "category"),
    [
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
    ],
)
def test_categories_of_natural_descriptions(text: str, category: str) -> None:
    assert analyse_task(text).category == category
    assert category in (*CATEGORIES, "")


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("Fix src/auth/validate.ts", ("typescript",)),
        ("make pytest pass", ("python",)),
        ("port the JavaScript client to Rust", ("javascript", "rust")),
        ("a Java service behind go.mod", ("go", "java")),
        ("go through the list and let it go", ()),
        ("javascript", ("javascript",)),
    ],
)
def test_languages(text: str, languages: tuple[str, ...]) -> None:
    assert analyse_task(text).languages == languages


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
