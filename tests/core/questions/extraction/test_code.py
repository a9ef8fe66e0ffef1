"""Code templates made of diffs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.questions.extraction.fix_kinds import file_language, has_partial_holes, make_clean_template, make_template

UNIFIED = """\
--- a/src/cart.py
+++ b/src/cart.py
@@ -1,4 +1,6 @@
 def total(cart):
-    return cart.sum
+    if cart is None:
+        raise ValueError("The cart is missing")
+    return cart.sum or "0"
"""


def test_the_tested_value_and_the_message_become_placeholders() -> None:
    found = make_template(UNIFIED, "'NoneType' object has no attribute 'sum'")
    assert found is not None
    assert found.code == (
        'if {{variable}} is None:\n    raise ValueError("{{message}}")\nreturn {{variable}}.{{property}} or "0"\n'
    )
    assert found.placeholders == ("variable", "message", "property")


def test_names_that_are_quoted_in_the_error_become_placeholders() -> None:
    found = make_template("+export interface User {\n+  email: string | undefined;\n+}", "Property 'email' is missing")
    assert found and "{{property}}: string | undefined;" in found.code
    assert make_template("+import { chunk } from 'lodash';\n", "chunk is not defined") is not None
    imported = make_template("+import { chunk } from 'lodash';\n", "chunk is not defined")
    assert imported and imported.code == "import { {{name}} } from '{{module}}';\n"


@pytest.mark.parametrize("diff", ["", "- gone\n", "+++ b/a.ts\n", "+\n+  \n", "+x\n" * 31, "+" + "x" * 3000])
def test_code_without_reuse_gives_no_template(diff: str) -> None:
    assert make_template(diff, "Cannot read 'a'") is None


def test_the_language_is_that_of_the_file() -> None:
    assert file_language(("src/a.tsx",)) == "typescript"
    assert file_language((), UNIFIED) == "python"
    assert file_language(("Makefile", "a.rs")) == "rust"
    assert file_language(("a.exe",), "+++ \x1b]0;x") == ""


@settings(max_examples=40)
@given(st.text(max_size=200), st.text(max_size=80))
def test_any_text_gives_a_template_or_none(code: str, message: str) -> None:
    found = make_template("\n".join(f"+{line}" for line in code.splitlines()), message)
    assert found is None or len(found.code) <= 20_000


@pytest.mark.parametrize(
    ("added", "language", "expected"),
    [
        ("    if labels is None:\n        labels = []", "python", "if {{variable}} is None:\n    {{variable}} = []\n"),
        ("    if labels is None:\n        labels = list(DEFAULTS.values())", "python", None),  # a member
        ('    if labels is None:\n        labels = ["new"]', "python", None),  # a text
        ("    return labels or []", "python", None),  # one line
        ("    if a is None:\n        return b + c", "python", None),  # too many names
        ("    if labels is None:\n        labels = []", "", None),  # unknown language
        ("import os\nos = None", "python", None),
    ],
)
def test_a_clean_template_has_a_placeholder_for_each_own_name_or_there_is_none(
    added: str, language: str, expected: str | None
) -> None:
    diff = "-    labels.append(x)\n" + "\n".join(f"+{line}" for line in added.split("\n"))
    found = make_clean_template(diff, language)
    assert (found.code if found is not None else None) == expected


@pytest.mark.parametrize(
    ("code", "is_partial"),
    [
        ("if {{variable}} is None:\n    {{variable}} = []\n", False),
        ("async with {{factory}}() as client:\n    yield client\n", False),  # a name of its own
        ("return {{variable}}.strip()\n", False),
        ("labels = None\n", False),  # no placeholder
        ("raise ValueError('{{message}}')\n", True),
        ("return None  # {{message}}\n", True),
        ("return load_{{name}}\n", True),
        ("from {{module}} import read_rows\n", True),
        ("{{" * 2_000, False),
    ],
)
def test_a_template_on_file_has_whole_placeholders_and_no_name_of_one_place_beside_them(
    code: str, is_partial: bool
) -> None:
    assert has_partial_holes(code, "python") is is_partial
