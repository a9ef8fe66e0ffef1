"""Find anchors that were removed or renamed: in the working tree, then in Git.

Only what Git shows as existed, then removed or renamed, is a change (docs/curation.md#anchors).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from core.files.file_reader import RawFile, read_file
from core.files.git import MAX_BLOB, Git, GitFailed
from core.records.anchors import Anchor, AnchorChange, parse_anchor
from core.records.times import time_at

if TYPE_CHECKING:
    from core.files.file_reader import Problem

SECONDS: Final = 30.0  # time that Git may take for all anchors of a project
_MOST_RENAMES: Final = 5  # renames of one file that are followed
_MOST_RENAMED: Final = 400  # changed files of a commit that are compared with each other
_MOST_COMMITS: Final = 2_000  # commits about missing files that are read
_MOST_VERSIONS: Final = 30  # versions of a file in which a missing name is searched
_MOST_FILES: Final = 40  # files whose versions are read
_MOST_TARGETS: Final = 50  # changed files in which a moved name is searched
_DEFINES: Final = (
    r"(?:\b(?:def|class|func|fn|function|struct|enum|trait|interface|type|module|record|object|protocol|macro_rules!)"
    r"\s+(?:\([^)\n]{{0,80}}\)\s*)?|\b(?:const|let|var|val|static)\s+(?:mut\s+)?|^\s*(?:export\s+)?)"
    r"{name}(?![\w$])\s*(?:[(<:={{\[]|$)"
)


class Wanted(NamedTuple):
    """An anchor to check; time and commit of learning it, None and "" if unknown."""

    anchor: Anchor
    since: datetime | None = None
    commit: str = ""


class _Removal(NamedTuple):
    """A commit that removed a file or name; `to` is a renamed file's path if usable."""

    commit: str
    at: float
    to: str = ""
    has_unusable_name: bool = False


class WorkingTree:
    """The files of a project as they are now; each is read at most once."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._read: dict[str, RawFile | Problem | None] = {}

    def has(self, anchor: Anchor) -> bool:
        """Return whether an anchor exists; True if unknown, as in a file too large."""
        if not anchor.name:
            return os.path.lexists(self._project / anchor.file)
        if anchor.file not in self._read:
            self._read[anchor.file] = read_file(self._project / anchor.file, self._project, MAX_BLOB)
        raw = self._read[anchor.file]
        return anchor.is_in(raw.data.decode("utf-8", "replace")) if isinstance(raw, RawFile) else raw is not None


def find_changes(project: Path, wanted: Iterable[Wanted], seconds: float = SECONDS) -> dict[Wanted, AnchorChange]:
    """Return what became of anchors the project no longer has, as far as Git shows.

    An anchor of another repository, one that was removed before its pattern was learned, and one whose removal is not
    committed have no change. Raises GitFailed if nothing is known.
    """
    tree = WorkingTree(project)
    missing = [one for one in wanted if not tree.has(one.anchor)]
    if not missing:
        return {}
    with Git(project, seconds) as git:
        return _Search(git, tree).explain(missing)


class _Search:
    """One search in the history of a repository."""

    def __init__(self, git: Git, tree: WorkingTree) -> None:
        self._git = git
        self._prefix = git.prefix
        self._tree = tree
        self._removals: dict[str, _Removal] = {}  # by file, the newest one

    def explain(self, missing: Sequence[Wanted]) -> dict[Wanted, AnchorChange]:
        missing = self._without_foreign(missing)
        lost, others = self._split(missing)
        times = [one.since.timestamp() for one in missing if one.since is not None]
        since = min(times) if times and len(times) == len(missing) else None  # commits before it cannot matter
        self._find_removals({one.anchor.file for one in lost}, since)
        found = {one: change for one in lost if (change := self._explain_file(one)) is not None}
        renamed = [one for one in lost if one.anchor.name and self._last_name(one.anchor.file) and one not in found]
        with suppress(GitFailed):  # a partial clone has files without their content
            found |= self._explain_names([*self._nameless(others), *renamed], since)
        return found

    def _without_foreign(self, missing: Sequence[Wanted]) -> list[Wanted]:
        """Leave out anchors learned at a commit that this repository does not have."""
        commits = list({one.commit for one in missing if one.commit})
        found = self._git.exist([f"{commit}^{{commit}}" for commit in commits])
        known = {"", *(commit for commit, exists in zip(commits, found, strict=True) if exists)}
        return [one for one in missing if one.commit in known]

    def _split(self, missing: Sequence[Wanted]) -> tuple[list[Wanted], list[Wanted]]:
        """Return anchors whose file is neither in HEAD nor the tree, and those in HEAD."""
        files = list({one.anchor.file for one in missing})
        is_there = dict(zip(files, self._git.exist([self._at("HEAD", file) for file in files]), strict=True))
        lost = [one for one in missing if not is_there[one.anchor.file] and not self._tree.has(Anchor(one.anchor.file))]
        return lost, [one for one in missing if is_there[one.anchor.file]]

    def _nameless(self, others: Sequence[Wanted]) -> list[Wanted]:
        """Return the anchors whose name is not in the file in HEAD."""
        specs = {one: self._at("HEAD", one.anchor.file) for one in others if one.anchor.name}
        texts = self._git.texts(specs.values())
        return [one for one, spec in specs.items() if spec in texts and not one.anchor.is_in(texts[spec])]

    def _at(self, commit: str, file: str) -> str:
        return f"{commit}:{self._prefix}{file}"

    def _commits(self, files: Iterable[str], since: float | None, most: int) -> dict[str, float]:
        return self._git.commits([f"{self._prefix}{file}" for file in files], since, most)

    # Files

    def _find_removals(self, files: set[str], since: float | None) -> None:
        """Find the newest removal of each file and of later names of renamed files."""
        for _ in range(_MOST_RENAMES):
            files = {file for file in files - self._removals.keys() if not self._tree.has(Anchor(file))}
            commits = self._commits(sorted(files), since, _MOST_COMMITS) if files else {}
            if not commits:
                return
            wanted = {f"{self._prefix}{file}": file for file in files}
            removed: dict[str, str] = {}
            for commit, _, (path,) in self._git.changes(commits, "--no-renames", "--diff-filter=D"):
                if path in wanted:
                    removed.setdefault(wanted[path], commit)
            targets = self._find_renames(set(removed.values()))
            for file, commit in removed.items():
                to = targets.get((commit, f"{self._prefix}{file}"))
                self._removals[file] = _Removal(commit, commits[commit], to or "", has_unusable_name=to == "")
            files = {one.to for one in self._removals.values() if one.to}

    def _find_renames(self, commits: set[str]) -> dict[tuple[str, str], str]:
        """Return new paths in the project of renamed files, by commit and path.

        A path that no anchor can have is "".
        """
        options = ("--diff-filter=R", f"-l{_MOST_RENAMED}")
        try:
            changes = list(self._git.changes(commits, "-M", *options))
        except GitFailed:  # texts are missing in a partial clone, where equal files are known all the same
            changes = list(self._git.changes(commits, "-M100%", *options))
        pairs = ((commit, *paths) for commit, _, paths in changes if len(paths) == len(("old", "new")))
        pairs = ((commit, old, new) for commit, old, new in pairs if new.startswith(self._prefix))
        paths = ((commit, old, new.removeprefix(self._prefix)) for commit, old, new in pairs)
        return {(commit, old): new if parse_anchor(new) is not None else "" for commit, old, new in paths}

    def _chain(self, file: str) -> list[tuple[str, _Removal]]:
        """Return the names that a file had, oldest first, each with its removal."""
        chain: list[tuple[str, _Removal]] = []
        while (removal := self._removals.get(file)) is not None and len(chain) < _MOST_RENAMES:
            chain.append((file, removal))
            file = removal.to
        return chain

    def _last_name(self, file: str) -> str:
        """Return the path that a renamed file has now, or ""."""
        chain = self._chain(file)
        last = chain[-1][1].to if chain else ""
        return last if last and self._tree.has(Anchor(last)) else ""

    def _explain_file(self, one: Wanted) -> AnchorChange | None:
        """Return what became of an anchor whose file is not in HEAD.

        None if nothing, or only its name is missing.
        """
        chain = self._chain(one.anchor.file)
        if not chain or (one.since is not None and chain[0][1].at <= one.since.timestamp()):
            return None
        last = self._last_name(one.anchor.file)
        if last:
            renamed = Anchor(last, one.anchor.name)
            return _change(one, "renamed", chain[0][1], renamed.text) if self._tree.has(renamed) else None
        removal = chain[-1][1]
        to = self._find_new_place(one.anchor, removal) if one.anchor.name else None
        return _change(one, "moved" if to else "removed", removal, to.text if to else "")

    # Names in files

    def _explain_names(self, missing: Sequence[Wanted], since: float | None) -> dict[Wanted, AnchorChange]:
        """Return what became of names that files no longer have."""
        found = {}
        files = list(dict.fromkeys(one.anchor.file for one in missing))[:_MOST_FILES]
        for file in files:
            names = [name for name, _ in self._chain(file)]
            versions = self._find_versions(
                [*reversed([*names, *filter(None, [self._last_name(file)])])] or [file], since
            )
            texts = self._git.texts([spec for _, spec in versions])
            for one in (one for one in missing if one.anchor.file == file):
                removal = _find_removal(one.anchor, versions, texts)
                if removal is None or (one.since is not None and removal.at <= one.since.timestamp()):
                    continue
                to = self._find_new_place(one.anchor, removal)
                found[one] = _change(one, "moved" if to else "removed", removal, to.text if to else "")
        return found

    def _find_versions(self, names: Sequence[str], since: float | None) -> list[tuple[_Removal, str]]:
        """Return versions of a file, newest first, with commits; the last is from before."""
        versions: list[tuple[_Removal, str]] = []
        for name in names:
            commits = self._commits([name], since, _MOST_VERSIONS)
            versions += ((_Removal(commit, at), self._at(commit, name)) for commit, at in commits.items())
            if commits:
                versions.append((versions[-1][0], self._at(f"{versions[-1][0].commit}^", name)))
        return versions

    def _find_new_place(self, anchor: Anchor, removal: _Removal) -> Anchor | None:
        """Return the only other file in which the commit that removed a name defines it."""
        changes = self._git.changes([removal.commit], "--no-renames", "--diff-filter=AM")
        paths = [path for _, _, (path,) in changes if path.startswith(self._prefix)]
        files = [path.removeprefix(self._prefix) for path in paths if path != f"{self._prefix}{anchor.file}"]
        if len(files) > _MOST_TARGETS or anchor.is_dependency:
            return None
        specs = {file: (self._at(removal.commit, file), self._at(f"{removal.commit}^", file)) for file in files}
        try:
            texts = self._git.texts([spec for pair in specs.values() for spec in pair])
        except GitFailed:
            return None
        word = re.split(r"[^\w$]+", anchor.name)[-1]
        defines = re.compile(_DEFINES.format(name=re.escape(word)), re.MULTILINE)
        found = [
            Anchor(file, anchor.name)
            for file, (after, before) in specs.items()
            if defines.search(texts.get(after, "")) and not defines.search(texts.get(before, ""))
        ]
        found = [one for one in found if parse_anchor(one.text) == one and self._tree.has(one)]
        return found[0] if len(found) == 1 else None


def _find_removal(
    anchor: Anchor, versions: Sequence[tuple[_Removal, str]], texts: Mapping[str, str]
) -> _Removal | None:
    """Return the commit after the newest version with the name; None if none has it."""
    newer = None
    for removal, spec in versions:
        if spec in texts and anchor.is_in(texts[spec]):
            return newer
        newer = removal
    return None


def _change(
    one: Wanted, change: Literal["removed", "renamed", "moved"], removal: _Removal, to: str = ""
) -> AnchorChange:
    at = time_at(removal.at)  # a commit can name any time
    is_unusable = removal.has_unusable_name and not to
    return AnchorChange(
        anchor=one.anchor.text, change=change, commit=removal.commit, at=at, to=to, has_unusable_name=is_unusable
    )
