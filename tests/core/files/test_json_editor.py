from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files.json_editor import BadJson, JsonText

OVERRIDE = {"state": "proven", "tags": ["é"]}
ODD = (
    b'{\n  "b": 1.0, "a": 1e400,\n  "big": 123456789012345678901234567890,\n'
    b'  "nan": NaN, "esc": "\\u00e9\\/", "twice": 1, "twice": {"x": -0.0}\n}\n'
)


def test_unedited_text_keeps_its_bytes() -> None:
    document = JsonText(ODD)
    document.set(("twice",), "override", True)
    assert document.encode() == ODD.replace(b'{"x": -0.0}', b'{"x": -0.0, "override": true}')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{\n  "a": 1\n}\n', b'{\n  "a": 1,\n  "o": {\n    "x": [\n      1\n    ]\n  }\n}\n'),
        (b'{\n    "a": 1\n}', b'{\n    "a": 1,\n    "o": {\n        "x": [\n            1\n        ]\n    }\n}'),
        (b'{\n\t"a": 1\n}', b'{\n\t"a": 1,\n\t"o": {\n\t\t"x": [\n\t\t\t1\n\t\t]\n\t}\n}'),
        (b'{\r\n  "a": 1\r\n}', b'{\r\n  "a": 1,\r\n  "o": {\r\n    "x": [\r\n      1\r\n    ]\r\n  }\r\n}'),
        (b'{"a":1}', b'{"a":1,"o":{"x":[1]}}'),
        (b'{"a": 1, "b": 2}\n', b'{"a": 1, "b": 2, "o": {"x": [1]}}\n'),
        (b"{}", b'{"o": {"x": [1]}}'),
        (b'\xef\xbb\xbf{"a":1}', b'\xef\xbb\xbf{"a":1,"o":{"x":[1]}}'),
    ],
)
def test_a_new_member_copies_the_layout_and_can_be_removed(before: bytes, after: bytes) -> None:
    document = JsonText(before)
    document.set((), "o", {"x": [1]})
    assert document.encode() == after
    document.remove(("o",))
    assert document.encode() == before


def test_the_first_item_of_a_list_is_indented_like_the_file() -> None:
    document = JsonText(b'{\n  "list": []\n}\n')
    document.append(("list",), {"a": 1})
    assert document.encode() == b'{\n  "list": [\n    {\n      "a": 1\n    }\n  ]\n}\n'
    document.remove(("list", 0))
    assert document.encode() == b'{\n  "list": []\n}\n'


def test_an_item_is_on_one_line_like_its_siblings() -> None:
    document = JsonText(b'[\n  {"a": 1},\n  {"a": 2}\n]\n')
    document.append((), {"a": 3})
    assert document.encode() == b'[\n  {"a": 1},\n  {"a": 2},\n  {"a": 3}\n]\n'


@pytest.mark.parametrize(
    ("before", "written"),
    [(b'{"a":"\\u00e9"}', b"\\u00e9"), (b'{"a":"\xc3\xa9"}', "é".encode()), (b'{"a":1}', "é".encode())],
)
def test_letters_are_escaped_if_the_file_escapes_them(before: bytes, written: bytes) -> None:
    document = JsonText(before)
    document.set((), "o", "é")
    assert document.encode() == before[:-1] + b',"o":"' + written + b'"}'


def test_json_lines_are_edited_line_by_line() -> None:
    document = JsonText(b'{"a":1}\n\n{"a":2}\n')
    assert document.is_lines
    document.set((1,), "o", True)
    document.append((), {"a": 3})
    assert document.encode() == b'{"a":1}\n\n{"a":2,"o":true}\n{"a":3}\n'
    document.remove((0,))
    assert document.encode() == b'\n{"a":2,"o":true}\n{"a":3}\n'


def test_json_lines_without_a_last_line_end_stay_without() -> None:
    document = JsonText(b'{"a":1}\n{"a":2}')
    document.append((), {"a": 3})
    assert document.encode() == b'{"a":1}\n{"a":2}\n{"a":3}'


@pytest.mark.parametrize(
    "data",
    [b"", b" \n", b'{"a":', b'{"a":1}{', b'{"a":1}\n{"a":', b"\xff{}", b"[" * 5000 + b"]" * 5000, b"{'a': 1}"],
)
def test_invalid_json_is_refused(data: bytes) -> None:
    with pytest.raises(BadJson):
        JsonText(data)


def test_huge_numbers_survive_edits() -> None:
    data = b'{"n": ' + b"9" * 5000 + b', "m": 1}'
    document = JsonText(data)
    document.set((), "m", 2)
    assert document.encode() == data.replace(b'"m": 1', b'"m": 2')


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('aé\n"'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('ab:{}"', max_size=3), inner, max_size=4),
    max_leaves=12,
)
layouts = st.sampled_from(
    [{"indent": 2}, {"indent": "\t"}, {"indent": None}, {"separators": (",", ":")}, {"ensure_ascii": False}]
)


@given(
    content=st.dictionaries(st.text("abc", max_size=3), json_values, max_size=4),
    layout=layouts,
    key=st.text("abco", max_size=3),
    value=json_values,
)
def test_text_and_value_stay_equal(content: dict[str, Any], layout: dict[str, Any], key: str, value: Any) -> None:
    before = json.dumps({"top": content}, **layout).encode()
    document = JsonText(before)
    document.set(("top",), key, value)
    assert json.loads(document.encode()) == document.value == {"top": {**content, key: value}}
    if key not in content:
        document.remove(("top", key))
        assert document.encode() == before
    else:
        document.remove(("top", key))
        assert json.loads(document.encode()) == document.value


@pytest.mark.parametrize("first", ["7", '"{[,"', "[]", '{"list": 1}', '{"list": [{"a": 1}]}', "null"])
def test_the_last_of_two_equal_keys_is_edited(first: str) -> None:
    data = f'{{"r": {first}, "r": {{"list": [0, {{"a": 1}}]}}}}'.encode()
    document = JsonText(data)
    document.set(("r", "list", 1), "o", 2)
    document.append(("r", "list"), 3)
    assert document.encode() == data.replace(b'[0, {"a": 1}]', b'[0, {"a": 1, "o": 2}, 3]')


RECORD_LISTS = st.lists(
    st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3), max_size=6
)
LAYOUTS = st.sampled_from([None, 0, 2, "\t"])


@given(RECORD_LISTS, RECORD_LISTS, LAYOUTS)
def test_extend_equals_repeated_append(
    old: list[dict[str, Any]], new: list[dict[str, Any]], indent: int | str | None
) -> None:
    data = json.dumps({"list": old, "rest": 1}, indent=indent).encode()
    one_by_one, at_once = JsonText(data), JsonText(data)
    for value in new:
        one_by_one.append(("list",), value)
    at_once.extend(("list",), new)
    assert at_once.value == one_by_one.value == json.loads(at_once.encode()) == {"list": [*old, *new], "rest": 1}
    if all(old) and all(new):  # an empty object among them has no layout of its own to pass on
        assert at_once.encode() == one_by_one.encode()


@given(RECORD_LISTS, st.sets(st.integers(0, 5)), LAYOUTS)
def test_remove_all_equals_repeated_remove(
    old: list[dict[str, Any]], indices: set[int], indent: int | str | None
) -> None:
    data = json.dumps({"list": old, "rest": 1}, indent=indent).encode()
    removed = {index for index in indices if index < len(old)}
    one_by_one, at_once = JsonText(data), JsonText(data)
    for index in sorted(removed, reverse=True):
        one_by_one.remove(("list", index))
    at_once.remove_all(("list",), removed)
    assert at_once.encode() == one_by_one.encode()
    assert at_once.value == json.loads(at_once.encode())


@given(RECORD_LISTS, LAYOUTS)
def test_items_edited_separately_equal_edits_in_place(old: list[dict[str, Any]], indent: int | str | None) -> None:
    data = json.dumps({"list": old, "rest": 1}, indent=indent).encode()
    in_place, apart = JsonText(data), JsonText(data)
    indices = {index for index, item in enumerate(old) if item and index % 2 == 0}
    edited = apart.items(("list",), indices)
    for index in indices:
        in_place.set(("list", index), "new", {"deep": [1]})
        edited[index].set((), "new", {"deep": [1]})
    apart.put_back(("list",), edited)
    assert apart.encode() == in_place.encode()
    assert apart.value == in_place.value == json.loads(apart.encode())
