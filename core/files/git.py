"""Read a Git repository without running its contents (docs/safety.md#git).

The commit that is checked out is read from files. History is read by `git` with fixed arguments, in a Git folder of our
own that has only the objects of the repository: Git reads no configuration, reference or attribute of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Final, NamedTuple, Self

from core.base.errors import RalphdeckError
from core.base.paths import is_in_trusted_path, is_own
from core.base.text import visible_line
from core.files.file_reader import Problem, RawFile, read_file, read_first_line
from core.records.anchors import COMMIT

MAX_OUTPUT: Final = 32 << 20  # bytes that one command may print
MAX_BLOB: Final = 1 << 20  # bytes of a file whose text is compared
_MAX_REFS: Final = 4 << 20
_MAX_LOG: Final = 256 << 10  # bytes at the end of a log of HEAD
_LOG_LINE: Final = re.compile(r"[0-9a-f]{40,64} ([0-9a-f]{40,64}) .*> (\d+) [+-]\d{4}(?:\t|$)")
_MOST_FOLDERS: Final = 20  # with objects
_SHA256_DIGITS: Final = 64  # of the ID of a commit
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_OBJECT_FOLDER: Final = re.compile(r"[0-9a-f]{2}|info|pack|commit-graphs")
_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,
    "LC_ALL": "C",
}


class GitFailed(RalphdeckError):
    """Git is missing, failed, was too slow or printed too much; nothing is known."""


class Repository(NamedTuple):
    """Folders of a repository: top of the working tree, own Git folder, common refs."""

    top: Path
    own: Path
    common: Path


def find_repository(folder: Path) -> Repository | None:
    """Find a folder's working tree, also of a worktree or submodule, or None."""
    for top in (folder, *folder.parents):
        entry = top / ".git"
        if entry.is_dir():
            return Repository(top, entry, entry)
        if (line := read_first_line(entry)).startswith("gitdir:"):
            own = top / line.removeprefix("gitdir:").strip()
            common = read_first_line(own / "commondir")
            return Repository(top, own, own / common if common else own)
    return None


def read_head(folder: Path) -> str:
    """Return the checked-out commit ID without running Git; "" if unknown."""
    repository = find_repository(folder)
    if repository is None:
        return ""
    line = read_first_line(repository.own / "HEAD")
    if not line.startswith("ref:"):
        return line if COMMIT.fullmatch(line) else ""
    name = line.removeprefix("ref:").strip()
    if ".." in name or not name.startswith("refs/"):
        return ""
    for place in (repository.own, repository.common):
        if COMMIT.fullmatch(found := read_first_line(place / name)):
            return found
    packed = _read(repository.common / "packed-refs", _MAX_REFS)
    at = packed.find(f" {name}\n".encode())
    commit = packed[max(packed.rfind(b"\n", 0, at) + 1, 0) : at].decode("ascii", "replace") if at >= 0 else ""
    return commit if COMMIT.fullmatch(commit) else ""


def read_head_at(folder: Path, at: float) -> str:
    """Return HEAD at a time (seconds since 1970) by its log; "" if unknown."""
    repository = find_repository(folder)
    if repository is None:
        return ""
    file = repository.own / "logs" / "HEAD"
    try:
        start = max(file.stat().st_size - _MAX_LOG, 0)
    except OSError:
        return ""
    found = ""
    for line in _read(file, start + 2 * _MAX_LOG, start).decode("utf-8", "replace").splitlines():
        if (entry := _LOG_LINE.match(line)) is not None:
            if int(entry[2]) > at:
                break
            found = entry[1]
    return found


def _read(file: Path, limit: int, start: int = 0) -> bytes:
    raw = read_file(file, file.parent, limit, start)
    return raw.data if isinstance(raw, RawFile) else b""


class Git:
    """Runs `git` on a folder's repository for `seconds` in all; raises GitFailed.

    `prefix` is the path of the folder in the repository: "" or `parts/of/it/`. `HEAD` is the commit that was checked
    out at the start.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        import shutil  # loads modules for archives, which hooks do not need
        import tempfile

        self._end = monotonic() + seconds
        repository = find_repository(folder)
        program = shutil.which("git")
        if repository is None or program is None:
            raise GitFailed("there is no Git repository" if program else "git is not installed")
        top = repository.top.resolve()
        # A relative folder in PATH, or one in the repository, would run a program of the repository.
        if not Path(program).is_absolute() or Path(program).resolve().is_relative_to(top):
            raise GitFailed("git is not installed outside of the repository")
        path = folder.resolve().relative_to(top)
        self.prefix = f"{path.as_posix()}/" if path.parts else ""
        objects = repository.common / "objects"
        _check_owner(repository.own, folder)
        for folder_with_objects in _find_object_folders(objects):
            self._check_files(folder_with_objects)
        self._command = [program, "--no-pager", "--literal-pathspecs"]
        # Git would wait for a FIFO that the configuration of the repository includes, so it gets a folder without one.
        self._own = tempfile.TemporaryDirectory(prefix="ralphdeck-git-")
        self._environment = _ENVIRONMENT | {
            "PATH": os.environ.get("PATH", os.defpath),
            "GIT_DIR": self._own.name,
            "GIT_OBJECT_DIRECTORY": str(objects.resolve()),
        }
        try:
            _write_git_folder(Path(self._own.name), read_head(folder), repository.common)
        except (OSError, GitFailed):
            self._own.cleanup()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._own.cleanup()

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Return a command's output; arguments are fixed, paths and commits use `stdin`."""
        from core.files.user_command import CommandFailed, run_program  # hooks that run no program do not need it

        try:
            return run_program(
                [*self._command, *arguments],
                stdin,
                self._seconds_left(),
                folder=Path(self._own.name),
                environment=self._environment,
                most=MAX_OUTPUT,
            )
        except CommandFailed as error:
            raise GitFailed(str(error)) from None

    def _seconds_left(self) -> float:
        left = self._end - monotonic()
        if left <= 0:
            raise GitFailed("git took too long")
        return left

    def _check_files(self, folder: Path) -> None:
        """Refuse a repository with a FIFO or device as object: Git would wait for it."""
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    if entry.is_dir(follow_symlinks=False):
                        if _OBJECT_FOLDER.fullmatch(entry.name):
                            self._check_files(folder / entry.name)
                    elif not entry.is_file():
                        path = visible_line(entry.path, 200)
                        raise GitFailed(f"{path} is not a file, so Git could not read it")
        except OSError as error:
            raise GitFailed(f"the objects of the repository cannot be read: {error.strerror}") from None
        self._seconds_left()

    def exist(self, objects: Sequence[str]) -> list[bool]:
        """Return which objects, such as `HEAD:src/cart.py`, exist, even if not fetched."""
        output = self.run("cat-file", "--batch-check=%(objectname)", stdin=_lines(objects)) if objects else b""
        return [COMMIT.fullmatch(os.fsdecode(line)) is not None for line in output.splitlines()]

    def texts(self, objects: Iterable[str]) -> dict[str, str]:
        """Return the content of objects by name, except missing and large ones.

        Large is more than `MAX_BLOB` bytes. A name with a line break counts as missing.
        """
        names = [name for name in dict.fromkeys(objects) if not _LINE_BREAK.search(name)]
        output = self.run("cat-file", "--batch-check=%(objectsize)", stdin=_lines(names)) if names else b""
        sizes = [int(line) if line.isdigit() else MAX_BLOB + 1 for line in output.splitlines()]
        names = [name for name, size in zip(names, sizes, strict=True) if size <= MAX_BLOB]
        output = self.run("cat-file", "--batch=%(objectsize)", stdin=_lines(names)) if names else b""
        found, at = {}, 0
        for name in names:
            start = output.index(b"\n", at) + 1
            at = start + int(output[at : start - 1]) + 1
            found[name] = output[start : at - 1].decode("utf-8", "replace")
        return found

    def commits(self, files: Iterable[str], since: float | None, most: int) -> dict[str, float]:
        """Return the newest commits that changed any of the files, with their times.

        The newest comes first, and there are at most `most`. `files` are paths from the top of the repository. `since`
        limits the search to commits after a time.
        """
        arguments = ["rev-list", "--timestamp", f"--max-count={most}"]
        arguments += [f"--since={since:.0f}"] if since is not None else []
        output = self.run(*arguments, "--stdin", stdin=_lines(("HEAD", "--", *files)))
        pairs = (line.split() for line in output.decode("ascii").splitlines())
        return {commit: float(time) for time, commit in pairs}

    def changes(self, commits: Iterable[str], *options: str) -> Iterator[tuple[str, str, list[str]]]:
        """Yield changes: commit, status such as `D` or `R100`, and paths from the top."""
        arguments = ("diff-tree", "--stdin", "-r", "-z", "--root", "--name-status", "--no-ext-diff", "--no-textconv")
        words = iter(self.run(*arguments, *options, stdin=_lines(commits)).split(b"\0"))
        commit = ""
        for word in words:
            text = os.fsdecode(word)
            # With -z, the commit and the first status are separated by a line end or a NUL.
            *ids, status = text.split("\n")
            for one in (*ids, status):
                if COMMIT.fullmatch(one):
                    commit = one
            if COMMIT.fullmatch(status) or not status:
                continue
            count = 2 if status[0] in "RC" else 1
            yield commit, status, [os.fsdecode(next(words, b"")) for _ in range(count)]


def _find_object_folders(objects: Path) -> Iterable[Path]:
    """Return Git's object folders: the repository's, and those it borrows from."""
    found = [objects]
    for folder in found:  # which grows by the folders that it borrows from
        raw = read_file(folder / "info" / "alternates", folder / "info", _MAX_REFS)
        if isinstance(raw, Problem):
            raise GitFailed(f"the file alternates of the repository {raw.message}")
        text = os.fsdecode(raw.data) if raw is not None else ""
        lines = [line for line in text.split("\n") if line and not line.startswith("#")]
        if "\0" in text or any(line.startswith('"') for line in lines):
            raise GitFailed("the file alternates of the repository has a quoted path or a NUL; write plain paths")
        # Git removes `..` from the text of a path, before it follows links.
        base = folder.resolve()
        borrowed = dict.fromkeys(Path(os.path.normpath(base / line)) for line in lines)
        found += [one for one in borrowed if one not in found and one.is_dir()]
        if len(found) > _MOST_FOLDERS:
            raise GitFailed("the repository borrows objects from too many folders")
    return found


def _check_owner(own: Path, folder: Path) -> None:
    """Refuse a repository of another user, as Git does."""
    try:
        if is_own(own.stat()) or is_in_trusted_path(folder):
            return
    except OSError as error:
        raise GitFailed(f"the repository cannot be read: {error.strerror}") from None
    raise GitFailed("the repository belongs to another user")


def _write_git_folder(folder: Path, head: str, common: Path) -> None:
    """Make a bare Git folder with this HEAD commit and a shallow clone's limits."""
    if not head:
        raise GitFailed("the commit that is checked out cannot be read")
    shallow = read_file(common / "shallow", common, _MAX_REFS)
    if isinstance(shallow, Problem):
        raise GitFailed(f"the file shallow of the repository {shallow.message}")
    for name in ("objects", "refs"):
        (folder / name).mkdir()
    is_sha256 = len(head) == _SHA256_DIGITS
    version, more = (1, "[extensions]\n\tobjectFormat = sha256\n") if is_sha256 else (0, "")
    (folder / "config").write_text(f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{more}")
    (folder / "HEAD").write_text(f"{head}\n")
    if shallow is not None:
        (folder / "shallow").write_bytes(shallow.data)


def _lines(texts: Iterable[str]) -> bytes:
    """Return lines for Git's input; raises GitFailed for a text with a line break."""
    texts = list(texts)
    if any(map(_LINE_BREAK.search, texts)):
        raise GitFailed("the path of the project has a line break, so git cannot search its history")
    return b"".join(os.fsencode(text) + b"\n" for text in texts)
