"""Git repositories with fixed dates, for tests: one commit an hour."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

BEGIN = datetime(2026, 5, 1, 8, tzinfo=UTC)


class History:
    """A repository in a folder; each commit is an hour after the one before."""

    def __init__(self, folder: Path, *, begins: bool = True) -> None:
        self.folder = folder
        self.at = BEGIN
        folder.mkdir(parents=True, exist_ok=True)
        if begins:
            self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, text: str | None = None) -> str:
        """Run Git with `text` as input; returns what it prints."""
        stamp = f"{self.at.timestamp():.0f} +0000"
        own = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp, "GIT_CONFIG_GLOBAL": os.devnull}
        identity = ("-c", "user.name=ada", "-c", "user.email=ada@example.com", "-c", "protocol.file.allow=always")
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        given = None if text is None else text.encode()
        done = subprocess.run(command, env=os.environ | own, check=True, capture_output=True, input=given)
        return done.stdout.decode("utf-8", "replace").strip()

    def write(self, **files: str) -> None:
        """Write files; in a keyword, `__` is `/` and the ending is `.py`."""
        for name, text in files.items():
            path = self.folder / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def commit(self, message: str = "change") -> str:
        """Commit everything, and return the ID of the commit."""
        self.at += timedelta(hours=1)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


def body(name: str, lines: int = 12) -> str:
    """Return a function that is long enough for a rename to be recognised."""
    return f"def {name}(rows):\n" + "".join(f"    {name}_{n} = rows[{n}] + {n}\n" for n in range(lines)) + "\n\n"
