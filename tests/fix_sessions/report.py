"""The table of all sessions, and the lessons word for word."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fix_sessions.figures import Results, Study, summary

_COLUMNS = "found  says  words  recall  holes  asks"


def render(results: Results, worst: int) -> str:
    """Return the table with a row per session, this number of the worst lessons, and the figures."""
    lines = [f"{'session':<28} {'agent':<8} {_COLUMNS}  trigger; failures of other causes that it answers"]
    lines += [_row(study) for study in results.studies]
    for study in sorted(results.studies, key=_quality)[:worst]:
        lines += ["", *_describe(study)]
    wrong = [name for name, is_answered in results.answered.items() if is_answered]
    lines += ["", f"answered failures of other causes: {' '.join(wrong) or '-'}", summary(results)]
    return "\n".join(lines)


def _row(study: Study) -> str:
    session = study.session
    cells = [f"{len(study.patterns):>5}"]
    if study.lessons and session.label.learns:
        cells += [f"{_mark(study.contains_change):>5}", f"{_mark(study.has_reason):>6}"]
        cells += [f"{_mark(study.is_recalled):>7}", f"{_mark(all(study.holes)) if study.holes else '-':>6}"]
    else:
        cells += [f"{'-':>5}", f"{'-':>6}", f"{'-':>7}", f"{'-':>6}"]
    cells.append(f"{len(study.questions):>5}")
    triggers = " | ".join(lesson.error_pattern[:60] or "(none)" for lesson in study.lessons)
    remark = triggers if session.label.learns else f"nothing to learn: {session.label.kind} {triggers}".rstrip()
    wrong = f"; {' '.join(study.wrongly_answers)}" if study.wrongly_answers else ""
    return f"{session.name:<28} {session.agent:<8} {' '.join(cells)}  {remark}{wrong}"


def _mark(is_good: bool) -> str:
    return "yes" if is_good else "NO"


def _quality(study: Study) -> tuple[int, ...]:
    if not study.session.label.learns:
        return (-1,) if study.patterns else (9,)
    if len(study.lessons) != 1:
        return (0,)
    good = (study.contains_change, study.is_recalled, study.has_reason, all(study.holes), not study.wrongly_answers)
    return (1 + sum(good),)


def _describe(study: Study) -> Iterator[str]:
    label = study.session.label
    yield f"{study.session.name} ({study.session.agent}): {label.ideal or label.kind}"
    if not study.patterns:
        yield "  nothing was extracted"
    for pattern in study.patterns:
        yield f"  {pattern.type}: {pattern.title} [{pattern.error_type}]"
        yield f"  trigger: {pattern.error_pattern or '(none)'}"
        yield f"  fix: {pattern.description}"
        for code in (pattern.diff_pattern, pattern.template_code):
            yield from (f"  | {line}" for line in code.splitlines())
    yield from (f"  question: {question}" for question in study.questions)
    if study.wrongly_answers:
        yield f"  wrongly answers: {' '.join(study.wrongly_answers)}"
