"""Hostile projects: `write_texts` puts payloads into every text field, `write_types` breaks the type of every value.

Times, enumerations and numbers of `write_texts` are valid, so every record is accepted and shown.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.hostile import memory
from tests.hostile.payloads import PAYLOADS
from tests.hostile.sowing import MAX_NAME, Sower, dump, loop_id, pattern_id, when


def _source_loops(n: int, s: Sower) -> list[Any]:
    return [
        {
            "loop_id": loop_id(n),
            "timestamp": when(9),
            "contributed_by": s("by"),
            "outcome": "failure",
            "failure_iteration": 2,
            "iterations_required": 3,
        },
        {"loop_id": loop_id((n + 1) % len(PAYLOADS)), "timestamp": when(5), "outcome": s("outcome")},
        s("bare-loop"),
    ]


def error_pattern(n: int) -> dict[str, Any]:
    """An error pattern with every known key."""
    s = Sower(n)
    return {
        "pattern_id": pattern_id("error", n),
        "type": "error_pattern",
        "error_signature": {
            "error_type": s("Type"),
            "error_pattern": s("signature"),
            "error_location_hints": s.many("hint"),
        },
        "fix_approach": {
            "description": s("a fix that is described with at least twenty characters "),
            "fix_category": s("category"),
            "code_template": s("if (x) {\n  "),
            "code_template_language": s("lang"),
            "diff_pattern": s("- a\n+ b"),
        },
        "success_rate": 0.9,
        "usage_count": 10,
        "source_loops": _source_loops(n, s),
        "last_used": when(3),
        "first_discovered": when(30),
        "effectiveness_trend": [{"timestamp": when(6), "success_rate_snapshot": 0.8, "source_loop": s("trend")}],
        "related_patterns": s.many("related"),
        "tags": s.many("tag"),
        "aliases": s.many("alias"),
        "override": {"state": s("state"), "reason": s("reason"), "by": s("by"), "at": when(2), "decision": s("id")},
        s("unknown-key"): s("unknown value"),
    }


def success_pattern(n: int) -> dict[str, Any]:
    """A success pattern that fails often enough for an inversion proposal."""
    s = Sower(n)
    return {
        "pattern_id": pattern_id("success", n),
        "name": s("name "),
        "task_category": s("debugging"),
        "task_description_pattern": s("fix .*"),
        "approach": {
            "description": s("approach "),
            "steps": s.many("step "),
            "tools_used": s.many("tool "),
            "typical_iterations": {"average": 3, "minimum": 1, "maximum": 9},
        },
        "success_rate": 0.2,
        "usage_count": 10,
        "source_loops": _source_loops(n, s),
        "average_iterations": 3,
        "preconditions": s.many("needs "),
        "benefits": s.many("benefit "),
        "limitations": s.many("limit "),
        "tags": s.many("tag"),
        "last_used": when(3),
    }


def anti_pattern(n: int) -> dict[str, Any]:
    """An anti-pattern."""
    s = Sower(n)
    better = {"description": s("better "), "success_pattern_id": pattern_id("success", n)}
    return {
        "pattern_id": pattern_id("anti", n),
        "approach_description": s("AVOID: "),
        "failure_mode": s("mode"),
        "failure_rate": 0.9,
        "occurrence_count": 8,
        "failure_symptoms": s.many("symptom "),
        "why_it_fails": s("why "),
        "better_alternative": s("better") if n % 2 else better,
        "source_loops": _source_loops(n, s),
        "tags": s.many("tag"),
        "inverted_from": s("inverted"),
        "last_used": when(3),
    }


def template(n: int) -> dict[str, Any]:
    """A code template."""
    s = Sower(n)
    return {
        "template_id": pattern_id("template", n),
        "language": s("typescript"),
        "template_code": s("const {{name}} = "),
        "description": s("description "),
        "use_case": s("use case "),
        "placeholders": {"name": s("placeholder "), s("key"): s("value")},
        "usage_count": 6,
        "success_rate": 0.9,
        "source_loops": [loop_id(n), s("loop")],
        "tags": s.many("tag"),
        "last_used": when(3),
    }


def iteration(n: int, s: Sower) -> dict[str, Any]:
    """An iteration with the keys of every spelling."""
    return {
        "number": n,
        "timestamp": when(1),
        "action": s("action "),
        "result": s("result "),
        "status": s("status"),
        "learnings": s("learned "),
        "duration_ms": 61_000,
        "quality": 0.5,
        "filesModified": s.many("src/"),
    }


def loop_state(n: int) -> dict[str, Any]:
    """State of a loop; every fourth loop is running."""
    s = Sower(n)
    status = ("running", "completed", "failed", s("status"))[n % 4]
    uses = [
        {"pattern_id": pattern_id(kind, n), "applied": True, "successful": n % 2 == 0, "iteration_used": 1}
        for kind in ("error", "success", "anti", "template")
    ]
    return {
        "loopId": loop_id(n),
        "task": s("task "),
        "completion": s("criteria "),
        "status": status,
        "active": status == "running",
        "owner": s("owner"),
        "priority": s("priority"),
        "tags": s.many("tag"),
        "branch": s("branch"),
        "sessionId": s("session"),
        "maxIterations": 10,
        "currentIteration": 3,
        "startTime": when(2),
        "lastUpdate": when(0.001),
        "lastResult": s("last result "),
        "learnings": s.many("learned "),
        "iterations": [iteration(1, s), iteration(2, s), iteration(3, s)],
        "cross_loop_learning": {
            "injected_patterns": [*uses, {"pattern_id": s("pat"), "applied": False}],
            "extracted_patterns": [{"pattern_id": s("pat"), "new": True, "success_rate": 1.0}],
            "improvement_estimate": {"improvement": s("33 %")},
        },
        "metrics": {"selection_reason": s("selection "), "quality_trajectory": s("trajectory ")},
    }


def registry_entry(n: int) -> dict[str, Any]:
    """An entry of the loop registry or of the launcher's registry."""
    s = Sower(n)
    return {
        "loop_id": loop_id(n),
        "task_summary": s("task "),
        "status": ("running", s("status"))[n % 2],
        "started_at": when(2),
        "owner": s("owner"),
        "pid": 1_000_000 + n,
        "iteration": 1,
        "max_iterations": 5,
        "completion_criteria": s("criteria "),
        "priority": s("priority"),
        "tags": s.many("tag"),
    }


def reflection(n: int, shape: str) -> dict[str, Any]:
    """A reflection with the keys of one of the file shapes."""
    s = Sower(n)
    match shape:
        case "episodic":
            return {
                "timestamp": when(1),
                "attempt_id": n,
                "observation": s("observed "),
                "analysis": s("analysed "),
                "learning": s("learned "),
                "action_items": s.many("do "),
                "triggered_by": s("failure"),
                "reflection_type": s("error-analysis"),
            }
        case "reflexion":
            return {
                "loop_id": loop_id(n),
                "iteration": 2,
                "timestamp": when(1),
                "outcome": s("failure"),
                "reflection_text": s("reflected "),
                "causal_reasoning": s("because "),
                "lessons_learned": s.many("lesson "),
                "actionable_insights": s.many("insight "),
                "type": s("type"),
            }
        case "hook":
            return {
                "loop": loop_id(n),
                "iteration": 1,
                "reflection": s("reflected "),
                "strategy_change": s("change "),
                "effectiveness": s("helpful"),
            }
    return {
        "loopId": loop_id(n),
        "iteration": 3,
        "type": s("type"),
        "content": s("content "),
        "effectiveness": s("neutral"),
        "timestamp": when(1),
    }


def memory_task(n: int) -> dict[str, Any]:
    """A task of the cross-task memory with reflections."""
    s = Sower(n)
    return {
        "task_id": s(f"task-{n}-"),
        "task_description": s("task "),
        "task_type": s("type"),
        "timestamp": when(4),
        "outcome": s("success"),
        "iterations": 3,
        "final_quality": 0.7,
        "key_learnings": s.many("learned "),
        "tags": s.many("tag"),
        "loop_id": loop_id(n),
        "reflections": [{"iteration": 1, "type": s("type"), "content": s("content "), "effectiveness": s("helpful")}],
    }


def measured(n: int) -> dict[str, Any]:
    """Analytics or best output of a loop."""
    s = Sower(n)
    return {
        "loop_id": loop_id(n),
        "task_description": s("task "),
        "start_time": when(2),
        "iterations": [
            {
                "iteration_number": 1,
                "timestamp": when(1),
                "quality_score": 50,
                "verification_status": s("failed"),
                "output_snapshot_path": s("/tmp/"),
                "reflections": s.many("reflected "),
            }
        ],
        "total_iterations": 1,
        "selection_reason": s("selection "),
        "quality_trajectory": s("trajectory "),
        "best_iteration_number": 1,
    }


def decision(n: int) -> dict[str, Any]:
    """A line of the decision log: promotions of a changed text, a note, an undo."""
    s = Sower(
        n, [payload for payload in PAYLOADS if payload.name != "lone-surrogate"]
    )  # rejected by the reader of the decision log
    verb = ("promote", "deprecate", "note", "undo")[n % 4]
    kind = ("error", "anti", "template", "error")[n % 4]
    document: dict[str, Any] = {
        "kind": "decision",
        "id": f"{n:017d}-{s('id')[:300]}",
        "at": when(3 - n / 100),
        "by": s("by "),
        "verb": verb,
        "subject": pattern_id(kind, n),
        "reason": s("because "),
        "before": {"state": s("state"), "content_hash": s("hash"), "successes": 3, s("key"): s("value ")},
        "after": {
            "state": "deprecated" if verb == "deprecate" else "proven",
            "text": s("note "),
            "content_hash": s("hash"),
        },
        "effects": [
            {
                "file": s(".aiwg/ralph/shared/patterns/"),
                "type": s("error"),
                "pattern_id": s("pat"),
                "set": {s("key"): s("value")},
                "unset": s.many("key"),
            }
        ],
    }
    if verb == "undo":
        document["subject"] = s("decision")
    return document


def space(n: int) -> dict[str, Any]:
    """The first line of the evidence of a team."""
    return {"kind": "space", "space": Sower(n)("space "), "epoch": when(100), "half_life_days": 90}


def team_sums(n: int) -> dict[str, Any]:
    """A line of the evidence of a team, about a pattern of the project or an unknown one."""
    s = Sower(n)
    counts = {"successes": n % 7, "failures": n % 3, "uses": n % 7 + n % 3, "undecayed": n % 7 + n % 3}
    id = s("pat") if n % 2 else pattern_id("error", n)
    return {"pattern_id": id, **counts, "helpful": 0.5 * (n % 7), "last_used": when(2), s("key"): s("value ")}


EVENT_KINDS: Final = ("applied", "injected", "feedback", "outcome", "feedback", "error", "resolved", "outcome")
"""The first four are about patterns."""


def event(n: int) -> dict[str, Any]:
    """A line of the event log: about a pattern (feedback as one burst), a criterion or a loop, or an error."""
    s = Sower(n)
    number = n // len(PAYLOADS) % len(EVENT_KINDS)
    kind = EVENT_KINDS[number]
    document: dict[str, Any] = {
        "id": f"{n}-{s('id')}",
        "at": when(2),
        "kind": kind,
        "loop_id": PAYLOADS[0].text if number == 2 else s("loop"),
        "success": number != 2 and n % 3 == 0,
        "by": s("by"),
    }
    if number < 4:
        document["pattern_id"] = pattern_id("error", n % len(PAYLOADS))
    elif kind == "feedback":
        document |= {"criterion": s("criterion"), "text": s("said "), "weight": 0.5}
    elif kind == "error":
        document["error"] = {
            "error_type": "timeout",
            "message": s("message "),
            "stack_trace": s("trace "),
            "tool_name": s("tool "),
            "context": s("context "),
        }
    elif kind == "resolved":
        document["resolves"] = s("id")
    else:
        document["signals"] = {
            "duration_ms": 1000,
            "files_touched": [s("file ")],
            "strategy": s("strategy "),
            "failure_mode": s("mode "),
            "failure_details": s("details "),
        }
    return document


class Tree:
    """Writes files below `.aiwg` of a project.

    Args:
        project: The project folder.
    """

    def __init__(self, project: Path) -> None:
        self.aiwg = project / ".aiwg"

    def text(self, name: str, text: str) -> None:
        """Write a file; skips names that the file system does not accept."""
        with contextlib.suppress(OSError, ValueError):
            path = self.aiwg / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "backslashreplace"))

    def json(self, name: str, value: Any) -> None:
        """Write a JSON file."""
        self.text(name, dump(value))

    def lines(self, name: str, values: list[Any]) -> None:
        """Write a JSON lines file."""
        self.text(name, "".join(json.dumps(value) + "\n" for value in values))


def file_name(n: int) -> str:
    """The n-th payload as one component of a path."""
    return f"{n:02d}{PAYLOADS[n].text[:MAX_NAME]}".replace("/", "\u2215").replace("\0", "").replace("\ud800", "")


def write_texts(project: Path) -> None:
    """Write the project in which every text field of every kind of record contains every payload."""
    tree = Tree(project)
    every = range(len(PAYLOADS))
    _write_patterns(tree)
    for n in every:
        _write_loop(tree, n)
    tree.json("ralph/registry.json", {"version": "2.0.0", "active_loops": [registry_entry(n) for n in every]})
    tree.json("ralph-external/registry.json", {"version": "2.0.0", "active_loops": [registry_entry(n) for n in every]})
    launched = {f"launched-{loop_id(n)}": {**registry_entry(n), "outputFile": Sower(n)("/tmp/")} for n in every}
    tree.json("ralph-external/launcher-registry.json", {"loops": launched})
    tree.json("ralph-external/session-state.json", {**loop_state(1), "loopId": Sower(1)("session")})
    tree.json("ralph/current-loop.json", {**loop_state(2), "loopId": Sower(2)("current")})
    for n in every:
        name = file_name(n)
        tree.json(f"ralph/iterations/iteration-{n}.json", iteration(n, Sower(n)))
        tree.text(f"ralph/completion-{name}.md", f"# {Sower(n)('report ')}\n{loop_state(2)['task']}")
        tree.json(f"ralph/memory/tasks/{name}.json", memory_task(n))
        _write_task(tree, n)
        tree.json(f"ralph/reflections/{name}/001.json", reflection(n, "reflexion"))
        tree.json(f"ralph/reflections/loops/{name}/iteration-1.yaml", reflection(n, "hook"))
        tree.json(f"ralph-external/reflections/reflection-{name}.json", reflection(n, "memory-manager"))
    index = [{**memory_task(n), "reflections": []} for n in every]
    tree.json("ralph/memory/task-index.json", {"tasks": index})
    tree.lines("ralph/shared/curation/ledger.jsonl", [decision(n) for n in every])
    tree.lines("ralph/shared/curation/events.jsonl", [event(n) for n in range(len(EVENT_KINDS) * len(PAYLOADS))])
    tree.lines("ralph/shared/team/evidence.jsonl", [space(0), *(team_sums(n) for n in every)])
    for n in every:
        tree.text(f"ralph/shared/patterns/broken-{file_name(n)}.json", '{"x": ' + PAYLOADS[n].text)


def _write_task(tree: Tree, n: int) -> None:
    """Write a task folder with a finished and an open attempt, and a debug session."""
    s, name = Sower(n), file_name(n)
    home = f"ralph/tasks/task-{name}"
    tree.json(f"{home}/metadata.json", memory.task_metadata(n))
    tree.json(f"{home}/trajectory.json", memory.trajectory(n))
    tree.json(f"{home}/summary.json", {"task_id": s("task "), "learnings": s.many("learning ")})
    tree.lines(
        f"{home}/reflections.jsonl", [reflection(n, "episodic"), {**reflection(n + 1, "episodic"), "draft": True}]
    )
    tree.json(f"{home}/attempts/001/attempt.json", memory.attempt(n))
    tree.json(f"{home}/attempts/001/outcome.json", memory.outcome(n))
    tree.lines(f"{home}/attempts/001/actions.jsonl", memory.actions(n))
    tree.text(f"{home}/attempts/001/plan.md", s("# Plan for attempt 1\n\n"))
    tree.text(f"{home}/attempts/001/results/iter-001/{name}", s("result "))
    if n % 5 == 0:
        tree.lines(f"{home}/attempts/002/actions.jsonl", memory.actions(n + 1))
    places = ("ralph/debug-memory/sessions", f"ralph/loops/{name}/debug-memory")
    tree.json(f"{places[n % 2]}/{name}.{'yaml' if n % 3 == 0 else 'json'}", memory.debug_session(n))


def _write_patterns(tree: Tree) -> None:
    """Write pattern files of the four types in every shape."""
    every = range(len(PAYLOADS))
    errors, successes = [error_pattern(n) for n in every], [success_pattern(n) for n in every]
    antis, templates = [anti_pattern(n) for n in every], [template(n) for n in every]
    home = "ralph/shared/patterns"
    registry = {"version": Sower(0)("1"), "pattern_registry": {"error_patterns": errors}}
    tree.json(f"{home}/error-patterns.json", registry)
    tree.json(f"{home}/success-patterns.json", {"success_patterns": successes})
    tree.json(f"{home}/anti-patterns.json", antis)
    tree.json(f"{home}/code-templates.json", {"patterns": templates})
    keyed = {f"{record.pop('pattern_id')}-keyed": record for record in (error_pattern(n) for n in every)}
    tree.json(f"{home}/error-keyed.json", keyed)
    tree.lines(f"{home}/lines.jsonl", [{**anti_pattern(n), "pattern_id": f"{pattern_id('anti', n)}-l"} for n in every])
    tree.json(f"{home}/agent.yaml", [{**error_pattern(n), "pattern_id": f"{pattern_id('error', n)}-y"} for n in every])
    for n in every:
        record = {**success_pattern(n), "pattern_id": f"{pattern_id('success', n)}-one"}
        tree.json(f"{home}/{file_name(n)}.json", record)
    tree.json("ralph/memory/patterns/mirror.json", {"error_patterns": [{**error_pattern(3), "tags": []}]})


def _write_loop(tree: Tree, n: int) -> None:
    s, name = Sower(n), file_name(n)
    home = f"ralph/loops/{name}"
    tree.json(f"{home}/state.json", loop_state(n))
    tree.text(f"{home}/crash.log", f"[{when(1)}] {s('crash ')}\n{s('stack ')}\n\n")
    tree.text(f"{home}/selection-report.md", s("# report "))
    tree.json(f"{home}/iterations/iteration-4.json", iteration(4, s))
    tree.text(f"{home}/iterations/iteration-5.md", s("# five "))
    tree.json(f"{home}/iterations/iteration-6/{name}", {})
    tree.json(f"{home}/checkpoints/003-checkpoint{name}.json", {})
    tree.json(f"{home}/analytics/{name}.json", measured(n))
    tree.text(f"{home}/analytics/{name}-report.md", s("# analytics "))
    tree.json(f"{home}/best-output-tracking.json", measured(n))
    tree.json(f"{home}/reflections/reflection-1.json", reflection(n, "memory-manager"))
    tree.json(f"ralph/heartbeats/{name}.json", {"loopId": s("loop"), "timestamp": 1_795_000_000_000, "phase": s("x")})
    external = f"ralph-external/loops/x{name}"
    tree.json(f"{external}/session-state.json", {**loop_state(n), "loopId": s("external"), "objective": s("task ")})
    tree.text(f"{external}/daemon-output.log", s("output ") + "\n")
    tree.json(f"ralph/archive/a{name}/state.json", {**loop_state(n), "loopId": s("archived"), "status": "completed"})


WRONG: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    10**18,
    10**30,
    1.5e300,
    -0.0,
    "",
    "x",
    "NaN",
    "1e400",
    "9999-12-31T23:59:59.999Z",
    "0001-01-01T00:00:00Z",
    "2026-13-45T99:99:99Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    10**15,
    [],
    [[]],
    ["x", None, 3, {"a": []}],
    {},
    {"a": {"b": None}},
    {"": ""},
)
"""Values that replace every value in turn."""
SKIPPED: Final = 7
"""One of this number of pairs of field and value is written; each field meets at least three of the values."""


def _broken(value: Any, wrong: Any, path: tuple[str, ...] = ()) -> Iterator[Any]:
    """Copies of a document, each with one value replaced."""
    yield wrong
    if isinstance(value, dict):
        for key, inner in value.items():
            for copy in _broken(inner, wrong, (*path, key)):
                yield {**value, key: copy}
    elif isinstance(value, list) and value:
        for copy in _broken(value[0], wrong, path):
            yield [copy, *value[1:]]


def _copies(document: Any) -> Iterator[tuple[str, Any]]:
    """Copies of a document with one wrong value each, and a name for each; each field meets several wrong values."""
    for w, wrong in enumerate(WRONG):
        for n, copy in enumerate(_broken(_tame(document), wrong)):
            if (n + w) % SKIPPED == 0:
                yield f"{w}-{n}", copy


def write_types(project: Path) -> None:
    """Write the project in which one value at a time has a wrong type, for every kind of record."""
    tree = Tree(project)
    write_wrong_patterns(project)
    files: dict[str, dict[str, Any]] = {
        "ralph/loops/{}/state.json": loop_state(0),
        "ralph/loops/{}/best-output-tracking.json": measured(0),
        "ralph/loops/{}/analytics/{}.json": measured(0),
        "ralph/loops/{}/iterations/iteration-4.json": iteration(4, Sower(0)),
        "ralph-external/loops/x{}/session-state.json": loop_state(0),
        "ralph/archive/{}/state.json": loop_state(0),
        "ralph/memory/tasks/{}.json": memory_task(0),
        "ralph/heartbeats/{}.json": {"loopId": "x", "timestamp": 1_795_000_000_000, "currentIteration": 1},
        "ralph/reflections/{}/001.json": reflection(0, "reflexion"),
        "ralph/reflections/loops/{}/iteration-1.yaml": reflection(0, "hook"),
        "ralph-external/reflections/reflection-{}.json": reflection(0, "memory-manager"),
        "ralph/tasks/{}/metadata.json": memory.task_metadata(0),
        "ralph/tasks/{}/trajectory.json": memory.trajectory(0),
        "ralph/tasks/{}/attempts/001/attempt.json": memory.attempt(0),
        "ralph/tasks/{}/attempts/001/outcome.json": memory.outcome(0),
        "ralph/debug-memory/sessions/{}.json": memory.debug_session(0),
    }
    for form, document in files.items():
        for name, copy in _copies(document):
            tree.json(form.replace("{}", f"w{name}"), copy)

    def lines(document: Any) -> list[Any]:
        return [copy for _, copy in _copies(document)]

    tree.lines("ralph/shared/curation/ledger.jsonl", lines(decision(0)))
    tree.lines("ralph/shared/curation/events.jsonl", lines(event(0)))
    tree.lines("ralph/shared/team/evidence.jsonl", [_tame(space(0)), *lines(team_sums(0))])
    tree.lines("ralph/tasks/task-lines/attempts/001/actions.jsonl", lines(memory.actions(0)[0]))
    tree.lines("ralph/tasks/task-lines/reflections.jsonl", lines(reflection(0, "episodic")))
    entries = lines(registry_entry(0))
    tree.json("ralph/registry.json", {"active_loops": entries})
    tree.json("ralph-external/launcher-registry.json", {"loops": {str(n): entry for n, entry in enumerate(entries)}})
    _write_raw(tree)


def _tame(value: Any) -> Any:
    """A document with its texts cut to a distinguishable length."""
    if isinstance(value, dict):
        return {_tame(key): _tame(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_tame(inner) for inner in value]
    return value[:30] if isinstance(value, str) else value


def _write_raw(tree: Tree) -> None:
    """Write documents that no JSON encoder writes."""
    deep = "[" * 3000 + "]" * 3000
    for n, text in enumerate(
        (
            deep,
            '{"a":' * 3000 + "1" + "}" * 3000,
            "NaN",
            "-Infinity",
            "1e400",
            "9" * 5000,
            '"\ud800"',
            "{",
            "",
            "\0" * 100,
            "\ufeff{}",
            "null",
            '{"status": "running", "status": "failed"}',
            '{"maxIterations": ' + "9" * 5000 + ', "currentIteration": 1e400, "task": NaN}',
            '{"maxIterations": 999999999999999999, "currentIteration": -999999999999999999, "status": "running"}',
            '{"iterations": ' + deep + ', "task": "deep"}',
            '{"startTime": 1e300, "lastUpdate": -1e300, "status": "running", "currentPid": 99999999999999999}',
            '{"startTime": "0001-01-01T00:00:00Z", "endTime": "9999-12-31T23:59:59Z", "status": "completed"}',
            '{"startTimeMs": -62135596800000, "endTimeMs": 253402300799999, "status": "failed"}',
        )
    ):
        for name in (
            f"ralph/loops/raw-{n}/state.json",
            f"ralph/loops/raw-{n}/iterations/iteration-1.json",
            f"ralph/loops/raw-{n}/analytics/raw-{n}.json",
            f"ralph/shared/patterns/raw-{n}.json",
            f"ralph/shared/patterns/raw-{n}.yaml",
            f"ralph/memory/tasks/raw-{n}.json",
            f"ralph/reflections/raw-{n}/001.json",
            f"ralph/tasks/raw-{n}/metadata.json",
            f"ralph/tasks/raw-{n}/trajectory.json",
            f"ralph/tasks/raw-{n}/reflections.jsonl",
            f"ralph/tasks/raw-{n}/attempts/001/attempt.json",
            f"ralph/tasks/raw-{n}/attempts/001/actions.jsonl",
            f"ralph/debug-memory/sessions/raw-{n}.json",
            f"ralph-external/loops/raw-{n}/session-state.json",
        ):
            tree.text(name, text)
        rate = '{"pattern_id": "pat-error-raw-%03d", "error_signature": {"error_type": "E"}, "success_rate": %s}'
        value = text if n in {2, 3, 4, 5} else "1"
        tree.text(f"ralph/shared/patterns/error-raw-{n}.json", rate % (n, value))
    with (tree.aiwg / "ralph/shared/curation/ledger.jsonl").open("a", encoding="utf-8") as ledger:
        ledger.write('{"kind":"decision","before":' + deep + "}\n" + '{"kind":"decision"\n' + "\0\0\n")


def write_wrong_patterns(project: Path) -> None:
    """Write pattern files in which one value at a time has a wrong type."""
    tree = Tree(project)
    makers = {"error": error_pattern, "success": success_pattern, "anti": anti_pattern, "template": template}
    for kind, make in makers.items():
        records: list[Any] = []
        for name, record in _copies(make(0)):
            key = "template_id" if kind == "template" else "pattern_id"
            if isinstance(record, dict) and isinstance(record.get(key), str):
                record = {**record, key: f"{record[key]}-{name}"}
            records.append(record)
        tree.json(f"ralph/shared/patterns/{kind}-types.json", records)
