"""Advice of the user's judge, a command that reads held texts; it decides nothing (docs/safety.md#judge).

The command comes from the user's own settings. It gets JSON on standard input and prints JSON. Only Review asks it,
never a hook.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct

from core.base.errors import BadInput, RalphdeckError, Unwritable
from core.base.masking import mask_secrets
from core.base.paths import cache_folder
from core.base.scanning.scan import scan_text
from core.base.scanning.verdict import describe_rule
from core.base.text import visible_line
from core.base.user_settings import read_user_settings, user_settings_file
from core.files.user_command import CommandFailed, run_user_command
from core.files.user_files import read_tables
from core.index.review_items import HELD, QUARANTINE
from core.records.patterns import Severity, Suspicion

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.records.patterns import Pattern

SECONDS: Final = 120.0  # time limit of one call
MAX_TEXTS: Final = 20  # texts of one call
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
    """A held or blocked text in the request; `id` is the SHA-256 (hex) of the text, whose secrets are masked."""

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
    """Return the text that a question asks to approve or release; None if it asks something else."""
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
        """Return the advice on these texts; asks the command about those without, at most `MAX_TEXTS`.

        Raises BadInput without a command, JudgeFailed if it fails.
        """
        if not self.command:
            raise BadInput(f"No judge is configured. Set judge in the group scan of {user_settings_file()}.")
        wanted = {text.id: text for text in texts}
        known = {id: advice for id, advice in self.known().items() if id in wanted}
        new = [text for id, text in wanted.items() if id not in known][:MAX_TEXTS]
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
