"""Reading untrusted YAML as plain strings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files.decoded import Decoded
from core.files.yaml_reader import decode_yaml


def codes(decoded: Decoded) -> list[str]:
    return [problem.code for problem in decoded.problems]


@given(st.binary(max_size=200))
def test_garbage_never_raises(data: bytes) -> None:
    decode_yaml(data)


def test_scalars_stay_text() -> None:
    decoded = decode_yaml(b"id: 007\nwhen: 2026-01-01\nno: no\nrate: 0.9\ntags: [on, 1.10]\nquoted: '~'\n")
    assert decoded.value == {
        "id": "007",
        "when": "2026-01-01",
        "no": "no",
        "rate": "0.9",
        "tags": ["on", "1.10"],
        "quoted": "~",
    }


def test_null_is_null() -> None:
    assert decode_yaml(b"a: null\nb: ~\nc:\n").value == {"a": None, "b": None, "c": None}


def test_an_alias_bomb_is_refused() -> None:
    bomb = b"a: &a [x, x]\n" + b"".join(
        b"%c: &%c [*%c, *%c]\n" % (n + 1, n + 1, n, n) for n in range(ord("a"), ord("z"))
    )
    assert codes(decode_yaml(bomb)) == ["yaml-alias"]


def test_yaml_tags_construct_no_objects() -> None:
    assert decode_yaml(b"!!python/object/apply:os.system ['true']").value == ["true"]


def test_deep_nesting_is_refused() -> None:
    assert codes(decode_yaml(b"[" * 3000)) == ["too-deep"]


@pytest.mark.parametrize("data", [b"a: [", b"\t- x", b"a: b: c", b'"x', b""])
def test_an_invalid_document_is_torn(data: bytes) -> None:
    assert decode_yaml(data).torn


def test_a_duplicate_key_is_reported() -> None:
    decoded = decode_yaml(b"a: 1\na: 2\n")
    assert decoded.value == {"a": "2"}
    assert codes(decoded) == ["duplicate-key"]


@pytest.mark.parametrize(
    ("text", "value", "wrong"),
    [
        (b"a: 1\n---\nb: 2\n", [{"a": "1"}, {"b": "2"}], []),
        (b"---\na: 1\n---\n", {"a": "1"}, []),
        (b"a: 1\n---\nb: [\n", [{"a": "1"}], ["bad-yaml"]),
        (b"a: 1\n---\nb: &x 1\nc: *x\n", [{"a": "1"}], ["yaml-alias"]),
    ],
)
def test_several_documents_are_read_up_to_the_first_broken_one(text: bytes, value: Any, wrong: list[str]) -> None:
    decoded = decode_yaml(text, every=True)
    assert (decoded.value, codes(decoded), decoded.failed) == (value, wrong, False)
    assert decode_yaml(text).value == {"a": "1"}
