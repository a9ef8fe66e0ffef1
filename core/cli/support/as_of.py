"""Options and views of commands that look at a past moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from core.base.errors import BadInput
from core.base.time_parsing import parse_past_time
from core.cli.render.output import remark
from core.cli.support.project import now, open_deck
from core.records.findings import Finding

if TYPE_CHECKING:
    from core.state.project_state import ProjectState

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class PastMoment(click.ParamType[datetime]):
    """A moment of the past.

    Args:
        end_of_day: What a day without a time means; see `core.base.time_parsing.parse_past_time`.
    """

    name = "date"

    def __init__(self, *, end_of_day: bool) -> None:
        self._end_of_day = end_of_day

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The moment, aware UTC; a usage error for anything else."""
        if isinstance(value, datetime):
            return value
        try:
            moment = parse_past_time(str(value), now(), end_of_day=self._end_of_day)
        except BadInput as error:
            self.fail(str(error), param, ctx)
        return moment

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The forms, as the help shows them."""
        return "DATE|7d"


def as_of_option(command: Decorated) -> Decorated:
    """`--as-of DATE`."""
    return click.option(
        "--as-of",
        "as_of",
        type=PastMoment(end_of_day=True),
        help="As it was then: evidence and decisions up to that moment, or to the end of that day.",
    )(command)


def view_as_of(when: datetime | None) -> ProjectState:
    """The view of the chosen project, now or as of a moment."""
    view = open_deck().view
    if when is None:
        return view
    from core.history.as_of import build_past_state  # most commands look at the present

    return build_past_state(view, when)


def tell_undated(findings: Iterable[Finding]) -> None:
    """Say what of the past is not known."""
    from core.history.as_of import UNDATED

    for finding in findings:
        if finding.code == UNDATED:
            remark(finding.message)
