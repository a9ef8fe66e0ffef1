"""Options of commands that show a past moment."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import BadInput
from core.base.formatting import parse_past_time
from core.cli.render.output import remark
from core.cli.support.project import now, open_reader

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.findings import Finding


class PastMoment(click.ParamType[datetime]):
    """A past moment; with `end_of_day` a date means the end of that day."""

    name = "date"

    def __init__(self, *, end_of_day: bool) -> None:
        self._end_of_day = end_of_day

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return parse_past_time(str(value), now(), end_of_day=self._end_of_day)
        except BadInput as error:
            self.fail(str(error), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "DATE|7d"


as_of_option: Final = click.option(
    "--as-of", type=PastMoment(end_of_day=True), help="Show the state at that time, or at the end of that day."
)


def state_as_of(when: datetime | None) -> ProjectState:
    """Load the state of the chosen project, now or at a past moment."""
    state = open_reader(reads_agents=True).view
    if when is None:
        return state
    from core.project.as_of import build_past_state  # most commands show the present

    return build_past_state(state, when)


def remark_undated(findings: Iterable[Finding]) -> None:
    from core.project.as_of import UNDATED

    for finding in findings:
        if finding.code == UNDATED:
            remark(finding.message)
