"""Questions of the review queue: head line, and texts of the left and right pane."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import visible_line
from core.curation.decision_text import verb_text
from core.documents import debug_sessions
from core.documents.decisions import reason_text
from core.documents.document import Block, line
from core.documents.lessons import lesson_blocks
from core.documents.loops import overview
from core.questions.answers import question_of
from core.retrieval.similarity import cap_similarity, find_repeated
from core.state import review_items as kinds
from tui.present import review_evidence as found
from tui.present.document import UNBROKEN, document_lines
from tui.present.extraction import lesson_sources, proposals
from tui.present.merge import side_by_side
from tui.present.numbers import percent
from tui.present.review_texts import (
    approved_changes,
    exact_text,
    held_text_lines,
    held_text_origin,
    pattern_origin,
    proposed_decision,
    weakened_test_lines,
    weakened_test_source,
)

if TYPE_CHECKING:
    from core.adapters.agent_files import AgentFile
    from core.learning.inversion_rules import Inversion
    from core.records.decisions import Decision
    from core.records.lessons import JoinedLesson
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem
    from tui.present.glyphs import Glyphs

EMPTY: Final = (
    "Nothing to review. Questions appear here for new patterns from the work of a connected agent, escalations, "
    "inversions, contradicted decisions, unreviewed texts, duplicates, lessons that agents wrote down, and finished "
    "loops with patterns to extract."
)
INJECTED: Final = "injected text"
ID_CELLS: Final = 80
_PROPOSAL_ACTIONS: Final = {
    "accept": "there is no proposal to accept",
    "reject": "there is no proposal to reject",
    "rewrite": "there is no text to edit",
}
"""Why an answer to a proposal does not fit a question without one."""
_IMPACTS: Final = ("low", "low", "medium", "medium", "high", "high")  # Words for the impact, by the cells of its bar.

MAX_ADVICE: Final = 320  # characters of the advice of a judge
Sides = tuple[str, str, list[Content], list[Content]]  # Headings and lines of the left and the right side.


@dataclass(frozen=True, slots=True)
class Desk:
    """Options for drawing a question: glyphs, keys of actions, widths of both panes.

    For an inversion, `proposal` is the anti-pattern and `is_edited` whether the user has edited its text.
    """

    glyphs: Glyphs
    key: Callable[[str], str]
    widths: tuple[int, int] = (UNBROKEN, UNBROKEN)
    proposal: Inversion | None = None
    is_edited: bool = False
    agent_files: Sequence[AgentFile] = ()  # those that agents load by themselves, for a lesson


def head(
    item: ReviewItem, number: int, total: str, fresh: int = 0, mark: str = "", id_cells: int = ID_CELLS
) -> Content:
    """Return number, mark, text and ID of a question; the ID is cut to `id_cells` cells."""
    name = f"  {visible_line(item.subject, ID_CELLS)}" if item.asks else ""
    if len(name) > id_cells + 2:
        name = f"{name[: id_cells + 1]}…"
    return Content.assemble(
        (f"{number:,} of {total}", "$quiet"),
        (f"  +{fresh:,} new" if fresh else "", "$accent"),
        (f"  {mark}" if mark else "", "$warning bold"),
        "  ",
        (visible_line(item.asks or item.question, 100), "bold"),
        (name, "$secondary"),
    )


def impact_bar(item: ReviewItem, glyphs: Glyphs, *, short: bool = False) -> Content:
    """Return a bar of the expected impact of a decision, or `agent blocked`."""
    if item.is_urgent:
        return Content.styled("agent blocked", "$warning")
    cells = len(_IMPACTS) - 1
    filled = round(item.priority * cells)
    return Content.assemble(
        (f"{'' if short else 'impact: '}{_IMPACTS[filled]} ", "$quiet"),
        (glyphs.full * filled, "$accent"),
        (glyphs.empty * (cells - filled), "$quiet"),
    )


def reason(item: ReviewItem, advice: str = "") -> Content:
    """Return why a question is asked, after the advice of the user's judge."""
    judged = f"judge: {visible_line(advice, MAX_ADVICE)}; " if advice else ""
    return Content.assemble((judged, "$accent"), (visible_line(item.reason, 1000), "$warning"))


def is_about(decision: Decision, item: ReviewItem) -> bool:
    return question_of(decision) == item.question_key or decision.subject in (item.subject, item.other or item.subject)


def skipped_text(item: ReviewItem, by: Decision | None, view: ProjectState) -> str:
    asked = visible_line(item.question, 80)
    if by is None:
        return f"Skipped: already resolved: “{asked}”"
    why = f" “{visible_line(reason_text(by), 120)}”" if reason_text(by) else ""
    return f"Skipped: {visible_line(by.by, 40)} has answered “{asked}”: {verb_text(by)}{why}"


def no_answer(action: str, item: ReviewItem) -> str:
    if action == "restore_text" and item.is_about_pattern:
        return "the text has not changed since the decision"
    if item.is_about_pattern and item.kind != kinds.DUPLICATE and action not in _PROPOSAL_ACTIONS:
        return "this question proposes exactly that"
    missing = _PROPOSAL_ACTIONS.get(action, "that needs a question about a single pattern")
    return f"{missing}: this question is about {question_subject(item)}"


def question_subject(item: ReviewItem) -> str:
    """Name the subject of a question, to explain why an answer does not fit."""
    if item.group is not None:
        return "several questions"
    if item.kind == kinds.RECURRING:
        return "a recurring lesson"
    if item.lesson is not None:
        return "a lesson of an agent"
    if item.burst is not None:
        return "many patterns at once"
    if item.offer is not None:
        return "patterns not extracted yet"
    if item.session is not None:
        return "a debug session"
    if item.held_text is not None:
        return "a reflection"
    if item.weakened is not None:
        return "a test"
    if item.proposed is not None:
        return "a decision of an agent"
    return "two patterns" if item.kind == kinds.DUPLICATE else "one pattern"


def sides(view: ProjectState, item: ReviewItem, desk: Desk) -> Sides:
    """Return headings and lines of both panes: the text in question, the evidence."""
    left, right = desk.widths

    def draw(blocks: Iterable[Block], width: int = UNBROKEN) -> list[Content]:
        return document_lines(blocks, view.now, desk.glyphs, width)

    if item.group is not None:
        best, others = found.row_questions(view, item.group)
        return "best questions", "other questions", draw(best, left), draw(others, right)
    if item.is_about_pattern:
        return _pattern_sides(view, item, desk, draw)
    if (session := item.session) is not None:
        tried, failure = debug_sessions.runs(view, session, is_short=True), debug_sessions.last_failure(view, session)
        return "attempted fixes", "failure, cause and lessons", draw(tried, left), draw(failure, right)
    if item.held_text is not None:
        return INJECTED, "origin", held_text_lines(item.held_text), draw(held_text_origin(item.held_text))
    if item.proposed is not None:
        return "proposed decision", "", draw(proposed_decision(item.proposed, view.snapshot.decisions), left), []
    if item.weakened is not None:
        source_lines = draw(weakened_test_source(item.weakened), right)
        return "change of the test", "session", weakened_test_lines(item.weakened), source_lines
    if item.burst is not None:
        reported, source = found.reported_patterns(view, item.burst), found.report_source(view, item.burst)
        return "reported patterns", "source of the reports", draw(reported), draw(source)
    if item.offer is None:
        return "", "", [], []
    offered = draw(proposals(item.offer))
    if item.lesson is not None:
        return (
            "lesson and where it is written",
            "proposed pattern",
            [*draw(lesson_blocks(view, item.lesson), left), *_loaded_lines(item.lesson, desk.agent_files)],
            offered,
        )
    if item.kind == kinds.RECURRING:
        return "lesson and its sources", "proposed pattern", draw(lesson_sources(view, item.offer)), offered
    loop = view.snapshot.loops.get(item.subject)
    source_blocks = overview(view, loop, None) if loop is not None else [line((item.subject, "strong"))]
    return "loop", "patterns to extract, with sources", draw(source_blocks), offered


def _loaded_lines(joined: JoinedLesson, files: Sequence[AgentFile]) -> list[Content]:
    """Name the lines of agents' own files that say the same."""
    own = {place.file for place in joined.places}
    texts = {joined.id: [place.text for place in joined.places]}
    others = (find_repeated(texts, [(one.file, one.lines[: one.loaded])]) for one in files if one.file not in own)
    places = [place for found in others for place in found.values()]
    shown = [Content(f"  {visible_line(place.file, 200)}:{place.line}") for place in places]
    return (
        [Content(""), Content.styled("Agents load the same text by themselves:", "$warning"), *shown] if shown else []
    )


def _pattern_sides(view: ProjectState, item: ReviewItem, desk: Desk, draw: Callable[..., list[Content]]) -> Sides:
    pattern, (left, right) = view.pattern(item.subject), desk.widths
    match item.kind:
        case kinds.INVERSION:
            proposal = desk.proposal or view.board.proposal(pattern.id)
            keys = {action: desk.key(action) for action in ("rewrite", "rewrite_in_editor", "alternative")}
            alternatives = view.board.alternatives(pattern.id)
            proposed = found.anti_pattern(view, proposal, alternatives, keys, is_edited=desk.is_edited)
            failing = draw(found.failing_pattern(view, pattern), left)
            return "pattern", "proposed anti-pattern", failing, draw(proposed, right)
        case kinds.DUPLICATE:
            similarity = percent(cap_similarity(item.similarity))
            headings = f"keep, {desk.key('rewrite')}: swap", f"merge and archive, similarity {similarity}"
            return *headings, *side_by_side(view, pattern, view.pattern(item.other), desk.glyphs)
        case kinds.UNRECONCILED:
            counts, uses = found.recorded_counts(view, pattern), found.uses(view, pattern)
            return "recorded and evident counts", "evidence", draw(counts), draw(uses)
    text = exact_text(view, pattern)
    match item.kind:
        case kinds.QUARANTINE | kinds.HELD | kinds.EXTRACTED:
            return INJECTED, "origin", text, draw(pattern_origin(view, pattern))
        case kinds.BROAD:
            return INJECTED, "matches of its triggers", text, draw(found.trigger_matches(view, pattern))
    evidence = draw(found.evidence(view, pattern), right)
    if item.kind == kinds.BORDERLINE:
        distances = draw(found.distances(view, pattern))
        return INJECTED, "evidence and distance to other states", text, [*distances, Content(""), *evidence]
    decided = [*draw(found.doubtful_decision(view, item)), Content(""), *evidence]
    if item.kind != kinds.STALE_PIN:
        return INJECTED, "decision and evidence", text, decided
    changes = [*approved_changes(view, pattern), Content(""), Content.styled("Injected text now:", "$quiet"), *text]
    return "changes since the approved text", "decision and evidence", changes, decided
