"""The JSON that `--json` prints: a stable interface. Keys are only ever added, and never change their meaning.

Rules for all of it: times are ISO-8601 in UTC (`2026-02-02T15:00:00.000Z`), rates, ratios and parts of scores lie
in 0..1, `null` means unknown or none, ids and texts are the text of the files unchanged. `findings` is what is
wrong in the files, each `{file, pointer, severity, code, message}` with `file` relative to the project.

`DOCUMENTS` has the keys of each document; `ralphdeck COMMAND --help` shows them.

`findings` names what concerns the whole project. An error is never JSON: stdout stays empty, stderr has one line.
`raw` is what a score or a result was worth when it was new, `decayed` and `today` what it is worth now; `helpful` and
`harmful` are sums of the latter. `inferred` marks a result that is that of the whole loop.
For an anti-pattern `success_rate` is how often the avoided approach failed, and a success means that it did.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from core.cli.json.debug_documents import DEBUG_DOCUMENTS
from core.cli.json.task_documents import EPISODE_DOCUMENTS
from core.records.suspicions import Suspicion
from core.records.times import iso

if TYPE_CHECKING:
    from core.curation.decision_writer import Decided
    from core.extraction.clustering import Cluster
    from core.learning.assessment import Assessment
    from core.learning.explanation import RuleLine
    from core.learning.inversion_proposals import Inversion
    from core.learning.lineage import LineageEvent
    from core.learning.loop_patterns import LoopPatterns
    from core.records.decisions import Decision, Pin
    from core.records.events import Observation
    from core.records.extractions import Extraction
    from core.records.loops import Loop
    from core.records.patterns import Pattern, SourceLoop
    from core.records.reflections import Reflection
    from core.retrieval.injection import Injection
    from core.retrieval.reflections import ChosenReflection

Shape = dict[str, Any]

DOCUMENTS: Final = {
    **EPISODE_DOCUMENTS,
    "loop list": """\
{loops: [{id, task, status, raw_status, sources, iteration, max_iterations, started_at, ended_at,
ended_approximate, archived, liveness, liveness_reason, last_sign, badges, aliases, quality,
improvement_estimate: {baseline_iterations, actual_iterations, improvement},
injected, injected_reflections, uses: [{id, applied, success, inferred, iteration, at}], extracted, files,
outcome: {verdict, raw, decayed, parts, reasoning, error_count, retry_count}}], findings}""",
    "pattern list": """\
{patterns: [{id, type, title, state, computed_state, decided_by, pinned, faded, contradicted,
inversion_due, injectable, quarantined, held, success_rate, claimed_rate, interval, successes,
failures, usage_count, exposures, score, last_used, tags, mirror_of, file, pointer}], findings}""",
    "pattern show": """\
{pattern: {as in patterns list, and: description, use_case, category, error_type, error_pattern, location_hints,
task_pattern, template: {language, code, placeholders}, diff_pattern, steps, tools, preconditions,
benefits, limitations, average_iterations, typical_iterations: {average, minimum, maximum}, symptoms,
why_it_fails, better_alternative, better_pattern_id, source_loops: [{loop_id, at, contributed_by, outcome,
iterations_required, failure_iteration}], related, first_discovered,
inverted_from, aliases, mirrors: [{file, pointer, differs}], content_hash,
suspicions: [{rule, severity, tier, meaning, field, excerpt}]},
evidence: [{kind, source, loop_id, at, success, weight, count, iteration, derived, inferred}],
lineage: [{at, kind, loop_id, success, text}], findings}""",
    "pattern duplicates": """\
{duplicates: [{kept, other, similarity}], findings}""",
    "pattern merge": """\
{decision, summary, warnings, written}, as promote prints it. With --dry-run: {kept, other,
before: {successes, failures, usage_count, success_rate}, after: {as in before}, aliases}""",
    "pattern prune": """\
{prune: [{id, type, title, rules, reason, success_rate, uses, last_used}], findings}.
Without --dry-run, if there is any: {decision, summary, warnings, written}, as promote prints it""",
    "pattern archive": """\
{decisions: [{decision, summary, warnings, written}, as promote prints it]}""",
    "pattern archived": """\
{archived: [{id, type, title, at, by, reason, source, file}], findings}""",
    "pattern export": """\
{file, exported, left_out, masked: [{id, pointer, kind}], findings}""",
    "pattern import": """\
{rows: [{action, id, type, target, quarantined, changes, similar: [{id, similarity}], why}], findings}.
Without --dry-run, if anything changes, also: decision, summary, warnings, written, as promote prints them""",
    "reflection list": """\
{reflections: [{id, loop_id, task_id, attempt, iteration, at, at_approximate, kind, outcome, trigger,
effectiveness, observation, analysis, learning, actions, shape, file, pointer, also_in, draft}], findings}.
With --recurring: {recurring: [{id, text, loops, kinds, first_at, last_at, reflections: their ids}], findings}""",
    "loop inject": """\
{context, tokens, bytes, category, languages, error_types, decomposition, patterns: [{id, type, score, relevance,
effectiveness, multiplier, parts, lower_bound}], left_out: [{id, reason, score}],
reflections: [{id, learning, task, sources, same_ids, outcome, draft, at, score, relevance, outcome_factor, decay,
parts, matched_by}], reflections_left_out: [{id, learning, reason, score}],
matched_by: meaning or words, findings}""",
    "embed": """\
{made, patterns, tasks_made, tasks, model}""",
    "loop extract": """\
{extractions: [{source, proposals: [{type, slug, headline, record, trace, duplicate_of, similarity, refused}],
nothing, missing, decided: {decision: {id, at, by, verb, subject, reason, before, after, group}, summary,
warnings, written}, strategies: names by loop or attempt}], findings}""",
    "decision": """\
{decision: {id, at, by, verb, subject, reason, before, after, group}, summary, warnings, written}.
With several, as of many IDs: {decisions: [{as above}], refused: [{id, why}], summary, warnings, written}.
With --dry-run, where there is one: {dry_run, summary, warnings, refused, turned: [{id, before, after}], added, gone,
loops, paused, tasks, changed: [{kind, id, when}], tokens: {before, after}}""",
    "review list": """\
{questions: [{kind, subject, key, question, reason, worth, stake, urgent, seconds, evidence, other}],
sitting: {minutes, decisions, keys, seconds, share, later, not_worth_the_time}, findings}""",
    "check": """\
{kept, rules: [{rule, setting, result, text, subjects}]}.
result is ok, failed or off; subjects are what breaks the rule""",
    "scan": """\
{files: [{file, verdict, marks: [{rule, severity, tier, meaning, field, excerpt}], masked}]}.
With --lines one object a line: {verdict, marks, masked}. verdict is blocked, held, flagged or clean; masked is the
text with its secrets masked""",
    "pattern invert": """\
{proposals: [{id, text, reason, failures, total, failure_mode, why_it_fails, better_alternative,
better_pattern_id, source_loops, lint}], findings}.
With a verdict: {decision, summary, warnings, written}, as promote prints it; with --auto: {decisions: [such]}""",
    "log": """\
{decisions: [{id, at, by, verb, subject, reason, before, after, group, undone}], findings}.
With --verify: {lines, linked, decisions, heads, problems: [{line, what}]}. With --head:
{kind, project, lines, hash, at}""",
    "pattern why": """\
{id, state, computed_state, decided_by, pin: {state, at, by, reason, decision_id}, pin_stale, contradicted,
faded, injectable, success_rate, claimed_rate, interval, successes, failures, helpful, harmful,
next_change: {at, state}, rules: [{rule, text, holds, fired, state, value, threshold, distance}],
events: [{kind, source, loop_id, at, success, inferred, raw, today, iteration, count}],
steps: [{state, result, count}], loops: [{loop_id, helpful, harmful, state_without}],
calendar: [{at, state}], set_aside: [{source, at, revoked}],
doubts: findings on this pattern, findings}""",
    "loop record": """\
{event: {id, at, kind, loop_id, pattern_id, criterion, success, weight, iteration, text, by, agent},
pattern: {id, state, state_before, computed_state, helpful, harmful, successes, failures, inversion_due},
criterion: {criterion, weight, effective_weight, helpful, harmful, helpful_count, harmful_count,
last_validated, half_life_days, no_data, deprecated}, held,
records: [{id, file, written, problem, successes, failures, usage_count, success_rate}], warnings}""",
    "loop outcome": """\
{outcome: {id, kind, verdict, raw, decay, decayed, parts, reasoning, signals: {success, partial, timestamp,
duration_ms, error_count, retry_count, files_touched, strategy, failure_mode, failure_details}},
patterns: [{id, state, state_before, computed_state, helpful, harmful, successes, failures,
inversion_due}], strategies, recorded, records: [as in record], warnings}""",
    "loop score": """\
{outcomes: [{as in outcome, and: patterns: [{id, success, inferred}]}], criteria: [{as in record}],
weighted: {scores: [{criterion, weight, weighted}], total}, inversions, findings}""",
    "loop errors": """\
{errors: [{id, at, type, message, tool, context, stack_trace, resolved}],
stats: {total, unresolved, by_type}}""",
    "review suspicious": """\
{bursts: [{source, patterns, never_applied, first, last}], findings}.
With a verdict: {decision, summary, warnings, written}, as promote prints it""",
    "metrics": """\
{effectiveness_metrics: {total_patterns, patterns_by_type: {error_patterns, success_patterns, anti_patterns,
code_templates}, pattern_usage_stats: {total_applications, successful_applications, failed_applications,
overall_success_rate}, cross_loop_benefit: {loops_with_pattern_injection, loops_without_pattern_injection,
average_iterations_with, average_iterations_without, improvement_percentage}, last_updated},
states: {candidate, established, proven, deprecated}, comparison: {tells, difference, interval, level,
average_with, average_without, loops_with, loops_without, loops_needed,
categories: [{category, loops_with, loops_without, average_with, average_without}]},
reflections: as comparison for injected reflections, differences: [{key, file, evidence, source}], weeks,
sections: [{id, title, takeaway, parts, rows: [{label, values, low, high, n}]}], exported, findings}""",
    "changes": """\
{since, until, results: {helped, failed, other}, states: [{state, before, after}],
patterns: [{id, title, kind, because, by, weight, before, after}],
decisions: [{id, at, by, verb, subject, reason, before, after, group}],
loops: [{id, kind, status, task, at}], questions: [{kind, subject, text, new}], findings}.
Without a pattern before or after is null, else {state, success_rate, successes, failures, usage_count,
score, injectable}""",
    "accuracy": """\
{by, follow_up, needed, level, promotions: {made, followed, held, rate, low, high},
deprecations: {made, followed, held, rate, low, high}, findings}""",
    "what-if": """\
{tried: [{name, value, unit, label, choices, replayed}], counts: [{state, before, after}],
turns: [{id, before, after, since, inverts_before, inverts, inverted_at, pinned}], events,
criteria: [{criterion, weight_before, weight, effective_weight_before, effective_weight, deprecated_before,
deprecated}], findings}.
Without arguments: {thresholds: [such as tried]}""",
    "doctor": """\
{verdict, checks: [{area, name, status, text}], settings: [{name, value, source}], findings}""",
    "watch": """\
{at, what, subject, text, severity} on each line""",
    "demo": """\
{ok, loops, patterns, reflections, findings: how many, changes, changed_loops, changed_patterns, watch}""",
    **DEBUG_DOCUMENTS,
}
"""The keys of what each command prints with `--json`; "decision" is for every command that decides."""

_RULES: Final = "Times are ISO-8601 in UTC, rates lie in 0..1, null is unknown. Keys are only ever added."
_FINDINGS: Final = "A finding is {file, pointer, severity, code, message}."


def json_help(command: str) -> str:
    """The paragraphs on JSON for the help of a command of `DOCUMENTS`; click fits them to the terminal."""
    document = DOCUMENTS[command]
    rules = f"{_RULES} {_FINDINGS}" if "findings}" in document else _RULES
    return f"JSON: {document}\n\n{rules}"


def number(value: float | None) -> float | None:
    """A finite number or null."""
    return value if value is not None and math.isfinite(value) else None


def loop_json(loop: Loop, patterns: LoopPatterns) -> Shape:
    """One loop as `loops` prints it; `status` is the normalised word, `raw_status` the one of the file."""
    return {
        "id": loop.id,
        "task": loop.task,
        "status": loop.status.value,
        "raw_status": loop.raw_status,
        "sources": list(loop.sources),
        "iteration": loop.iteration,
        "max_iterations": loop.max_iterations,
        "started_at": iso(loop.started_at),
        "ended_at": iso(loop.ended_at),
        "archived": loop.archived,
        "liveness": loop.liveness.value,
        "liveness_reason": loop.liveness_reason,
        "last_sign": iso(loop.last_activity),
        "ended_approximate": loop.ended_approximate,
        "badges": list(loop.badges),
        "aliases": list(loop.aliases),
        "quality": [number(value) for value in loop.quality],
        "improvement_estimate": None
        if loop.improvement is None
        else {
            "baseline_iterations": number(loop.improvement.baseline),
            "actual_iterations": number(loop.improvement.actual),
            "improvement": number(loop.improvement.share),
        },
        "injected": patterns.injected_ids,
        "injected_reflections": list(patterns.reflections),
        "uses": [
            {
                "id": use.pattern_id,
                "applied": use.kind != "injected",
                "success": use.success,
                "inferred": use.inferred,
                "iteration": use.iteration,
                "at": iso(use.at),
            }
            for use in patterns.uses
        ],
        "extracted": [extracted.pattern_id for extracted in patterns.extracted],
        "files": list(loop.files),
    }


def pattern_json(pattern: Pattern, assessment: Assessment) -> Shape:
    """One pattern as `patterns list` prints it. Counts and rate are what the evidence shows."""
    return {
        "id": pattern.id,
        "type": pattern.type.value,
        "title": pattern.title,
        "state": assessment.state.value,
        "computed_state": assessment.computed.value,
        "pinned": assessment.pin is not None,
        "success_rate": number(assessment.rate),
        "claimed_rate": number(assessment.claimed_rate),
        "interval": [number(bound) for bound in assessment.interval],
        "usage_count": assessment.uses,
        "successes": assessment.successes,
        "failures": assessment.failures,
        "last_used": iso(assessment.last_used),
        "tags": list(pattern.tags),
        "mirror_of": pattern.copy_folder or None,
        "score": number(assessment.score),
        "exposures": assessment.injected_only,
        "decided_by": assessment.decided_by,
        "faded": assessment.faded,
        "contradicted": assessment.contradicted,
        "inversion_due": assessment.inversion_due,
        "injectable": assessment.injectable,
        "quarantined": assessment.quarantined,
        "held": assessment.held,
        "file": pattern.file,
        "pointer": pattern.pointer,
    }


def pattern_details_json(pattern: Pattern, assessment: Assessment) -> Shape:
    """One pattern with all its content, as `patterns show` prints it."""
    return {
        **pattern_json(pattern, assessment),
        "description": pattern.description,
        "use_case": pattern.use_case,
        "category": pattern.category,
        "error_type": pattern.error_type,
        "error_pattern": pattern.error_pattern,
        "location_hints": list(pattern.location_hints),
        "task_pattern": pattern.task_pattern,
        "template": {
            "language": pattern.template_language,
            "code": pattern.template_code,
            "placeholders": dict(pattern.placeholders),
        },
        "diff_pattern": pattern.diff_pattern,
        "steps": list(pattern.steps),
        "tools": list(pattern.tools),
        "preconditions": list(pattern.preconditions),
        "benefits": list(pattern.benefits),
        "limitations": list(pattern.limitations),
        "average_iterations": number(pattern.average_iterations),
        "typical_iterations": None
        if pattern.typical_iterations is None
        else {
            "average": number(pattern.typical_iterations.average),
            "minimum": number(pattern.typical_iterations.minimum),
            "maximum": number(pattern.typical_iterations.maximum),
        },
        "symptoms": list(pattern.symptoms),
        "why_it_fails": pattern.why_it_fails,
        "better_alternative": pattern.better_alternative,
        "better_pattern_id": pattern.better_pattern_id,
        "source_loops": [_source_json(pattern, source) for source in pattern.source_loops],
        "related": list(pattern.related),
        "first_discovered": iso(pattern.first_discovered),
        "inverted_from": pattern.inverted_from,
        "aliases": list(pattern.aliases),
        "mirrors": [{"file": m.file, "pointer": m.pointer, "differs": m.differs} for m in pattern.copies],
        "content_hash": pattern.content_hash,
        "suspicions": [suspicion_json(one) for one in pattern.suspicions],
    }


def _source_json(pattern: Pattern, source: SourceLoop) -> Shape:
    anti = pattern.type == "anti"
    return {
        "loop_id": source.loop_id,
        "at": iso(source.at),
        "contributed_by": source.contributed_by,
        "outcome": source.outcome or None,
        "iterations_required": None if anti else source.iteration,
        "failure_iteration": source.iteration if anti else None,
    }


def suspicion_json(suspicion: Suspicion) -> Shape:
    """One thing that the scan has found in a text."""
    from core.scanning.messages import describe_rule  # what an agent calls at every step loads no scan

    return {
        "rule": suspicion.rule,
        "severity": "critical" if suspicion.critical else "warning",
        "tier": suspicion.severity.value,
        "meaning": describe_rule(suspicion),
        "field": suspicion.field or None,
        "excerpt": suspicion.excerpt,
    }


def scan_json(suspicions: Sequence[Suspicion], masked: str) -> Shape:
    """The result of scanning one text, the gravest mark first; `masked` is the text without its secrets."""
    return {
        "verdict": suspicions[0].severity.value if suspicions else "clean",
        "marks": [suspicion_json(one) for one in suspicions],
        "masked": masked,
    }


def observation_json(seen: Observation) -> Shape:
    """One piece of evidence; `count` uses at once where only a sum is known."""
    return {
        "kind": seen.kind,
        "source": seen.source,
        "loop_id": seen.loop_id or None,
        "at": iso(seen.at),
        "success": seen.success,
        "weight": number(seen.weight),
        "count": seen.count,
        "iteration": seen.iteration,
        "derived": seen.derived,
        "inferred": seen.inferred,
    }


def lineage_json(event: LineageEvent) -> Shape:
    """One event in the life of a pattern."""
    return {
        "at": iso(event.at),
        "kind": event.kind,
        "loop_id": event.loop_id or None,
        "success": event.success,
        "text": event.text,
    }


def recurring_json(cluster: Cluster) -> Shape:
    """One learning that recurs; `loops` holds tasks as well where their loop is not known."""
    return {
        "id": cluster.id,
        "text": cluster.text,
        "loops": list(cluster.sources),
        "kinds": list(cluster.kinds),
        "first_at": iso(cluster.first_at),
        "last_at": iso(cluster.last_at),
        "reflections": [member.reflection.id for member in cluster.members],
    }


def reflection_json(reflection: Reflection) -> Shape:
    """One reflection."""
    return {
        "id": reflection.id,
        "loop_id": reflection.loop_id or None,
        "task_id": reflection.task_id or None,
        "attempt": reflection.attempt,
        "iteration": reflection.iteration,
        "at": iso(reflection.at),
        "at_approximate": reflection.at_approximate,
        "kind": reflection.kind or None,
        "outcome": reflection.outcome.value,
        "trigger": reflection.trigger or None,
        "effectiveness": reflection.effectiveness or None,
        "observation": reflection.observation,
        "analysis": reflection.analysis,
        "learning": reflection.learning,
        "actions": list(reflection.actions),
        "shape": reflection.shape,
        "file": reflection.file,
        "pointer": reflection.pointer,
        "also_in": list(reflection.also_in),
        "draft": reflection.draft,
    }


def injection_json(injection: Injection) -> Shape:
    """What would be injected, what each pattern's score is made of, and what was left out."""
    return {
        "context": injection.context,
        "tokens": injection.tokens,
        "bytes": injection.bytes,
        "patterns": [
            {
                "id": chosen.pattern_id,
                "type": str(chosen.type),
                "score": number(chosen.score),
                "relevance": number(chosen.relevance),
                "effectiveness": number(chosen.effectiveness),
                "multiplier": number(chosen.multiplier),
                "parts": {name: number(part) for name, part in chosen.parts.items()},
                "lower_bound": number(chosen.lower_bound),
            }
            for chosen in injection.chosen
        ],
        "left_out": [
            {"id": left.pattern_id, "reason": left.reason, "score": number(left.score)} for left in injection.left_out
        ],
        "reflections": [_reflection_chosen_json(one) for one in injection.reflections.chosen],
        "reflections_left_out": [
            {"id": left.id, "learning": left.text, "reason": left.reason, "score": number(left.score)}
            for left in injection.reflections.left_out
        ],
        "category": injection.profile.category or None,
        "languages": list(injection.profile.languages),
        "error_types": list(injection.profile.error_types),
        "decomposition": injection.profile.decomposition,
        "matched_by": injection.matched_by,
    }


def _reflection_chosen_json(one: ChosenReflection) -> Shape:
    return {
        "id": one.id,
        "learning": one.text,
        "task": one.title or None,
        "sources": list(one.sources),
        "same_ids": list(one.same_ids),
        "outcome": one.outcome.value,
        "draft": one.draft,
        "at": iso(one.at),
        "score": number(one.score),
        "relevance": number(one.relevance),
        "outcome_factor": number(one.outcome_factor),
        "decay": number(one.decay),
        "parts": {name: number(part) for name, part in one.parts.items()},
        "matched_by": "meaning" if one.is_semantic else "words",
    }


def decision_json(decision: Decision) -> Shape:
    """One entry of the ledger."""
    return {
        "id": decision.id,
        "at": iso(decision.at),
        "by": decision.by,
        "verb": decision.verb.value,
        "subject": decision.subject,
        "reason": decision.reason,
        "before": decision.before,
        "after": decision.after,
        "group": decision.group or None,
    }


def decided_json(decided: Decided) -> Shape:
    """A decision just made, or those of one act, and whether all that has reached the pattern files."""
    made: Shape = {"decision": decision_json(decided.decision)}
    if decided.group or decided.refused:
        made = {
            "decisions": [decision_json(decision) for decision in decided.decisions],
            "refused": [{"id": refusal.pattern_id, "why": refusal.why} for refusal in decided.refused],
        }
    return {
        **made,
        "summary": decided.summary,
        "warnings": list(decided.warnings),
        "written": decided.written,
    }


def extraction_json(extraction: Extraction) -> Shape:
    """What a loop or session offers; `record` is one of (3), without the id that it gets when it is taken."""
    return {
        "source": extraction.source_id,
        "proposals": [
            {
                "type": proposal.type.value,
                "slug": proposal.slug,
                "headline": proposal.headline,
                "record": proposal.record,
                "trace": list(proposal.trace),
                "duplicate_of": proposal.duplicate_of or None,
                "similarity": proposal.similarity,
                "refused": proposal.refused or None,
            }
            for proposal in extraction.proposals
        ],
        "nothing": extraction.why_nothing or None,
        "missing": list(extraction.missing),
    }


def proposal_json(proposal: Inversion) -> Shape:
    """A pattern that is due for inversion, and what it would become."""
    return {
        "id": proposal.pattern_id,
        "text": proposal.text,
        "reason": proposal.reason,
        "failures": proposal.failures,
        "total": proposal.total,
        "failure_mode": proposal.failure_mode,
        "why_it_fails": proposal.why_it_fails,
        "better_alternative": proposal.better_alternative,
        "better_pattern_id": proposal.better_pattern_id or None,
        "source_loops": list(proposal.source_loops),
        "lint": list(proposal.lint),
    }


def pin_json(pin: Pin | None) -> Shape | None:
    """A standing human decision on a state."""
    if pin is None:
        return None
    return {
        "state": pin.state.value,
        "at": iso(pin.at),
        "by": pin.by,
        "reason": pin.reason,
        "decision_id": pin.decision_id,
    }


def rule_json(rule: RuleLine) -> Shape:
    """One line of the explanation of a state."""
    return {
        "rule": rule.rule,
        "text": rule.text,
        "holds": rule.holds,
        "fired": rule.fired,
        "state": rule.state.value if rule.state else None,
        "value": number(rule.value),
        "threshold": number(rule.threshold),
        "distance": number(rule.distance),
    }
