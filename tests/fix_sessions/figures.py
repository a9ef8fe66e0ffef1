"""Replay all sessions and compute the figures of README.md."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from core.records.patterns import Pattern, PatternType
from tests.fix_sessions.lessons import contains_change, has_clean_holes, has_reason, is_quoted, on_another_day
from tests.fix_sessions.replay import Workshop
from tests.fix_sessions.sessions import Failure, Session

GROUPS: Final = 4  # projects that lack the lessons of a quarter of the causes each
_REGISTRY: Final = "pattern_registry"
_LIST: Final = "error_patterns"
_MARK: Final = re.compile(r"\(s(\d\d)\) ")


class Limit(NamedTuple):
    """The worst value of a figure that is good enough."""

    value: float
    is_maximum: bool = False

    def holds(self, value: float) -> bool:
        return value <= self.value if self.is_maximum else value >= self.value


LIMITS: Final[Mapping[str, Limit]] = {
    "coverage": Limit(0.90),
    "says what": Limit(0.90),
    "recall": Limit(0.95),
    "false": Limit(0.03, is_maximum=True),
    "holes": Limit(1.0),
    "negatives": Limit(0, is_maximum=True),
    "questions": Limit(1.1, is_maximum=True),
    "words": Limit(0.80),
}


@dataclass
class Study:
    """What one session left behind."""

    session: Session
    patterns: Sequence[Pattern] = ()
    questions: Sequence[str] = ()
    answer: str = ""  # to the session's own first failure in a later session
    records: Sequence[Mapping[str, Any]] = ()  # of the error patterns, as in the file of the registry
    wrongly_answers: list[str] = field(default_factory=list)  # failures of other causes

    @property
    def lessons(self) -> list[Pattern]:
        """Return the error patterns."""
        return [pattern for pattern in self.patterns if pattern.type is PatternType.ERROR]

    @property
    def contains_change(self) -> bool:
        return any(contains_change(lesson, self.session) for lesson in self.lessons)

    @property
    def has_reason(self) -> bool:
        return any(has_reason(lesson, self.session) for lesson in self.lessons)

    @property
    def is_recalled(self) -> bool:
        return any(is_quoted(lesson, self.answer) for lesson in self.lessons)

    @property
    def holes(self) -> list[bool]:
        return [has_clean_holes(pattern) for pattern in self.patterns if pattern.template_code]


@dataclass
class Results:
    """The studies of all sessions, and the failures of other causes that were answered."""

    studies: Sequence[Study]
    answered: Mapping[str, bool]

    @property
    def fixes(self) -> list[Study]:
        return [study for study in self.studies if study.session.label.learns]

    def figures(self) -> dict[str, float]:
        """Return each figure of `LIMITS`."""
        fixes = self.fixes
        learned = [study for study in fixes if study.lessons]
        questions = [len(study.questions) for study in learned]
        others = [study for study in self.studies if not study.session.label.learns]
        return {
            "coverage": _share(len(study.lessons) == 1 for study in fixes),
            "says what": _share(study.contains_change for study in learned),
            "recall": _share(study.is_recalled for study in learned),
            "false": _share(self.answered.values()),
            "holes": _share((hole for study in self.studies for hole in study.holes), empty=1.0),
            "negatives": sum(bool(study.patterns) for study in others),
            "questions": sum(questions) / len(questions) if questions else 0.0,
            "words": _share(study.has_reason for study in learned),
        }


def _share(values: Iterable[bool], empty: float = 0.0) -> float:
    found = list(values)
    return sum(found) / len(found) if found else empty


def measure(sessions: Sequence[Session], others: Sequence[Failure], executor: Executor) -> Results:
    """Replay sessions, and ask for all failures in projects with lessons of other causes."""
    studies = list(executor.map(study, sessions, chunksize=4))
    learned = [one for one in studies if one.session.label.learns and one.records]
    causes = list(dict.fromkeys(one.session.cause for one in studies if one.session.label.learns))
    asked: list[tuple[frozenset[str], list[Failure]]] = [
        (group, [one for cause in group for one in _failures(sessions, cause)])
        for group in (frozenset(causes[number::GROUPS]) for number in range(GROUPS))
    ]
    asked.append((frozenset(), [*others, *_failures(sessions, "")]))
    projects = [[one for one in learned if one.session.cause not in group] for group, _ in asked]
    answers = executor.map(_answers, [_marked(known) for known in projects], [failures for _, failures in asked])
    answered: dict[str, bool] = {}
    for known, (_, failures), texts in zip(projects, asked, answers, strict=True):
        for failure, text in zip(failures, texts, strict=True):
            answered[failure.name] = bool(text)
            for number in dict.fromkeys(_MARK.findall(text)):
                known[int(number)].wrongly_answers.append(failure.name)
    return Results(studies, answered)


def _failures(sessions: Sequence[Session], cause: str) -> Iterator[Failure]:
    """Yield the first failures of the sessions with a cause; without one: of those that learn nothing."""
    for session in sessions:
        if session.cause == cause and (failure := session.first_failure) is not None:
            yield failure


def study(session: Session) -> Study:
    """Replay a session in a project of its own."""
    with tempfile.TemporaryDirectory(prefix="fix-session-") as folder:
        place = Workshop(Path(folder).resolve(), session.agent)
        place.play(session)
        project = place.open()
        view = project.view
        found = Study(
            session,
            patterns=tuple(view.snapshot.patterns.values()),
            questions=tuple(f"{item.kind}: {item.question}" for item in view.queue),
        )
        if found.lessons and (failure := session.first_failure) is not None:
            file = place.paths.pattern_file("error")
            found.records = json.loads(file.read_text("utf-8"))[_REGISTRY][_LIST]
            place.approve_all(project)
            later = on_another_day(failure.output)
            found.answer = place.answer(Failure(failure.name, failure.command, failure.exit, later))
        return found


def _marked(known: Sequence[Study]) -> list[dict[str, Any]]:
    """Return the lessons of several projects for one file; the mark of each is the place of its session."""
    records = []
    for number, one in enumerate(known):
        for lesson, record in enumerate(one.records):
            fix = record["fix_approach"]
            marked = {**fix, "description": f"(s{number:02}) {fix['description']}"}
            records.append({**record, "pattern_id": f"pat-error-s{number:02}-{lesson:03}", "fix_approach": marked})
    return records


def _answers(records: Sequence[Mapping[str, Any]], failures: Sequence[Failure]) -> list[str]:
    """Return the known fix of each failure in a project with these lessons, all approved."""
    with tempfile.TemporaryDirectory(prefix="fix-lessons-") as folder:
        place = Workshop(Path(folder).resolve())
        file = place.paths.pattern_file("error")
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"version": "1.0.0", _LIST: records}), "utf-8")
        place.approve_all(place.open())
        return list(place.known_fixes(failures))


def summary(results: Results) -> str:
    """Return the figures in one line, with the limits that do not hold."""
    parts = []
    for name, value in results.figures().items():
        limit = LIMITS[name]
        missed = "" if limit.holds(value) else f" [{'<=' if limit.is_maximum else '>='} {limit.value}]"
        parts.append(f"{name} {value:.2f}{missed}")
    others = len(results.studies) - len(results.fixes)
    return f"{len(results.fixes)} fixes, {others} without a lesson: {', '.join(parts)}"
