"""`ralphdeck doctor`: what is wrong with the files, the terminal and the watch."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

import click

from core import __version__
from core.base.errors import ProjectNotFound, RalphdeckError
from core.base.text import plural, visible_line
from core.cli.groups import Program
from core.cli.json.shapes import json_help
from core.cli.render.output import Column, end, findings_json, line, print_json, print_table, remark
from core.cli.support.options import reading_options
from core.cli.support.project import chosen_project, named_decider, open_deck, read_configuration
from core.cli.support.user_files import keymap_file, log_file, state_file
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.episodes.similar_tasks import collect_past_tasks
from core.learning.bursts import format_burst
from core.ledger.ledger import Ledger
from core.ledger.verify import verify_ledger
from core.metrics.derived_files import compare_metrics, read_recorded_metrics
from core.metrics.effectiveness import effectiveness
from core.project.project import Project
from core.records.findings import Finding, Severity
from core.records.loops import Liveness, LoopStatus
from core.records.snapshot import Snapshot
from core.retrieval.embedding import EXTRA, MODEL, available
from core.sources.configuration import DEFAULT, PLACES, Configuration, SettingValue
from core.sources.parse_cache import cache_file
from core.state.findings import all_findings
from core.state.project_state import ProjectState

OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
ERROR: Final = "error"
_COLOURS: Final = {OK: "green", WARNING: "yellow", ERROR: "red"}
_INOTIFY: Final = Path("/proc/sys/fs/inotify")
_PACKAGES: Final = ("textual", "rich", "click", "watchdog", "tinydb", "msgspec", "numpy", "scipy", "google-re2")
_MOST_NAMED: Final = 5
_MOST_DOUBTS: Final = 100
"""Disagreements of records and evidence that the text shows; a registry may have one a pattern."""


class Check(NamedTuple):
    """One thing looked at; `status` is ok, note, warning or error."""

    area: str
    name: str
    status: str
    text: str


@click.command(epilog=json_help("doctor"))
@reading_options
def doctor(as_json: bool, strict: bool) -> None:
    """Check the files of a project, the terminal, the watch, and say where everything lies and comes from.

    Every setting is told with its source: aiwg.yml or .aiwg/config.yml, the first that has any, else the default.
    The dashboard reads them once, when it starts.

    Without a project it looks at the rest, and fails; with --json it only fails. The last line is the verdict.

    \b
    Examples:
      ralphdeck doctor
      ralphdeck doctor --strict --json    (in CI: exit code 3 if a file cannot be used)
    """
    missing: ProjectNotFound | None = None
    findings: tuple[Finding, ...] = ()
    doubts: list[Finding] = []
    checks: list[Check] = []
    settings: tuple[SettingValue, ...] = ()
    try:
        paths = chosen_project()
        configuration = read_configuration(registry=True)
        settings = configuration.listed()
        deck = open_deck(configuration=configuration)
        view = deck.view
        findings = all_findings(view)
        doubts += (doubt for pattern_id in view.board.ids for doubt in view.board.reconcile(pattern_id))
        doubts.sort(key=lambda doubt: doubt.severity is Severity.INFO)
        checks += _project(paths)
        checks += _records(view.snapshot, (*findings, *doubts))
        checks += _texts(view)
        checks += _evidence(view, doubts)
        checks.append(_metrics(paths, view))
        checks += _meaning(deck)
        checks += _curation(paths, view.snapshot, view.settings)
        checks += _watch(paths)
        checks += _settings(configuration)
        checks.append(_file("cache", cache_file(paths.project)))
    except ProjectNotFound as error:
        if as_json:
            raise
        missing = error
    checks += [_file("state", state_file()), _file("log", log_file()), *_keymap(keymap_file())]
    checks += _terminal()
    checks.append(Check("versions", "ralphdeck", NOTE, f"{__version__}, {_versions()}"))
    if as_json:
        told = findings_json((*findings, *doubts))
        listed = [setting._asdict() for setting in settings]
        print_json(
            {
                "verdict": _verdict(checks, (*findings, *doubts)),
                "checks": [check._asdict() for check in checks],
                "settings": listed,
                "findings": told,
            }
        )
    else:
        _print(checks, (*findings, *doubts[:_MOST_DOUBTS]))
        if len(doubts) > _MOST_DOUBTS:
            left = len(doubts) - _MOST_DOUBTS
            remark(f"{left:,} more places where records and evidence disagree; see: ralphdeck doctor --json")
        if missing is None:
            line(("verdict: ", "bold"), _verdict(checks, (*findings, *doubts)))
    if missing is not None:
        raise missing
    end(findings, strict=strict, listed=not as_json)


def _print(checks: Sequence[Check], findings: Sequence[Finding]) -> None:
    area = ""
    for check in checks:
        if check.area != area:
            area = check.area
            line((area, "bold"))
        mark = "" if check.status == NOTE else check.status
        line("  ", (f"{mark:<8}", _COLOURS.get(check.status, "")), f"{check.name}: {check.text}")
    if findings:
        line(("findings", "bold"))
        columns = (
            Column("SEVERITY", colours={"error": "red", "warning": "yellow"}),
            Column("CODE"),
            Column("FILE"),
            Column("POINTER"),
            Column("MESSAGE", free=True),
        )
        rows = ((f.severity.value, f.code, f.file, f.pointer, f.message) for f in findings)
        print_table(columns, rows)


def _project(paths: ProjectPaths) -> Iterator[Check]:
    yield Check("project", "folder", NOTE, str(paths.project))
    for folder in (paths.ralph, paths.external):
        name = f".aiwg/{folder.name}"
        try:
            found = folder.is_dir()
        except OSError as error:
            yield Check("project", name, ERROR, f"cannot be read: {error.strerror}")
            continue
        yield Check("project", name, OK if found else NOTE, "found" if found else "not there yet")


def _counts(findings: Sequence[Finding]) -> Counter[Severity]:
    counts: Counter[Severity] = Counter()
    for finding in findings:
        counts[finding.severity] += finding.count
    return counts


def _counted(counts: Counter[Severity]) -> str:
    return ", ".join(f"{counts[severity]} {severity}" for severity in reversed(Severity) if counts[severity])


def _verdict(checks: Sequence[Check], findings: Sequence[Finding]) -> str:
    """One line on all of it: how many checks and findings want a look."""
    counts = _counts(findings)
    statuses = Counter(check.status for check in checks)
    errors, warnings = counts[Severity.ERROR], counts[Severity.WARNING]
    if errors or statuses[ERROR]:
        word = "errors"
    elif warnings or statuses[WARNING]:
        word = "warnings"
    else:
        word = "ok"
    parts = [f"{plural(statuses[ERROR], 'check')} failed"] * bool(statuses[ERROR])
    parts += [f"{plural(statuses[WARNING], 'check')} with a warning"] * bool(statuses[WARNING])
    parts.append(f"findings: {_counted(counts) or 'none'}")
    return f"{word}: {'; '.join(parts)}"


def _records(snapshot: Snapshot, findings: Sequence[Finding]) -> Iterator[Check]:
    loops = snapshot.loops.values()
    statuses = Counter(loop.status.value for loop in loops)
    counted = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    yield Check("records", "loops", NOTE, f"{len(loops)}{': ' if counted else ''}{counted}")
    for name, chosen, meaning in (
        ("crashed loops", [p.id for p in loops if p.status is LoopStatus.CRASHED], "died at work"),
        ("stale loops", [p.id for p in loops if p.liveness is Liveness.STALE], "at work, long without a sign"),
        ("orphan loops", [p.id for p in loops if "orphan" in p.badges], "at work, but not in the registry"),
    ):
        if chosen:
            yield Check("records", name, WARNING, f"{_named(chosen)}: {meaning}")
    patterns = snapshot.patterns.values()
    yield Check("records", "patterns", NOTE, f"{len(patterns)}")
    if mirrored := [pattern.id for pattern in patterns if pattern.copy_folder]:
        yield Check("records", "mirrors", WARNING, f"{_named(mirrored)}: only in a mirror, not in the registry")
    differing = [pattern.id for pattern in patterns if any(mirror.differs for mirror in pattern.copies)]
    if differing:
        yield Check("records", "mirrors", WARNING, f"{_named(differing)}: a copy differs from the registry")
    yield Check("records", "reflections", NOTE, f"{len(snapshot.reflections)}")
    for file, since in snapshot.unreadable.items():
        yield Check("records", "unreadable", ERROR, f"{file}, since {since:%Y-%m-%d %H:%M:%S} UTC")
    counts = _counts(findings)
    text = _counted(counts)
    status = ERROR if counts[Severity.ERROR] else WARNING if counts[Severity.WARNING] else OK
    yield Check("records", "findings", status, text or "none")


def _texts(view: ProjectState) -> Iterator[Check]:
    """How many texts are kept out of every context until a person decides."""
    held, quarantined = int(view.board.held.sum()), int(view.board.quarantined.sum())
    for name, count, state in (("held", held, "held"), ("quarantine", quarantined - held, "quarantine")):
        hint = f", not injected; see: ralphdeck patterns list --state {state}" if count else ""
        yield Check("texts", name, WARNING if count else OK, f"{plural(count, 'pattern')}{hint}")


def _evidence(view: ProjectState, doubts: Sequence[Finding]) -> Iterator[Check]:
    """Whether what the records claim and what the loops show agree, and which marks wait for a verdict."""
    if doubts:
        status = WARNING if any(doubt.severity is not Severity.INFO for doubt in doubts) else NOTE
        told = plural(len(doubts), "finding")
        yield Check("evidence", "claims", status, f"{told} where records and evidence disagree")
    else:
        yield Check("evidence", "claims", OK, "records and evidence agree")
    for burst in view.board.bursts:
        yield Check("evidence", "burst", WARNING, f"{format_burst(burst)}; see: ralphdeck bursts")


def _metrics(paths: ProjectPaths, view: ProjectState) -> Check:
    """Whether the metrics in files, registry documents included, are what the evidence shows."""
    found = compare_metrics(read_recorded_metrics(paths), effectiveness(view.snapshot, view.board, view.now))
    if not found:
        return Check("evidence", "metrics", OK, "metrics in files and the evidence agree")
    first = found[0]
    more = f", and {plural(len(found) - 1, 'more value')}" if len(found) > 1 else ""
    text = f"{first.file} claims {first.key} {_shown(first.claimed)}, the evidence shows {_shown(first.evident)}{more}"
    return Check("evidence", "metrics", NOTE, f"{visible_line(text, 300)}; see: ralphdeck metrics")


def _meaning(deck: Project) -> Iterator[Check]:
    """Whether patterns and tasks can be found by meaning, and how many of them."""
    ready = available()
    text = f"{MODEL} is installed" if ready else f"not installed or switched off, words are compared; install {EXTRA}"
    yield Check("meaning", "model", OK if ready else NOTE, text)
    snapshot = deck.view.snapshot
    tasks = collect_past_tasks(snapshot)
    for noun, having, records in (
        ("pattern", deck.embeddings.count(snapshot.patterns), len(snapshot.patterns)),
        ("task", deck.task_embeddings.count(tasks), len(tasks)),
    ):
        hint = "; see: ralphdeck embed" if ready and having < records else ""
        yield Check("meaning", f"{noun} vectors", NOTE, f"{having:,} of {plural(records, noun)} have a vector{hint}")


def _named(ids: list[str]) -> str:
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return ", ".join(ids[:_MOST_NAMED]) + more


def _curation(paths: ProjectPaths, snapshot: Snapshot, settings: Settings) -> Iterator[Check]:
    name, source = named_decider(settings)
    yield Check("curation", "actor", NOTE, f"decisions are signed {visible_line(name, 80)} (by {source})")
    yield Check("curation", "decisions", NOTE, f"{len(snapshot.decisions)} in {paths.relative(paths.ledger)}")
    try:
        pending = Ledger(paths).pending()
    except (RalphdeckError, OSError) as error:
        yield Check("curation", "ledger", ERROR, str(error))
        return
    try:
        verified = verify_ledger(paths)
    except RalphdeckError as error:
        yield Check("curation", "log", ERROR, str(error))
    else:
        hint = "; see: ralphdeck log --verify" if verified.problems else ""
        yield Check("curation", "log", ERROR if verified.problems else OK, f"{verified.summary}{hint}")
    if pending:
        files = sorted({file for _, file in pending})
        what = plural(len(pending), "change")
        text = f"{what} not yet in {_named(files)}; the next decision tries again"
        yield Check("curation", "unsettled", WARNING, text)
    folder = next(p for p in (paths.curation, *paths.curation.parents) if _exists(p))
    if not os.access(folder, os.W_OK):
        yield Check("curation", "writable", ERROR, f"no permission to write in {folder}: no decision can be kept")


def _watch(paths: ProjectPaths) -> Iterator[Check]:
    folders = sum(1 for root in (paths.ralph, paths.external) for _ in os.walk(root))
    try:
        limit = int((_INOTIFY / "max_user_watches").read_text(encoding="ascii"))
        instances = int((_INOTIFY / "max_user_instances").read_text(encoding="ascii"))
    except (OSError, ValueError):
        yield Check("watch", "folders", NOTE, f"{folders}; this system tells no limit")
        return
    enough = folders < limit
    text = f"{folders} of at most {limit} (fs.inotify.max_user_watches), {instances} instances"
    hint = "" if enough else "; changes will be found by polling: raise the limit with sysctl"
    yield Check("watch", "folders", OK if enough else WARNING, text + hint)


def _settings(configuration: Configuration) -> Iterator[Check]:
    """Each setting of the file on a line of its own, then the defaults, a line a group."""
    file = configuration.file
    for unusable in configuration.unusable:
        yield Check("settings", unusable, ERROR, f"cannot be read, {f'{file} counts' if file else 'the defaults hold'}")
    if file or not configuration.unusable:
        yield Check("settings", "file", NOTE, file or f"none, all are defaults; looked for {' and '.join(PLACES)}")
    defaults: dict[str, list[str]] = {}
    for setting in configuration.listed():
        if setting.source == DEFAULT:
            group, _, field = setting.name.rpartition(".")
            defaults.setdefault(group, []).append(f"{field} {_shown(setting.value)}")
        else:
            yield Check("settings", setting.name, NOTE, f"{_shown(setting.value)}, from {setting.source}")
    for group, texts in defaults.items():
        yield Check("settings", f"{group} defaults".strip(), NOTE, ", ".join(texts))


def _shown(value: object) -> str:
    """A value as the file may say it."""
    whole = isinstance(value, float) and value.is_integer()
    return f"{value:.0f}" if whole else json.dumps(value, ensure_ascii=False)


def _terminal() -> Iterator[Check]:
    term = os.environ.get("TERM", "")
    yield Check("terminal", "TERM", WARNING if term in {"", "dumb"} else OK, term or "not set")
    depth = os.environ.get("COLORTERM") or ("256" if "256" in term else "few")
    colours = "off (NO_COLOR)" if os.environ.get("NO_COLOR") else depth
    yield Check("terminal", "colours", NOTE, colours)
    encoding = (sys.stdout.encoding or "unknown").lower()
    yield Check("terminal", "encoding", OK if "utf" in encoding else WARNING, encoding)
    size = shutil.get_terminal_size()
    small = size.columns < 80 or size.lines < 24
    yield Check("terminal", "size", WARNING if small else OK, f"{size.columns} x {size.lines}")
    if os.environ.get("TMUX"):
        yield _tmux()


def _tmux() -> Check:
    """Whether copying (OSC 52) gets through tmux."""
    command = ["tmux", "show-options", "-sv", "set-clipboard"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=2, check=False).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return Check("terminal", "tmux", NOTE, f"could not be asked: {error}")
    if shown == "on":
        return Check("terminal", "tmux", OK, "set-clipboard on: copying works")
    hint = "to copy from the dashboard: tmux set -s set-clipboard on"
    return Check("terminal", "tmux", WARNING, f"set-clipboard {shown or 'unknown'}; {hint}")


def _file(name: str, path: Path) -> Check:
    return Check("files", name, NOTE, f"{path}{'' if _exists(path) else ' (not made yet)'}")


def _keymap(path: Path) -> Iterator[Check]:
    """Where other keys may be written, and what the dashboard would not take of them."""
    yield _file("keymap", path)
    if not _exists(path):
        return
    program = click.get_current_context().find_root().command
    if isinstance(program, Program):
        yield from (Check("files", "keymap", ERROR, problem) for problem in program.keymap_problems(path))


def _exists(path: Path) -> bool:
    """Whether anything that can be seen is there."""
    try:
        return path.exists()
    except OSError:
        return False


def _versions() -> str:
    found = [f"Python {platform.python_version()}", platform.system()]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} missing")
    return ", ".join(found)
