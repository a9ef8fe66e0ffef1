"""Collections that are updated file by file equal those that are made from nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from core.sources.record_collections import PatternCollection, ReflectionCollection
from hypothesis import given
from hypothesis import strategies as st

from core.records.reflections import Reflection
from tests.factories import make_pattern

AT = datetime(2026, 4, 30, 10, tzinfo=UTC)
FILES = tuple(f".aiwg/ralph/loops/a/reflections/reflection-{number}.json" for number in range(6))
PATTERN_FILES = (".aiwg/ralph/shared/patterns/a.json", ".aiwg/ralph/shared/patterns/b.json", "copies/c.json")
PATTERNS = st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from(("one", "other"))), max_size=3)
REFLECTION = st.tuples(st.sampled_from("abcdef"), st.sampled_from((None, 0, 1, 2)))


def collect(content: dict[str, tuple[Reflection, ...]]) -> list[tuple[str, Reflection]]:
    found = ReflectionCollection()
    for file, reflections in content.items():
        found.replace(file, reflections)
    found.join({})
    return list(found.records.items())


@given(
    st.lists(
        st.tuples(
            st.sampled_from(FILES),
            st.lists(REFLECTION, max_size=2, unique_by=lambda one: one[0]),
            st.sampled_from(("not yet", "some", "all")),
        )
    )
)
def test_reflections_stay_newest_first(changes: list[tuple[str, list[tuple[str, int | None]], str]]) -> None:
    updated, content = ReflectionCollection(), {}
    before: dict[str, Reflection] = {}
    for file, reflections, joined in changes:
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
        if joined == "some":
            updated.join_some()
        if joined != "all":
            continue
        changed = updated.join({})
        assert list(updated.records.items()) == collect(content)
        assert changed == {id for id in before | updated.records if before.get(id) != updated.records.get(id)}
        before = updated.records


@given(st.lists(st.tuples(st.sampled_from(PATTERN_FILES), PATTERNS, st.booleans())))
def test_patterns_and_their_copies_are_those_of_the_present_files(
    changes: list[tuple[str, list[tuple[str, str]], bool]],
) -> None:
    updated, content = PatternCollection(), {}
    for file, records, is_joined in changes:
        content[file] = tuple(
            make_pattern(id, title=title, file=file, pointer=f"/{place}", copy_folder="copies" * (file[0] == "c"))
            for place, (id, title) in enumerate(records)
        )
        updated.replace(file, content[file])
        if not is_joined:
            continue
        updated.join()
        expected = PatternCollection()
        for present, patterns in content.items():
            expected.replace(present, patterns)
        expected.join()
        assert updated.records == expected.records
        assert all(updated.copies(id) == expected.copies(id) for id in "pqr")
        assert sorted(updated.findings, key=repr) == sorted(expected.findings, key=repr)
