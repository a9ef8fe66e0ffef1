"""Records share equal values."""

from __future__ import annotations

import msgspec

from core.records.loops import InjectedUse
from core.records.patterns import RecordedCounts, SourceLoop
from core.records.reflections import Reflection
from core.sources.loop_facts import LoopFact
from core.sources.parsed_file import ParsedFile
from core.sources.shared_values import SharedValues
from tests.factories import make_pattern


def test_equal_values_of_several_files_are_one_object_and_nothing_changes() -> None:
    parsed = ParsedFile(
        patterns=(
            make_pattern(
                "one",
                category="fix_logic_error",
                tags=("auth token", "cache pool"),
                recorded_counts=RecordedCounts(rate=0.5, uses=3),
                source_loops=(SourceLoop(loop_id="loop-of-both"),),
            ),
        ),
        loops=(
            LoopFact(
                source="loops",
                file="state.json",
                loop_id="loop-of-both",
                injected=(InjectedUse(pattern_id="pat-error-1"),),
            ),
        ),
        reflections=(Reflection(id="r", shape="state", file="state.json", loop_id="loop-of-both"),),
    )
    encoded = msgspec.msgpack.encode(parsed)
    values = SharedValues()
    one, other = (values.share(msgspec.msgpack.decode(encoded, type=ParsedFile)) for _ in range(2))
    values.finish()
    assert one == other == parsed
    first, second = one.patterns[0], other.patterns[0]
    assert first is not second
    for name in ("category", "tags", "recorded_counts", "file"):
        assert getattr(first, name) is getattr(second, name)
    loop, reflection = other.loops[0], other.reflections[0]
    assert loop.loop_id is reflection.loop_id is first.source_loops[0].loop_id
    assert loop.file is reflection.file
    assert loop.injected[0].pattern_id is one.loops[0].injected[0].pattern_id
