"""The keys of what the commands of the episodic memory print with `--json`; see `core.cli.shapes`."""

from __future__ import annotations

from typing import Final

EPISODE_DOCUMENTS: Final[dict[str, str]] = {
    "task similar": """\
{similar: [{id, description, score, matched_by, outcome, learnings: [{attempt, text}]}], findings}""",
}
"""By the name of the command; taken up by `core.cli.shapes.DOCUMENTS`."""
