"""Figures made by hand."""

from __future__ import annotations

from core.metrics.figures import Figure, Kind, Row

HOSTILE = "=cmd()|'\x1b]0;x\x07<script>alert(1)</script>\n## [link](x) & \u202e|"
"""What an error may be called by who wishes ill."""


def bars(*labels: str) -> Figure:
    """Bars of one part, each shorter than the one before."""
    rows = tuple(
        Row(label=label, values=(float(len(labels) - n),), count=len(labels) - n) for n, label in enumerate(labels)
    )
    return Figure(
        id="causes", title="Causes", takeaway=f"Most often: {labels[0]}", kind=Kind.BARS, about="cause",
        parts=("times",), rows=rows, note="How to read it.",
    )  # fmt: skip


def columns(*weeks: tuple[int, int]) -> Figure:
    """Weeks with what worked and what failed."""
    count = len(weeks)
    rows = tuple(
        Row(label=f"{n + 1} Nov", values=week, count=sum(week), week=count - n - 1) for n, week in enumerate(weeks)
    )
    return Figure(
        id="evidence", title="Evidence", takeaway="9 uses", kind=Kind.COLUMNS, about="week from",
        parts=("worked", "failed"), rows=rows, note="",
    )  # fmt: skip


def curve(*rates: float | None) -> Figure:
    """Weeks with a rate and an interval of .2 around it; a gap where it is None."""
    rows = tuple(
        Row(label=f"{n + 1} Nov", values=(), week=len(rates) - n - 1)
        if rate is None
        else Row(
            label=f"{n + 1} Nov",
            values=(rate,),
            low=max(rate - 0.1, 0.0),
            high=min(rate + 0.1, 1.0),
            count=5,
            week=len(rates) - n - 1,
        )
        for n, rate in enumerate(rates)
    )
    return Figure(
        id="success", title="Success", takeaway="Success fell", kind=Kind.CURVE, about="week from",
        parts=("success",), rows=rows, reach="90 % interval", percent=True,
    )  # fmt: skip


def spans(*spans: tuple[float, float, float]) -> Figure:
    """Lowest, average and highest."""
    rows = tuple(
        Row(label=f"task {n}", values=(value,), low=low, high=high, count=4)
        for n, (low, value, high) in enumerate(spans)
    )
    return Figure(
        id="iterations", title="Iterations", takeaway="-2.0 iterations", kind=Kind.SPANS, about="tasks",
        parts=("average",), rows=rows, reach="fewest – most",
    )  # fmt: skip
