"""The dashboard with a failure injected: `python -m tests.e2e.runner WHERE PROJECT`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NoReturn

from core.project.project import Project
from tui.app import RalphdeckApp
from tui.cli import main
from tui.screens.patterns import PatternsScreen

MESSAGE: Final = "\x1b]0;RDXtitle\x07 \x1b[31mbroken\x9b [/] [@click=app.exit()]x[/] \ud800 broken"
SECRET: Final = "a local variable RDXsecret"


def _fail(*_args: object, **_more: object) -> NoReturn:
    secret = SECRET
    raise ValueError(MESSAGE[: len(secret) * 10])


class _Shown(Exception):
    """Some exceptions define how rich shows them."""

    def __rich__(self) -> str:
        return f"[bold]{MESSAGE}"


def _fail_richly(*_args: object, **_more: object) -> NoReturn:
    raise _Shown(MESSAGE)


def _work_and_fail(app: RalphdeckApp) -> None:
    app.run_worker(_fail, thread=True)


if __name__ == "__main__":
    where, project = sys.argv[1:]
    match where:
        case "rich":
            RalphdeckApp.action_theme = _fail_richly  # type: ignore[method-assign]
        case "drawing":
            PatternsScreen.cells = _fail  # type: ignore[method-assign]
        case "start":
            RalphdeckApp.get_theme_variable_defaults = _fail  # type: ignore[method-assign]
        case "worker":
            RalphdeckApp.action_theme = _work_and_fail  # type: ignore[assignment, method-assign]
        case "engine":
            Project.refresh = Project.load = _fail  # type: ignore[method-assign]
    main([str(Path(project))])
