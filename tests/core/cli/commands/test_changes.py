from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.files.user_files import state_file
from tests.core.cli.conftest import Call

PATTERN = "pat-error-null-check-015"


def test_changes_list_changed_states_and_authors(sample: Path, call: Call) -> None:
    call("pattern", "deprecate", PATTERN, "--reason", "hides the cause", "--project", sample)
    result = call("changes", "--since", "7d", "--project", sample)
    row = next(line for line in result.out.splitlines() if PATTERN in line)
    assert "candidate → deprecated" in row and row.endswith("deprecate by ada: hides the cause")
    assert "1 decided by ada" in result.out.splitlines()[1]
    assert "without a date" in result.err
    document = call("changes", "--since", "7d", "--json", "--project", sample).document
    change = next(one for one in document["patterns"] if one["id"] == PATTERN)
    assert (change["by"], change["after"]["injectable"]) == ("ada", False)
    weights = [one["weight"] for one in document["patterns"]]
    assert weights == sorted(weights, reverse=True)


def test_since_the_last_visit(sample: Path, call: Call) -> None:
    refused = call("changes", "--since", "last-visit", "--project", sample)
    assert (refused.code, "was not open on this project before" in refused.err) == (2, True)
    visited = datetime.now(UTC) - timedelta(hours=2)
    state_file().parent.mkdir(parents=True, exist_ok=True)
    at, now = visited.isoformat(), datetime.now(UTC).isoformat()
    killed, open_again = {"last_seen": at}, {"last_visit": at, "last_seen": now, "since": at}
    for words, kept in ((["--since", "last-visit"], killed), ([], open_again)):
        state_file().write_text(json.dumps({"visits": {"1": {"project": str(sample), **kept}}}))
        document = call("changes", *words, "--json", "--project", sample).document
        assert document["since"][:16] == visited.isoformat()[:16]
    state_file().write_text('{"visits": [1]}')
    assert call("changes", "--project", sample).code == 0


def test_moments_that_are_none(sample: Path, call: Call) -> None:
    for words in (["--since", "soon"], ["--since", "2999-01-01"], ["--until", "99999999999d"], ["--since", "0d"]):
        result = call("changes", *words, "--project", sample)
        assert (result.code, result.out) == (2, "")


def test_patterns_as_of_a_day(sample: Path, call: Call) -> None:
    def states(*words: str) -> dict[str, str]:
        found = call("pattern", "list", *words, "--json", "--project", sample).document["patterns"]
        return {pattern["id"]: pattern["state"] for pattern in found}

    now, then = states(), states("--as-of", "20d")
    assert then.keys() < now.keys()
    assert any(now[id] != state for id, state in then.items())
    shown = call("pattern", "show", PATTERN, "--as-of", "20d", "--json", "--project", sample).document
    assert shown["pattern"]["state"] == then[PATTERN]
    assert all(seen["at"] is None or seen["at"] < datetime.now(UTC).isoformat() for seen in shown["evidence"])


def test_every_year_has_four_digits(sample: Path, call: Call) -> None:
    out = call("changes", "--since", "0001-01-01", "--until", "0002-01-01", "--project", sample).out
    assert out.startswith("0001-01-01 00:00 to 0002-01-01 23:59 UTC\n")
