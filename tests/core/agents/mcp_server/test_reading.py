"""The tools that read answer with texts for the model and the same as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.agents.agent_table import MCP_TOOLS
from core.agents.mcp_server.results import WITHHELD
from core.decisions.commands import Promote
from core.retrieval.rendering import count_tokens
from tests.core.agents.mcp_server.conftest import LOOP, TASK, Server, text_of
from tests.fence_token import FENCE_TOKEN

READING = ("known_fix", "search_patterns", "explain_pattern", "past_attempts", "list_loops")
NEW_TASK = "Speed up the report query of the warehouse"
WRITING = ("loop_context", "report_outcome", "propose_lesson")


async def test_the_eight_tools_are_listed_with_their_annotations(reader: Server) -> None:
    async with reader.client() as agent:
        listed = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
    assert set(listed) == {*READING, *WRITING}
    for name, tool in listed.items():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name in READING)
        assert tool.annotations.open_world_hint is False
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
    for name in WRITING:
        hints = listed[name].annotations
        assert hints is not None and (hints.destructive_hint, hints.idempotent_hint) == (False, True)
    sizes = [len(one.name) + len(one.description or "") + len(json.dumps(one.input_schema)) for one in listed.values()]
    assert sum(sizes) < 6100  # every agent pays for them


async def test_a_context_is_marked_as_data_and_names_its_patterns(reader: Server) -> None:
    async with reader.client() as agent:
        found = await agent.call("loop_context", task=TASK)
    assert found.structured_content is not None
    data = found.structured_content
    assert text_of(found) == data["text"] and data["text"].startswith("<unreviewed-")
    assert data["injection_id"] is None
    assert data["tokens"] == count_tokens(data["text"]) <= 1200
    assert {one["id"]: one for one in data["patterns"]}["pat-error-type-mismatch-003"] == {
        "id": "pat-error-type-mismatch-003",
        "kind": "error_fix",
        "state": "proven",
        "title": "TypeError: type mismatch",
        "voice": "unreviewed",
        "success_rate": 0.94,
        "uses": 18,
        "given": 5,
        "seen": 1,
    }


async def test_a_context_has_at_most_max_tokens_and_counts_the_rest(reader: Server) -> None:
    async with reader.client() as agent:
        for tokens in (200, 400, 8000):
            data = await agent.data("loop_context", task=f"{TASK}: split the work into parts", max_tokens=tokens)
            assert count_tokens(data["text"]) == data["tokens"] <= tokens
            assert data["left_out"] > 0 or tokens == 8000
        data = await agent.data("loop_context", task="zzz")
    assert "No lesson" in data["text"] and not data["patterns"]


async def test_types_choose_what_a_context_has(reader: Server) -> None:
    async with reader.client() as agent:
        for kind, kinds in (("anti_pattern", {"anti_pattern"}), ("approach", {"approach", "template"})):
            data = await agent.data("loop_context", task=TASK, types=[kind])
            assert {one["kind"] for one in data["patterns"]} == kinds
            assert "### Reflections" not in data["text"]
        data = await agent.data("loop_context", task=TASK, types=["decision"])
    assert not data["patterns"] and "### Reflections" in data["text"]


async def test_the_same_task_of_a_loop_within_the_hour_is_one_injection_for_all_servers(
    server: Server, folder: Path
) -> None:
    async with server.client() as agent:
        first = await agent.data("loop_context", task=TASK, loop=LOOP)
        server.wait(minutes=59)
        again = await agent.data("loop_context", task=TASK, loop=LOOP)
        other = await agent.data("loop_context", task="Another task", loop=LOOP)
        server.wait(minutes=2)
        later = await agent.data("loop_context", task=TASK, loop=LOOP)
        new = await agent.data("loop_context", task=NEW_TASK, loop=LOOP)
    assert first["injection_id"] == again["injection_id"]
    assert len({first["injection_id"], other["injection_id"], later["injection_id"]}) == 3
    injected = [event for event in server.project.view.snapshot.events if event.text == first["injection_id"]]
    ids = [event.pattern_id for event in injected if event.pattern_id]
    assert ids and len(ids) == len(set(ids)) and set(ids) <= {one["id"] for one in first["patterns"]}
    assert {event.by for event in injected} == {"mcp:claude-code"} and {event.loop_id for event in injected} == {LOOP}
    second = Server(folder)
    second.wait(minutes=65)
    async with second.client() as agent:
        assert (await agent.data("loop_context", task=NEW_TASK, loop=LOOP))["injection_id"] == new["injection_id"]


async def test_a_known_fix_has_its_results_and_origin(reader: Server) -> None:
    async with reader.client() as agent:
        data = await agent.data("known_fix", message="TypeError: Cannot read property 'id' of null", limit=2)
        other = await agent.data(
            "known_fix", message="Segmentation fault in warp core", file="a.c", error_type="Signal"
        )
    assert data["known"] and len(data["fixes"]) == 2
    assert data["fixes"][0] == {
        "fix": "Early return for a user that is null",
        "category": "null_undefined_access",
        "seen": 1,
        "held": 1,
        "origin": "991606f9-a5b6-4ef0-ac32-f54504fd0236",
        "match": "message",
    }
    assert data["fixes"][1]["match"] == "pattern"
    assert (other["known"], other["fixes"]) == (False, [])
    assert other["text"].startswith("No fix of this error is known.")


async def test_the_data_of_every_tool_has_the_text_for_the_model(server: Server) -> None:
    calls: dict[str, dict[str, Any]] = {
        "loop_context": {"task": TASK},
        "known_fix": {"message": "TypeError: Cannot read property 'id' of null"},
        "search_patterns": {"query": "null check"},
        "explain_pattern": {"pattern_id": "pat-error-null-check-015"},
        "past_attempts": {"task": TASK},
        "list_loops": {},
        "report_outcome": {"result": "success", "summary": "done"},
        "propose_lesson": {"kind": "approach", "when": "a", "lesson": "b", "evidence": "c"},
    }
    assert set(calls) == set(MCP_TOOLS)
    async with server.client() as agent:
        for name, arguments in calls.items():
            found = await agent.call(name, **arguments)
            assert found.structured_content is not None and found.structured_content["text"] == text_of(found)


async def test_a_search_lists_titles_and_filters_states(reader: Server) -> None:
    async with reader.client() as agent:
        found = await agent.call("search_patterns", query="null check", limit=3)
        proven = await agent.data("search_patterns", query="type", states=["proven"], limit=20)
        old = await agent.data("search_patterns", query="pat-", states=["deprecated"], limit=20)
    assert found.structured_content is not None
    assert found.structured_content["patterns"][0]["id"] == "pat-error-null-check-015"
    assert len(found.structured_content["patterns"]) == 3 < found.structured_content["total"]
    assert "Guard the object" not in text_of(found)
    assert {one["state"] for one in proven["patterns"]} == {"proven"}
    assert {one["state"] for one in old["patterns"]} == {"deprecated"}


async def test_an_explanation_has_text_rules_and_loops(reader: Server) -> None:
    async with reader.client() as agent:
        data = await agent.data("explain_pattern", pattern_id="type-mismatch")
        error = await agent.error("explain_pattern", pattern_id="pat-error-nothing-999")
    assert data["pattern"]["id"] == "pat-error-type-mismatch-003"
    assert "Correct the interface" in data["text"]
    assert any("proven by rule" in one for one in data["reasons"]) and len(data["loops"]) == 5
    assert "no pattern 'pat-error-nothing-999'" in error


async def test_the_text_of_a_quarantined_pattern_is_withheld(reader: Server) -> None:
    async with reader.client() as agent:
        data = await agent.data("explain_pattern", pattern_id="pat-success-openapi-first-007")
        found = await agent.data("search_patterns", query="openapi first", limit=20)
    assert (
        WITHHELD in data["text"] and data["pattern"]["title"] == WITHHELD and data["pattern"]["state"] == "quarantine"
    )
    assert "pat-success-openapi-first-007" not in {one["id"] for one in found["patterns"]}


async def test_past_attempts_have_outcome_approach_and_learnings(reader: Server) -> None:
    async with reader.client() as agent:
        data = await agent.data("past_attempts", task="Migrate src/utils to TypeScript strict mode", limit=1)
    (task,) = data["tasks"]
    assert task["task"].startswith("task-") and task["attempts"] > 0
    assert task["learned"] and task["approach"] and 0.35 <= task["similarity"] <= 1


async def test_loops_can_be_listed_by_status(reader: Server) -> None:
    async with reader.client() as agent:
        loops = {word: await agent.data("list_loops", status=word) for word in ("active", "waiting", "ended", "all")}
    assert {one["status"] for one in loops["active"]["loops"]} == {"running"}
    assert len(loops["active"]["loops"]) == loops["all"]["running"]
    assert len(loops["waiting"]["loops"]) == loops["all"]["waiting"]
    assert {one["status"] for one in loops["ended"]["loops"]}.isdisjoint({"running", "paused"})
    assert loops["all"]["loops"][0]["task"] == "Add rate limiting to the login endpoint"


async def test_resources_have_context_patterns_and_loops(reader: Server) -> None:
    async with reader.client() as agent:
        reader.seconds += 60
        texts = [
            (await agent.client.read_resource(f"ralphdeck://{place}")).contents[0]
            for place in ("context", "patterns/pat-error-type-mismatch-003", f"loops/{LOOP}")
        ]
        listed = (await agent.client.list_resource_templates()).resource_templates
    context, pattern, loop = (getattr(one, "text", "") for one in texts)
    assert "<unreviewed-" in context
    assert json.loads(pattern)["pattern"]["state"] == "proven"
    assert json.loads(loop)["id"] == LOOP and json.loads(loop)["injected"]
    assert [one.uri_template for one in listed] == ["ralphdeck://patterns/{id}", "ralphdeck://loops/{id}"]


async def test_the_context_resource_has_the_context_of_the_only_active_loop(tmp_path: Path) -> None:
    place = tmp_path / ".aiwg/ralph/loops/ralph-a/state.json"
    place.parent.mkdir(parents=True)
    server = Server(tmp_path)
    state = {"loopId": "ralph-a", "task": "Fix it", "status": "running", "lastUpdate": server.now.isoformat()}
    place.write_text(json.dumps(state))
    async with server.client() as agent:
        content = (await agent.client.read_resource("ralphdeck://context")).contents[0]
    assert "No lesson of earlier work matches" in getattr(content, "text", "")


async def test_prompts_ask_for_a_report_and_leave_deleting_to_the_user(reader: Server) -> None:
    from mcp.types import TextContent

    async with reader.client() as agent:
        texts = [
            (await agent.client.get_prompt(name, arguments)).messages[0].content
            for name, arguments in (("reflect", {"task": "Fix it\x1b[31m"}), ("tidy_memory", {}))
        ]
    reflect, tidy = texts
    assert isinstance(reflect, TextContent) and isinstance(tidy, TextContent)
    assert "report_outcome" in reflect.text and "Fix it" in reflect.text and "\x1b" not in reflect.text
    assert "only if the user agrees" in tidy.text


async def test_approved_patterns_have_a_block_of_their_own_in_every_answer(server: Server) -> None:
    pattern_id = "pat-error-type-mismatch-003"
    server.project.decide(Promote(pattern_id, reason="read"))
    server.seconds += 60
    async with server.client() as agent:
        context = await agent.data("loop_context", task=TASK)
        fixes = await agent.data("known_fix", message="Type 'a' is not assignable to type 'b'")
        found = await agent.data("search_patterns", query="type mismatch")
        explained = await agent.data("explain_pattern", pattern_id=pattern_id)
        page = (await agent.client.read_resource("ralphdeck://context")).contents[0]
    assert {one["id"]: one["voice"] for one in context["patterns"]}[pattern_id] == "approved"
    assert explained["pattern"]["voice"] == "approved"
    for text in (context["text"], fixes["text"], found["text"], explained["text"], getattr(page, "text", "")):
        approved, _, others = text.partition("</approved-")
        assert "TypeError: type mismatch" in approved.partition("<approved-")[2]
        assert "TypeError: type mismatch" not in others


async def test_a_long_answer_is_cut_inside_its_block(reader: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.agents.mcp_server.results.MAX_TOKENS", 200)
    async with reader.client() as agent:
        data = await agent.data("list_loops", limit=100)
    assert "more lines left out)" in data["text"] and count_tokens(data["text"]) <= 200
    assert data["text"].rstrip().endswith(f"</unreviewed-{FENCE_TOKEN}>")
