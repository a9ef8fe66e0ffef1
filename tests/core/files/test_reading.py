"""JSON and YAML are read with limits, and edited as text."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files.file_reader import (
    MAX_DEPTH,
    Decoded,
    Problem,
    RawFile,
    decode_json,
    decode_jsonl,
    decode_yaml,
    is_nested_deeper,
    read_file,
)
from core.files.json_editor import BadJson, JsonText

TREES = Path(__file__).parents[2] / "trees"
REAL_FILES = sorted(TREES.glob("*/.aiwg/**/*.json"))

ODD_LINES = (
    *(
        b"",
        b"  ",
        b"{}",
        b"{}{}",
        b"{} {}",
        b"1",
        b'{"a":{}',
        b"}",
        b'{"a":1,"a":2}',
        b'{"a":"\\u0022\\\\"}',
        b'{"a":NaN}',
    ),
    *(
        b'{"a":1e400}',
        b'{"a":123456789012345678901234}',
        b"\xff",
        b'{"a":"\\ud800"}',
        b'{"a":[{}',
        b"{}]}",
        b'{"a":1}\r',
    ),
    b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
)
"""Lines that are not as they should be, or look so."""

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def codes(decoded: Decoded) -> list[str]:
    return [problem.code for problem in decoded.problems]


class TestJson:
    @given(plain)
    def test_reading_returns_what_was_written(self, value: object) -> None:
        decoded = decode_json(msgspec.json.encode(value))
        assert decoded == Decoded(value)

    @given(plain)
    def test_nesting_is_measured_without_recursion(self, value: object) -> None:
        def depth(node: object) -> int:
            if isinstance(node, dict):
                return 1 + max(map(depth, node.values()), default=0)
            if isinstance(node, list):
                return 1 + max(map(depth, node), default=0)
            return 0

        data = json.dumps(value).encode()
        assert not is_nested_deeper(data, depth(value))
        assert is_nested_deeper(data, depth(value) - 1) or not depth(value)

    def test_a_deep_start_ends_the_measurement_early(self, monkeypatch: pytest.MonkeyPatch) -> None:
        depths: list[int] = []

        def accumulate(changes: Iterable[int]) -> Iterator[int]:
            for change in changes:
                depths.append(change + (depths[-1] if depths else 0))
                yield depths[-1]

        monkeypatch.setattr("core.files.file_reader.itertools", SimpleNamespace(accumulate=accumulate))
        assert codes(decode_json(b"[" * (1 << 20))) == ["too-deep"]
        assert len(depths) == MAX_DEPTH + 1

    def test_an_empty_or_invalid_document_is_torn_with_its_place(self) -> None:
        for data in (b"", b"  \n", b"\0\0\0", b"\xef\xbb\xbf"):
            assert decode_json(data).torn, data
        for data in (b'{"a', b'{"a": 1', b"[1,]", b'{"a":1} x', b'{"a":1}\0\0', b"nonsense"):
            decoded = decode_json(data)
            assert decoded.torn and decoded.problems[0].place.startswith("line 1, column "), data

    def test_every_truncated_file_is_torn(self) -> None:
        data = (TREES / "spec-examples/.aiwg/ralph/shared/patterns/anti-patterns.json").read_bytes().rstrip()
        for cut in range(len(data)):
            assert decode_json(data[:cut]).torn, cut

    def test_nan_and_infinity_become_null(self) -> None:
        for text in ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 5000):
            decoded = decode_json(f'{{"a": {text}, "b": 1}}'.encode())
            assert decoded.value == {"a": None, "b": 1}, text
            assert codes(decoded) == ["bad-number"], text
            assert not decoded.failed, text

    def test_documents_that_only_look_odd_are_read(self) -> None:
        text = json.dumps(['"[[' * 200, "\\", "{" * 200])
        assert decode_json(text.encode()) == Decoded(json.loads(text)), "brackets in strings do not nest"
        assert decode_json(b'\xef\xbb\xbf{"a": 1}') == Decoded({"a": 1}), "a byte order mark"
        assert not decode_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH).failed, "the deepest allowed nesting"

    def test_wrong_utf8_and_lone_surrogates_are_replaced_and_reported(self) -> None:
        odd = "\N{REPLACEMENT CHARACTER}"
        for data, value in (
            (b'{"a": "x\xff"}', {"a": f"x{odd}"}),
            (b'{"k\\udfff": ["\\ud800", "\\ud83d\\ude00"]}', {f"k{odd}": [odd, "\N{GRINNING FACE}"]}),
        ):
            decoded = decode_json(data)
            assert (decoded.value, codes(decoded)) == (value, ["bad-encoding"])

    def test_a_duplicate_key_is_reported(self) -> None:
        for data in (b'{"a": 1, "a": 2}', b'{"x": [{"a": "\\"", "a": 2}]}'):
            decoded = decode_json(data)
            assert codes(decoded) == ["duplicate-key"], data
            assert "'a'" in decoded.problems[0].message, data

    def test_deep_nesting_is_refused(self) -> None:
        for data in (b"[" * 100_000, b'{"a":' * 3000, b"[" * 65 + b"]" * 65):
            decoded = decode_json(data)
            assert codes(decoded) == ["too-deep"], data
            assert decoded.failed, data
            assert not decoded.torn, data

    @given(st.binary(max_size=200))
    def test_garbage_never_raises(self, data: bytes) -> None:
        decode_json(data)
        decode_jsonl(data)

    def test_mutated_real_files_never_raise(self) -> None:
        chance = random.Random(20261121)
        for file in REAL_FILES:
            data = bytearray(file.read_bytes()[:4000])
            for _ in range(20):
                place = chance.randrange(len(data))
                data[place : place + chance.randrange(3)] = chance.choice(
                    [b"", b"{", b"]", b'"', b"\\", b"\xff", b"NaN", b"\\ud800", b"\x1b[2J", b"\0"]
                )
                decoded = decode_json(bytes(data))
                assert decoded.failed == (decoded.value is None)


class TestJsonl:
    def test_an_invalid_line_does_not_affect_others(self) -> None:
        lines, problems = decode_jsonl(b'{"a":1}\n\nnonsense\n{"b":2}\n')
        assert [(line.number, line.value) for line in lines] == [(1, {"a": 1}), (4, {"b": 2})]
        assert [(problem.place, problem.torn) for problem in problems] == [("line 3", False)]

    @given(st.lists(st.sampled_from(ODD_LINES) | plain.map(lambda value: msgspec.json.encode({"a": value}))))
    def test_lines_decode_together_as_they_decode_alone(self, parsed: list[bytes]) -> None:
        lines, problems = decode_jsonl(b"".join(line + b"\n" for line in parsed))
        alone = [(number, decode_json(line)) for number, line in enumerate(parsed, 1) if line.strip()]
        assert [(line.number, line.value) for line in lines] == [(n, one.value) for n, one in alone if not one.failed]
        assert len(problems) == sum(len(one.problems) for _, one in alone)

    def test_an_incomplete_last_line_is_skipped(self) -> None:
        lines, problems = decode_jsonl(b'{"a":1}\n{"b":2}')
        assert [line.value for line in lines] == [{"a": 1}]
        assert problems == ()


def read_small(path: Path, root: Path) -> bytes | str | None:
    """Read a file of at most 100 bytes; return the code of a problem."""
    found = read_file(path, root, 100)
    return found.data if isinstance(found, RawFile) else found.code if isinstance(found, Problem) else None


def test_only_regular_files_inside_are_read_up_to_the_limit(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret.json").write_bytes(b"[]")
    (root / "real.json").write_bytes(b"[]")
    (root / "big.json").write_bytes(b" " * 101)
    os.mkfifo(root / "pipe.json")
    (root / "folder.json").mkdir()
    links = {"inside": "real.json", "outside": "../secret.json", "dangling": "nowhere.json", "loop": "loop.json"}
    for name, target in links.items():
        (root / f"{name}.json").symlink_to(target)
    names = ("real", "missing", "big", "pipe", "folder", *links)
    assert {name: read_small(root / f"{name}.json", root) for name in names} == {
        **dict.fromkeys(("real", "inside"), b"[]"),
        **dict.fromkeys(("missing", "dangling", "loop")),
        "big": "too-large",
        "pipe": "not-a-file",
        "folder": "not-a-file",
        "outside": "link-outside",
    }
    raw = read_file(root / "real.json", root, 100)
    assert isinstance(raw, RawFile) and raw.stamp.mtime_ns == (root / "real.json").stat().st_mtime_ns


@given(st.binary(max_size=200))
def test_garbage_never_raises(data: bytes) -> None:
    decode_yaml(data)


def test_scalars_stay_text_and_tags_construct_no_objects() -> None:
    data = b"id: 007\nwhen: 2026-01-01\nno: no\nrate: 0.9\ntags: [on, 1.10]\nquoted: '~'\na: null\nb: ~\nc:\n"
    texts = {"id": "007", "when": "2026-01-01", "no": "no", "rate": "0.9", "tags": ["on", "1.10"], "quoted": "~"}
    assert decode_yaml(data).value == {**texts, "a": None, "b": None, "c": None}
    assert decode_yaml(b"!!python/object/apply:os.system ['true']").value == ["true"]


def test_an_alias_bomb_is_refused() -> None:
    bomb = b"a: &a [x, x]\n" + b"".join(
        b"%c: &%c [*%c, *%c]\n" % (n + 1, n + 1, n, n) for n in range(ord("a"), ord("z"))
    )
    assert codes(decode_yaml(bomb)) == ["yaml-alias"]


def test_deep_nesting_is_refused() -> None:
    assert codes(decode_yaml(b"[" * 3000)) == ["too-deep"]


def test_an_invalid_document_is_torn() -> None:
    for data in (b"a: [", b"\t- x", b"a: b: c", b'"x', b""):
        assert decode_yaml(data).torn, data


def test_a_duplicate_key_is_reported() -> None:
    decoded = decode_yaml(b"a: 1\na: 2\n")
    assert decoded.value == {"a": "2"}
    assert codes(decoded) == ["duplicate-key"]


def test_several_documents_are_read_up_to_the_first_broken_one() -> None:
    for text, value, wrong in (
        (b"a: 1\n---\nb: 2\n", [{"a": "1"}, {"b": "2"}], []),
        (b"---\na: 1\n---\n", {"a": "1"}, []),
        (b"a: 1\n---\nb: [\n", [{"a": "1"}], ["bad-yaml"]),
        (b"a: 1\n---\nb: &x 1\nc: *x\n", [{"a": "1"}], ["yaml-alias"]),
    ):
        decoded = decode_yaml(text, every=True)
        assert (decoded.value, codes(decoded), decoded.failed) == (value, wrong, False), text
        assert decode_yaml(text).value == {"a": "1"}, text


ODD = (
    b'{\n  "b": 1.0, "a": 1e400,\n  "big": 123456789012345678901234567890,\n'
    b'  "nan": NaN, "esc": "\\u00e9\\/", "twice": 1, "twice": {"x": -0.0}\n}\n'
)


def test_unedited_text_keeps_its_bytes() -> None:
    document = JsonText(ODD)
    document.set(("twice",), "override", True)
    assert document.encode() == ODD.replace(b'{"x": -0.0}', b'{"x": -0.0, "override": true}')


def test_a_new_member_copies_the_layout_and_can_be_removed() -> None:
    for before, after in (
        (b'{\n  "a": 1\n}\n', b'{\n  "a": 1,\n  "o": {\n    "x": [\n      1\n    ]\n  }\n}\n'),
        (b'{\n    "a": 1\n}', b'{\n    "a": 1,\n    "o": {\n        "x": [\n            1\n        ]\n    }\n}'),
        (b'{\n\t"a": 1\n}', b'{\n\t"a": 1,\n\t"o": {\n\t\t"x": [\n\t\t\t1\n\t\t]\n\t}\n}'),
        (b'{\r\n  "a": 1\r\n}', b'{\r\n  "a": 1,\r\n  "o": {\r\n    "x": [\r\n      1\r\n    ]\r\n  }\r\n}'),
        (b'{"a":1}', b'{"a":1,"o":{"x":[1]}}'),
        (b'{"a": 1, "b": 2}\n', b'{"a": 1, "b": 2, "o": {"x": [1]}}\n'),
        (b"{}", b'{"o": {"x": [1]}}'),
        (b'\xef\xbb\xbf{"a":1}', b'\xef\xbb\xbf{"a":1,"o":{"x":[1]}}'),
    ):
        document = JsonText(before)
        document.set((), "o", {"x": [1]})
        assert document.encode() == after, before
        document.remove(("o",))
        assert document.encode() == before, before


def test_a_new_item_is_laid_out_like_the_file_and_its_siblings() -> None:
    for before, place, after in (
        (b'{\n  "list": []\n}\n', ("list",), b'{\n  "list": [\n    {\n      "a": 3\n    }\n  ]\n}\n'),
        (b'[\n  {"a": 1},\n  {"a": 2}\n]\n', (), b'[\n  {"a": 1},\n  {"a": 2},\n  {"a": 3}\n]\n'),
        (b'{"a":1}\n{"a":2}', (), b'{"a":1}\n{"a":2}\n{"a":3}'),
    ):
        document = JsonText(before)
        document.append(place, {"a": 3})
        assert document.encode() == after
        if place:
            document.remove((*place, 0))
            assert document.encode() == before


def test_letters_are_escaped_if_the_file_escapes_them() -> None:
    for before, written in (
        (b'{"a":"\\u00e9"}', b"\\u00e9"),
        (b'{"a":"\xc3\xa9"}', "é".encode()),
        (b'{"a":1}', "é".encode()),
    ):
        document = JsonText(before)
        document.set((), "o", "é")
        assert document.encode() == before[:-1] + b',"o":"' + written + b'"}', before


def test_json_lines_are_edited_line_by_line() -> None:
    document = JsonText(b'{"a":1}\n\n{"a":2}\n')
    assert document.is_lines
    document.set((1,), "o", True)
    document.append((), {"a": 3})
    assert document.encode() == b'{"a":1}\n\n{"a":2,"o":true}\n{"a":3}\n'
    document.remove((0,))
    assert document.encode() == b'\n{"a":2,"o":true}\n{"a":3}\n'


def test_invalid_json_is_refused() -> None:
    rows: list[bytes] = [
        b"",
        b" \n",
        b'{"a":',
        b'{"a":1}{',
        b'{"a":1}\n{"a":',
        b"\xff{}",
        b"[" * 5000 + b"]" * 5000,
        b"{'a': 1}",
    ]
    for data in rows:
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


def test_the_last_of_two_equal_keys_is_edited() -> None:
    for first in ("7", '"{[,"', "[]", '{"list": 1}', '{"list": [{"a": 1}]}', "null"):
        data = f'{{"r": {first}, "r": {{"list": [0, {{"a": 1}}]}}}}'.encode()
        document = JsonText(data)
        document.set(("r", "list", 1), "o", 2)
        document.append(("r", "list"), 3)
        assert document.encode() == data.replace(b'[0, {"a": 1}]', b'[0, {"a": 1, "o": 2}, 3]'), first


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
