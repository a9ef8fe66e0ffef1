"""Turns of an agent's session."""

from __future__ import annotations

from core.sources.adapters.sessions import Turn, make_iteration, note_command

CHECK = "pytest -q"


def failed_turn() -> Turn:
    turn = Turn(prompt="Make the tests pass")
    turn.add_text("I run the tests.")
    turn.add_tool("bash")
    note_command(turn, CHECK, 1, "E   KeyError: 'vat'\n1 failed", "")
    return turn


def description(turn: Turn) -> str:
    turn.add_tool("bash")
    note_command(turn, CHECK, 0, "1 passed", "")
    turn.add_text("All tests pass.")
    fix = make_iteration(1, turn).fix
    assert fix is not None
    return fix.description


def test_the_text_before_the_last_edit_describes_the_fix() -> None:
    turn = failed_turn()
    for text in ("A default helps.", "Exempt lines have no rate."):
        turn.add_text(text)
        turn.add_tool("edit", is_change=True)
    assert description(turn) == "Exempt lines have no rate."


def test_words_before_another_call_do_not_describe_the_fix() -> None:
    turn = failed_turn()
    turn.add_text("I look at the module.")
    turn.add_tool("read")
    turn.add_tool("edit", is_change=True)
    assert description(turn) == "All tests pass."
