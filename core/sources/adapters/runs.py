"""Runs of programs that call an agent in a loop: their files and their loops.

An adapter of a runner names its files, decodes them, and says in one `State` how a run is
(docs/adapters.md#runs-of-a-runner). All else is here, also the memory of state files that vanish at the end of a loop,
and contexts as changes of a runner's own files, which a person applies (docs/adapters.md#delivery). They are in a
marked block, so that a later context replaces it, and that it is not read back as lessons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.prompt_text import APPROVED, BLOCK_LINE, LABELS
from core.base.regexes import lazy_regex
from core.records.loops import Liveness, Loop, LoopDetails, LoopStatus
from core.records.times import newest
from core.sources.adapters.contract import Adapter
from core.sources.adapters.lessons import BEGIN, END
from core.sources.adapters.runner_files import MAX_LABEL, cut, head_of
from core.sources.liveness import State as State  # noqa: TC001 - adapters import it from here

if TYPE_CHECKING:
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles

MAX_REMEMBERED: Final = 200  # loops of one runner
MAX_NOTE: Final = 64_000  # characters of a note in the details of a loop
_KEY: Final = "vanishing"
_BADGES: Final = {Liveness.STALE: "stale", Liveness.DEAD: "crashed"}


class RunnerAdapter(Adapter):
    """Base of the adapters of runners.

    `marks` are files of the project, with the words that their first 4 KiB contain if this runner wrote them.
    """

    marks: ClassVar[Mapping[str, tuple[bytes, ...]]] = {}

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        root = folders.project
        heads = ((name, head_of(root / name, root), words) for name, words in self.marks.items())
        return next(((name,) for name, head, words in heads if head and all(word in head for word in words)), ())

    def make_loop(
        self,
        id: str,
        root: Path,
        state: State,
        files: RunnerFiles,
        moment: Moment,
        *,
        written: Iterable[Path] = (),
        last: datetime | None = None,
        ended: datetime | None = None,
        is_exact: bool = False,
        badges: Iterable[str] = (),
        **values: Any,
    ) -> Loop:
        """Return the loop of a run in a working tree; `values` are fields of `Loop`.

        `written` are its files, the one with its state first. `last` is its last sign, and `ended` its end if it ended,
        which is a guess unless `is_exact`. Badges for its liveness are added to `badges`.
        """
        written = [path for path in written if files.exists(path)]
        shown = {*badges, *((_BADGES[state.liveness],) if state.liveness in _BADGES else ())}
        has_ended = state.status.ended or (state.status is LoopStatus.UNKNOWN and state.liveness is Liveness.ENDED)
        usual: dict[str, Any] = {
            "modified_at": newest(*map(files.modified_at, written)),
            "files": tuple(map(files.shown, written)),
        }
        return Loop(
            id=id,
            runner=self.name,
            sources=(self.name,),
            status=state.status,
            state_source=state.source,
            end_reason=cut(state.reason, MAX_LABEL),
            liveness=Liveness.ENDED if state.status.ended and state.liveness is Liveness.UNKNOWN else state.liveness,
            liveness_reason=state.why,
            question=state.question,
            pid=state.pid,
            badges=tuple(sorted(shown)),
            cwd=files.folders.cwd_of(root),
            last_activity=min(last, moment.now) if last is not None else None,
            ended_at=ended if has_ended else None,
            ended_approximate=has_ended and not is_exact,
            **(usual | values),
        )

    def make_details(
        self, loop: Loop, notes: Iterable[tuple[str, str]], facts: Iterable[tuple[str, str]] = (), **values: Any
    ) -> LoopDetails:
        """Return the details of a run, without notes and facts that are empty."""
        return LoopDetails(
            loop_id=loop.id,
            notes=tuple((title, text) for title, text in notes if text.strip()),
            facts=tuple((label, cut(value, MAX_LABEL)) for label, value in facts if value.strip()),
            **({"iterations": loop.iterations} | values),
        )


class Seen(Struct):
    """Last content of a state file; `missing_since`: when first missing, None if not."""

    state: dict[str, Any]
    seen_at: datetime
    missing_since: datetime | None = None


def remember_states(files: RunnerFiles, current: Mapping[str, dict[str, Any]], now: datetime) -> dict[str, Seen]:
    """Return present states by ID and those seen before; keep them for later runs."""
    known = dict(_remembered(files))
    for identifier, seen in known.items():
        if identifier not in current and seen.missing_since is None:
            seen.missing_since = now
    for identifier, state in current.items():
        old = known.get(identifier)
        is_same = old is not None and old.state == state and old.missing_since is None
        known[identifier] = old if old is not None and is_same else Seen(state, now)
    newest = sorted(known.items(), key=lambda item: item[1].seen_at)[-MAX_REMEMBERED:]
    value = {identifier: msgspec.to_builtins(seen) for identifier, seen in newest}
    if value != (files.remembered(_KEY) or {}):
        files.remember(_KEY, value)
    return dict(newest)


def _remembered(files: RunnerFiles) -> Iterator[tuple[str, Seen]]:
    value = files.remembered(_KEY)
    for identifier, seen in value.items() if isinstance(value, dict) else ():
        try:
            yield str(identifier), msgspec.convert(seen, Seen)
        except (msgspec.ValidationError, TypeError, ValueError):
            continue


_ENTRY: Final = lazy_regex(r"\d{1,4}\. (.+)")
_LINE: Final = lazy_regex(r"[^\n]*\n|[^\n]+")
_FENCE: Final = lazy_regex(BLOCK_LINE)
_HEADING: Final = lazy_regex(r"#{1,6} (.+)")


class ContextBlock(Struct, frozen=True):
    """The entries of a context's block, and the lines around them: fences and label.

    An entry is its first line without the number, and the indented lines below.
    """

    head: tuple[str, ...] = ()
    entries: list[list[str]] = []
    end: tuple[str, ...] = ()

    @property
    def is_approved(self) -> bool:
        return LABELS[APPROVED] in self.head


def context_blocks(context: str, section: str = "") -> list[ContextBlock]:
    """Return blocks with entries; `section` selects headings that contain this word."""
    blocks = [ContextBlock()]
    is_read = not section
    for line in context.splitlines():
        last = blocks[-1]
        if _FENCE.fullmatch(line):
            is_end = line.startswith("</")
            blocks.append(replace(blocks.pop(), end=(line,)) if is_end else ContextBlock((line,)))
        elif line in LABELS.values() and not last.entries:
            blocks[-1] = replace(last, head=(*last.head, line, ""))
        elif heading := _HEADING.fullmatch(line):
            is_read = section.casefold() in heading[1].casefold()
        elif is_read and (entry := _ENTRY.fullmatch(line)):
            last.entries.append([entry[1]])
        elif is_read and last.entries and line.startswith(" "):
            last.entries[-1].append(line)
    return [block for block in blocks if block.entries]


def context_bullets(context: str) -> list[str]:
    """Return the entries of a context as bullets, between the fences of their blocks."""
    lines: list[str] = []
    for block in context_blocks(context):
        lines += block.head
        for first, *others in block.entries:
            lines += [f"- {first}", *others]
        lines += block.end
    return lines


def put_block(lines: list[str], place: int, block: Sequence[str]) -> list[str]:
    """Return the lines with the block in place of the delivered one, else at `place`.

    A block that differs from the delivered one only in the tokens of its fences is that one.
    """
    marks = [line.strip() for line in lines]
    written = [BEGIN, *block, END]
    if BEGIN in marks and END in marks[marks.index(BEGIN) :]:
        start = marks.index(BEGIN)
        end = marks.index(END, start) + 1
        is_same = _without_fences(lines[start:end]) == _without_fences(written)
        return lines if is_same else [*lines[:start], *written, *lines[end:]]
    return [*lines[:place], *written, *lines[place:]]


def _without_fences(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if not _FENCE.fullmatch(line.strip())]


def file_diff(file: str, before: str | None, after: str) -> str:
    """Return a unified diff; "" if equal. `file` is shown, `before` is None if new."""
    old, new = _LINE.findall(before or ""), _LINE.findall(after)
    name = "/dev/null" if before is None else f"a/{file}"
    from difflib import unified_diff  # not needed for lists of loops

    diff = unified_diff(old, new, name, f"b/{file}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)
