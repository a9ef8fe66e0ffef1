"""What a session with a fix leaves behind, from its events to the answer for a later session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.settings import Settings
from core.project.project import Project
from core.records.patterns import Pattern, PatternType
from core.show.metrics.lesson_effect import compare_steps
from tests.core.agents.hooks.agents import EDIT, FAILING, PASSING, SimulatedAgent

SOURCE = 'def gross(line):\n    return line["net"] * (1 + line.get("vat"))\n'
FIXED = SOURCE.replace('.get("vat")', '.get("vat", 0)')
ERROR = (
    "Exit code 1\n    def gross(line):\n>       return line['net'] * (1 + line.get('vat'))\n"
    "E       TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'\n\ninvoice.py:2: TypeError\n"
)
REASON = 'An exempt line has no "vat" key, so get() returns None. A missing rate has to count as 0.'
RUN = {"tool_name": "Bash", "tool_input": {"command": "python check.py"}}
PASSED = RUN | {"tool_response": {"stdout": "ok", "stderr": "", "interrupted": False}}


def patterns(agent: SimulatedAgent) -> list[Pattern]:
    project = Project(agent.project, Settings(), by="ada", clock=lambda: agent.at)
    project.load()
    return list(project.view.snapshot.patterns.values())


def fix(agent: SimulatedAgent, tmp_path: Path, *, edit: dict[str, Any], reason: str = REASON, last: str = "") -> None:
    """Run a failing check, write the fix with the agent's words in the transcript, and run the check again."""
    transcript = tmp_path / "session.jsonl"
    agent.prompt("The check of the invoices fails")
    agent.tool(RUN | {"error": ERROR})
    (agent.project.project / "invoice.py").write_text(FIXED)
    blocks = [{"type": "text", "text": reason}, {"type": "tool_use", "id": "edit-1", "name": "Edit", "input": {}}]
    transcript.write_text(json.dumps({"type": "assistant", "message": {"role": "assistant", "content": blocks}}))
    agent.tool(edit, tool_use_id="edit-1", transcript_path=str(transcript))
    agent.tool(PASSED)
    agent.send("Stop", last_assistant_message=last)


EDITS = [
    {
        "tool_name": "Edit",
        "tool_input": {"file_path": "invoice.py", "old_string": '.get("vat")', "new_string": '.get("vat", 0)'},
        "tool_response": {"filePath": "invoice.py"},
    },
    {
        "tool_name": "Write",
        "tool_input": {"file_path": "invoice.py", "content": FIXED},
        "tool_response": {"type": "update", "originalFile": SOURCE},
    },
    {
        "tool_name": "apply_patch",
        "tool_input": {
            "command": "*** Begin Patch\n*** Update File: invoice.py\n@@\n def gross(line):\n"
            '-    return line["net"] * (1 + line.get("vat"))\n+    return line["net"] * (1 + line.get("vat", 0))\n'
            "*** End Patch\n"
        },
        "tool_response": "Done",
    },
]


@pytest.mark.parametrize("edit", EDITS, ids=["Edit", "Write", "apply_patch"])
def test_a_fix_leaves_one_pattern_with_message_words_and_diff(
    agent: SimulatedAgent, tmp_path: Path, edit: dict[str, Any]
) -> None:
    fix(agent, tmp_path, edit=edit)
    (pattern,) = patterns(agent)
    assert pattern.type is PatternType.ERROR
    assert pattern.title == "TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'"
    assert pattern.description == REASON
    assert pattern.places == ("invoice.py::gross",)
    assert pattern.diff_pattern == (
        "@@ invoice.py @@\n def gross(line):\n"
        '-    return line["net"] * (1 + line.get("vat"))\n+    return line["net"] * (1 + line.get("vat", 0))'
    )


def test_without_words_before_the_edit_the_last_message_is_the_reason(agent: SimulatedAgent, tmp_path: Path) -> None:
    fix(agent, tmp_path, edit=EDITS[0], reason="Let me fix it.", last="Exempt lines count as 0 % now. All checks pass.")
    (pattern,) = patterns(agent)
    assert pattern.description == "Exempt lines count as 0 % now."


def test_secrets_in_the_words_and_in_the_diff_are_masked(agent: SimulatedAgent, tmp_path: Path) -> None:
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    edit = {
        "tool_name": "Write",
        "tool_input": {"file_path": "invoice.py", "content": f'TOKEN = "{secret}"\n{FIXED}'},
        "tool_response": {"type": "update", "originalFile": SOURCE},
    }
    fix(agent, tmp_path, edit=edit, reason=f"The service needs the token {secret} to answer.")
    (pattern,) = patterns(agent)
    assert secret not in repr(pattern)
    assert pattern.description.startswith("The service needs the token")


def test_the_known_fix_has_message_words_and_diff_and_is_given_in_its_place_only(
    agent: SimulatedAgent, tmp_path: Path
) -> None:
    fix(agent, tmp_path, edit=EDITS[0])
    later = SimulatedAgent(agent.project, "s2", at=agent.at)
    answer = later.tool(RUN | {"error": ERROR.replace("invoice.py:2", "invoice.py:40")})
    assert "unsupported operand type(s)" in answer
    assert "A missing rate has to count as 0" in answer
    assert '+    return line["net"] * (1 + line.get("vat", 0))' in answer
    assert later.tool(RUN | {"error": ERROR}) == ""  # once per session and error
    other = SimulatedAgent(agent.project, "s3", at=agent.at)
    elsewhere = ERROR.replace("invoice.py", "orders.py").replace("gross", "shipping")
    assert "A missing rate" not in other.tool(RUN | {"error": elsewhere})


def test_a_session_that_was_given_a_lesson_is_compared_with_the_one_that_found_it(
    agent: SimulatedAgent, tmp_path: Path
) -> None:
    agent.prompt("The check of the invoices fails")
    for rate in ("1", "None"):
        agent.tool(RUN | {"error": ERROR})
        params = {"file_path": "invoice.py", "old_string": "rate", "new_string": f"rate or {rate}"}
        agent.tool({"tool_name": "Edit", "tool_input": params, "tool_response": {}})
    agent.tool(RUN | {"error": ERROR})
    agent.tool(EDITS[0])
    agent.tool(PASSED)
    agent.send("Stop", last_assistant_message=REASON)
    later = SimulatedAgent(agent.project, "s2", at=agent.at)
    later.prompt("The invoices fail again")
    later.tool(RUN | {"error": ERROR})
    later.tool(EDITS[0])
    later.tool(PASSED)
    later.send("Stop", last_assistant_message="Done.")
    project = Project(agent.project, Settings(), by="ada", clock=lambda: later.at)
    project.load()
    (group,) = compare_steps(project.view.snapshot, project.view.inputs, Settings()).groups
    assert (group.lacking, group.having) == ((3,), (1,))


def test_a_skipped_test_leaves_no_pattern(agent: SimulatedAgent, tmp_path: Path) -> None:
    agent.prompt("Make the tests green")
    agent.tool(RUN | {"error": ERROR})
    params = {
        "file_path": "test_invoice.py",
        "old_string": "def test_a():",
        "new_string": "@pytest.mark.skip\ndef test_a():",
    }
    agent.tool({"tool_name": "Edit", "tool_input": params, "tool_response": {}})
    agent.tool(PASSED)
    agent.send("Stop", last_assistant_message="I skipped the test, since the rate is not known yet.")
    assert patterns(agent) == []


def test_a_fix_in_the_turn_after_the_failed_check_is_a_lesson(agent: SimulatedAgent) -> None:
    agent.prompt("Fix the account page")
    agent.tool(FAILING)
    agent.send("Stop")
    agent.prompt("Try again")
    agent.tool(EDIT)
    agent.tool(PASSING)
    agent.send("Stop")
    (lesson,) = patterns(agent)
    assert "user?.name" in lesson.diff_pattern
