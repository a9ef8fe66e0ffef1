"""Untrusted bytes: every document is a value or a problem, never an exception."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files.decoded import MAX_DEPTH, Decoded, Problem
from core.files.file_reader import RawFile, decode_json, decode_jsonl, is_nested_deeper, read_file

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

    @pytest.mark.parametrize("data", [b"", b"  \n", b"\0\0\0", b"\xef\xbb\xbf"])
    def test_an_empty_file_is_torn(self, data: bytes) -> None:
        assert decode_json(data).torn

    @pytest.mark.parametrize("data", [b'{"a', b'{"a": 1', b"[1,]", b'{"a":1} x', b'{"a":1}\0\0', b"nonsense"])
    def test_an_invalid_document_is_torn_with_its_place(self, data: bytes) -> None:
        decoded = decode_json(data)
        assert decoded.torn
        assert decoded.problems[0].place.startswith("line 1, column ")

    def test_every_truncated_file_is_torn(self) -> None:
        data = (TREES / "spec-examples/.aiwg/ralph/shared/patterns/anti-patterns.json").read_bytes().rstrip()
        for cut in range(len(data)):
            assert decode_json(data[:cut]).torn, cut

    @pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 5000])
    def test_nan_and_infinity_become_null(self, text: str) -> None:
        decoded = decode_json(f'{{"a": {text}, "b": 1}}'.encode())
        assert decoded.value == {"a": None, "b": 1}
        assert codes(decoded) == ["bad-number"]
        assert not decoded.failed

    def test_a_byte_order_mark_is_tolerated(self) -> None:
        assert decode_json(b'\xef\xbb\xbf{"a": 1}') == Decoded({"a": 1})

    def test_wrong_utf8_is_replaced_and_reported(self) -> None:
        decoded = decode_json(b'{"a": "x\xff"}')
        assert decoded.value == {"a": "x\N{REPLACEMENT CHARACTER}"}
        assert codes(decoded) == ["bad-encoding"]

    def test_a_lone_surrogate_is_replaced_anywhere(self) -> None:
        decoded = decode_json(b'{"k\\udfff": ["\\ud800", "\\ud83d\\ude00"]}')
        assert decoded.value == {"k\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}", "\N{GRINNING FACE}"]}
        assert codes(decoded) == ["bad-encoding"]

    @pytest.mark.parametrize("data", [b'{"a": 1, "a": 2}', b'{"x": [{"a": "\\"", "a": 2}]}'])
    def test_a_duplicate_key_is_reported(self, data: bytes) -> None:
        decoded = decode_json(data)
        assert codes(decoded) == ["duplicate-key"]
        assert "'a'" in decoded.problems[0].message

    @pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 3000, b"[" * 65 + b"]" * 65])
    def test_deep_nesting_is_refused(self, data: bytes) -> None:
        decoded = decode_json(data)
        assert codes(decoded) == ["too-deep"]
        assert decoded.failed
        assert not decoded.torn

    def test_brackets_in_strings_do_not_nest(self) -> None:
        text = json.dumps(['"[[' * 200, "\\", "{" * 200])
        assert decode_json(text.encode()) == Decoded(json.loads(text))

    def test_the_deepest_allowed_nesting_is_read(self) -> None:
        assert not decode_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH).failed

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


class TestFiles:
    def read(self, path: Path, root: Path) -> RawFile | Problem | None:
        return read_file(path, root, 100)

    def test_reads_bytes_and_stamp(self, tmp_path: Path) -> None:
        file = tmp_path / "a.json"
        file.write_bytes(b"{}")
        raw = self.read(file, tmp_path)
        assert isinstance(raw, RawFile)
        assert raw.data == b"{}"
        assert raw.stamp.mtime_ns == file.stat().st_mtime_ns

    def test_a_missing_file_gives_none(self, tmp_path: Path) -> None:
        assert self.read(tmp_path / "a.json", tmp_path) is None

    def test_a_big_file_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "a.json"
        file.write_bytes(b" " * 101)
        problem = self.read(file, tmp_path)
        assert isinstance(problem, Problem)
        assert problem.code == "too-large"

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
    def test_pipes_and_folders_are_refused_without_blocking(self, tmp_path: Path, make: object) -> None:
        file = tmp_path / "a.json"
        assert callable(make)
        make(file)
        problem = self.read(file, tmp_path)
        assert isinstance(problem, Problem)
        assert problem.code in ("not-a-file", "unreadable")

    def test_a_link_inside_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "real.json").write_bytes(b"[]")
        (tmp_path / "link.json").symlink_to("real.json")
        raw = self.read(tmp_path / "link.json", tmp_path)
        assert isinstance(raw, RawFile)
        assert raw.data == b"[]"

    def test_a_link_that_leads_out_is_refused(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        root.mkdir()
        (tmp_path / "secret.json").write_bytes(b"[]")
        (root / "link.json").symlink_to(tmp_path / "secret.json")
        problem = self.read(root / "link.json", root)
        assert isinstance(problem, Problem)
        assert problem.code == "link-outside"

    @pytest.mark.parametrize("target", ["nowhere.json", "link.json"])
    def test_a_dangling_link_gives_none(self, tmp_path: Path, target: str) -> None:
        (tmp_path / "link.json").symlink_to(target)
        assert self.read(tmp_path / "link.json", tmp_path) is None
