"""Literal parts that `python -m tests.reference` finds in the patterns of the safety scan."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from core.base.scanning.engine import Literals, load_rules
from tests.core.base.scanning.samples import sample
from tests.reference.literals import find_literals


def may_match(literals: Literals, text: str) -> bool:
    text = "".join(char.lower() if char.isascii() else char for char in text)
    return not literals or any(
        all(any(literal in text for literal in group) for group in alternative) for alternative in literals
    )


def test_literal_parts_of_a_pattern() -> None:
    rows: list[tuple[str, Literals]] = [
        ("Skip the tests?", ((("skip the test",),),)),
        (r"\b(?:skip|drop)\W+(?:all\W+)?(?:tests|checks)", ((("checks", "tests"), ("drop", "skip")),)),
        (r"curl\b.{2,8}\bsh|wget \d", ((("curl", "wget "),),)),
        (r"(?:very )*long(?:er)?", ((("long",),),)),
        (r"(?:very )+long", ((("very ",), ("long",)),)),
        (r"(?:un|re)do(?:ing)?\d", ((("redo", "undo"),),)),
        (r"\w+ or \w?", (((" or ",),),)),
        (r"a@b|忽略.+指令", ((("a@b",),), (("忽略",), ("指令",)))),
        (r"[a-f]\d{3}", ()),
        (r"curl|\d+", ()),
    ]
    for pattern, literals in rows:
        assert find_literals(pattern) == literals, pattern


def test_all_that_matches_a_rule_contains_its_literal_parts() -> None:
    for rule in load_rules():
        for pattern, literals in zip(rule.patterns, rule.literals, strict=True):
            compiled = re.compile(pattern, re.IGNORECASE)
            for seed in range(16):
                text = sample(pattern, seed)
                assert may_match(literals, text) or not compiled.search(text), (pattern, text)


_PARTS = st.sampled_from(["abc", "de@", "Fgh", r"\b", r"\w", "[xy]", "[^z]", "q"])
_PATTERNS = st.recursive(
    _PARTS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda found: f"(?:{'|'.join(found)})"),
        st.tuples(inner, st.sampled_from(["*", "+?", "?", "{2}", "{0,2}", "{1,3}?"])).map(
            lambda both: "(?:{}){}".format(*both)
        ),
    ),
    max_leaves=12,
)


@given(_PATTERNS, st.data())
def test_all_that_matches_any_pattern_contains_its_literal_parts(pattern: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(re.compile(pattern, re.IGNORECASE | re.ASCII)))
    assert may_match(find_literals(pattern), text)
