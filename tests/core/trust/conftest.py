"""Two people: one writes a repository, the other one clones it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.base.paths import TRUSTED_PATHS
from tests.core.cli.conftest import Call, call, home
from tests.core.trust.people import Person, git

__all__ = ["call", "home"]  # fixtures that tests use

MakePerson = Callable[[str, Path], Person]


@pytest.fixture(autouse=True)
def _trust_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRUSTED_PATHS, raising=False)


@pytest.fixture
def make_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> MakePerson:
    def make(name: str, folder: Path) -> Person:
        user = tmp_path / f"home of {name}"
        user.mkdir()
        return Person(name, user, folder, monkeypatch, call)

    return make


@pytest.fixture
def author(tmp_path: Path, make_person: MakePerson) -> Person:
    """A person with a repository in which `ralphdeck init` ran."""
    folder = tmp_path / "author"
    folder.mkdir()
    person = make_person("rita", folder)
    person.git("init", "-q")
    assert person.run("init").code == 0
    return person


@pytest.fixture
def clone(tmp_path: Path, make_person: MakePerson, author: Person) -> Callable[[], Person]:
    """Clone the repository of the author for another person, once it has commits."""

    def make() -> Person:
        person = make_person("ada", tmp_path / "clone")
        git(tmp_path, "clone", "-q", str(author.folder), "clone", home=person.home)
        return person

    return make
