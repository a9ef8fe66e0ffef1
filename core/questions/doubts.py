"""Whether to keep giving a pattern that is in doubt.

Its trigger is broad, its counts are wrong, it is seldom followed or harmful, reports on it are suspicious, or it is
stale: about a file or name that was removed or renamed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import yaml
from msgspec import Struct

from core.base.pattern_titles import describe_change, name_anchor, select_main, short_commit, summarize_change
from core.base.text import Matcher, plural, visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index.anchors import Stale, check_in_steps, find_head
from core.index.review_items import BROAD, BURST, HARMFUL, RENAMED, SELDOM, STALE, UNRECONCILED
from core.index.verdicts import StoredVerdicts, read_in_steps, write_in_steps
from core.learning.bursts import format_burst, format_source
from core.learning.evidence import UseCounts
from core.learning.following import FollowCounts
from core.learning.statistics import jeffreys_interval
from core.questions.answer import Answer, dismissal, no, yes
from core.questions.impact import WASTED_USE
from core.records.anchors import AnchorChange, newest_change, rename_in_text, renamed_files
from core.records.findings import Finding, Severity
from core.records.patterns import PatternType
from core.retrieval.rendering import count_entry_tokens

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.scoreboard import Scoreboard
    from core.questions.asking import Asker
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot


_KIND: Final = "broad"


class TriggerVerdict(Struct, frozen=True, array_like=True):
    """The largest share of common messages that a trigger of a text matches, 0..1."""

    share: float


def find_broad_triggers(view: ProjectState, stored: StoredVerdicts) -> Steps[dict[str, float]]:
    """Return, by pattern, the share (0..1) of common messages matched, if too large.

    A text that was matched before is not matched again.
    """
    patterns = view.snapshot.patterns
    texts = {}
    for id in patterns:
        texts[id] = patterns[id].content_hash
        yield
    verdicts = yield from read_in_steps(stored, _KIND, set(texts.values()), TriggerVerdict)
    new = {}
    for id, text in texts.items():
        if text not in verdicts:
            verdicts[text] = new[text] = TriggerVerdict(trigger_match_share(patterns[id]))
            yield
    yield from write_in_steps(stored, _KIND, new)
    shares = {id: verdicts[text].share for id, text in texts.items()}
    return {id: share for id, share in shares.items() if share >= view.settings.review.broad_share}


def trigger_match_share(pattern: Pattern) -> float:
    """Return the largest share of common messages that a trigger matches, 0..1."""
    messages = common_messages()
    triggers = ((pattern.error_pattern, messages["errors"]), (pattern.task_pattern, messages["tasks"]))
    return max(sum(map(Matcher(source).matches, texts)) / len(texts) if source else 0.0 for source, texts in triggers)


@cache
def common_messages() -> Mapping[str, Sequence[str]]:
    """Return unrelated common `errors` and `tasks`; a broad trigger matches most."""
    data = Path(__file__).with_name("common_messages.yaml").read_bytes()
    messages: Mapping[str, Sequence[str]] = yaml.load(data, yaml.CSafeLoader)
    return messages


def ask_broad(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about unapproved patterns whose trigger matches too many common messages."""
    for pattern_id, share in asker.found.broad.items():
        pattern = asker.patterns.get(pattern_id)
        if pattern is None or pattern_id not in asker.board:
            continue
        row = asker.board.row(pattern_id)
        if asker.impacts.is_withheld[row] or asker.curation.approves(pattern_id, pattern.content_hash):
            continue
        yield asker.item(
            BROAD,
            pattern_id,
            question="The trigger of {} matches nearly everything. Hold it back?",
            reason=f"{visible_line(pattern.error_pattern or pattern.task_pattern, 80)} matches "
            f"{share:.0%} of common messages",
            impact=WASTED_USE * share * asker.uses(pattern_id) + asker.current_impact(pattern_id),
        )


TOO_BROAD: Final = "its trigger matches nearly everything"
"""Default reason to quarantine a pattern with a broad trigger."""


def answer_broad(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which holds it back, and no, which keeps it."""
    quarantine = commands.Quarantine(item.subject, reason=TOO_BROAD)
    effect = "no agent gets it until it is changed and released"
    yield yes("quarantine", effect, quarantine, why_not=why_refused(quarantine, state))
    summary = f"kept the broad trigger of {visible_line(item.subject, 80)}"
    yield dismissal(item, "reject", "keep", summary, "it stays as it is")


_WRONG_COUNTS: Final = frozenset({"claim-below-evidence", "claim-disagrees"})
"""Codes of findings on counts that need a person."""


def find_wrong_counts(view: ProjectState) -> Steps[dict[str, Finding]]:
    """Compare each pattern's counts with the evidence; return how they disagree."""
    board, patterns = view.board, view.snapshot.patterns
    # Each of these columns is computed when it is asked for.
    columns = (board.successes.tolist(), board.failures.tolist(), board.uses.tolist())
    findings = {}
    for id, *counts in zip(board.ids, *columns, strict=True):
        pattern = patterns.get(id)
        if pattern is not None and (doubt := _find_wrong_count(board, UseCounts(*counts), pattern)) is not None:
            findings[id] = doubt
        yield
    return findings


def _find_wrong_count(board: Scoreboard, counts: UseCounts, pattern: Pattern) -> Finding | None:
    own = UseCounts.of_record(pattern.recorded_counts)
    is_low = own and (own.uses < counts.uses or own.successes < counts.successes or own.failures < counts.failures)
    if not is_low:
        return None  # a cheap check before the costly one
    doubts = board.reconcile(pattern.id)
    return next((one for one in doubts if one.code in _WRONG_COUNTS and one.severity is Severity.WARNING), None)


def ask_wrong_counts(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about records whose counts contradict the evidence."""
    for pattern_id, doubt in asker.found.unreconciled.items():
        pattern = asker.patterns.get(pattern_id)
        if pattern is not None and pattern_id in asker.board:
            make = partial(_make_wrong_counts, asker, pattern_id, doubt)
            yield asker.ask(UNRECONCILED, pattern_id, make, doubt, impact=asker.current_impact(pattern_id))


def _make_wrong_counts(asker: Asker, pattern_id: str, doubt: Finding) -> ReviewItem:
    return asker.item(
        UNRECONCILED,
        pattern_id,
        question="Recorded counts of {} contradict its results. Leave them?",
        reason=visible_line(doubt.message, 160),
    )


WRONG_COUNTS: Final = "its recorded counts contradict the evidence"
"""Default reason to quarantine a pattern whose counts disagree."""


def answer_wrong_counts(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which leaves it, and no, which holds it back."""
    summary = f"left the counts of {visible_line(item.subject, 80)} as they are"
    yield dismissal(item, "accept", "leave", summary, "its results count")
    quarantine = commands.Quarantine(item.subject, reason=WRONG_COUNTS)
    effect = "no agent gets it until the counts are corrected and it is released"
    yield no("quarantine", effect, quarantine, why_not=why_refused(quarantine, state))


MIN_JUDGED: Final = 5  # clear verdicts that a question needs
_SELDOM: Final = 0.5  # the upper end of the interval of the followed share must be lower
_MOST_TRIED: Final = 20  # patterns whose verdicts are read, those that were given most often without a use
_MORE: Final = 5  # clear verdicts after which the question is asked again
DROPPED: Final = "given often, and seldom followed"


def ask_seldom_followed(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about lessons that most of the sessions that got them did not follow."""
    board = asker.board
    rows = np.flatnonzero((board.injected_only >= MIN_JUDGED) & ~asker.impacts.is_withheld)
    for row in rows[np.argsort(-board.injected_only[rows], kind="stable")][:_MOST_TRIED].tolist():
        pattern_id = board.ids[row]
        if pattern_id not in asker.patterns:
            continue
        counts = FollowCounts.of(board.verdicts(pattern_id))
        if is_seldom(counts, asker.settings.interval_level):
            impact = WASTED_USE * (1 - counts.followed / counts.judged) * asker.uses(pattern_id)
            make = partial(_make_seldom_followed, asker, pattern_id, counts)
            yield asker.ask(SELDOM, pattern_id, make, counts, impact=impact)


def is_seldom(counts: FollowCounts, level: float) -> bool:
    """Return whether most judged sessions did not follow a lesson, beyond chance."""
    if counts.judged < MIN_JUDGED:
        return False
    return jeffreys_interval(counts.followed, counts.not_followed, level)[1] < _SELDOM


def _make_seldom_followed(asker: Asker, pattern_id: str, counts: FollowCounts) -> ReviewItem:
    entry = asker.patterns[pattern_id], asker.board.assessment(pattern_id)
    tokens = count_entry_tokens(entry, asker.settings.injection)
    return asker.item(
        SELDOM,
        pattern_id,
        question="Agents seldom follow {}. Drop it?",
        reason=counts.text,
        place=f"about {plural(tokens, 'token')} of each context",
        evidence=counts.judged,
    )


def answer_seldom_followed(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which deprecates it, and no, which asks again after more verdicts."""
    drop = commands.Deprecate(item.subject, reason=DROPPED)
    yield yes("drop", "no agent gets it until reset", drop, why_not=why_refused(drop, state))
    more = commands.More(item.evidence, _MORE)
    command = commands.SnoozeQuestion(key=item.question_key, more=more, about=visible_line(item.about, 80))
    yield no("keep", f"asked again after {_MORE} more verdicts", command, matters=False)


def ask_harmful(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about lessons that harm work, by the tasks for which chance decided."""
    for trials in asker.records.harmful:
        if trials.pattern_id not in asker.board or asker.impacts.is_withheld[asker.board.row(trials.pattern_id)]:
            continue
        yield asker.item(
            HARMFUL,
            trials.pattern_id,
            question="An experiment shows that {} hurts. Stop giving it?",
            reason=f"decided by chance, {trials.counts}: {trials.interval}",
            impact=max(trials.judged.difference or 0.0, 0.0) * asker.uses(trials.pattern_id),
        )


def answer_harmful(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which deprecates it, and no, which goes on."""
    deprecate = commands.Deprecate(item.subject, reason=f"it hurts: {item.reason}")
    yield yes("deprecate", "no agent gets it until reset", deprecate, why_not=why_refused(deprecate, state))
    summary = f"kept {visible_line(item.subject, 80)} in spite of the experiment"
    yield dismissal(item, "reject", "keep", summary, "agents still get it")


def ask_bursts(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about suspicious reports, which do not count until a person decides."""
    uses, below, above = asker.impacts.uses, asker.impacts.below, asker.impacts.above
    for burst in asker.board.bursts:
        count = len(burst.patterns)
        rows = [asker.board.row(id) for id in burst.patterns if id in asker.board]
        question = f"{{}} blamed {plural(count, 'lesson')} at once. Ignore its reports?"
        if burst.is_of_member:
            results = plural(burst.successes + burst.failures, "unconfirmed result")
            question = f"{{}} sent {results}. Ignore them?"
        yield asker.item(
            BURST,
            burst.source,
            question=question,
            name=format_source(burst.source),
            this="A member" if burst.is_of_member else "A session",
            reason=format_burst(burst),
            place="",
            impact=float(sum(uses[row] * (below[row] + above[row]) for row in rows)) / 2,  # either state may be right
            chars=0,
            further=count,
            burst=burst,
            evidence=count,
        )


def answer_burst(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which discards the reports, and no, which counts them."""
    assert item.burst is not None
    yield yes("discard", "the reports never count", commands.DiscardReports(source=item.subject, burst=item.burst))
    yield no("count them", "the reports count", commands.CountReports(source=item.subject, burst=item.burst))


_RENAMED_SHARE: Final = 0.1  # part of the impact of a removal that a rename has: agents get the same text


def find_stale_anchors(view: ProjectState, stored: StoredVerdicts) -> Steps[Stale]:
    """Find what Git shows about anchors that the project no longer has, by pattern."""
    if not view.settings.review.check_anchors:
        return {}
    return (yield from check_in_steps(view.snapshot, stored))


def checked_out(snapshot: Snapshot) -> str:
    """Return the commit that is checked out, the same object for the same one."""
    return sys.intern(find_head(snapshot))


def ask_stale(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about patterns that agents get and whose anchors were removed, or renamed."""
    for pattern_id, changes in asker.found.stale.items():
        pattern = asker.patterns.get(pattern_id)
        if pattern is None or asker.impacts.is_withheld[asker.board.row(pattern_id)]:
            continue
        here = [one for one in changes if one.anchor in pattern.anchors]  # the others were replaced since
        for part in ([one for one in here if one.is_removed], [one for one in here if not one.is_removed]):
            if part:
                yield _ask(asker, pattern_id, tuple(part))


def _ask(asker: Asker, pattern_id: str, changes: tuple[AnchorChange, ...]) -> ReviewItem:
    newest, now = newest_change(changes), asker.now
    asks = "Is {} still true?" if newest.is_removed else "Update {}?"
    impact = asker.unjudged_impact(pattern_id, is_withheld=False) * (1.0 if newest.is_removed else _RENAMED_SHARE)
    return asker.item(
        STALE if newest.is_removed else RENAMED,
        pattern_id,
        question=f"{summarize_change(newest, now)}. {asks}",
        reason="; ".join(describe_change(one, now) for one in select_main(changes)),
        impact=impact,
        anchors=changes,
    )


def updated_anchors(pattern: Pattern, changes: Sequence[AnchorChange]) -> tuple[str, ...]:
    """Return the anchors of a pattern with the new names."""
    new = {one.anchor: one.to for one in changes if one.to}
    return tuple(dict.fromkeys(new.get(anchor, anchor) for anchor in pattern.anchors))


def describe_update(pattern: Pattern, changes: Sequence[AnchorChange]) -> str:
    """Return the diff of a pattern's text if renamed files get their new paths."""
    renames = renamed_files(changes)
    lines = []
    for before in _texts_with_paths(pattern):
        after = rename_in_text(before, renames)
        pairs = zip(before.split("\n"), after.split("\n"), strict=True)
        lines += [line for old, new in pairs if old != new for line in (f"-{old}", f"+{new}")]
    return "\n".join(dict.fromkeys(lines))


def _texts_with_paths(pattern: Pattern) -> Iterator[str]:
    """Yield texts whose paths an update replaces; not an error, its trigger or title."""
    if pattern.type is not PatternType.ERROR:
        yield pattern.title
    yield from (pattern.description, *pattern.steps, *pattern.places, *pattern.location_hints)
    yield from (pattern.diff_pattern, pattern.template_code, pattern.use_case, pattern.why_it_fails)
    yield from (pattern.better_alternative, *pattern.symptoms)
    yield from (*pattern.preconditions, *pattern.benefits, *pattern.limitations)


def update_of(pattern: Pattern, changes: Sequence[AnchorChange]) -> commands.SetAnchors:
    """Return the decision that stores new names in a pattern's anchors and text."""
    return commands.SetAnchors(pattern.id, updated_anchors(pattern, changes), tuple(renamed_files(changes).items()))


def answer_stale(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes (keep anchor, or take its new name) and no (deprecate or leave it)."""
    subject, newest = item.subject, newest_change(item.anchors)
    name = visible_line(subject, 80)
    if newest.is_removed:
        effect = f"not asked again about {short_commit(newest)}; it ranks as before"
        yield dismissal(
            item, "accept", "still true", f"{name} is still true without {name_anchor(newest.anchor)}", effect
        )
        reason = f"it is about {name_anchor(newest.anchor)}, which was {newest.verb} in {short_commit(newest)}"
        command = commands.Deprecate(subject, reason=reason)
        yield no("deprecate", "no agent gets it until reset", command, why_not=why_refused(command, state))
        return
    pattern = state.pattern(subject)
    update = update_of(pattern, item.anchors)
    why_not = "" if pattern.is_registered else "its file cannot be changed"
    effect = f"its anchors become {visible_line(', '.join(update.anchors), 120)}"
    if describe_update(pattern, item.anchors):
        effect += "; the path in its text changes, and an approval stays"
    yield yes("update", effect, update, why_not=why_not)
    yield dismissal(item, "reject", "leave", f"left the anchors of {name} as they are", "it stays as it is")
