"""`ralphdeck check`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.cli.json.shapes import json_help
from core.cli.render.output import line, print_json
from core.cli.support.input_file import read_named
from core.cli.support.options import project_option
from core.cli.support.project import chosen_project, open_deck
from core.forecast.policy import MAX_BYTES, Policy, RuleResult, check, read_policy, rule_name

BROKEN: Final = 1
UNUSABLE: Final = 2
_MOST_NAMED: Final = 5
_WORDS: Final = {True: ("ok", "green"), False: ("failed", "red"), None: ("off", "")}


@click.command("check", epilog=json_help("check"))
@click.option(
    "--policy", type=click.Path(path_type=Path), metavar="FILE", help="The rules, as YAML; else the built-in."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@project_option
def check_command(policy: Path | None, as_json: bool) -> None:
    """Hold a project to a policy, for CI: a line a rule, ok, failed or off.

    A policy is a YAML file of these rules; what it leaves out stays as here. A rule that counts is off or a number.
    Where a file that a rule rests on cannot be read, the rule is not kept.

    \b
      no-quarantined: on     no loop gets what waits in quarantine
      no-critical: on        nor what the scan finds dangerous and nobody released
      no-single-loop: on     nothing is proven by one loop alone
      log-verified: on       the hash chain of the log of decisions is intact
      max-tokens: 2000       of the contexts of running and paused loops and last tasks
      max-questions: off     open questions in Review
      max-blocked: off       patterns in quarantine
      max-held: off          patterns held until a person approves them
      max-unreconciled: off  records that disagree with the evidence
      max-errors: off        files and records that cannot be used

    The exit code is 0 if all rules are kept, 1 if one is broken, 2 if the policy or the project cannot be used.

    \b
    Examples:
      ralphdeck check
      ralphdeck check --policy .github/ralphdeck-policy.yml --json
    """
    try:
        rules = _policy(policy)
        deck = open_deck()
        if rules.max_questions is not None:
            deck.search_all()
        results = check(rules, deck.view, chosen_project())
    except RalphdeckError as error:
        error.exit_code = UNUSABLE
        raise
    kept = all(result.kept is not False for result in results)
    if as_json:
        print_json({"kept": kept, "rules": [_result(result, rules) for result in results]})
    else:
        for result in results:
            _print(result)
    if not kept:
        click.get_current_context().exit(BROKEN)


def _policy(file: Path | None) -> Policy:
    return Policy() if file is None else read_policy(str(file), read_named(file, MAX_BYTES))


def _result(result: RuleResult, policy: Policy) -> dict[str, object]:
    settings = {rule_name(field): getattr(policy, field) for field in Policy.__struct_fields__}
    return {
        "rule": result.rule,
        "setting": settings[result.rule],
        "result": _WORDS[result.kept][0],
        "text": result.text,
        "subjects": list(result.subjects),
    }


def _print(result: RuleResult) -> None:
    word, colour = _WORDS[result.kept]
    line((f"{word:<6}", colour), f"  {result.rule:<16}  ", result.text if result.kept is not None else "")
    for subject in result.subjects[:_MOST_NAMED]:
        line(f"{'':<26}{visible_line(subject, 160)}")
    if len(result.subjects) > _MOST_NAMED:
        line(f"{'':<26}and {len(result.subjects) - _MOST_NAMED:,} more; see: ralphdeck check --json")
