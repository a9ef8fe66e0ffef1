"""`ralphdeck scan` and `check`: texts and rules that a pipeline verifies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from core.base.errors import BadInput, RalphdeckError
from core.base.text import plural, visible_line
from core.cli.json import analysis as analysis_json
from core.cli.json import decisions as decisions_json
from core.cli.json import patterns as patterns_json
from core.cli.support.options import Command, OfflineCommand
from core.cli.support.output import json_bytes, line, print_bytes, print_object, wants_json
from core.cli.support.process import read_input
from core.cli.support.project import chosen_project, open_project
from core.records.patterns import Severity, Suspicion

if TYPE_CHECKING:
    from core.cli.json.wire import Wire


BLOCKED_EXIT: Final = 3
UNREADABLE_EXIT: Final = 2
_MAX_BYTES: Final = 10_000_000  # Longest file in bytes; a memory or instruction file has a few thousand.
_MAX_LINE: Final = 4_000_000
_STDIN: Final = "-"
_COLOURS: Final = {Severity.BLOCKED: "red", Severity.HELD: "yellow", Severity.FLAGGED: "cyan"}
_EXCERPT: Final = 80


@click.command("scan", cls=OfflineCommand)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, allow_dash=True), metavar="[FILE|-]...")
@click.option(
    "--lines",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Read one JSON string per line and print one JSON object per line; - is standard input.",
)
def scan(files: tuple[Path, ...], lines: Path | None) -> None:
    """Scan texts for agents: memory files, CLAUDE.md, AGENTS.md, skills, patterns.

    Prints a verdict for each file and the rules behind it. Needs no project and writes nothing.

    \b
      blocked  the text attacks the agent or this machine; it is not injected unless a person releases it
      held     the text gives orders that a person has to approve first
      flagged  the text has a sign that a reviewer should see
      clean    no rule matches

    The exit code is 3 if something is blocked, else 0; 2 if a file or a line cannot be read.

    \b
    Examples:
      ralphdeck scan CLAUDE.md AGENTS.md .claude/skills/*/SKILL.md
      git diff --cached | ralphdeck scan -
      ralphdeck scan --lines texts.jsonl > verdicts.jsonl
    """
    if lines is not None and files:
        raise click.UsageError("--lines takes no other file.")
    if lines is None and not files:
        raise click.UsageError("Name a file to scan, or - for standard input.")
    try:
        is_blocked = _scan_files(files) if lines is None else _scan_lines(lines)
    except RalphdeckError as error:
        error.exit_code = UNREADABLE_EXIT
        raise
    if is_blocked:
        click.get_current_context().exit(BLOCKED_EXIT)


def _scan_files(files: Sequence[Path]) -> bool:
    from core.base.scanning.scan import scan_whole_text

    results = [
        (str(file), *scan_whole_text(read_input(file, _MAX_BYTES).decode("utf-8-sig", "replace"))) for file in files
    ]

    if wants_json():
        print_object(
            analysis_json.ScanDocument,
            files=(analysis_json.FileScan.of(file=name, **_values(found, masked)) for name, found, masked in results),
        )
    else:
        for name, found, _ in results:
            _print(name, found)
    return any(_is_blocked(found) for _, found, _ in results)


def _scan_lines(file: Path) -> bool:
    from core.base.scanning.scan import scan_whole_text

    decoder = msgspec.json.Decoder(str)
    is_blocked = False
    for number, raw in enumerate(_lines(file), 1):
        if len(raw) > _MAX_LINE:
            raise BadInput(f"Line {number} of {_name(file)} is longer than {_MAX_LINE:,} bytes.")
        if not raw.strip():
            continue
        text: str | None
        try:
            text = decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = _decode_surrogates(raw)
        if text is None:
            raise BadInput(f"Line {number} of {_name(file)} is not a JSON string.")
        found, masked = scan_whole_text(text)
        is_blocked = is_blocked or _is_blocked(found)
        print_bytes(json_bytes(analysis_json.ScanResult.of(**_values(found, masked))))
    return is_blocked


def _values(found: Sequence[Suspicion], masked: str) -> dict[str, Any]:
    """Return the fields of `ScanResult`; the most severe finding is first."""
    verdict = found[0].severity if found else "clean"
    return {"verdict": verdict, "marks": map(scan_finding, found), "masked": masked}


def scan_finding(suspicion: Suspicion) -> Wire:
    from core.base.scanning.verdict import describe_rule  # the scan is slow to load

    severity = "critical" if suspicion.critical else "warning"
    return patterns_json.ScanFinding.of(suspicion, severity=severity, meaning=describe_rule(suspicion))


def _decode_surrogates(raw: bytes) -> str | None:
    """Decode a JSON string with `?` for lone surrogates; None if it is invalid."""
    try:
        text = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else None


def _lines(file: Path) -> Iterator[bytes]:
    """Lines of a file or of standard input, each cut after `_MAX_LINE` + 1 bytes."""
    try:
        with click.open_file(str(file), "rb") as stream:
            yield from iter(partial(stream.readline, _MAX_LINE + 1), b"")
    except (OSError, ValueError) as error:
        raise BadInput(f"Cannot read {_name(file)}: {visible_line(str(error), 200)}") from None


def _is_blocked(found: Sequence[Suspicion]) -> bool:
    return bool(found) and found[0].severity is Severity.BLOCKED


def _print(name: str, found: Sequence[Suspicion]) -> None:
    from core.base.scanning.verdict import describe_rule

    verdict, colour = (found[0].severity.value, _COLOURS[found[0].severity]) if found else ("clean", "green")
    count = f"  {plural(len(found), 'mark')}" if found else ""
    line((f"{verdict:<8}", colour), f" {visible_line(name, 300)}{count}")
    for one in found:
        excerpt = visible_line(" ".join(one.excerpt.split()), _EXCERPT)
        quoted = f' ("{excerpt}")' if excerpt else ""
        line(f"  {one.severity.value:<8} {one.rule}: this text {describe_rule(one)}{quoted}")


def _name(file: Path) -> str:
    return "standard input" if str(file) == _STDIN else visible_line(str(file), 300)


BROKEN: Final = 1
UNUSABLE: Final = 2
_MAX_NAMED: Final = 5
_WORDS: Final = {True: ("ok", "green"), False: ("failed", "red"), None: ("off", "")}


@click.command("check", cls=Command)
@click.option(
    "--policy", type=click.Path(path_type=Path), metavar="FILE", help="The rules, in YAML. Default: the built-in ones."
)
def check_command(policy: Path | None) -> None:
    """Check a project against a policy, for CI; each rule is ok, failed or off.

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
