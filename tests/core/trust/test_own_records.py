"""Digests of own records: several writers, torn ends, the known head."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.records.decisions import Decision, Verb
from core.sources.ledger import Ledger
from core.trust.own_records import KnownHead, OwnRecords, record_digest, text_digest
from tests.factories import CURATION_NOW as NOW

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.text(min_size=1, max_size=20), st.dictionaries(st.text(max_size=8), _values, max_size=4), st.integers(0, 10**9)
)
def test_a_decision_that_is_read_back_has_the_digest_of_the_one_that_was_written(
    reason: str, details: dict[str, object], milliseconds: int
) -> None:
    written = Decision(
        id="d1",
        at=NOW + timedelta(milliseconds=milliseconds),
        by="ada",
        verb=Verb.NOTE,
        subject="pat-error-a-001",
        reason=reason.encode(errors="replace").decode(),
        after=msgspec.json.decode(msgspec.json.encode(details)) if _is_unicode(details) else {},
    )
    read = msgspec.convert(msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(written))), Decision)
    assert record_digest(read) == record_digest(written)


def _is_unicode(value: object) -> bool:
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    return True


def test_what_one_object_adds_another_one_reads_until_the_file_is_removed(tmp_path: Path) -> None:
    one, other = OwnRecords(tmp_path, "decisions"), OwnRecords(tmp_path, "decisions")
    assert not other.refresh()
    for name in (b"a", b"b"):
        one.add([text_digest(name)])
        assert other.refresh() and not other.refresh()
        assert text_digest(name) in other
    assert one.path.stat().st_mode & 0o777 == 0o600
    assert one.path.parent.stat().st_mode & 0o777 == 0o700
    one.path.unlink()
    assert other.refresh()
    assert text_digest(b"a") not in other


@pytest.mark.parametrize("rest", [b"12", b"@3", text_digest(b"x")])
def test_an_incomplete_end_is_ignored_and_the_next_record_counts(tmp_path: Path, rest: bytes) -> None:
    records = OwnRecords(tmp_path, "decisions")
    records.add([text_digest(b"a")])
    with records.path.open("ab") as file:
        file.write(rest[:-1])
    records.add([text_digest(b"b")])
    records.refresh()
    assert text_digest(b"a") in records
    assert text_digest(b"b") in records
    assert text_digest(b"x") not in records


def test_the_known_head_saves_digests_only_as_long_as_the_log_contains_it(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    ledger = Ledger(paths)
    ledger.append(_note("d1"), _note("d2"))
    ledger.origins.refresh()
    head = OwnRecords(tmp_path, "decisions")
    head.refresh()
    assert head.head == KnownHead(2, ledger.log.places[-1].chain, 2)
    head.path.write_bytes(b"\n@%d %b %d\n" % (2, head.head.chain.encode(), 2))  # without the digests
    assert not Ledger(paths).claims()
    lines = paths.ledger.read_bytes().splitlines(keepends=True)
    paths.ledger.write_bytes(b"".join(reversed(lines)))
    assert Ledger(paths).claims() == {"d1", "d2"}


def _note(id: str) -> Decision:
    return Decision(id=id, at=NOW, by="ada", verb=Verb.NOTE, subject="pat-error-a-001")
