"""Precision and recall of "followed" and "not followed" on sessions that were labelled by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from core.questions.extraction.following import Judgement, judge
from core.questions.extraction.recorded_work import ActionLog, RecordedWork
from core.records.episodes import Action
from core.records.loops import Outcome
from core.records.patterns import Pattern, PatternType
from tests.factories import NOW, make_pattern

_FILE: Final = Path(__file__).with_name("followed_sessions.yaml")
SESSIONS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
_WORDS: Final = {True: "followed", False: "not", None: "unclear"}


def read_lesson(lesson: Mapping[str, Any]) -> Pattern:
    return make_pattern(
        type=PatternType(lesson["type"]),
        title=lesson.get("text", ""),
        description=lesson.get("text", ""),
        error_pattern=lesson.get("trigger", ""),
        error_message=lesson.get("message", ""),
        diff_pattern=lesson.get("diff", ""),
        template_code=lesson.get("code", ""),
        template_language=lesson.get("language", ""),
        better_alternative=lesson.get("better", ""),
        steps=tuple(lesson.get("steps", ())),
        tools=tuple(lesson.get("tools", ())),
    )


def read_action(number: int, action: Mapping[str, Any]) -> Action:
    """Return an action as the hooks log it; each is one minute after the previous one."""
    at = NOW + timedelta(minutes=number)
    if "run" in action:
        failed = action.get("fails", "")
        return Action(
            number=number,
            at=at,
            type="bash",
            tool="Bash",
            params=(("command", action["run"]),),
            success=not failed,
            error=failed,
            output=action.get("prints", ""),
        )
    if "read" in action:
        params, output = (("file_path", action["read"]),), action.get("shows", "")
        return Action(number=number, at=at, type="read", tool="Read", params=params, success=True, output=output)
    texts = {"old_string": action.get("old"), "new_string": action.get("new"), "content": action.get("content")}
    fields = {"file_path": action.get("edit") or action["write"], **{key: text for key, text in texts.items() if text}}
    kind = "write" if "write" in action else "edit"
    return Action(number=number, at=at, type=kind, tool=kind.title(), params=tuple(fields.items()), success=True)


def judge_session(session: Mapping[str, Any]) -> Judgement:
    actions = [read_action(number, one) for number, one in enumerate(session["actions"], 1)]
    given_at = NOW + timedelta(minutes=session.get("given", 0), seconds=30)
    work = RecordedWork(ActionLog(actions), given_at, Outcome(session.get("outcome", "success")))
    return judge(read_lesson(session["lesson"]), work)


def measure(sessions: Sequence[Mapping[str, Any]], word: str) -> tuple[int, int, int]:
    """Return how many sessions have a label, how many were judged so, and how many of these rightly."""
    judged = {session["id"]: _WORDS[judge_session(session).is_followed] for session in sessions}
    labelled = [session["id"] for session in sessions if session["label"] == word]
    claimed = [id for id, found in judged.items() if found == word]
    return len(labelled), len(claimed), len({*labelled} & {*claimed})


@pytest.mark.parametrize("word", ["followed", "not"])
@pytest.mark.parametrize("part", SESSIONS)
def test_verdicts_agree_with_the_labels(part: str, word: str) -> None:
    labelled, claimed, right = measure(SESSIONS[part], word)
    assert right >= 0.95 * claimed, f"precision {right}/{claimed}"
    assert right >= 0.6 * labelled, f"recall {right}/{labelled}"


def test_the_evidence_is_the_action_that_shows_it() -> None:
    for session in (one for part in SESSIONS.values() for one in part if "evidence" in one):
        found = judge_session(session)
        if found.is_followed is not None:
            assert found.action == session["evidence"], session["id"]


if __name__ == "__main__":
    for name, sessions in SESSIONS.items():
        for session in sessions:
            found = judge_session(session)
            if _WORDS[found.is_followed] != session["label"]:
                print(name, session["id"], "label", session["label"], "found", found)  # noqa: T201
        for word in ("followed", "not"):
            print(name, len(sessions), word, "labelled, claimed, right:", measure(sessions, word))  # noqa: T201
