"""Collections that are updated file by file equal those that are made from nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from core.records.reflections import Reflection
from core.sources.record_collections import ReflectionCollection

AT = datetime(2026, 4, 30, 10, tzinfo=UTC)
FILES = tuple(f".aiwg/ralph/loops/a/reflections/reflection-{number}.json" for number in range(6))
REFLECTION = st.tuples(st.sampled_from("abcdef"), st.sampled_from((None, 0, 1, 2)))


def collect(content: dict[str, tuple[Reflection, ...]]) -> list[tuple[str, Reflection]]:
    found = ReflectionCollection()
    for file, reflections in content.items():
        found.replace(file, reflections)
    found.join({})
    return list(found.records.items())


@given(st.lists(st.tuples(st.sampled_from(FILES), st.lists(REFLECTION, max_size=2, unique_by=lambda one: one[0]))))
def test_reflections_stay_newest_first(changes: list[tuple[str, list[tuple[str, int | None]]]]) -> None:
    updated, content = ReflectionCollection(), {}
    for file, reflections in changes:
        content[file] = tuple(
            Reflection(
                id=text,
                shape="hook",
                file=file,
                loop_id="a",
                learning=text,
                at=None if minutes is None else AT + timedelta(minutes=minutes),
            )
            for text, minutes in reflections
        )
        updated.replace(file, content[file])
        updated.join({})
        assert list(updated.records.items()) == collect(content)
