"""`ralphdeck why`."""

from __future__ import annotations

import click

from core.cli.completing import complete_pattern
from core.cli.learning_shapes import set_aside_json, share_json, step_json, weighed_json
from core.cli.options import reading_options
from core.cli.output import end, findings_json, line, print_json
from core.cli.pattern_text import print_evidence, print_why
from core.cli.project import open_deck
from core.cli.shapes import json_help, number, pin_json, rule_json
from core.records.patterns import Pattern
from core.records.times import iso
from core.state.project_state import ProjectState


@click.command(epilog=json_help("why"))
@click.argument("pattern_id", metavar="ID", shell_complete=complete_pattern)
@reading_options
def why(pattern_id: str, as_json: bool, strict: bool) -> None:
    """Explain the state of a pattern: who or which rule decided, what counts how much, and what would change it.

    The rule that gave the pattern its state is marked with >.

    \b
    Example:
      ralphdeck why pat-error-null-check-015
    """
    view = open_deck().view
    pattern = view.pattern(pattern_id)
    if as_json:
        print_json(_document(view, pattern))
    else:
        line(pattern.id)
        print_why(view, pattern)
        print_evidence(view, pattern)
    end(view.findings, strict=strict)


def _document(view: ProjectState, pattern: Pattern) -> dict[str, object]:
    assessment = view.assessment(pattern.id)
    explanation = view.why(pattern.id)
    change = assessment.next_change
    return {
        "id": pattern.id,
        "state": assessment.state.value,
        "computed_state": assessment.computed.value,
        "decided_by": assessment.decided_by,
        "pin": pin_json(assessment.pin),
        "pin_stale": assessment.pin_stale,
        "contradicted": assessment.contradicted,
        "faded": assessment.faded,
        "injectable": assessment.injectable,
        "success_rate": number(assessment.rate),
        "claimed_rate": number(assessment.claimed_rate),
        "interval": [number(bound) for bound in assessment.interval],
        "successes": assessment.successes,
        "failures": assessment.failures,
        "helpful": number(assessment.helpful),
        "harmful": number(assessment.harmful),
        "next_change": None if change is None else {"at": iso(change[0]), "state": change[1].value},
        "rules": [rule_json(rule) for rule in explanation.lines],
        "events": [weighed_json(weighed) for weighed in explanation.events],
        "steps": [step_json(step) for step in explanation.steps],
        "loops": [share_json(share) for share in explanation.loops],
        "calendar": [{"at": iso(at), "state": state.value} for at, state in explanation.calendar],
        "set_aside": [set_aside_json(aside) for aside in view.board.set_aside(pattern.id)],
        "doubts": findings_json(view.doubts(pattern.id)),
        "findings": findings_json(view.findings),
    }
