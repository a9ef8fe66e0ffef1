"""`ralphdeck now` prints the page Now."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.files.user_files import VISITS
from tests.core.cli.conftest import Call
from tui.kit.user_state import UserState


def sections(document: dict[str, list[dict[str, object]]]) -> dict[object, dict[str, object]]:
    return {section["id"]: section for section in document["sections"]}


def test_the_json_document_has_the_records_that_the_lines_lead_to(sample: Path, call: Call) -> None:
    shown = call("now").out
    assert all(f"\n{title}" in shown for title in ("Needs you", "Last 7 days", "Do lessons help?", "To review"))
    found = sections(call("now", "--json").document)
    assert found["lessons"]["total"] == len(call("review", "--json").document["questions"])
    loops = call("loop", "list", "--json").document["loops"]
    lines = found["sessions"]["lines"]
    assert isinstance(lines, list) and len(lines) == found["sessions"]["total"]
    assert {line["id"] for line in lines} <= {loop["id"] for loop in loops}


def test_the_last_visit_of_the_dashboard_is_the_default(sample: Path, home: Path, call: Call) -> None:
    visit = datetime.now(UTC) - timedelta(days=2)
    file = home / "state" / "ralphdeck" / "state.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    row = {"project": str(sample), "last_visit": visit.isoformat()}
    file.write_text(json.dumps({VISITS: {"1": row}}))
    since = call("now", "--json").document["since"]
    assert since.startswith(visit.isoformat()[:19])


def test_an_open_dashboard_and_the_command_count_from_the_same_visit(sample: Path, home: Path, call: Call) -> None:
    file, before = home / "state" / "ralphdeck" / "state.json", datetime.now(UTC) - timedelta(days=2)
    state = UserState(file, str(sample))
    state.set_visit("last_visit", before.isoformat())
    state.save()
    assert state.begin_visit(datetime.now(UTC)) == before
    state.set_visit("last_visit", datetime.now(UTC).isoformat())
    state.save()
    assert call("now", "--json").document["since"].startswith(before.isoformat()[:19])


def test_it_does_not_wait_for_all_searches(sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.cli.commands.now._SEARCH_SECONDS", 0.0)
    early = sections(call("now", "--json").document)["lessons"]
    assert str(early["note"]).endswith("searching") or "so far" in str(early["note"])
    monkeypatch.setattr("core.cli.commands.now._SEARCH_SECONDS", 60.0)
    late = sections(call("now", "--json").document)["lessons"]
    assert isinstance(early["total"], int) and isinstance(late["total"], int) and early["total"] < late["total"]


def test_the_notify_command_is_run_on_demand(sample: Path, home: Path, call: Call, tmp_path: Path) -> None:
    assert call("now", "--notify").code == 1
    settings = home / "config" / "ralphdeck" / "settings.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    write = f"import sys; open({str(tmp_path / 'reports')!r}, 'w').write(sys.stdin.read())"
    settings.write_text(f"[notify]\ncommand = {json.dumps([sys.executable, '-c', write])}\n")
    assert call("now", "--notify").code == 0
    found = sections(call("now", "--json").document)["needs"]
    assert len(json.loads((tmp_path / "reports").read_text())["needs"]) == found["total"]
