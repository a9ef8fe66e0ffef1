"""Places in which the trigger of an error pattern applies."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.records.debug_sessions import Failure
from core.records.patterns import Pattern, PatternType
from core.retrieval.error_places import list_places, matches_failure, occurs_in

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


@pytest.mark.parametrize(
    ("regex", "places", "expected"),
    [
        (r"assert \d+ == \d+", ("tests/test_cart.py::test_total",), True),
        (r"AssertionError: assert \d+ == \d+", ("cart.py::total",), True),
        (r"assert \d+ == \d+", ("/copy/of/project/tests/test_cart.py::test_total",), True),
        (r"assert \d+ == \d+", ("tests/test_cart.py::test_other",), False),
        (r"assert \d+ == \d+", ("tests/test_user.py::test_total",), False),
        (r"assert \d+ == \d+", ("art.py",), False),
        (r"assert \d+ == \d+", (), True),
        (r"assert \d+ != \d+", (), False),
        ("", ("cart.py",), False),
    ],
)
def test_a_trigger_applies_in_its_places(regex: str, places: tuple[str, ...], expected: bool) -> None:
    assert matches_failure(pattern(regex, *places), FAILED) is expected


def test_a_text_names_a_place_with_its_file_and_its_name() -> None:
    places = ["tests/test_cart.py::test_total"]
    assert occurs_in(places, "test_total in test_cart.py fails")
    assert not occurs_in(places, "test_total fails")
    assert not occurs_in([], "test_total in test_cart.py fails")


@pytest.mark.parametrize(("message", "expected"), [("assert 3 == 4", True), ("assert 3 == 5", False)])
def test_a_failure_of_unknown_place_needs_the_same_message(message: str, expected: bool) -> None:
    trigger = replace(pattern(r"assert \d+ == \d+", "cart.py"), error_message="AssertionError: assert 3 == 4")
    assert matches_failure(trigger, Failure(message=message)) is expected
