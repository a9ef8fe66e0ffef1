"""The task memory of acme-api, written from `tasks/*.yaml`: what was done on each task."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import yaml

from tests.sample.loops import BY_KEY
from tests.sample.tree import Tree, iso_seconds

_FOLDER: Final = Path(__file__).with_name("tasks")
_AGENT: Final = "software-implementer"
_STATUSES: Final = ("running", "paused", "completed", "failed")
_PARAMS: Final = {
    "read": "file_path",
    "write": "file_path",
    "edit": "file_path",
    "bash": "command",
    "grep": "pattern",
    "glob": "pattern",
    "task": "description",
}
"""First words of the description of an action, by type."""
_MORE_PARAMS: Final = {"content": "content", "old": "old_string", "new": "new_string", "path": "path"}
_REFLECTED_AFTER: Final = timedelta(minutes=1)


def write_episodes(tree: Tree) -> None:
    """Write the folders of all tasks, and the two indexes."""
    tasks = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(_FOLDER.glob("*.yaml"))}
    for identity, task in tasks.items():
        _write_task(tree, f"ralph/tasks/{identity}", identity, task)
    by_status: dict[str, list[str]] = {status: [] for status in _STATUSES}
    by_agent: dict[str, list[str]] = {}
    for identity, task in tasks.items():
        by_status[task["status"]].append(identity)
        by_agent.setdefault(task.get("agent", _AGENT), []).append(identity)
    tree.json("ralph/index/by-status.json", by_status)
    tree.json("ralph/index/by-agent.json", dict(sorted(by_agent.items())))


def _write_task(tree: Tree, folder: str, identity: str, task: dict[str, Any]) -> None:
    agent = task.get("agent", _AGENT)
    attempts = [_attempt(tree, identity, number, agent, data) for number, data in enumerate(task["attempts"], 1)]
    pairs = list(zip(attempts, task["attempts"], strict=True))
    reflections = [_reflection(attempt, data) for attempt, data in pairs if "reflection" in data]
    last = attempts[-1]
    metadata = {
        "id": identity,
        "description": task["description"],
        "completion_criteria": task["criteria"],
        "created": attempts[0]["started"],
        "updated": last.get("ended", _actions(tree, task["attempts"][-1])[-1]["timestamp"]),
        "status": task["status"],
        "current_attempt": len(attempts),
        "total_attempts": len(attempts),
        "tags": task["tags"],
        "related_tasks": task["related"],
        "agent": agent,
    }
    if task["status"] == "completed":
        metadata["completed"] = last["ended"]
    if "loop" in task:
        metadata["loop_id"] = BY_KEY[task["loop"]].id
    tree.json(f"{folder}/metadata.json", metadata)
    quality = task["attempts"][-1]["quality"][-1]
    tree.json(
        f"{folder}/trajectory.json",
        {
            "task_id": identity,
            "attempts": [_of_trajectory(attempt) for attempt in attempts],
            "milestones": [milestone for data in task["attempts"] for milestone in _milestones(tree, data)],
            "final_quality": quality,
            "completion_percent": round(quality * 100),
        },
    )
    tree.jsonl(f"{folder}/reflections.jsonl", reflections)
    tree.json(f"{folder}/summary.json", _summary(metadata, attempts, reflections, quality))
    for attempt, data in pairs:
        _write_attempt(tree, f"{folder}/attempts/{attempt['id']:03d}", attempt, data)


def _attempt(tree: Tree, identity: str, number: int, agent: str, data: dict[str, Any]) -> dict[str, Any]:
    """Contents of `attempt.json`; without `ended` and `outcome` while the attempt is open."""
    started = tree.ago(**data["ago"])
    quality = data["quality"]
    actions = _actions(tree, data)
    attempt: dict[str, Any] = {"id": number, "task_id": identity, "started": iso_seconds(started)}
    if "outcome" in data:
        ended = started + timedelta(minutes=data["minutes"])
        assert actions[-1]["timestamp"] <= iso_seconds(ended)
        attempt["ended"] = iso_seconds(ended)
    attempt |= {
        "plan": {"approach": data["approach"], "steps": data["steps"], "estimated_iterations": len(data["steps"])},
        "execution": {
            "agent": agent,
            "iterations": actions[-1]["iteration"],
            "actions_performed": len(actions),
            "quality_history": [
                {"iteration": iteration, "quality": value, "delta": round(value - before, 2)}
                for iteration, (before, value) in enumerate(zip((quality[0], *quality), quality, strict=False), 1)
            ],
        },
    }
    if "outcome" in data:
        attempt["outcome"] = {
            "status": data["outcome"],
            "reason": data["reflection"]["observation"],
            "final_quality": quality[-1],
            "completion_percent": round(quality[-1] * 100),
            "what_worked": data.get("worked", []),
            "what_didnt_work": data.get("failed", []),
            "suggestions_for_next_time": data["reflection"]["items"],
        }
    return attempt


def _actions(tree: Tree, data: dict[str, Any]) -> list[dict[str, Any]]:
    started = tree.ago(**data["ago"])
    iteration = 0
    actions: list[dict[str, Any]] = []
    for entry in data["actions"]:
        if "iteration" in entry:
            iteration = entry["iteration"]
            continue
        kind = next(kind for kind in _PARAMS if kind in entry)
        params = {_PARAMS[kind]: entry[kind]}
        params |= {name: entry[key] for key, name in _MORE_PARAMS.items() if key in entry}
        actions.append(
            {
                "timestamp": iso_seconds(started + timedelta(minutes=entry["t"])),
                "iteration": iteration,
                "type": kind,
                "tool": kind.capitalize(),
                "params": params,
                "success": "error" not in entry,
                "output": entry["got"],
                "error": entry.get("error"),
                "reasoning": entry["why"],
                "expected_outcome": entry["expect"],
            }
        )
    assert actions == sorted(actions, key=lambda action: str(action["timestamp"]))
    return actions


def _of_trajectory(attempt: dict[str, Any]) -> dict[str, Any]:
    entry = {
        "attempt_id": attempt["id"],
        "started": attempt["started"],
        "plan": attempt["plan"]["approach"],
    }
    if "outcome" in attempt:
        entry |= {
            "ended": attempt["ended"],
            "outcome": attempt["outcome"]["status"],
            "actions": attempt["execution"]["actions_performed"],
            "iterations": attempt["execution"]["iterations"],
        }
    return entry


def _milestones(tree: Tree, data: dict[str, Any]) -> list[dict[str, Any]]:
    started = tree.ago(**data["ago"])
    return [
        {"timestamp": iso_seconds(started + timedelta(minutes=minutes)), "event": event, "details": details}
        for minutes, event, details in data.get("milestones", [])
    ]


def _reflection(attempt: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    reflection = data["reflection"]
    started = datetime.fromisoformat(attempt["started"])
    at = started + timedelta(minutes=reflection.get("at", data.get("minutes"))) + _REFLECTED_AFTER
    line = {
        "timestamp": iso_seconds(at),
        "attempt_id": attempt["id"],
        "observation": reflection["observation"],
        "analysis": reflection["analysis"],
        "learning": reflection["learning"],
        "action_items": reflection["items"],
        "triggered_by": reflection.get("trigger", data.get("outcome")),
        "reflection_type": reflection["kind"],
    }
    if "draft" in reflection:
        line["draft"] = reflection["draft"]
    return line


def _summary(
    metadata: dict[str, Any], attempts: list[dict[str, Any]], reflections: list[dict[str, Any]], quality: float
) -> dict[str, Any]:
    outcomes = [attempt["outcome"]["status"] for attempt in attempts if "outcome" in attempt]
    return {
        "task_id": metadata["id"],
        "description": metadata["description"],
        "status": metadata["status"],
        "attempts": len(attempts),
        "outcomes": outcomes,
        "actions": sum(attempt["execution"]["actions_performed"] for attempt in attempts),
        "reflections": len(reflections),
        "final_quality": quality,
        "learnings": [line["learning"] for line in reflections if not line.get("draft")],
    }


def _write_attempt(tree: Tree, folder: str, attempt: dict[str, Any], data: dict[str, Any]) -> None:
    actions = _actions(tree, data)
    tree.json(f"{folder}/attempt.json", attempt)
    if "outcome" in attempt:
        tree.json(f"{folder}/outcome.json", attempt["outcome"])
    steps = "".join(f"{number}. {step}\n" for number, step in enumerate(data["steps"], 1))
    tree.text(f"{folder}/plan.md", f"# Plan for attempt {attempt['id']}\n\n{data['approach']}.\n\n{steps}")
    tree.jsonl(f"{folder}/actions.jsonl", actions)
    for number, quality in enumerate(data["quality"], 1):
        run = [action for action in actions if action["iteration"] == number]
        checks = [action for action in run if action["type"] == "bash"]
        result = {
            "iteration": number,
            "ended": run[-1]["timestamp"],
            "quality": quality,
            "actions": len(run),
            "errors": sum(not action["success"] for action in run),
        }
        if checks:
            result |= {"command": checks[-1]["params"]["command"], "output": checks[-1]["output"]}
        tree.json(f"{folder}/results/iter-{number:03d}/result.json", result)
