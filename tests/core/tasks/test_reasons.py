"""The reason for a fix in the agent's own words."""

from __future__ import annotations

import pytest

from core.tasks.changes import Hunk
from core.tasks.reasons import describe_hunks, find_reason, split_reason


@pytest.mark.parametrize(
    "text",
    [
        "All tests pass.",
        "Done! All 3 tests pass now.",
        "I'll run the tests to see the failure.",
        "Let me look at the code first.",
        "Now let me fix it.",
        "Perfect! The build is green.",
        "Great, everything works now.",
        "Let me check the other file.",
        "Running the suite again.",
        "Now I'll update the file.",
        "Let me know if you need anything else.",
        "Fix the bug in app.py.",
    ],
)
def test_announcements_greetings_and_reports_of_success_are_left_out(text: str) -> None:
    assert split_reason(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Found it. The index starts at 1, but the slice expects 0.",
            "The index starts at 1, but the slice expects 0.",
        ),
        ("**Fix:** `load` must be awaited.\n\nAll tests pass.", "`load` must be awaited."),
        ("I see the issue: the cache is never cleared between runs.", "The cache is never cleared between runs."),
        ("The default is shared by all calls. Both tests pass.", "The default is shared by all calls."),
        ("Prices are cents now, so the sum is exact and all tests pass.", "Prices are cents now, so the sum is exact."),
    ],
)
def test_the_reason_remains(text: str, expected: str) -> None:
    assert find_reason([text]) == expected


def test_at_most_two_sentences_are_taken_and_code_blocks_are_left_out() -> None:
    text = "One cause is here.\n```python\nx = 1\n```\nAnother cause is there. A third one follows."
    assert find_reason([text]) == "One cause is here. Another cause is there."


def test_a_short_reason_gets_a_sentence_of_the_next_text() -> None:
    assert find_reason(["Only a typo.", "The member is called height."]) == "Only a typo. The member is called height."
    assert find_reason(["The member is called height.", "Something else."]) == "The member is called height."
    assert find_reason(["", "All tests pass."]) == ""


def test_secrets_and_hidden_characters_are_not_taken() -> None:
    found = find_reason(["The token ghp_0123456789abcdefghijABCDEFGHIJ012345 was \u202eused for the login."])
    assert "ghp_0123456789" not in found and "\u202e" not in found


def test_a_change_without_words_is_described_by_its_code() -> None:
    hunk = Hunk("a.py", 3, 3, ('-    x = line.get("vat")', '+    x = line.get("vat", 0)'))
    assert describe_hunks([hunk]) == 'In a.py: `x = line.get("vat")` → `x = line.get("vat", 0)`'
    assert describe_hunks([Hunk("a.py", 1, 1, ("+import os",))]) == "In a.py: add `import os`"
    assert describe_hunks([Hunk("a.py", 1, 1, ("-import os",))]) == "In a.py: remove `import os`"
    assert describe_hunks([]) == ""
