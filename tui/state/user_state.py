"""User state kept between runs: theme and glyphs; screen and filters per project."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_PROJECTS = 50  # projects that are remembered, the most recent ones


@dataclass
class UserState:
    """Values stored in a JSON file in the user's state folder. Losing it is harmless."""

    path: Path
    project: str  # key of the open project
    values: dict[str, Any] = field(default_factory=dict)
    _set: set[str] = field(default_factory=set)  # names that were set since the last `load` or `save`

    def load(self) -> None:
        """Read the file, skipping invalid values. Values not yet saved here are kept."""
        try:
            values = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return
        if isinstance(values, dict):
            here = self._projects().get(self.project)
            values |= {name: self.values[name] for name in self._set}
            self.values = values
            if here is not None:
                self._projects().pop(self.project, None)
                self._projects()[self.project] = here

    def save(self) -> None:
        """Write the file atomically, merged with the changes of other dashboards."""
        self.load()
        self._set.clear()
        projects = self._projects()
        while len(projects) > MAX_PROJECTS:
            projects.pop(next(iter(projects)))
        temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(self.values, indent=1), encoding="utf-8")
            temporary.replace(self.path)

    def get(self, name: str, default: str = "") -> str:
        """Return a value that applies to all projects."""
        value = self.values.get(name)
        return value if isinstance(value, str) else default

    def set(self, name: str, value: str) -> None:
        self.values[name] = value
        self._set.add(name)

    def get_here(self, name: str, default: str = "") -> str:
        """Return a value that applies to the open project."""
        here = self._projects().get(self.project)
        value = here.get(name) if isinstance(here, dict) else None
        return value if isinstance(value, str) else default

    def set_here(self, name: str, value: str) -> None:
        projects = self._projects()
        here = projects.pop(self.project, None)
        projects[self.project] = {**(here if isinstance(here, dict) else {}), name: value}

    def forget_here(self) -> None:
        self._projects()[self.project] = {}

    def _projects(self) -> dict[str, Any]:
        projects = self.values.get("projects")
        if not isinstance(projects, dict):
            projects = self.values["projects"] = {}
        return projects
