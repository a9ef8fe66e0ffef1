from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from core.records.decisions import Decision, Verb
from core.sources.patterns import ArchivedPattern
from tests.factories import NOW, make_pattern
from tui.palette import ARCHIVED, MAX_OF_A_KIND, PaletteIndex


def index(**texts: str) -> PaletteIndex:
    """An index of patterns by id and title, one reflection, one decision and one archived pattern."""
    patterns = {name.replace("_", "-"): make_pattern(name, title=text) for name, text in texts.items()}
    decision = Decision(id="d-7", at=NOW, by="ana", verb=Verb.ARCHIVE, subject="pat-gone", reason="the library is gone")
    snapshot: Any = SimpleNamespace(
        number=1,
        patterns=patterns,
        loops={},
        tasks={},
        debug_sessions={},
        reflections={"ref-1": SimpleNamespace(text="Read the error first")},
        lessons={"lesson:1": SimpleNamespace(text="The staging server is in Oslo")},
        decisions=(decision,),
    )
    question = SimpleNamespace(question_key="duplicate:x", subject="pat-one", question="Do they say the same?")
    view: Any = SimpleNamespace(snapshot=snapshot, queue=(question,))
    return PaletteIndex(view, (ArchivedPattern(pattern=make_pattern("pat-gone", title="Old"), file="a.json"),))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("ERROR first", ("reflection", "reflections", "ref-1")),
        ("library is gone", ("decision", "log", "d-7")),
        ("say the same", ("question", "review", "duplicate:x")),
        ("old", (ARCHIVED, "", "pat-gone")),
        ("two null", ("pattern", "patterns", "pat-two")),
    ],
)
def test_records_are_found_by_their_words(query: str, found: tuple[str, str, str]) -> None:
    targets = index(pat_one="One", pat_two="Null check").find(query)
    assert [(one.kind, one.place, one.key) for one in targets] == [found]


def test_ids_rank_before_prefixes_and_prefixes_before_words() -> None:
    jumps = index(pat_null="a", pat_null_2="b", other="pat-null in words", x_pat_null="c")
    assert [one.id for one in jumps.find("Pat-Null")] == ["pat-null", "pat-null-2", "x-pat-null", "other"]


def test_matches_per_kind_are_limited_and_hostile_text_is_one_plain_line() -> None:
    jumps = index(**{f"pat_{n}": "a\x1b[31m\nb [red]" for n in range(100)})
    found = jumps.find("pat")
    assert sum(one.kind == "pattern" for one in found) == MAX_OF_A_KIND
    assert all(one.shown.isprintable() for one in found)
    assert jumps.find(" \n ") == []
    assert jumps.find("\x00" * 500) == []


def test_the_rarest_word_ranks_highest() -> None:
    jumps = index(**{f"pat_{n}": f"undefined number {n}" for n in range(20_000)})
    assert [one.id for one in jumps.find("undefined 19999")] == ["pat-19999"]


def test_patterns_are_found_by_their_description_which_is_shown_around_the_match() -> None:
    pattern = make_pattern("pat-one", title="Title", description=f"{'filler ' * 60}a rare Quetzal [b]\x1b[31m")
    snapshot: Any = SimpleNamespace(
        number=1,
        patterns={"pat-one": pattern},
        loops={},
        tasks={},
        debug_sessions={},
        reflections={},
        lessons={},
        decisions=(),
    )
    view: Any = SimpleNamespace(snapshot=snapshot, queue=())
    [found] = PaletteIndex(view, ()).find("quetzal rare")
    assert found.id == "pat-one"
    assert "a rare Quetzal" in found.shown
    assert found.shown.isprintable()
