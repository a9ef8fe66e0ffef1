from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from core.records.loops import Loop
from core.sources.loop_union import LoopUnion, newest_first

START = datetime(2026, 11, 20, 9, tzinfo=UTC)
NONE: frozenset[str] = frozenset()


def loop(id: str, hours: int, **fields: object) -> Loop:
    return Loop(id=id, started_at=START + timedelta(hours=hours), **fields)  # type: ignore[arg-type]


def by_id(*loops: Loop) -> dict[str, Loop]:
    return {one.id: one for one in loops}


def test_loops_of_adapters_are_ordered_by_start_among_the_own_ones() -> None:
    union = LoopUnion()
    own = by_id(loop("b", 3), loop("a", 1))
    assert union.join(own, frozenset(own), by_id(loop("codex:1", 2))) == {"a", "b", "codex:1"}
    assert list(union.records) == ["b", "codex:1", "a"]


def test_without_adapters_the_own_mapping_is_used_as_it_is() -> None:
    union, own = LoopUnion(), by_id(loop("a", 1))
    assert union.join(own, frozenset(own), {}) == {"a"}
    assert union.records is own


def test_a_loop_that_is_equal_to_the_last_one_is_not_reported() -> None:
    union = LoopUnion()
    union.join({}, NONE, by_id(loop("codex:1", 2), loop("codex:2", 1)))
    assert union.join({}, NONE, by_id(loop("codex:1", 2), loop("codex:2", 1, iteration=4))) == {"codex:2"}


def test_a_loop_that_an_adapter_no_longer_finds_is_removed() -> None:
    union = LoopUnion()
    own = by_id(loop("a", 1))
    union.join(own, frozenset(own), by_id(loop("codex:1", 2)))
    assert union.join(own, NONE, {}) == {"codex:1"}
    assert list(union.records) == ["a"]


def test_a_loop_of_aiwg_has_precedence_over_an_adapter_with_its_id() -> None:
    union = LoopUnion()
    own = by_id(loop("codex:1", 1, task="of .aiwg"))
    union.join(own, frozenset(own), by_id(loop("codex:1", 2, task="of the adapter")))
    assert union.records["codex:1"].task == "of .aiwg"


STEPS = st.lists(
    st.tuples(st.booleans(), st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(0, 3), st.integers(0, 1)))),
    max_size=6,
)


@given(STEPS)
def test_the_union_after_any_changes_is_that_of_the_newest_mappings(
    steps: list[tuple[bool, dict[str, tuple[int, int]]]],
) -> None:
    union = LoopUnion()
    own: dict[str, Loop] = {}
    adapted: dict[str, Loop] = {}
    for is_own, values in steps:
        before = dict(union.records)
        prefix = "" if is_own else "codex:"
        found = newest_first(loop(prefix + id, hours, iteration=n) for id, (hours, n) in values.items())
        changed = NONE
        if is_own:
            changed = frozenset(id for id in own.keys() | found.keys() if own.get(id) != found.get(id))
            own = found if changed else own
        else:
            adapted = found
        reported = union.join(own, changed, adapted)
        assert list(union.records.items()) == list(newest_first([*own.values(), *adapted.values()]).items())
        assert reported == {i for i in before.keys() | union.records.keys() if before.get(i) != union.records.get(i)}
