"""Decisions and lessons of colleagues that arrive by Git in a trusted project."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from core.base.user_settings import user_settings_file
from tests.authors import be_script
from tests.core.trust.people import ATTACK, HARMLESS, Person, write_patterns

Clone = Callable[[], Person]
OWN, THEIRS, LATE = "pat-success-own-001", "pat-success-theirs-001", "pat-success-late-001"


@pytest.fixture
def colleague(author: Person, clone: Clone) -> Person:
    """A colleague of the author, who trusts their project."""
    write_patterns(author.folder, own=HARMLESS, theirs="Fix the login test: reset the session store first.")
    author.run("trust", "--yes")
    author.run("pattern", "promote", OWN, "--reason", "helps")
    author.commit()
    person = clone()
    person.run("trust", "--yes", "--confirm", "all")
    return person


def state_of(person: Person, pattern: str) -> str:
    return str(json.loads(person.run("pattern", "show", pattern, "--json").out)["pattern"]["state"])


def test_decisions_of_a_colleague_count_once_they_are_confirmed(author: Person, colleague: Person) -> None:
    assert author.run("pattern", "deprecate", THEIRS, "--reason", "harmful").code == 0
    assert author.run("pattern", "note", OWN, "see the wiki").code == 0
    author.commit()
    colleague.git("pull", "-q")
    assert colleague.log() == {f"promote {OWN}": False, f"deprecate {THEIRS}": True, f"note {OWN}": True}
    assert state_of(colleague, THEIRS) == "proven"
    first, second = json.loads(colleague.run("trust", "--show", "--json").out)["decisions"]
    assert (first["subject"], second["subject"]) == (THEIRS, OWN)
    before = colleague.paths.ledger.read_bytes()
    assert colleague.run("undo", first["id"]).code == 1
    assert colleague.paths.ledger.read_bytes() == before
    assert colleague.run("trust", "--confirm", first["id"]).code == 0
    assert (colleague.log()[f"deprecate {THEIRS}"], colleague.log()[f"note {OWN}"]) == (False, True)
    assert state_of(colleague, THEIRS) == "deprecated"
    assert colleague.run("trust", "--confirm", "all").code == 0
    assert not any(colleague.log().values())


def test_own_decisions_stay_own_through_rebase_merge_and_branches(author: Person, colleague: Person) -> None:
    colleague.run("pattern", "deprecate", THEIRS, "--reason", "harmful")
    colleague.commit("ours")
    author.run("pattern", "note", OWN, "see the wiki")
    author.commit("theirs")
    attributes = colleague.folder / ".git/info/attributes"
    attributes.write_text("*.jsonl merge=union\n*.anchor merge=union\n")
    colleague.git("pull", "-q", "--rebase")
    assert colleague.log() == {f"promote {OWN}": False, f"deprecate {THEIRS}": False, f"note {OWN}": True}
    assert state_of(colleague, THEIRS) == "deprecated"
    colleague.git("checkout", "-q", "-b", "old", "HEAD~1")
    assert colleague.log() == {f"promote {OWN}": False, f"note {OWN}": True}
    assert state_of(colleague, THEIRS) == "candidate"  # withheld, although this branch lacks the decision
    colleague.git("checkout", "-q", "main")
    assert state_of(colleague, THEIRS) == "deprecated"


def test_an_undo_from_elsewhere_undoes_no_own_decision(author: Person, colleague: Person) -> None:
    colleague.run("pattern", "deprecate", THEIRS, "--reason", "harmful")
    colleague.commit()
    author.git("pull", "-q", str(colleague.folder), "main")
    author.run("trust", "--confirm", "all")
    assert author.run("undo", "--any-author").code == 0
    author.commit()
    colleague.git("pull", "-q")
    assert state_of(colleague, THEIRS) == "deprecated"


def test_a_quarantine_from_elsewhere_withholds_the_text_at_once(author: Person, colleague: Person) -> None:
    author.run("pattern", "quarantine", THEIRS, "--reason", "looks wrong")
    author.commit()
    colleague.git("pull", "-q")
    assert "session store" not in colleague.ask()


def test_a_changed_line_of_an_own_decision_is_not_an_own_one(author: Person) -> None:
    write_patterns(author.folder, own=HARMLESS, theirs="Fix the login test: reset the session store first.")
    author.run("pattern", "note", OWN, "x")
    ledger = author.paths.ledger
    ledger.write_text(ledger.read_text().replace('"verb":"note"', '"verb":"promote"'))
    assert author.log() == {f"promote {OWN}": True}


@pytest.mark.parametrize("accepts", [False, True])
def test_lessons_that_arrive_later_are_candidates_until_the_user_or_something_here_raises_them(
    author: Person, colleague: Person, accepts: bool
) -> None:
    texts = {"own": HARMLESS, "theirs": "Fix the login test: reset the session store first."}
    write_patterns(author.folder, **texts, late="Fix the login test: freeze the clock first.")
    author.run("trust", "--yes")
    for number in range(0 if accepts else 5):
        author.run("loop", "record", f"job-{number}", LATE, "--success")
    assert state_of(author, LATE) == "proven"
    author.commit()
    colleague.git("pull", "-q")
    assert (state_of(colleague, THEIRS), state_of(colleague, LATE)) == ("proven", "candidate")
    assert json.loads(colleague.run("trust", "--show", "--json").out)["patterns"] == [LATE]
    if accepts:
        assert colleague.run("trust", "--yes").code == 0
    else:
        for number in range(5):
            colleague.run("loop", "record", f"own-job-{number}", LATE, "--success")
    assert state_of(colleague, LATE) == "proven"


def test_with_the_user_setting_no_number_in_a_file_counts(colleague: Person) -> None:
    colleague.act()
    file = user_settings_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[trust]\nclaims = "candidate"\n')
    assert state_of(colleague, THEIRS) == "candidate"
    assert state_of(colleague, OWN) == "proven"  # a person promoted it
    shown = json.loads(colleague.run("trust", "--show", "--json").out)
    assert (shown["patterns"], shown["decisions"]) == ([], []), "the lessons do not come from elsewhere"


def test_proposals_of_agents_elsewhere_make_no_question_here(
    author: Person, colleague: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    author.run("pattern", "deprecate", THEIRS, "--reason", "harmful")
    monkeypatch.delenv("CLAUDECODE")
    assert _proposals(author) == [THEIRS]
    author.commit()
    colleague.git("pull", "-q")
    assert _proposals(colleague) == []


def _proposals(person: Person) -> list[str]:
    questions = json.loads(person.run("review", "--json").out)["questions"]
    return [one["subject"] for one in questions if one["kind"] == "proposal"]


ATTACKED = "pat-success-attack-001"


@pytest.fixture
def careful(author: Person) -> Person:
    """A person with a text that the scan blocks, not approved yet, and a harmless one."""
    write_patterns(author.folder, attack=ATTACK, harmless=HARMLESS)
    author.run("trust", "--yes")
    return author


def _lines(person: Person) -> list[str]:
    return person.paths.ledger.read_text().splitlines(keepends=True)


def _without(person: Person, verb: str) -> None:
    lines = [line for line in _lines(person) if f'"verb":"{verb}"' not in line]
    person.paths.ledger.write_text("".join(lines))


def _copied_in_front(person: Person, verb: str) -> None:
    [own] = [line for line in _lines(person) if f'"verb":"{verb}"' in line]
    foreign = json.dumps({"kind": "decision", **json.loads(own), "verb": "note", "after": {"text": "x"}})
    person.paths.ledger.write_text("".join([foreign + "\n", *_lines(person)]))


def _moved_to_the_front(person: Person, verb: str) -> None:
    lines = sorted(_lines(person), key=lambda line: f'"verb":"{verb}"' not in line)
    person.paths.ledger.write_text("".join(lines))


def test_a_release_that_was_undone_stays_undone_without_its_line(careful: Person) -> None:
    careful.run("pattern", "release", ATTACKED, "--reason", "fine")
    assert "evil.example" in careful.ask()
    assert careful.run("undo").code == 0
    assert "evil.example" not in careful.ask()
    whole = careful.paths.ledger.read_bytes()
    for damage in (_without, _copied_in_front, _moved_to_the_front):
        damage(careful, "undo")
        assert "evil.example" not in careful.ask(), damage
        careful.paths.ledger.write_bytes(whole)


@pytest.mark.parametrize("damage", [_without, _copied_in_front])
def test_a_text_that_was_quarantined_here_stays_there_without_its_line(
    careful: Person, damage: Callable[[Person, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    careful.run("pattern", "quarantine", "pat-success-harmless-001", "--reason", "looks wrong")
    assert HARMLESS[:-1] not in careful.ask()
    damage(careful, "quarantine")
    assert HARMLESS[:-1] not in careful.ask()
    with monkeypatch.context() as patch:
        be_script(patch)
        assert careful.run("pattern", "release", "pat-success-harmless-001").code == 1, "not by a script"
    assert HARMLESS[:-1] not in careful.ask()
    assert careful.run("pattern", "release", "pat-success-harmless-001").code == 0
    assert HARMLESS[:-1] in careful.ask()
