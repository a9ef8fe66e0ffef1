from __future__ import annotations

from pathlib import Path

from tests.tui.story import story
from tui.widgets.text_pane import TextPane


async def test_reflections_are_filtered_and_sorted(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("reflections")
        everything = len(told.table.keys)
        assert everything == len(told.app.view.snapshot.reflections) > 10
        await told.filter("kind:error")
        reflections = told.app.view.snapshot.reflections
        assert 0 < len(told.table.keys) < everything
        assert {reflections[key].kind for key in told.table.keys} == {"error_analysis"}
        await told.press("escape")
        assert len(told.table.keys) == everything
        await told.press("S")
        kinds = [reflections[key].kind for key in told.table.keys]
        assert kinds == sorted(kinds)


async def test_the_whole_reflection_stands_below(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("reflections")
        for _ in range(8):
            key = told.table.cursor_key
            assert key is not None
            reflection = told.app.view.snapshot.reflections[key]
            text = told.place.query_one(TextPane).plain
            assert reflection.text.split("\n")[0][:40] in text
            assert reflection.file in text
            await told.press("j")


async def test_enter_leads_to_the_loop(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("loops")
        await told.filter("status:nothing-like-this")
        await told.go("reflections")
        await told.filter("loop:ralph")
        reflections = told.app.view.snapshot.reflections
        loop = reflections[told.table.cursor_key or ""].loop_id
        await told.press("enter")
        await told.until(lambda: told.place.place == "loops", "Loops in front")
        await told.until(lambda: told.table.cursor_key == told.app.view.loop(loop).id, "the loop under the cursor")


async def test_a_reflection_without_a_known_loop_says_so(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("reflections")
        known = told.app.view.snapshot.loops
        aliases = {alias for loop in known.values() for alias in loop.aliases}
        lost = [
            key for key, r in told.app.view.snapshot.reflections.items()
            if r.loop_id not in known and r.loop_id not in aliases
        ]  # fmt: skip
        assert lost
        told.place.go_to(lost[0])
        await told.pilot.pause()
        await told.press("enter")
        assert "loop of this reflection is not known" in told.toasts()[-1]
        assert told.place.place == "reflections"
