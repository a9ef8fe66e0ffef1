"""Questions a person only acknowledges: calls for help, tests that check less."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.formatting import format_day
from core.base.text import plural, visible_line
from core.index.review_items import ESCALATION, WEAKENED, WeakenedTest
from core.questions.answer import NOT_YET_DAYS, Answer, dismissal, not_now
from core.records.decisions import ACKNOWLEDGE
from core.records.episodes import Attempt
from core.tasks.escalations import ASKS_FOR

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.asking import Asker
    from core.questions.offer import LoadExtractor
    from core.records.debug_sessions import DebugSession, Escalation


WAITS: Final = "an agent waits until a person helps"  # Why an escalation comes first.


def ask_escalations(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about open escalated debug sessions, newest first; old ones are not urgent."""
    now = asker.now
    for call in sorted(asker.records.escalated, key=lambda one: one.at or now, reverse=True):
        if call.has_ended:  # no agent waits for the answer
            continue
        session, at = call.session, call.at
        since = f", on {format_day(at)}" if at is not None else ""
        called = f"; {_call_text(call.call)}" if call.call is not None else ""
        stuck = _stuck_text(session)
        file = visible_line(session.file_path, 80)
        is_stuck = at is None or now - at <= ASKS_FOR
        yield asker.item(
            ESCALATION,
            session.id,
            question=f"Escalated{f' at {file}' if file else ''}: an agent asks for help. Have you seen it?",
            reason=f"escalated after {plural(len(session.executions), 'run')}{since}{called}; {stuck}",
            place=WAITS if is_stuck else "",
            is_urgent=is_stuck,
            impact=0.0,
            chars=len(stuck),
            escalated=call,
            evidence=len(session.executions),
        )


def _call_text(call: Escalation) -> str:
    """Describe why and by whom a person was called: `needs credentials — by ada`."""
    by = f"by {visible_line(call.by, 40) or 'unknown'}"
    return f"{visible_line(call.reason, 200)} — {by}" if call.reason else f"called {by}"


def _stuck_text(session: DebugSession) -> str:
    """Describe in one line what an escalated session could not fix."""
    run = session.newest_failing
    if run is None:
        return "no failed run is recorded"
    failure = run.failures[0]
    more = f", and {plural(len(run.failures) - 1, 'further failure')}" if len(run.failures) > 1 else ""
    error = f"{failure.error_type}: {failure.message}".strip(": ")
    return visible_line(error or failure.test_name or "unnamed failure", 160) + more


def answer_acknowledgement(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which acknowledges, and no, which asks again tomorrow."""
    about = f"{'the ' if item.kind == ESCALATION else ''}{visible_line(item.about, 120)}"
    yield dismissal(item, "accept", ACKNOWLEDGE.word, f"{ACKNOWLEDGE.past} {about}")
    yield not_now(item, state, "not yet", NOT_YET_DAYS)


SEARCHED_ATTEMPTS: Final = 20  # Number of last ended attempts that are searched.
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class WeakenedTests(Struct, frozen=True):
    """The weakened tests, and the attempts that were read for them."""

    found: tuple[WeakenedTest, ...] = ()
    read: tuple[Attempt, ...] = ()


def find_weakened_tests(view: ProjectState, before: WeakenedTests, load: LoadExtractor) -> Steps[WeakenedTests]:
    """Read the logs of the newest ended attempts that `before` has not read."""
    if not view.settings.extraction.enabled:
        return WeakenedTests()
    ended = (one for one in view.snapshot.attempts.values() if not one.is_open and one.errors != 0)
    newest = heapq.nlargest(SEARCHED_ATTEMPTS, ended, key=lambda one: one.last_activity or _EARLIEST)
    tests: list[WeakenedTest] = []
    for attempt in newest:
        if attempt in before.read:
            tests += (one for one in before.found if one.attempt_id == attempt.id)
        else:
            tests += (yield from load()).find_weakened_tests(attempt)
            yield
    return WeakenedTests(tuple(tests), tuple(newest))


def ask_weakened_tests(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about tests made to check less; docs/extraction.md#weakened-tests."""
    for test in asker.found.weakened:
        command, failure = visible_line(test.command, 60), visible_line(test.failure, 120)
        files = visible_line(", ".join(test.files), 80) or "a test"
        by = f" by {visible_line(test.agent, 40)}" if test.agent else ""
        yield asker.item(
            WEAKENED,
            test.task_id,
            question=f"{{}} was {test.change} to pass. Have you seen it?",
            name=f"A test of {visible_line(test.attempt_id, 80)}",
            this="A test",
            reason=f"{files} was changed{by} after {command!r} failed: {failure}",
            place="",
            chars=len(test.diff),
            weakened=test,
        )
