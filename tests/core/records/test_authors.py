from __future__ import annotations

import pytest

from core.records.authors import Author, author_of, is_same_user, sign, sign_unattended
from core.records.decisions import SYNC, Decision, Verb
from tests.factories import CURATION_NOW


@pytest.mark.parametrize("author", Author)
def test_a_signature_shows_its_author(author: Author) -> None:
    assert author_of(sign(author, "ada")) is author


def test_programs_are_not_persons() -> None:
    def decided(by: str, **more: object) -> Author:
        return Decision(id="d1", at=CURATION_NOW, by=by, verb=Verb.EXTRACT, subject="x", **more).decided_by  # type: ignore[arg-type]

    assert decided("ada") is Author.PERSON
    assert {decided(SYNC), decided(sign_unattended("ada")), decided("claude", after={"hashes": {}})} == {Author.SCRIPT}
    assert {decided("mcp:claude-code"), decided(sign_unattended("agent:claude"))} == {Author.AGENT}


def test_a_script_of_a_user_is_the_same_user_and_an_agent_or_a_program_of_its_own_is_not() -> None:
    assert is_same_user("ada", "ada (script)") and is_same_user("ada", "ada")
    for other in ("bob", "bob (script)", "agent:ada", "mcp:ada", sign_unattended("ada"), "ada as bob"):
        assert not is_same_user("ada", other), other
