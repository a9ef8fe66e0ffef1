"""The user's own settings: defaults, valid groups, findings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.base.user_settings import UserSettings, read_user_settings, user_settings_file


@pytest.fixture
def write(request: pytest.FixtureRequest) -> Callable[[bytes], int]:
    file = user_settings_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    request.addfinalizer(lambda: file.unlink(missing_ok=True))
    return file.write_bytes


def test_without_a_file_the_defaults_apply() -> None:
    assert read_user_settings() == UserSettings()


def test_values_of_the_file_are_used(write: Callable[[bytes], int]) -> None:
    write(b'[trust]\nclaims = "candidate"\n[decisions]\nscripts = "none"\n[scan]\njudge = ["judge", "--json"]\n')
    settings = read_user_settings()
    assert (settings.trust.claims, settings.decisions.scripts) == ("candidate", "none")
    assert settings.scan.judge == ("judge", "--json")
    assert not settings.findings


@pytest.mark.parametrize(
    "text",
    [
        b'[trust]\nclaims = "everything"\n',
        b'[trust]\nclaim = "count"\n',
        b"[trusts]\n",
        b"trust = 3\n",
        b"not toml",
        b"\xff\xfe",
    ],
)
def test_an_invalid_group_is_a_finding_and_the_others_apply(text: bytes, write: Callable[[bytes], int]) -> None:
    write(text)
    settings = read_user_settings()
    assert len(settings.findings) == 1
    assert settings.trust.claims == "count"
    write(b'[decisions]\nscripts = "all"\n' + text)
    if text not in (b"not toml", b"\xff\xfe", b"trust = 3\n"):
        assert read_user_settings().decisions.scripts == "all"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (b'[trust]\nclaims = "maybe"\n', ("trust.claims", "'maybe'", "count", "candidate")),
        (b"[trust]\nclaim = 1\n", ("trust.claim ", "claims")),
        (b'[scan]\nextracted = "never"\n', ("scan.extracted", "'never'", "hold", "flag", "block", "by-type")),
        (b'[scan]\njudge = "judge"\n', ("scan.judge", "'judge'", "list")),
        (b"decisions = 3\n", ("decisions", "3", "group")),
    ],
)
def test_a_finding_names_the_setting_its_value_and_the_valid_ones(
    text: bytes, parts: tuple[str, ...], write: Callable[[bytes], int]
) -> None:
    write(text)
    (finding,) = read_user_settings().findings
    assert [part for part in parts if part not in finding.message] == []
