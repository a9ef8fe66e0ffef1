"""Files that come from elsewhere: what can be used comes in, everything else is named."""

from __future__ import annotations

import json

import pytest

from core.decisions.exchange.import_file import MAX_RECORD_BYTES, Arriving, read_import
from core.decisions.exchange.import_plan import Action
from core.records.findings import Severity
from tests.factories import ExchangeProject, make_error_record, make_pattern_file


def codes(arriving: Arriving) -> set[str]:
    return {finding.code for finding in arriving.findings}


def test_valid_records_beside_an_invalid_one_are_imported() -> None:
    escaping = {**make_error_record(2), "pattern_id": "../../etc/pattern-001"}
    huge = make_error_record(3, note="x" * MAX_RECORD_BYTES)
    arriving = read_import(
        "team.json",
        make_pattern_file(
            make_error_record(1), escaping, huge, make_error_record(1, 9), "text", {"a": 1}, make_error_record(4)
        ),
    )
    assert tuple(pattern.id for pattern, _ in arriving.records) == ("pat-error-made-001", "pat-error-made-004")
    assert [pattern.id for pattern, _ in arriving.refused][:3] == [
        "../../etc/pattern-001",
        "pat-error-made-003",
        "pat-error-made-001",
    ]
    assert [why for _, why in arriving.refused][3:] == ["has no ID"]
    assert {"refused", "wrong-type", "no-id"} <= codes(arriving)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"pattern_registry": ' * 50_000,
        b"\x00\xff\xfe",
        b'{"a": 1}',
        b"null",
        b'{"pattern_registry": {"error_patterns": 3}}',
    ],
)
def test_invalid_file_is_reported(data: bytes) -> None:
    arriving = read_import("team.json", data)
    assert arriving.records == ()
    assert any(finding.severity is Severity.ERROR for finding in arriving.findings)


def test_invalid_numbers_and_lone_surrogates_are_removed() -> None:
    data = make_pattern_file(make_error_record(1, note="MARK")).replace(
        b'"MARK"', b'[NaN, 1e999, "\\ud800", -Infinity]'
    )
    target = ExchangeProject("a")
    assert target.take(data) == [Action.NEW]
    assert json.loads(json.dumps(target.records["pat-error-made-001"], allow_nan=False).encode())


def test_hidden_characters_and_secrets_are_reported() -> None:
    arriving = read_import(
        "team.json",
        make_pattern_file(make_error_record(1, note="pass\u200bword"), make_error_record(2, note="password=hunter2")),
    )
    assert {"invisible", "secret"} <= codes(arriving)
    assert len(arriving.records) == 2


def test_import_ignores_local_keys() -> None:
    target = ExchangeProject("a")
    target.take(make_pattern_file(make_error_record(1, override={"state": "proven"}, archived={"at": "2026-01-01"})))
    assert not {"override", "archived"} & target.records["pat-error-made-001"].keys()


def test_invalid_record_is_refused_with_its_position() -> None:
    wrong = make_error_record(1, rate=1.4)
    target = ExchangeProject("a")
    plan = target.plan(make_pattern_file(wrong, make_error_record(2)))
    assert [row.action for row in plan.rows] == [Action.NEW, Action.REFUSED]
    assert plan.rows[1].why == "is invalid: /success_rate expected a rate from 0 to 1, or a percentage, found '1.4'"
    assert "/pattern_registry/error_patterns/0/success_rate" in {finding.pointer for finding in plan.findings}
    target.take(make_pattern_file(wrong))
    assert "pat-error-made-001" not in target.records


def test_rates_and_times_are_converted_to_the_schema() -> None:
    target = ExchangeProject("a")
    target.take(make_pattern_file(make_error_record(1, rate="75%", last_used=1_795_290_773_500)))  # type: ignore[arg-type]
    record = target.records["pat-error-made-001"]
    assert record["success_rate"] == 0.75
    assert record["last_used"] == "2026-11-21T19:52:53.500Z"


def test_other_file_shapes_are_supported() -> None:
    lines = b"\n".join(json.dumps(make_error_record(number)).encode() for number in (1, 2)) + b"\n"
    by_id = json.dumps(
        {"pat-error-made-001": {k: v for k, v in make_error_record(1).items() if k != "pattern_id"}}
    ).encode()
    assert ExchangeProject("a").take(lines) == [Action.NEW, Action.NEW]
    keyed = ExchangeProject("a")
    assert keyed.take(by_id) == [Action.NEW]
    assert keyed.records["pat-error-made-001"]["pattern_id"] == "pat-error-made-001"
