"""Long computations are done in small steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.base.steps import Steps, Work, run_all, sort_in_steps


def count_to(number: int) -> Steps[int]:
    for _ in range(number):
        yield
    return number


def test_work_without_time_does_one_step() -> None:
    work = Work(count_to(2))
    assert [work.run_for(0) for _ in range(4)] == [None, None, 2, 2]


def test_work_can_be_finished_at_any_time() -> None:
    work = Work(count_to(5))
    assert work.run_for(0) is None
    assert work.finish() == work.finish() == 5
    assert work.run_for(0) == 5


@given(st.lists(st.tuples(st.integers(0, 5), st.integers()), max_size=20).map(lambda items: items * 60))
def test_sorting_in_steps_is_sorting(items: list[tuple[int, int]]) -> None:
    assert run_all(sort_in_steps(items, lambda item: item[0])) == sorted(items, key=lambda item: item[0])


def test_sorting_yields_between_parts() -> None:
    assert len(list(sort_in_steps(range(2_000), lambda number: -number))) > 2_000
