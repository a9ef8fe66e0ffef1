"""Answer one hook event (docs/agents.md#hooks)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from core.agents.agent_table import AGENTS, Moment
from core.agents.hooks.background import is_compiled, is_first_load, needs_background, notifies
from core.agents.hooks.deadline import start_background
from core.agents.hooks.events import HookEvent, digest, encode_answer, failed_call, find_edits, find_last_text
from core.agents.hooks.sessions import (
    MAX_ANSWERED,
    MAX_PROMPTS,
    MAX_TRIES,
    Given,
    Owed,
    Session,
    Sessions,
    remember,
    spool_call,
)
from core.agents.hooks.work import SessionWork
from core.base.errors import DamagedError, RalphdeckError, Unwritable
from core.base.prompt_text import is_fenced, render_blocks
from core.base.regexes import lazy_regex
from core.sources.agent_sessions import loop_id_of
from core.tasks.validation import FAILED, SUCCEEDED
from core.trust.projects import FOR_AGENTS, find_answer, is_trusted

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.events import Event

_NUMBER = lazy_regex(r"0x[0-9a-f]{1,16}|\d{1,20}")  # numbers differ between runs with the same error
_COMPACTED = "compact"  # source of a start after a compaction


class HookAnswer:
    """Handles one event: writes what it reports, and finds what the agent gets.

    `warn` is called with problems that do not stop the event, and `begin_answer` before a delivery is saved. All
    methods raise subclasses of `RalphdeckError`.
    """

    def __init__(
        self,
        project: ProjectPaths,
        event: HookEvent,
        *,
        clock: Callable[[], datetime],
        warn: Callable[[str], None] = lambda _: None,
        begin_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self._project = project
        self._event = event
        self._clock = clock
        self._begin_answer = begin_answer
        self._sessions = Sessions(project)
        self._work = SessionWork(project, event.agent, clock=clock, warn=warn)
        self._has_logged = False
        self._prompt_text = self._trial = ""  # newest prompt of the session, and key of its task in the experiment

    def handle(self, send: Callable[[bytes], None]) -> None:
        """Handle the event; call `send` once with the bytes for the agent, if any."""
        match self._event.moment:
            case Moment.START:
                self._start(send)
            case Moment.PROMPT:
                self._prompt(send)
            case Moment.TOOL:
                self._tool(send)
            case Moment.TURN_END | Moment.SESSION_END:
                self._end()

    def _start(self, send: Callable[[bytes], None]) -> None:
        with self._sessions.edit(self._event, self._clock()) as session:
            again = session.context if self._event.source == _COMPACTED else ""
        if needs_background(self._sessions.all(), self._clock()) or not is_compiled():
            start_background(self._project)
        if not is_trusted(self._project):
            self._warn_untrusted(send)
        elif again:
            self._send(send, again if is_fenced(again) else render_blocks("", again))
        elif self._event.source != _COMPACTED and self._has_active_loop():
            from core.agents.hooks.contexts import loop_context

            self._send(send, loop_context(self._project, self._event.agent, self._clock))

    def _has_active_loop(self) -> bool:
        """Return whether there may be an active loop; most projects have none."""
        return any((self._project.ralph / name).exists() for name in ("loops", "current-loop.json")) or (
            self._project.external.exists()
        )

    def _prompt(self, send: Callable[[bytes], None]) -> None:
        event = self._event
        with self._sessions.edit(event, self._clock()) as session:
            self._work.log_spooled(session)
            if event.is_notice:  # the turn continues the work on the newest prompt; a first command names it
                session.prompt = session.prompt or event.prompt
            elif (
                self._work.begin_turn(session, event.prompt)
                and event.prompt
                and remember(session.given_for, digest(event.prompt), MAX_PROMPTS)
            ):
                session.owed.add_prompt(event.prompt)
            owed = self._begin_delivery(session)
        self._deliver(owed, send)

    def _tool(self, send: Callable[[bytes], None]) -> None:
        try:
            owed, has_given = self._log()
        except Unwritable:
            self.spool()
            raise
        self._deliver(owed, send, has_given)

    def _log(self) -> tuple[Owed, frozenset[str]]:
        """Log the tool call; return what the event can deliver, and the given patterns."""
        with self._sessions.edit(self._event, self._clock()) as session:
            self._work.log_spooled(session)
            self._log_recorded_edits(session)
            is_new = self._work.log_tool(session, self._event)
            self._has_logged = True
            if is_new and self._is_new_error(session):
                session.owed.add_error(failed_call(self._event.tool))
            has_failed = is_new and self._event.tool.get("hook_event_name") == FAILED
            owed = self._begin_delivery(session)
            given = frozenset(session.given.patterns if session.given.context else ())
        if has_failed and notifies():  # the same error may be one too many
            start_background(self._project)
        return owed, given

    def spool(self) -> None:
        """Keep an unlogged tool call for the next event; errors were reported already."""
        if self._event.moment is Moment.TOOL and not self._has_logged:
            with suppress(RalphdeckError, OSError):
                spool_call(self._project, self._event, self._clock())

    def _log_recorded_edits(self, session: Session) -> None:
        """Log edits of Codex without an event, before the call or end of turn after them."""
        event = self._event
        if event.agent != "codex" or not event.transcript:
            return
        known = {event.call, *session.call_ids}
        for edit in find_edits(event.transcript):
            if digest(edit.call) in known:
                continue
            tool = {
                "hook_event_name": SUCCEEDED,
                "tool_name": "apply_patch",
                "tool_input": {"command": edit.patch, "file_path": edit.file},
            }
            for call in (edit.call, f"{edit.call} {edit.file}"):  # the first file of a call counts as its event, too
                if self._work.log_tool(
                    session, replace(event, call=digest(call), content="", call_id=edit.call, tool=tool)
                ):
                    break

    def _begin_delivery(self, session: Session) -> Owed:
        """Return what this event can carry; nothing if several failed to deliver it.

        After one that failed, nothing is tried while the index is made: the project is too large for a hook to read.
        """
        self._prompt_text, self._trial = session.prompt, session.trial
        owed = replace(session.owed, errors=list(session.owed.errors)) if self._can_deliver() else Owed()
        if self._event.is_subagent:  # the errors are its own, the prompt is not
            owed.prompt = ""
        if session.owed.tries and (owed.prompt or owed.errors) and is_first_load(self._project):
            return Owed()
        if owed.prompt or owed.errors:
            session.owed.tries += 1
        if session.owed.tries > MAX_TRIES:
            session.owed = owed = Owed()
        return owed

    def _can_deliver(self) -> bool:
        return self._event.name in AGENTS[self._event.agent].context_events

    def _deliver(self, owed: Owed, send: Callable[[bytes], None], has_given: frozenset[str] = frozenset()) -> None:
        """Find and send what the session is owed, unless another event did meanwhile.

        `has_given` are the IDs of the patterns in the context of the prompt, which are not repeated.
        """
        if not (owed.prompt or owed.errors):
            return
        if not is_trusted(self._project):
            self._warn_untrusted(send, owed)
            return
        try:
            given, fixes, assigned = self._find_answer(owed, has_given)
        except DamagedError:
            from core.index.database import delete

            delete(self._project.project)
            given, fixes, assigned = self._find_answer(owed, has_given)
        self._begin_answer()
        texts: list[str] = []
        with self._sessions.edit(self._event, self._clock()) as session:
            # Another event began the task at the same time, and its key has the date of another day: this answer is by
            # another coin than the one that is recorded. The next event gives what is still owed.
            if self._trial and session.trial and session.trial != self._trial:
                return
            taken = session.owed.take(owed)
            if self._trial and (taken.prompt or taken.errors):
                self._work.record_assigned(assigned)  # before the agent can see what it is given
                session.trial = session.trial or self._trial
                if self._event.moment is Moment.TOOL:
                    session.remember_trial(self._project.project)
            if taken.prompt:
                session.given = given
                session.context = given.context or session.context
                texts.append(given.context)
                if self._event.moment is Moment.TOOL:
                    self._work.record_given(session)
            for error, fix in zip(owed.errors, fixes, strict=True):
                if error in taken.errors:
                    texts.append(fix.context)
                    self._work.record_fix(session, fix)
        self._send(send, "\n".join(dict.fromkeys(filter(None, texts))))

    def _find_answer(self, owed: Owed, has_given: frozenset[str]) -> tuple[Given, list[Given], list[Event]]:
        """Return context, known fixes, prior experiment events; raises DamagedError."""
        from core.agents.hooks.contexts import known_fix, open_state, prompt_context
        from core.index.experiment import draw_coin, make_assignments

        state = open_state(self._project, self._clock)
        if state is None:
            return Given(), [Given() for _ in owed.errors], []
        coin = draw_coin(state, self._prompt_text or owed.prompt, self._trial)
        given, assigned = prompt_context(state, owed.prompt, coin)
        found = [known_fix(state, self._project, error, has_given | {*given.patterns}, coin) for error in owed.errors]
        if coin is None:
            return given, [fix for fix, _ in found], []
        every = {one.pattern_id: one for some in (assigned, *(more for _, more in found)) for one in some}
        work_id = loop_id_of(self._event.agent, self._event.session)
        events = make_assignments(state, coin.task, every.values(), work_id, self._event.agent, self._clock())
        self._trial = coin.task
        return given, [fix for fix, _ in found], events

    def _warn_untrusted(self, send: Callable[[bytes], None], owed: Owed | None = None) -> None:
        """Warn once per session that it gets nothing, unless the user chose; drop `owed`."""
        answer = find_answer(self._project)
        with self._sessions.edit(self._event, self._clock()) as session:
            if owed is not None:
                session.owed.take(owed)
            is_due = answer is None and not session.has_warned and self._can_deliver()
            session.has_warned = session.has_warned or is_due
        if is_due:
            self._send(send, f"ralphdeck: {FOR_AGENTS}")

    def _is_new_error(self, session: Session) -> bool:
        """Return whether the tool failed with an error not yet looked up in the session."""
        tool = self._event.tool
        error = tool.get("error")
        if tool.get("hook_event_name") != FAILED or not isinstance(error, str) or not error.strip():
            return False
        return remember(session.answered, digest(_NUMBER.sub("0", error)), MAX_ANSWERED)

    def _end(self) -> None:
        with self._sessions.edit(self._event, self._clock()) as session:
            self._work.log_spooled(session)
            self._log_recorded_edits(session)
            if self._event.moment is Moment.SESSION_END:
                self._work.end_session(session)
            else:
                self._work.end_turn(session, self._event.message or find_last_text(self._event.transcript))
            has_work = bool(session.ended_tasks or session.checked or session.finished_trials)
        if has_work or notifies():
            start_background(self._project)

    def _send(self, send: Callable[[bytes], None], context: str) -> None:
        if context:
            send(encode_answer(self._event, context))
