"""The names with which the user may sign decisions."""

from __future__ import annotations

import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.base.own_names import find_own_name, own_names


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    user = SimpleNamespace(pw_name="uma", pw_gecos="Uma Thorn,Room 3,,")
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: user)
    return tmp_path


def test_system_git_and_settings_know_the_names_of_the_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "eve")
    (home / ".gitconfig").write_text(
        '# [user]\n[core]\n\tname = eve\n[user "x"]\n\tname = eve\n[User]\n\tName = "Uma T."\n\temail=uma@example.com\n'
    )
    for file, text in (
        ("git/config", "[user]\nname = umat\n"),
        ("ralphdeck/settings.toml", '[decisions]\nnames = ["The Boss", "uma"]\n'),
    ):
        (home / "config" / file).parent.mkdir(parents=True)
        (home / "config" / file).write_text(text)
    assert own_names() == ("uma", "Uma Thorn", "Uma T.", "uma@example.com", "umat", "The Boss")


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"[user", b"[user]\nname\n", b"[user]\nname =\n", b'[user]\nname = ""\n']
)
def test_a_damaged_configuration_of_git_has_no_names(home: Path, data: bytes) -> None:
    (home / ".gitconfig").write_bytes(data)
    assert own_names() == ("uma", "Uma Thorn")


def test_a_user_whom_the_system_does_not_know_has_a_number(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert own_names() == ("uid 4711",)


def test_case_does_not_matter_but_nothing_else_is_guessed() -> None:
    names = ("uma", "Uma Thorn")
    assert (find_own_name(" UMA thorn ", names), find_own_name("Uma T", names), find_own_name("", names)) == (
        *("Uma Thorn", ""),
        "",
    )
