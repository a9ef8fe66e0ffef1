"""The user's experiment: settings, secret, and what is given and logged outside of hooks."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest

from core.base.errors import BadInput
from core.base.paths import ProjectPaths, project_at
from core.base.settings import Settings
from core.base.user_settings import read_user_settings, user_settings_file
from core.index.experiment import find_experiment, set_share
from core.records.events import ASSIGNED
from core.retrieval.injection import HELD_OUT
from core.sources.configuration import Configuration
from core.trust.experiment_secret import secret_file
from tests.core.cli.conftest import Call

LOOP = "ralph-fix-validation-b2c3d4e5"
EVENTS = Path(".aiwg/ralph/shared/curation/events.jsonl")


def test_starting_and_stopping_changes_only_the_share(home: Path) -> None:
    for text in (
        "",
        "# mine\n[trust]\nclaims = 'count'",
        "[experiment]\nshare = 0.5 # half\n\n[trust]\nclaims = 'count'\n",
        "[experiment] # of mine\n[trust]\nclaims = 'count'\n",
        "[notify]\ncommand = ['a']\n\n[experiment]\nshare=0.1",
    ):
        file = settings_with(text)
        others = {name: group for name, group in tomllib.loads(text).items() if name != "experiment"}
        for share in (0.25, None):
            set_share(share)
            found = tomllib.loads(file.read_text())
            assert {name: group for name, group in found.items() if name != "experiment"} == others
            assert read_user_settings().experiment.share == share and not read_user_settings().findings
    for text in ("experiment = {share = 0.2}\n", "x = '''\n[experiment]\nshare = 0.2\n'''\n", "[["):
        file = settings_with(text)
        with pytest.raises(BadInput):
            set_share(0.3)
        assert file.read_text() == text, "a file of another form is left as it is"


def settings_with(text: str) -> Path:
    file = user_settings_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_share_outside_of_the_limits_is_refused(home: Path) -> None:
    for share in (0.0, 0.05, 0.6, float("nan")):
        with pytest.raises(BadInput, match=r"0\.1 to 0\.5"):
            set_share(share)
        settings_with(f"[experiment]\nshare = {share}\n")
        (finding,) = read_user_settings().findings
        assert "0.1 to 0.5" in finding.message and read_user_settings().experiment.share is None
        settings_with("")


def test_the_secret_is_private_and_each_project_has_its_own_coin(tmp_path: Path, home: Path) -> None:
    set_share(0.2)
    one, other = (find_experiment(ProjectPaths(tmp_path / name), Settings()) for name in ("a", "b"))
    assert stat.S_IMODE(secret_file().stat().st_mode) == 0o600
    assert one is not None and other is not None and one.secret != other.secret
    moved = find_experiment(ProjectPaths(tmp_path / "elsewhere" / "a"), Settings())
    assert moved == one, "a copy of the secret gives another machine the same assignments"


def test_a_project_cannot_start_the_experiment(examples: Path, home: Path) -> None:
    (examples / "aiwg.yml").write_text("ralph:\n  cross_loop_learning:\n    experiment:\n      share: 0.5\n")
    found = Configuration.read(project_at(examples))
    assert [finding.code for finding in found.findings] == ["own-setting"]
    assert find_experiment(project_at(examples), found.settings) is None


def assigned(project: Path) -> list[dict[str, object]]:
    file = project / EVENTS
    events = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [event for event in events if event["kind"] == ASSIGNED]


def test_a_loop_gets_what_is_not_held_out_and_both_arms_are_logged_once(
    examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = call("loop", "inject", LOOP, "--json", "--no-record").document
    set_share(0.5)
    monkeypatch.setattr("core.index.experiment.secret_of_project", lambda *_: b"a")
    preview = call("loop", "inject", LOOP, "--json", "--no-record").document
    held_out = {one["id"] for one in preview["left_out"] if one["reason"] == HELD_OUT}
    given = {one["id"] for one in preview["patterns"]}
    ids = {one["id"] for one in whole["patterns"]}
    assert held_out and given and held_out | given == ids, "nothing takes the place of what is held out"
    assert not assigned(examples), "a preview records nothing"
    for _ in range(2):
        found = call("loop", "inject", LOOP, "--json").document
        assert {one["id"] for one in found["patterns"]} == given
    events = assigned(examples)
    assert len(events) == len(ids)
    assert {event["pattern_id"] for event in events if event["trial"].get("is_held_out")} == held_out  # type: ignore[attr-defined]
    assert {event["trial"]["share"] for event in events} == {0.5}  # type: ignore[index]
    lines = [json.loads(line)["kind"] for line in (examples / EVENTS).read_text().splitlines()]
    assert lines.index("injected") == len(events), "assignments come first"


def test_a_context_whose_assignment_cannot_be_logged_is_given_with_a_warning(examples: Path, call: Call) -> None:
    set_share(0.1)
    (examples / EVENTS).mkdir(parents=True)
    result = call("loop", "inject", LOOP)
    assert result.out and "held out by chance was not recorded" in result.err


def test_status_start_and_stop(examples: Path, call: Call) -> None:
    assert "No experiment is running" in call("experiment").out
    assert call("experiment", "start", "--share", "0.9").code == 1
    assert call("experiment", "start", "--share", "0.2", "--json").document["share"] == 0.2
    call("loop", "inject", LOOP)
    statuses = []
    for mode in (0o600, 0o644):
        secret_file().chmod(mode)
        checks = call("doctor", "--json").document["checks"]
        statuses += [one["status"] for one in checks if one["name"] == "experiment"]
    assert statuses == ["warning"], "others can read the secret"
    found = call("experiment", "--json").document
    assert found["share"] == 0.2 and found["patterns"] and found["patterns"][0]["open"] == 1
    verdicts = [one["verdict"] for one in found["patterns"] if one["errors"]]
    assert verdicts and all(verdict.startswith("can't tell yet") for verdict in verdicts)
    assert call("experiment", "stop", "--json").document["share"] is None
    stopped = call("experiment", "--json").document
    assert [one["errors"] for one in stopped["patterns"]] == [one["errors"] for one in found["patterns"]]
    assert stopped["share"] is None and "more task" not in stopped["patterns"][0]["verdict"]


def test_a_secret_that_cannot_be_used_is_reported_and_nothing_is_started(examples: Path, call: Call) -> None:
    set_share(0.2)
    secret = secret_file()
    secret.parent.mkdir(parents=True, exist_ok=True)
    for place, remove in (
        (lambda: os.mkfifo(secret), secret.unlink),
        (secret.mkdir, secret.rmdir),
        (lambda: secret.symlink_to(examples / "aiwg.yml"), secret.unlink),
        (secret.touch, secret.unlink),
        (lambda: secret.write_text("garbage"), secret.unlink),
    ):
        place()
        assert "experiment.key" in call("experiment", "--json").document["problem"]
        remove()
    secret.write_text("garbage")
    assert "experiment.key" in call("experiment").out
    started = call("experiment", "start", "--share", "0.5")
    assert started.code == 1 and "experiment.key" in started.err
    assert read_user_settings().experiment.share == 0.2
    checks = call("doctor", "--json").document["checks"]
    assert [one["status"] for one in checks if one["name"] == "experiment"] == ["error"]


def test_neither_an_agent_nor_a_read_only_call_starts_it(
    call: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "terminal of your own" in call("experiment", "start", "--share", "0.2").err
    monkeypatch.delenv("CLAUDECODE")
    monkeypatch.setenv("RALPHDECK_READONLY", "1")
    assert "read-only" in call("experiment", "start", "--share", "0.2").err
    assert read_user_settings().experiment.share is None
