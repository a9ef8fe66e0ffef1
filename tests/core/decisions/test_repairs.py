"""Repairs of patterns that do not keep today's rules of extraction."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.base.errors import Refused
from core.decisions.commands import Promote, RepairPatterns, Undo
from core.project.project import Project
from core.records.decisions import Verb, verb_info
from tests.core.questions.extraction.test_extractor import FIXED, OLD, error_record, extracted, record_fix

REPAIRED, ARCHIVED = "pat-error-old-1-001", "pat-error-old-2-001"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with one pattern to repair, and one to archive."""
    record_fix(tmp_path)
    return extracted(tmp_path, OLD, error_record("ld returned \\d+ exit status", "Change cart.py"))


def test_repairs_are_one_act_whose_undo_restores_the_bytes(project: Project) -> None:
    file = project.project.pattern_file("error")
    before = file.read_bytes()
    decided = project.decide(RepairPatterns(project.repairs().repairs))
    assert (decided.summary, decided.written) == ("repaired 1 pattern, archived 1 pattern", True)
    assert [(one.verb, one.subject) for one in decided.decisions] == [(Verb.EDIT, REPAIRED), (Verb.ARCHIVE, ARCHIVED)]
    assert verb_info(decided.decisions[0]).word == "repair"
    assert decided.decisions[0].reason.startswith("unspecific trigger, text without a reason; as extracted from")
    repaired = project.view.pattern(REPAIRED)
    assert (repaired.description, repaired.template_code) == (FIXED, "")
    assert ARCHIVED not in project.view.snapshot.patterns
    assert not project.repairs().repairs
    assert project.decide(Undo()).summary == "Undone: repair 2 patterns"
    assert file.read_bytes() == before


def test_a_pattern_that_changed_since_the_proposal_is_not_repaired(project: Project) -> None:
    repair = project.repairs([REPAIRED]).repairs
    file = project.project.pattern_file("error")
    file.write_text(file.read_text().replace("Settle the error: Change cart.py", "Sum the prices"))
    with pytest.raises(Refused, match="edited meanwhile"):
        project.decide(RepairPatterns(repair))
    assert project.view.pattern(REPAIRED).description == "Sum the prices"


def test_a_pattern_that_was_pinned_since_the_proposal_is_not_repaired(project: Project) -> None:
    repairs = project.repairs().repairs
    project.decide(Promote(REPAIRED, reason="holds"))
    decided = project.decide(RepairPatterns(repairs))
    assert [refusal.pattern_id for refusal in decided.refused] == [REPAIRED]
    assert [one.subject for one in decided.decisions] == [ARCHIVED]
