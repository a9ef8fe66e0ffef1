"""Whether agents may get a new or suspicious text of a pattern or reflection.

See docs/safety.md#held-texts. Also the advice of the user's judge on such texts, a command that decides nothing
(docs/safety.md#judge). It comes from the user's own settings, gets JSON on standard input and prints JSON. Only Review
asks it, never a hook.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Struct

from core.base.errors import BadInput, RalphdeckError, Unwritable
from core.base.formatting import format_day
from core.base.masking import mask_secrets
from core.base.paths import cache_folder
from core.base.scanning.engine import FOREIGN_SCRIPT
from core.base.scanning.scan import count_marks, scan_text
from core.base.scanning.verdict import describe_rule, describe_suspicions, find_withhold_reason
from core.base.text import plural, visible_line
from core.base.user_settings import read_user_settings, user_settings_file
from core.decisions import commands
from core.files.user_command import CommandFailed, run_user_command
from core.files.user_files import read_tables
from core.index.contexts import held_reflections_in_steps
from core.index.review_items import EXTRACTED, HELD, QUARANTINE, HeldText
from core.questions.answer import Answer, dismissal, new_text, yes
from core.questions.context_recipients import list_recipients
from core.records.decisions import APPROVE, VERBS, Verb
from core.records.patterns import Severity, Suspicion
from core.retrieval.embeddings import is_available

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.asking import Asker
    from core.records.decisions import UnreviewedText
    from core.records.patterns import Pattern


EXACTLY: Final = "agents may get exactly this text"  # effect of an approval
SUSPECTED: Final = 2.0  # Factor on the impact of texts with scan results, which may do harm beyond failing.
MAX_TEXTS: Final = 100  # Maximum number of held reflections that are asked about at a time.
_STEP_SECONDS: Final = 0.01  # Time in which the vectors of tasks are waited for at once.


def find_held_texts(view: ProjectState) -> Steps[tuple[HeldText, ...]]:
    """Find the held reflections that loops or tasks would get, at most `MAX_TEXTS`."""
    if not view.settings.scan.holds_other_texts:
        return ()
    readers = list({reader.task: reader for reader in reversed(list_recipients(view.snapshot))}.values())
    yield from _embed_in_steps(view, [reader.task for reader in readers])
    limit, used = view.settings.injection.max_field_chars, view.board.used_scripts

    def shown(text: str) -> str:
        return visible_line(text.strip(), limit)

    texts: dict[str, HeldText] = {}
    for reader in reversed(readers):
        for reflection in (yield from held_reflections_in_steps(view, reader.task)):
            earlier = texts.get(reflection.id)
            texts[reflection.id] = HeldText(
                id=reflection.id,
                text=reflection.text,
                does=find_withhold_reason(reflection.text, shown, used_scripts=used),
                title=reflection.title,
                sources=reflection.sources,
                readers=(*(earlier.readers if earlier is not None else ()), reader.id),
                marks=scan_text(reflection.text),
            )
        yield
    return tuple(texts.values())[:MAX_TEXTS]


def _embed_in_steps(view: ProjectState, tasks: Sequence[str]) -> Steps[None]:
    """Embed tasks in a thread, because loading the embedding model takes 1 s."""
    embeddings = view.task_embeddings
    if embeddings is None or not tasks or not is_available():
        return
    index = view.learnings

    def embed() -> None:
        for task in tasks:
            embeddings.closeness(task, index.work_keys, index.works)

    thread = threading.Thread(target=embed, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_STEP_SECONDS)
        yield


def ask_new_texts(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about arrived, blocked and held texts of patterns, and held reflections.

    A text that the reviewer put into quarantine a short time ago is not asked about.
    """
    for item in (*_ask_arrivals(asker), *_ask_suspected(asker)):
        # A text that was released is asked about again if later rules find more in it.
        if item.kind != QUARANTINE or asker.decided.get(item.subject) is not Verb.QUARANTINE:
            yield item
    yield from _ask_held_reflections(asker)


def _ask_suspected(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about texts that the scan blocks or holds."""
    board = asker.board
    for row in np.flatnonzero(board.quarantined).tolist():
        pattern = asker.patterns[board.ids[row]]
        arrival = asker.curation.arrivals.get(pattern.id)
        waits = arrival is not None and arrival.needs_review(pattern.content_hash)
        if not board.held[row] and (waits or not board.blocked[row]):
            continue
        kind = HELD if board.held[row] else QUARANTINE
        impact = SUSPECTED * asker.unjudged_impact(pattern.id, is_withheld=True)
        suspicions = board.suspicions(pattern.id)
        make = partial(_suspected, asker, kind, pattern, suspicions)
        yield asker.ask(kind, pattern.id, make, suspicions, impact=impact)


def _suspected(asker: Asker, kind: str, pattern: Pattern, suspicions: Sequence[Suspicion]) -> ReviewItem:
    question, place = "May agents get {}?", "no agent gets it unless you say yes, with a reason"
    if kind == HELD:
        question, place = _held_question(suspicions), "no agent gets it until you say yes"
    reason = f"this text {describe_suspicions(suspicions)}"
    return asker.item(kind, pattern.id, question=question, reason=reason, place=place, risk=count_marks(suspicions))


def _held_question(marks: Iterable[Suspicion]) -> str:
    if any(one.severity.stops and one.rule != FOREIGN_SCRIPT.id for one in marks):
        return "May agents get {}, which gives orders?"
    return "May agents get {}, in letters that the project does not use?"


def _ask_held_reflections(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about held reflections that no person has approved."""
    for held in asker.found.held:
        if asker.curation.approves_text(held.text):
            continue
        readers = plural(len(held.readers), "running session or last task", "running sessions and last tasks")
        yield asker.item(
            HELD,
            held.id,
            question=_held_question(held.marks),
            name=f"the reflection {visible_line(held.id, 80)}",
            this="this reflection",
            reason=f"this text {held.does}",
            place=f"{readers} would get it; no agent gets it until you say yes",
            impact=SUSPECTED * asker.new_text_impact(float(len(held.readers))),
            chars=len(held.text),
            held_text=held,
            risk=count_marks(held.marks),
            evidence=len(held.sources),
        )


_ARRIVED: Final = {
    "import": "imported",
    "extraction": "found",
    "proposal": "proposed",
    "quarantine": "quarantined",
}


def _ask_arrivals(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about imported, extracted or quarantined texts that no person released."""
    board = asker.board
    for pattern_id, arrival in asker.curation.arrivals.items():
        pattern = asker.patterns.get(pattern_id)
        if pattern is None or pattern_id not in board or not arrival.needs_review(pattern.content_hash):
            continue
        row = board.row(pattern_id)
        if board.held[row]:
            continue  # asked about as a held text
        kind, question, place = EXTRACTED, "Keep {}?", None
        is_withheld = bool(asker.impacts.is_withheld[row])
        if board.quarantined[row]:
            kind, question, place = (
                QUARANTINE,
                "An agent proposes {}. May agents get it?" if arrival.kind == "proposal" else "May agents get {}?",
                "no agent gets it until you say yes",
            )
            is_withheld = True
        elif arrival.blocks:
            continue
        suspicions = board.suspicions(pattern_id)
        impact = (SUSPECTED if suspicions else 1.0) * asker.unjudged_impact(pattern_id, is_withheld=is_withheld)
        make = partial(_arrival, asker, kind, pattern, arrival, question, place)
        yield asker.ask(kind, pattern_id, make, arrival, suspicions, impact=impact)


def _arrival(
    asker: Asker, kind: str, pattern: Pattern, arrival: UnreviewedText, question: str, place: str | None
) -> ReviewItem:
    is_found = arrival.kind == "extraction"
    by = "in a session" if is_found else f"by {visible_line(arrival.by, 40)}"
    reason = f"{_ARRIVED[arrival.kind]} {by} on {format_day(arrival.at)}"
    reason += f": {visible_line(arrival.reason, 120)}" if arrival.reason and not is_found else ""
    suspicions = asker.board.suspicions(pattern.id)
    reason += f"; this text {describe_suspicions(suspicions)}" if suspicions else ""
    risk = count_marks(suspicions) if kind == QUARANTINE else ()
    return asker.item(kind, pattern.id, question=question, reason=reason, place=place, risk=risk)


def answer_new_text(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which accepts the text, and no, which archives it or leaves it out."""
    if item.held_text is None:
        words = {
            HELD: (APPROVE.word, EXACTLY),
            QUARANTINE: (VERBS[Verb.RELEASE].word, "agents may get it"),
            EXTRACTED: (APPROVE.word, "it stays, and may become proven"),
        }
        yield from new_text(item, state, *words[item.kind])
        return
    approve = commands.ApproveText(key=item.question_key, text=item.held_text.text, about=item.about)
    yield yes(APPROVE.word, EXACTLY, approve)
    summary = f"left out {visible_line(item.about, 100)}"
    yield dismissal(item, "reject", "leave out", summary, "left out of every prompt")


SECONDS: Final = 120.0  # time limit of one call
MAX_JUDGED: Final = 20  # texts of one call of the judge
MAX_CHARS: Final = 20_000  # characters of one text that are sent
_MAX_REASON: Final = 300  # characters of a reason that are kept
_MAX_KEPT: Final = 1_000  # texts whose advice is kept, the newest
_TABLE: Final = "advice"
_TEXT_FIELDS: Final = (
    *("title", "error_message", "error_pattern", "task_pattern", "description", "use_case", "steps", "tools"),
    *("preconditions", "benefits", "limitations", "symptoms", "why_it_fails", "better_alternative", "template_code"),
    *("diff_pattern", "placeholders", "places", "location_hints"),
)
"""Fields of a pattern that a context may contain."""

Word = Literal["approve", "reject", "unsure"]


class JudgeFailed(RalphdeckError):
    """The judge could not be run, or gave no valid answer in time."""


class Mark(Struct, frozen=True):
    """A result of the scan in the request: the rule and what it says the text does."""

    rule: str
    tier: Severity
    meaning: str
    excerpt: str


class JudgedText(Struct, frozen=True):
    """A held or blocked text to judge; `id` is the SHA-256 (hex) of the masked text."""

    id: str
    kind: Literal["pattern", "reflection"]
    tier: Severity
    marks: tuple[Mark, ...]
    text: str
    is_cut: bool


class Advice(Struct, frozen=True):
    """Advice on one text; `reason` is untrusted."""

    advice: Word
    reason: str = ""

    @property
    def text(self) -> str:
        return f"{self.advice}: {self.reason}" if self.reason else self.advice


class _Verdict(Struct):
    id: str
    advice: Word
    reason: str = ""


class _Response(Struct):
    verdicts: list[_Verdict]


def held_text_of(item: ReviewItem, view: ProjectState) -> JudgedText | None:
    """Return the text that a question asks to approve or release, else None."""
    if item.held_text is not None:
        return _judged_text("reflection", item.held_text.text, scan_text(item.held_text.text))
    if item.kind in (HELD, QUARANTINE) and item.subject in view.board:
        return _judged_text("pattern", _text_of(view.pattern(item.subject)), view.board.suspicions(item.subject))
    return None


class Judge:
    """The judge of the user's settings, and its advice so far, by text.

    `command` is empty if there is none. `stop` may be called from another thread.
    """

    def __init__(self, command: Sequence[str] | None = None, store: Path | None = None) -> None:
        self.command = tuple(read_user_settings().scan.judge if command is None else command)
        self._store = store or cache_folder() / "advice.json"
        self._stopped = threading.Event()
        self._name = hashlib.sha256(msgspec.json.encode(self.command)).hexdigest()

    def known(self) -> Mapping[str, Advice]:
        """Return the advice that this command gave before, by the IDs of the texts."""
        try:
            rows = read_tables(self._store).rows(_TABLE) if self.command else []
        except Unwritable:
            return {}
        advice = {}
        for row in rows:
            with contextlib.suppress(msgspec.ValidationError):
                if row.get("judge") == self._name and isinstance(row.get("text"), str):
                    advice[row["text"]] = msgspec.convert(row, Advice)
        return advice

    def ask(self, texts: Iterable[JudgedText], seconds: float = SECONDS) -> Mapping[str, Advice]:
        """Return advice on these texts; ask about at most `MAX_JUDGED` without any.

        Raises BadInput without a command, JudgeFailed if it fails.
        """
        if not self.command:
            raise BadInput(f"No judge is configured. Set judge in the group scan of {user_settings_file()}.")
        wanted = {text.id: text for text in texts}
        known = {id: advice for id, advice in self.known().items() if id in wanted}
        new = [text for id, text in wanted.items() if id not in known][:MAX_JUDGED]
        if not new:
            return known
        request = msgspec.json.encode({"version": 1, "texts": new})
        new_advice = _read_answer(self._run(request, seconds), {text.id for text in new})
        self._keep(new_advice)
        return known | new_advice

    def stop(self) -> None:
        """End a running call; it raises JudgeFailed."""
        self._stopped.set()

    def _run(self, request: bytes, seconds: float) -> bytes:
        try:
            return run_user_command(self.command, request, seconds, self._stopped.is_set)
        except CommandFailed as error:
            raise JudgeFailed(f"The judge {error}") from None

    def _keep(self, new_advice: Mapping[str, Advice]) -> None:
        """Store advice; a store that cannot be written loses it."""
        from core.files.user_files import UserStore  # loads TinyDB, which the first frame does not need

        with contextlib.suppress(Unwritable, BadInput), UserStore(self._store).transaction() as tables:
            table = tables.table(_TABLE)
            table.insert_multiple(
                {"judge": self._name, "text": id, **msgspec.to_builtins(advice)} for id, advice in new_advice.items()
            )
            table.remove(doc_ids=[row.doc_id for row in table][:-_MAX_KEPT])


def _judged_text(kind: Literal["pattern", "reflection"], text: str, suspicions: Iterable[Suspicion]) -> JudgedText:
    masked = mask_secrets(text)
    marks = tuple(
        Mark(one.rule, one.severity, describe_rule(one), visible_line(mask_secrets(one.excerpt), 120))
        for one in suspicions
    )
    is_blocked = any(mark.tier is Severity.BLOCKED for mark in marks)
    return JudgedText(
        id=hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest(),
        kind=kind,
        tier=Severity.BLOCKED if is_blocked else Severity.HELD,
        marks=marks,
        text=masked[:MAX_CHARS].encode(errors="replace").decode(),
        is_cut=len(masked) > MAX_CHARS,
    )


def _text_of(pattern: Pattern) -> str:
    lines: list[str] = []
    for name in _TEXT_FIELDS:
        value: Any = getattr(pattern, name)
        parts = value if isinstance(value, tuple) else (value,)
        lines += (": ".join(part) if isinstance(part, tuple) else part for part in parts)
    return "\n".join(filter(None, lines))


def _read_answer(answer: bytes, asked: set[str]) -> dict[str, Advice]:
    """Return the verdicts on the texts that were asked about, the first of each."""
    try:
        verdicts = msgspec.json.decode(answer, type=_Response).verdicts
    except (msgspec.MsgspecError, RecursionError) as error:
        raise JudgeFailed(f"The judge's answer is invalid: {visible_line(str(error), 200)}.") from None
    advice = {}
    for verdict in reversed(verdicts):
        if verdict.id in asked:
            advice[verdict.id] = Advice(verdict.advice, visible_line(mask_secrets(verdict.reason), _MAX_REASON))
    return advice
