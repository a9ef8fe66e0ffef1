"""`ralphdeck check`: check a project against a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.cli.json import decisions as decisions_json
from core.cli.render.output import line, print_object, wants_json
from core.cli.support.input_file import read_input
from core.cli.support.options import Command
from core.cli.support.project import chosen_project, open_project

BROKEN: Final = 1
UNUSABLE: Final = 2
_MAX_NAMED: Final = 5
_WORDS: Final = {True: ("ok", "green"), False: ("failed", "red"), None: ("off", "")}


@click.command("check", cls=Command)
@click.option(
    "--policy", type=click.Path(path_type=Path), metavar="FILE", help="The rules, in YAML. Default: the built-in ones."
)
def check_command(policy: Path | None) -> None:
    """Check a project against a policy, for CI: one line for each rule, ok, failed or off.

    A policy is a YAML file with values for these rules; the values below are the defaults. A rule is on or off; a rule
    with a maximum is a number or off. A rule fails if a file that it needs cannot be read.

    \b
      no-quarantined: on     no pattern that is held or in quarantine is injected
      no-critical: on        no text that the scan blocks is injected without release
      no-single-loop: on     no pattern is proven by one loop alone
      log-verified: on       the hash chain of the decision log is intact
      max-tokens: 2000       tokens of the context of any running or paused loop or recent task
      max-questions: off     open questions in Review
      max-blocked: off       patterns in quarantine
      max-held: off          patterns that are held until a person approves them
      max-unreconciled: off  records that differ from the evidence
      max-errors: off        files and records that cannot be used

    The exit code is 0 if all rules hold, 1 if one fails, and 2 if the policy or the project cannot be used.

    \b
    Examples:
      ralphdeck check
      ralphdeck check --policy .github/ralphdeck-policy.yml --json
    """
    from core.project.policy import MAX_BYTES, Policy, check, read_policy, rule_name

    try:
        rules = Policy() if policy is None else read_policy(str(policy), read_input(policy, MAX_BYTES))
        project = open_project()
        if rules.max_questions is not None:
            project.search_all()
        results = check(rules, project.view, chosen_project())
    except RalphdeckError as error:
        error.exit_code = UNUSABLE
        raise
    settings = {rule_name(field): getattr(rules, field) for field in Policy.__struct_fields__}
    is_kept = all(result.passed is not False for result in results)

    rules_json = (
        decisions_json.PolicyRule.of(one, setting=settings[one.rule], result=_WORDS[one.passed][0]) for one in results
    )
    if wants_json():
        print_object(decisions_json.PolicyResult, kept=is_kept, rules=rules_json)
    else:
        for result in results:
            word, colour = _WORDS[result.passed]
            line((f"{word:<6}", colour), f"  {result.rule:<16}  ", result.text if result.passed is not None else "")
            for subject in result.subjects[:_MAX_NAMED]:
                line(f"{'':<26}{visible_line(subject, 160)}")
            if len(result.subjects) > _MAX_NAMED:
                line(f"{'':<26}and {len(result.subjects) - _MAX_NAMED:,} more; see: ralphdeck check --json")
    if not is_kept:
        click.get_current_context().exit(BROKEN)
