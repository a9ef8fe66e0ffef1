"""`ralphdeck doctor`: check project, agents and terminal; repair old patterns."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from core import __version__
from core.base.errors import BadInput, ProjectNotFound, RalphdeckError, Unwritable, install_hint
from core.base.masking import mask_secrets
from core.base.text import plural, visible_line
from core.cli.commands.decisions import decide, print_unchanged
from core.cli.json import patterns as patterns_json
from core.cli.json import setup as setup_json
from core.cli.program import Program
from core.cli.support.connection_checks import (
    ERROR,
    NOTE,
    OK,
    WARNING,
    Found,
    check_connections,
    check_team,
    check_terminal,
)
from core.cli.support.options import ReadingCommand, choose_mode, reason_option
from core.cli.support.output import Column, end, line, print_object, print_table, remark, wants_json
from core.cli.support.project import (
    chosen_project,
    complete_pattern,
    is_readonly,
    open_project,
    read_configuration,
    warn_of_user_settings,
)
from core.cli.support.signature import find_signature
from core.decisions.commands import RepairPatterns
from core.files.user_files import damaged_files, read_tables, state_file
from core.records.findings import Finding, Severity
from core.records.loops import Liveness, LoopStatus
from core.records.patterns import Problem

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.cli.json.wire import Wire
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.records.patterns import OldRecords, RecordRepair
    from core.records.snapshot import Snapshot
    from core.retrieval.embeddings import Record, VectorSubject
    from core.sources.adapters.contract import AdapterReport
    from core.sources.configuration import Configuration, SettingValue


_COLOURS: Final = {OK: "green", WARNING: "yellow", ERROR: "red"}
_INOTIFY: Final = Path("/proc/sys/fs/inotify")
_PACKAGES: Final = ("textual", "rich", "click", "watchdog", "tinydb", "msgspec", "numpy", "google-re2")
_MAX_NAMED: Final = 5
_MAX_DOUBTS: Final = 100  # differences that the text shows; each pattern may have one


class Check(NamedTuple):
    """Result of a check; `status` is ok, note, warning or error."""

    area: str
    name: str
    status: str
    text: str


class _DoctorCommand(ReadingCommand):
    """A command that reads, and with --repair --apply decides."""

    standard = ("--by", *ReadingCommand.standard)


@click.command(cls=_DoctorCommand)
@click.argument("pattern_ids", metavar="[PATTERN]...", nargs=-1, shell_complete=complete_pattern)
@click.option("--repair", "repairs", is_flag=True, help="Print how patterns of earlier versions would be repaired.")
@click.option("--apply", is_flag=True, help="With --repair: make the changes.")
@reason_option
@click.option("--embed", "embeds", is_flag=True, help="Compute the missing vectors for semantic search.")
def doctor(pattern_ids: tuple[str, ...], repairs: bool, apply: bool, reason: str, embeds: bool) -> None:
    """Check files, agents, team, terminal, file watcher; print paths and settings.

    The source of each setting is shown: aiwg.yml, .aiwg/config.yml or the default. Only the first of the two files that
    has settings is read. The dashboard reads the settings when it starts. What killed writes have left beside files of
    agents is removed.

    Without a project only the terminal and the files of the user are checked, and the exit code is 1; with --json
    nothing is printed. The last line is the summary.

    --repair lists the patterns that earlier versions extracted by other rules, or only PATTERNs. Such a pattern has
    a trigger that also matches other errors, a text that only names the changed files, a template with partial
    placeholders, or it repeats another pattern of the same fix. It becomes what is extracted from the same work today.
    If this work is not recorded any more, the bad part is removed, or the pattern is archived. Patterns from other
    tools, lessons of agents, and patterns that a person pinned, approved or edited do not change. With --apply all
    changes are made together, with one undo.

    --embed computes vectors of patterns, tasks and instructions for agents: a small model runs on this machine and
    takes about 5 ms for each text. They are saved in .aiwg/ralph/memory/embeddings and .aiwg/ralph/index/embeddings,
    even if you interrupt the command. Records without a vector are found by the words that they share with a task.

    \b
    Examples:
      ralphdeck doctor
      ralphdeck doctor --strict --json    (in CI: exit code 3 if a check failed or a file cannot be used)
      ralphdeck doctor --repair
      ralphdeck doctor --repair --apply pat-error-assert-001 && ralphdeck undo
      ralphdeck doctor --embed
    """
    mode = choose_mode({"--repair": "pattern_ids apply reason", "--embed": "", "": ""})
    if mode == "--repair":
        repair_patterns(pattern_ids, is_applied=apply, reason=reason)
    elif mode == "--embed":
        compute_vectors()
    else:
        _check()


def _check() -> None:
    """Make all checks and print them."""
    from core.agents.plan import remove_old_drafts
    from core.cli.support.user_files import keymap_file, log_file
    from core.files.user_files import index_file
    from core.index.project_state import all_findings

    missing: ProjectNotFound | None = None
    findings: tuple[Finding, ...] = ()
    doubts: list[Finding] = []
    checks: list[Check] = []
    settings: tuple[SettingValue, ...] = ()
    old_rules: OldRecords | None = None
    try:
        paths = chosen_project()
        if not is_readonly():
            remove_old_drafts(paths.project)
        configuration = read_configuration(registry=True)
        settings = configuration.listed()
        project = open_project(configuration=configuration)
        reports = project.adapter_reports()
        view = project.view
        findings = all_findings(view)
        doubts += (doubt for pattern_id in view.board.ids for doubt in view.board.reconcile(pattern_id))
        old_rules = project.repairs()
        doubts.sort(key=lambda doubt: doubt.severity is Severity.INFO)
        for area, found in (
            ("project", _project(paths)),
            ("trust", _trust(project)),
            ("records", _records(view.snapshot, (*findings, *doubts))),
            ("texts", _texts(view)),
            ("lessons", _lessons(old_rules)),
            ("evidence", (*_evidence(view, doubts), _metrics(paths, view))),
            ("semantic search", _vectors(project)),
            ("curation", _curation(paths, view.snapshot, view.settings)),
            ("runners", _runners(reports, view.settings)),
            ("agents", check_connections(paths)),
            ("team", check_team(project)),
            ("watch", _watch(paths)),
            ("settings", _settings(configuration)),
            ("files", [_file("cache", index_file(paths.project))]),
        ):
            checks += (Check(area, *one) for one in found)
    except ProjectNotFound as error:
        if wants_json():
            raise
        missing = error
    files = (
        *_state(state_file()),
        *_user_settings(),
        *_experiment(),
        _file("log", log_file()),
        *_keymap(keymap_file()),
    )
    checks += (Check("files", *one) for one in files)
    checks += (Check("terminal", *one) for one in check_terminal())
    checks.append(Check("versions", "ralphdeck", NOTE, f"{__version__}, {_versions()}"))
    everything = (*findings, *doubts)

    if wants_json():
        print_object(
            setup_json.DoctorDocument,
            verdict=_verdict(checks, everything),
            checks=checks,
            settings=settings,
            findings=everything,
            old_rules=old_rules and _old_rules_json(old_rules),
        )
    else:
        _print(checks, (*findings, *doubts[:_MAX_DOUBTS]))
        if len(doubts) > _MAX_DOUBTS:
            left = len(doubts) - _MAX_DOUBTS
            remark(f"{left:,} more differences between records and evidence; see: ralphdeck doctor --json")
        if missing is None:
            line(("verdict: ", "bold"), _verdict(checks, everything))
    if missing is not None:
        raise missing
    end(findings, listed=not wants_json(), has_failed=any(check.status == ERROR for check in checks))


FINDING_COLUMNS: Final = (
    Column("SEVERITY", lambda one: one.severity.value, colours={"error": "red", "warning": "yellow"}),
    Column("CODE", lambda one: one.code),
    Column("FILE", lambda one: one.file, least=24),
    Column("POINTER", lambda one: one.pointer, least=16, expendable=1),
    Column("MESSAGE", lambda one: one.message, free=True),
)


def _print(checks: Sequence[Check], findings: Sequence[Finding]) -> None:
    area = ""
    for check in checks:
        if check.area != area:
            area = check.area
            line((area, "bold"))
        status = "" if check.status == NOTE else check.status
        line("  ", (f"{status:<8}", _COLOURS.get(check.status, "")), f"{check.name}: {check.text}")
    if findings:
        line(("findings", "bold"))
        print_table(FINDING_COLUMNS, findings)


def _project(paths: ProjectPaths) -> Iterator[Found]:
    yield "folder", NOTE, str(paths.project)
    for folder in (paths.ralph, paths.external):
        yield f".aiwg/{folder.name}", *_state_folder(folder, follows=True)
    others = (paths.ralph / name for name in ("shared", "loops", "debug-memory", "memory"))
    for folder in (*others, paths.patterns, paths.archive, paths.curation, paths.tasks, paths.sessions):
        status, text = _state_folder(folder, follows=False)
        if status == ERROR:
            yield paths.relative(folder), status, text


def _state_folder(folder: Path, *, follows: bool) -> tuple[str, str]:
    """Return the status of a folder of records, and a text about it.

    A folder that is a link is an error, unless `follows`.
    """
    try:
        if folder.is_dir():
            is_left_out = not follows and folder.is_symlink()
            return (
                (ERROR, "a link, which is not followed: records in it are not read") if is_left_out else (OK, "found")
            )
    except OSError as error:
        return ERROR, f"cannot be read: {error.strerror}"
    if os.path.lexists(folder):
        return ERROR, "not a folder, so there are no records in it"
    return NOTE, "not there yet"


def _trust(project: Project) -> Iterator[Found]:
    from core.cli.support.signature import describe_trust
    from core.project.trust import find_arrivals

    arrivals = find_arrivals(project)
    yield "project", OK if arrivals.is_trusted else WARNING, describe_trust(project.project)
    if arrivals.is_trusted and arrivals:
        yield "from elsewhere", WARNING, f"{arrivals.summary}; without effect until you accept it: ralphdeck trust"


def _user_settings() -> Iterator[Found]:
    from core.base.user_settings import read_user_settings, user_settings_file

    yield _file("own settings", user_settings_file())
    settings = read_user_settings()
    for finding in settings.findings:
        yield "own settings", ERROR, finding.message
    for name, command in (("judge", settings.scan.judge), ("notify command", settings.notify.command)):
        if command:
            text = visible_line(command[0], 200)
            # As it is run: in the home folder, to which a relative path refers.
            program = Path.home() / command[0] if os.sep in command[0] else command[0]
            is_runnable = shutil.which(program) is not None
            yield (name, OK, text) if is_runnable else (name, ERROR, f"{text} is not a program that can be run")


def _experiment() -> Iterator[Found]:
    """Report a secret of the experiment that cannot be used, or that others can read."""
    from core.trust.experiment_secret import is_exposed, read_secret, secret_file

    try:
        read_secret()
    except FileNotFoundError:
        return
    except BadInput as error:
        yield "experiment", ERROR, f"{error}; until then nothing is held out and no trial counts"
        return
    if is_exposed():
        yield "experiment", WARNING, f"other users can read {secret_file()}; run: chmod 600 {secret_file()}"


def _runners(reports: Sequence[AdapterReport], settings: Settings) -> Iterator[Found]:
    """List what each adapter found, and the files with findings."""
    from core.sources.adapters.adapter_table import format_source, source_titles

    if not settings.sources.home:
        yield "home folder", NOTE, "not read (sources.home is false)"
    titles = source_titles()
    used = [report for report in reports if report.evidence or report.loops or report.lessons or report.findings]
    for report in used:
        doubtful = list(dict.fromkeys(finding.file for finding in report.findings))
        hint = f"; findings: {_named(doubtful)}" if doubtful else ""
        counts = f"{plural(report.loops, 'loop')}, {plural(report.lessons, 'lesson')}"
        yield format_source(report.name, titles), WARNING if doubtful else OK, visible_line(f"{counts}{hint}", 300)
    if unused := ", ".join(format_source(report.name, titles) for report in reports if report not in used):
        yield "not used here", NOTE, unused


def _counts(findings: Sequence[Finding]) -> Counter[Severity]:
    counts: Counter[Severity] = Counter()
    for finding in findings:
        counts[finding.severity] += finding.count
    return counts


def _counted(counts: Counter[Severity]) -> str:
    return ", ".join(f"{counts[severity]} {severity}" for severity in reversed(Severity) if counts[severity])


def _verdict(checks: Sequence[Check], findings: Sequence[Finding]) -> str:
    """Summarize the number of checks and findings with errors or warnings."""
    counts = _counts(findings)
    statuses = Counter(check.status for check in checks)
    word = "warnings" if counts[Severity.WARNING] or statuses[WARNING] else "ok"
    if counts[Severity.ERROR] or statuses[ERROR]:
        word = "errors"
    parts = [f"{plural(statuses[ERROR], 'check')} failed"] * bool(statuses[ERROR])
    parts += [f"{plural(statuses[WARNING], 'check')} with a warning"] * bool(statuses[WARNING])
    parts.append(f"findings: {_counted(counts) or 'none'}")
    return f"{word}: {'; '.join(parts)}"


def _records(snapshot: Snapshot, findings: Sequence[Finding]) -> Iterator[Found]:
    loops = snapshot.loops.values()
    statuses = Counter(loop.status.value for loop in loops)
    counted = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    yield "loops", NOTE, f"{len(loops)}{': ' if counted else ''}{counted}"
    for name, chosen, text in (
        ("crashed loops", [p.id for p in loops if p.status is LoopStatus.CRASHED], "the process ended unexpectedly"),
        (
            "stale loops",
            [p.id for p in loops if p.liveness is Liveness.STALE],
            "without recent activity",
        ),
        ("orphan loops", [p.id for p in loops if "orphan" in p.badges], "running, but not in the registry"),
    ):
        if chosen:
            yield name, WARNING, f"{_named(chosen)}: {text}"
    patterns = snapshot.patterns.values()
    yield "patterns", NOTE, f"{len(patterns)}"
    if mirrored := [pattern.id for pattern in patterns if pattern.copy_folder]:
        yield "mirrors", WARNING, f"{_named(mirrored)}: only in a copy, not in the registry"
    differing = [pattern.id for pattern in patterns if any(copy.differs for copy in pattern.copies)]
    if differing:
        yield "mirrors", WARNING, f"{_named(differing)}: a copy differs from the registry"
    yield "reflections", NOTE, f"{len(snapshot.reflections)}"
    for file, since in snapshot.unreadable.items():
        yield "unreadable", ERROR, f"{file}, since {since:%Y-%m-%d %H:%M:%S} UTC"
    counts = _counts(findings)
    status = ERROR if counts[Severity.ERROR] else WARNING if counts[Severity.WARNING] else OK
    yield "findings", status, _counted(counts) or "none"


def _texts(view: ProjectState) -> Iterator[Found]:
    """Count the texts that are not injected until a person decides."""
    held, quarantined = int(view.board.held.sum()), int(view.board.quarantined.sum())
    for name, count, state in (("held", held, "held"), ("quarantine", quarantined - held, "quarantine")):
        hint = f", not given to agents; see: ralphdeck pattern list --state {state}" if count else ""
        yield name, WARNING if count else OK, f"{plural(count, 'pattern')}{hint}"


def _lessons(records: OldRecords) -> Iterator[Found]:
    """Count the patterns that today's rules of extraction would not extract."""
    parts = (
        (Problem.TRIGGER, "with an unspecific trigger", "proposes narrower ones"),
        (Problem.TEXT, "without a reason in words or code", "proposes better texts"),
        (Problem.TEMPLATE, "with partial placeholders in a template", "removes these templates"),
        (Problem.REPEATED, "that repeat another one of the same fix", "archives them"),
    )
    counts = [(problem.value, records.count(problem), what, how) for problem, what, how in parts]
    for name, count, what, how in counts:
        if count:
            yield name, WARNING, f"{plural(count, 'lesson')} {what} (ralphdeck doctor --repair {how})"
    if not records.repairs:
        yield "rules", OK, "all extracted lessons keep today's rules"
    if records.left:
        yield "left", NOTE, f"{_named(list(records.left))}: do not keep today's rules, but a person decided on them"


def _old_rules_json(records: OldRecords) -> Wire:
    counts = {problem.value: records.count(problem) for problem in Problem}
    return setup_json.OldRules.of(counts, left=len(records.left))


def _evidence(view: ProjectState, doubts: Sequence[Finding]) -> Iterator[Found]:
    """Check whether records agree with the evidence, and report suspicious reports."""
    from core.learning.bursts import format_burst

    if doubts:
        status = WARNING if any(doubt.severity is not Severity.INFO for doubt in doubts) else NOTE
        yield "records", status, f"{plural(len(doubts), 'difference')} between records and evidence"
    else:
        yield "records", OK, "records and evidence agree"
    for burst in view.board.bursts:
        yield "suspicious reports", WARNING, f"{format_burst(burst)}; see: ralphdeck review --suspicious"


def _metrics(paths: ProjectPaths, view: ProjectState) -> Found:
    """Check whether the metrics in files agree with the evidence."""
    from core.show.metrics.effectiveness import compare_metrics, compute_effectiveness, read_recorded_metrics

    found = compare_metrics(read_recorded_metrics(paths), compute_effectiveness(view.snapshot, view.board, view.now))
    if not found:
        return "metrics", OK, "metrics in files and the evidence agree"
    first = found[0]
    more = f", and {plural(len(found) - 1, 'more value')}" if len(found) > 1 else ""
    text = f"{first.file} has {first.key} {_shown(first.claimed)}, the evidence {_shown(first.evident)}{more}"
    return "metrics", NOTE, f"{visible_line(text, 300)}; see: ralphdeck metrics"


def _vectors(project: Project) -> Iterator[Found]:
    """Check whether semantic search is available, and count the vectors."""
    from core.retrieval.embeddings import EXTRA, MODEL, is_available
    from core.tasks.task_links import collect_past_tasks

    ready = is_available()
    text = f"{MODEL} is installed" if ready else f"not installed or disabled, words are compared; {install_hint(EXTRA)}"
    yield "model", OK if ready else NOTE, text
    snapshot = project.view.snapshot
    tasks = collect_past_tasks(snapshot)
    for noun, having, records in (
        ("pattern", project.embeddings.count(snapshot.patterns), len(snapshot.patterns)),
        ("task", project.task_embeddings.count(tasks), len(tasks)),
    ):
        hint = "; see: ralphdeck doctor --embed" if ready and having < records else ""
        yield f"{noun} vectors", NOTE, f"{having:,} of {plural(records, noun)} have a vector{hint}"


def _named(ids: list[str]) -> str:
    more = f" and {len(ids) - _MAX_NAMED} more" if len(ids) > _MAX_NAMED else ""
    return ", ".join(ids[:_MAX_NAMED]) + more


def _curation(paths: ProjectPaths, snapshot: Snapshot, settings: Settings) -> Iterator[Found]:
    from core.sources.ledger import Ledger, verify_ledger

    name, source = find_signature(None, settings)
    yield "actor", NOTE, f"decisions are signed {visible_line(name, 80)} (from {source})"
    yield "decisions", NOTE, f"{len(snapshot.decisions)} in {paths.relative(paths.ledger)}"
    try:
        pending = Ledger(paths).pending()
    except (RalphdeckError, OSError) as error:
        yield "ledger", ERROR, str(error)
        return
    try:
        verified = verify_ledger(paths)
    except RalphdeckError as error:
        yield "log", ERROR, str(error)
    else:
        hint = "; see: ralphdeck log --verify" if verified.problems else ""
        yield "log", ERROR if verified.problems else OK, f"{verified.summary}{hint}"
    if pending:
        files = sorted({file for _, file in pending})
        what = plural(len(pending), "change")
        text = f"{what} not yet in {_named(files)}; the next decision retries"
        yield "pending changes", WARNING, text
    folder = next(p for p in (paths.curation, *paths.curation.parents) if os.access(p, os.F_OK))
    if not os.access(folder, os.W_OK):
        yield "writable", ERROR, f"no permission to write in {folder}: decisions cannot be saved"


def _watch(paths: ProjectPaths) -> Iterator[Found]:
    folders = sum(1 for root in (paths.ralph, paths.external) for _ in os.walk(root))
    try:
        limit = int((_INOTIFY / "max_user_watches").read_text(encoding="ascii"))
        instances = int((_INOTIFY / "max_user_instances").read_text(encoding="ascii"))
    except (OSError, ValueError):
        yield "folders", NOTE, f"{folders}; the limit of this system is unknown"
        return
    text = f"{folders} of at most {limit} (fs.inotify.max_user_watches), {instances} instances"
    if folders < limit:
        yield "folders", OK, text
    else:
        yield "folders", WARNING, f"{text}; changes are found by polling: raise the limit with sysctl"


def _settings(configuration: Configuration) -> Iterator[Found]:
    """List each setting in the file, then the defaults of each group of settings."""
    from core.sources.configuration import DEFAULT, PLACES

    file = configuration.file
    for unusable in configuration.unusable:
        yield unusable, ERROR, f"cannot be read; {f'{file} is used' if file else 'the defaults are used'}"
    if file or not configuration.unusable:
        yield "file", NOTE, file or f"none of {' and '.join(PLACES)}; all are defaults"
    defaults: dict[str, list[str]] = {}
    for setting in configuration.listed():
        if setting.source == DEFAULT:
            group, _, field = setting.name.rpartition(".")
            defaults.setdefault(group, []).append(f"{field} {_shown(setting.value)}")
        else:
            yield setting.name, NOTE, f"{_shown(setting.value)}, from {setting.source}"
    for group, texts in defaults.items():
        yield f"{group} defaults".strip(), NOTE, ", ".join(texts)


def _shown(value: object) -> str:
    """Format a value as in a settings file."""
    whole = isinstance(value, float) and value.is_integer()
    return f"{value:.0f}" if whole else json.dumps(value, ensure_ascii=False)


def _file(name: str, path: Path) -> Found:
    return name, NOTE, f"{path}{'' if os.access(path, os.F_OK) else ' (does not exist yet)'}"


def _state(path: Path) -> Iterator[Found]:
    """Report the user's own state, and its damaged versions."""
    yield _file("state", path)
    try:
        damage = read_tables(path).damage
    except Unwritable as error:
        damage = str(error)
    if damage:
        yield "state", ERROR, f"not read: {damage}; the next change moves the file aside"
    if moved := [one.name for one in damaged_files(path)]:
        yield "state", WARNING, f"damaged and moved aside: {_named(moved)}; delete what you do not need"


def _keymap(path: Path) -> Iterator[Found]:
    yield _file("keymap", path)
    if not os.access(path, os.F_OK):
        return
    program = click.get_current_context().find_root().command
    if isinstance(program, Program):
        yield from (("keymap", ERROR, problem) for problem in program.keymap_problems(path))


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = [f"Python {platform.python_version()}", platform.system()]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} missing")
    return ", ".join(found)


def repair_patterns(pattern_ids: Sequence[str], *, is_applied: bool, reason: str) -> None:
    """Print the repairs of the named or all patterns; with `is_applied` make them."""
    from core.index.project_state import all_findings

    project = open_project()
    warn_of_user_settings()
    records = project.repairs([project.view.find_pattern(one).id for one in dict.fromkeys(pattern_ids)])
    if not is_applied:
        if wants_json():
            print_object(
                patterns_json.RepairList,
                repairs=[_repair_json(one) for one in records.repairs],
                left=records.left,
                findings=all_findings(project.view),
            )
        else:
            _print_repairs(records)
    elif records.repairs:
        decide(project, RepairPatterns(records.repairs, reason=reason))
        for source in dict.fromkeys(source for one in records.repairs for source in one.other_sources):
            remark(_name_other(source))
    else:
        print_unchanged("no pattern needs a repair")


def _name_other(source: str) -> str:
    return f"{source} has another fix; to extract it afterwards: ralphdeck loop extract {source}"


def _repair_json(repair: RecordRepair) -> Wire:
    return patterns_json.PatternRepair.of(
        repair.pattern,
        action="archive" if repair.is_archived else "repair",
        problems=[problem.value for problem in repair.problems],
        reason=repair.reason,
        other_sources=repair.other_sources,
        changes=repair.text_changes,
    )


def _print_repairs(records: OldRecords) -> None:
    for repair in records.repairs:
        line((repair.pattern.id, "bold"), "  archive: " if repair.is_archived else "  repair: ", repair.reason)
        if repair.is_archived:
            line(f"  {repair.pattern.title}: {repair.pattern.description}")
        for part, before, after in repair.text_changes:
            if part in ("template", "diff"):
                line(f"  {part}: {'removed' if not after else 'replaced' if before else 'added'}")
                for code, mark in ((before, "-"), (after, "+")) if part == "template" else ((after, " "),):
                    for text in mask_secrets(code).splitlines():
                        line(f"    {mark} {text}".rstrip())
            else:
                line(f"  {part}: {mask_secrets(before) or '(none)'} → {mask_secrets(after) or '(none)'}")
        for source in repair.other_sources:
            line(f"  {_name_other(source)}")
    archived = sum(repair.is_archived for repair in records.repairs)
    left = (
        f"; {plural(len(records.left), 'pattern')} that a person decided on or edited would stay"
        if records.left
        else ""
    )
    if records.repairs:
        changed = len(records.repairs) - archived
        remark(
            f"{changed:,} to repair, {archived:,} to archive{left}; to write this: ralphdeck doctor --repair --apply"
        )
    else:
        remark(f"no pattern needs a repair{left}")


def compute_vectors() -> None:
    """Compute the missing vectors of patterns, tasks and instructions for agents."""
    from core.questions.conflict import index_instructions
    from core.retrieval.embeddings import EXTRA, INSTRUCTIONS, MODEL, PATTERNS, TASKS, is_available
    from core.tasks.task_links import embeddable_work

    if not is_available():
        raise BadInput(f"the embedding model is not installed or is disabled; {install_hint(EXTRA)}")
    project = open_project(asks=False)
    project.read_adapted()
    patterns, tasks = project.view.snapshot.patterns, embeddable_work(project.view.snapshot)
    instructions = index_instructions(project.view)
    patterns_made = _compute(PATTERNS, patterns, "Reading patterns")
    tasks_made = _compute(TASKS, tasks, "Reading tasks")
    instructions_made = _compute(INSTRUCTIONS, instructions, "Reading instructions")

    if wants_json():
        print_object(
            setup_json.VectorCounts,
            model=MODEL,
            made=patterns_made,
            patterns=len(patterns),
            tasks_made=tasks_made,
            tasks=len(tasks),
            instructions_made=instructions_made,
            instructions=len(instructions),
        )
    else:
        for noun, made, total in (
            ("pattern", patterns_made, len(patterns)),
            ("task", tasks_made, len(tasks)),
            ("instruction", instructions_made, len(instructions)),
        ):
            if made:
                line(f"computed vectors for {plural(made, noun)}; all {total:,} have one")
            elif total or noun == "pattern":
                line(f"vectors are up to date: {plural(total, noun)}")


def _compute(subject: VectorSubject[Record], records: Mapping[str, Record], label: str) -> int:
    from core.retrieval.embeddings import Embeddings

    embeddings = Embeddings(chosen_project(), subject)
    missing = len(embeddings.missing(records))
    is_watched = missing > 0 and sys.stderr is not None and sys.stderr.isatty()
    with click.progressbar(length=missing, label=label, file=sys.stderr, hidden=not is_watched) as bar:
        return embeddings.make(records, lambda done, _all: bar.update(done - bar.pos))
