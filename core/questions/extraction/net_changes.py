"""Net change of some edits: what differs between the files before the first and after the last of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from core.base.regexes import lazy_regex
from core.tasks.changes import Hunk, build_diff, compare_texts, find_shell_hunks, parse_diff

if TYPE_CHECKING:
    from core.records.episodes import Action

_TOKEN: Final = lazy_regex(r"\w+|[^\w\s]")
_MAX_LINE: Final = 20_000  # line number up to which changes are followed
_PAIRS: Final = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldString", "newString"),
)


def find_net_changes(edits: Iterable[Action]) -> list[Hunk]:
    """Return the hunks of the net change; an edit that a later one reverts or replaces is not part of it."""
    files: dict[str, _File] = {}
    for action in edits:
        for hunk in hunks_of(action):
            files.setdefault(hunk.file, _File(hunk.file)).add(hunk)
        if not _has_diff(action):
            for old, new in _pairs(action):
                files.setdefault(action.target, _File(action.target)).replace(old, new)
    return [hunk for file in files.values() for hunk in file.net()]


def find_replacements(diff: str) -> frozenset[tuple[str, str]]:
    """Return what the changed lines of a diff replace by what: words and signs, with one space between.

    The unchanged parts of the lines are left out, so that the same change is found in other code.
    """
    found = set()
    for is_changed, block in groupby(diff.splitlines(), key=lambda line: line[:1] in ("+", "-")):
        lines = [line for line in block if is_changed and line[:3] not in ("+++", "---")]
        old, new = (_TOKEN.findall("\n".join(line[1:] for line in lines if line[0] == sign)) for sign in "-+")
        for kind, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind != "equal":
                found.add((" ".join(old[start:end]), " ".join(new[first:last])))
    return frozenset(found)


def hunks_of(action: Action) -> list[Hunk]:
    """Return the hunks in the output of an edit, or in its parameters if they are not pairs of texts."""
    if _has_diff(action):
        return parse_diff(action.output, action.target)
    if action.command and (found := find_shell_hunks(action.command)):
        return found
    return [] if [*_pairs(action)] else parse_diff("\n".join(build_diff(action)), action.target)


def _has_diff(action: Action) -> bool:
    return action.output.startswith("--- ") and "\n@@ -" in action.output


def _pairs(action: Action) -> Iterator[tuple[str, str]]:
    params = dict(action.params)
    for old, new in _PAIRS:
        if old in params and new in params:
            yield params[old], params[new]
            return


class _File:
    """A file of which only the lines in hunks are known; unchanged lines are their original numbers."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: list[int | str] = list(range(1, _MAX_LINE))
        self._until = 0  # index after the last change; all lines from there on are as they were
        self._original: dict[int, str] = {}
        self._regions: list[tuple[str, str]] = []  # texts before and after, of edits without line numbers
        self._loose: list[Hunk] = []  # hunks whose place is unknown

    def add(self, hunk: Hunk) -> None:
        has_new = any(line[:1] != "-" for line in hunk.lines)
        place = hunk.new_start - 1 if has_new else hunk.new_start
        if (hunk.new_start <= 0 and has_new) or place + len(hunk.lines) >= _MAX_LINE or not self._fits(hunk, place):
            self._loose.append(hunk)
            return
        start, count = place, len(self._lines)
        for line in hunk.lines:
            kind, text = line[:1], line[1:]
            if kind == "+":
                self._lines.insert(place, text)
                place += 1
                continue
            at = self._lines[place]
            if isinstance(at, int):
                self._original[at] = text
            if kind == "-":
                del self._lines[place]
            else:
                place += 1
        moved = len(self._lines) - count if start < self._until else 0
        self._until = max(self._until + moved, place)

    def _fits(self, hunk: Hunk, place: int) -> bool:
        """Return whether the lines before the change are those that are known."""
        for line in hunk.lines:
            if line[:1] == "+":
                continue
            at = self._lines[place]
            known = self._original.get(at) if isinstance(at, int) else at
            if known is not None and known != line[1:]:
                return False
            place += 1
        return True

    def replace(self, old: str, new: str) -> None:
        for n, (before, after) in enumerate(self._regions):
            if old and old in after:
                self._regions[n] = before, after.replace(old, new, 1)
                return
            if after and after in old:
                self._regions[n] = old.replace(after, before, 1), new
                return
        self._regions.append((old, new))

    def net(self) -> Iterator[Hunk]:
        yield from self._changed_blocks()
        for before, after in self._regions:
            yield from compare_texts(self._name, before, after)
        yield from self._loose

    def _changed_blocks(self) -> Iterator[Hunk]:
        removed: list[str] = []
        added: list[str] = []
        before, expected = 0, 1
        for at in self._lines[: self._until + 1]:
            if isinstance(at, str):
                added.append(at)
                continue
            removed += [self._original.get(number, "") for number in range(expected, at)]
            if removed or added:
                yield from self._block(before, removed, added, at)
                removed, added = [], []
            before, expected = at, at + 1

    def _block(self, before: int, removed: Sequence[str], added: Sequence[str], after: int) -> Iterator[Hunk]:
        """Yield the lines that really differ, with one known line around them."""
        old = [*self._context(before), *removed, *self._context(after)]
        new = [*self._context(before), *added, *self._context(after)]
        lead = len(self._context(before))
        diff = difflib.unified_diff(old, new, lineterm="", n=1)
        for hunk in parse_diff("\n".join([*diff][2:]), self._name):
            yield hunk._replace(old_start=before + hunk.old_start - lead, new_start=before + hunk.new_start - lead)

    def _context(self, number: int) -> tuple[str, ...]:
        known = self._original.get(number)
        return () if known is None else (known,)
