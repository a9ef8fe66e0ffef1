"""Whether a pattern is still true after what it is about was removed or renamed: find it, ask, answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from core.base.pattern_titles import describe_change, name_anchor, select_main, short_commit, summarize_change
from core.base.text import visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index.anchors import Stale, check_in_steps, find_head
from core.index.review_items import RENAMED, STALE
from core.questions.answer import Answer, dismissal, no, yes
from core.records.anchors import AnchorChange, newest_change, rename_in_text, renamed_files
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.index.verdicts import StoredVerdicts
    from core.questions.asking import Asker
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot

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
    """Return how the text of a pattern changes if the new paths of renamed files replace the old ones, as a diff."""
    renames = renamed_files(changes)
    lines = []
    for before in _texts_with_paths(pattern):
        after = rename_in_text(before, renames)
        pairs = zip(before.split("\n"), after.split("\n"), strict=True)
        lines += [line for old, new in pairs if old != new for line in (f"-{old}", f"+{new}")]
    return "\n".join(dict.fromkeys(lines))


def _texts_with_paths(pattern: Pattern) -> Iterator[str]:
    """Yield the texts in which an update replaces paths; an error, its trigger and its title remain."""
    if pattern.type is not PatternType.ERROR:
        yield pattern.title
    yield from (pattern.description, *pattern.steps, *pattern.places, *pattern.location_hints)
    yield from (pattern.diff_pattern, pattern.template_code, pattern.use_case, pattern.why_it_fails)
    yield from (pattern.better_alternative, *pattern.symptoms)
    yield from (*pattern.preconditions, *pattern.benefits, *pattern.limitations)


def update_of(pattern: Pattern, changes: Sequence[AnchorChange]) -> commands.SetAnchors:
    """Return the decision that stores the new names, in the anchors of a pattern and in its text."""
    return commands.SetAnchors(pattern.id, updated_anchors(pattern, changes), tuple(renamed_files(changes).items()))


def answer_stale(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which keeps a removed anchor or takes the new name, and no, which deprecates or leaves it."""
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
