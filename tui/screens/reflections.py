"""The Reflections screen: reflections, recurring learnings, or agents' lessons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.questions.answer import reject_lesson
from core.questions.extraction.learnings import KNOWN
from core.records.reflections import LESSON_ID, JoinedLesson, LessonKind, LessonState
from core.show import reflections as lists
from core.show.filter_parser import Fields, build_id_query, parse_query
from core.show.pages.reflections import lesson_blocks, place_name, reflection_document
from core.show.reflections import LESSON_FIELDS, REFLECTION_FIELDS, select_lessons, select_reflections
from core.show.work import attempt_key, parse_key, task_key
from tui.screens.dialogs import AskLine, overtaken
from tui.screens.document import draw_cells, inline
from tui.screens.list_screen import ListScreen
from tui.screens.previews import preview_extraction

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.questions.extraction.learnings import Cluster
    from core.records.snapshot import Delta, Snapshot
    from core.show.filter_parser import Query
    from core.show.pages.document import Block
    from tui.kit.looks import Cells
    from tui.kit.user_state import ListState

_GROUPED: Final = "reflections-grouped"
_LEARNINGS: Final = "yes"
_LESSONS: Final = "lessons"
_LESSON_HINT: Final = "Filter, e.g. state:open is:contradicted runner:claude"
_NEXT: Final = {"": _LEARNINGS, _LEARNINGS: _LESSONS, _LESSONS: ""}
"""The list after each list, by the values of `_GROUPED`: reflections, learnings, lessons."""


class LessonList:
    """The joined lessons of a project; `joined` is None until they are compared."""

    def __init__(self) -> None:
        self.joined: dict[str, JoinedLesson] | None = None
        self.wanted = ""  # the lesson to go to when the lessons are compared

    def show(self, found: Sequence[JoinedLesson]) -> str:
        """Replace the lessons; return the row to go to, if one is wanted."""
        self.joined = {one.id: one for one in found}
        wanted, self.wanted = self.wanted, ""
        return self.row_of(wanted)

    def is_affected_by(self, delta: Delta) -> bool:
        return bool(delta.lessons or delta.patterns or delta.decisions)

    def row_of(self, lesson_id: str) -> str:
        """Return the row that contains a lesson; "" if none does."""
        if lesson_id in (self.joined or {}):
            return lesson_id
        found = (one.id for one in (self.joined or {}).values() if any(place.id == lesson_id for place in one.places))
        return next(found, "")

    def get(self, key: str | None) -> JoinedLesson | None:
        return (self.joined or {}).get(key or "")

    def select(self, query: Query) -> list[str]:
        return select_lessons((self.joined or {}).values(), query)

    def session(self, key: str | None, snapshot: Snapshot) -> str:
        """Return the ID of the first known session in which a lesson was learned, or ""."""
        joined = self.get(key)
        places = joined.places if joined is not None else ()
        return next((place.loop_id for place in places if place.loop_id in snapshot.loops), "")

    def why_no_draft(self, key: str | None) -> str | None:
        """Return why no pattern can be drafted from a lesson, None if one can."""
        joined = self.get(key)
        if joined is None:
            return "The list is empty"
        if joined.state is LessonState.ACCEPTED:
            return f"Already accepted as {', '.join(joined.patterns)}"
        if joined.lesson.kind is LessonKind.FACT:
            return "A fact becomes a pattern only with a type: ralphdeck lesson ID --accept --type TYPE"
        return None

    def why_no_reject(self, key: str | None) -> str | None:
        """Return why a lesson cannot be rejected, None if it can."""
        joined = self.get(key)
        if joined is None:
            return "The list is empty"
        if joined.state is LessonState.ACCEPTED:
            return f"Already accepted as {', '.join(joined.patterns)}"
        return "Already rejected" if joined.state is LessonState.REJECTED else None


class ReflectionsScreen(ListScreen):
    """Lists reflections, shared learnings or agents' lessons; Enter opens the source."""

    place = "reflections"
    FIELDS = REFLECTION_FIELDS
    LIST = {"columns": lists.COLUMNS, "sorts": lists.SORTS}

    def __init__(self) -> None:
        super().__init__()
        self._grouping = ""
        self._was_chosen = False  # whether the user chose the list
        self._lessons = LessonList()
        self._clusters: dict[str, Cluster] | None = None
        """Learnings by id, those of most loops first, those without a pattern to draft last; None until computed."""
        self._unfit: Mapping[str, str] = {}  # reasons why no pattern can be drafted, by learning
        self._unfolded: set[str] = set()

    def on_mount(self) -> None:
        saved = self.services.user_state.get_here(_GROUPED)
        self._grouping = saved if saved in _NEXT else ""
        self._was_chosen = bool(self._grouping)
        super().on_mount()

    @property
    def _grouped(self) -> bool:
        return self._grouping == _LEARNINGS

    @property
    def _has_lessons(self) -> bool:
        return self._grouping == _LESSONS

    @property
    def fields(self) -> Fields:
        return LESSON_FIELDS if self._has_lessons else REFLECTION_FIELDS

    def is_affected_by(self, delta: Delta) -> bool:
        return bool(delta.reflections) and not self._has_lessons

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Compare learnings or lessons again if what they depend on has changed."""
        snapshot = view.snapshot
        if not self._was_chosen and snapshot.complete and not snapshot.reflections and snapshot.lessons:
            self._was_chosen = True
            self._show_list(_LESSONS)
        super().refresh_view(view, delta)
        has_changed = delta is None or delta.reflections or delta.tasks or delta.memory_tasks
        if self._grouped and (has_changed or (delta is not None and delta.patterns)):
            self._compare()
        if self._has_lessons and (delta is None or self._lessons.is_affected_by(delta)):
            self._compare()

    def _compare(self) -> None:
        """Find recurring learnings or lessons; takes seconds for 10,000 unless cached."""
        project = self.services.project
        if self._has_lessons:
            self.run_in_thread("lessons", project.lessons, self._show_lessons)
            return
        self.run_in_thread("recurring", lambda: (project.recurring(), project.unfit_learnings()), self._show_clusters)

    def _show_clusters(self, found: tuple[Sequence[Cluster], Mapping[str, str]]) -> None:
        clusters, self._unfit = found
        ordered = sorted(clusters, key=lambda cluster: cluster.id in self._unfit)
        before, self._clusters = self._clusters or {}, {cluster.id: cluster for cluster in ordered}
        renamed = lists.renamed_clusters(before, self._clusters)
        self._unfolded = {renamed.get(key, key) for key in self._unfolded}
        if self._grouped and self.is_composed:
            here = renamed.get(self.table.cursor_key or "")
            self._select(self.view)
            if here is not None:
                self.go_to(here)
            self._show_details(top=False)
            self.refresh_frame()

    def _show_lessons(self, found: Sequence[JoinedLesson]) -> None:
        wanted = self._lessons.show(found)
        if self._has_lessons and self.is_composed:
            self._select(self.view)
            if wanted:
                super().go_to(wanted)
            self._show_details(top=False)
            self.refresh_frame()

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        """Return matching reflections or lessons, or the rows of matching learnings."""
        if self._has_lessons:
            return self._lessons.select(query)
        reflections = view.snapshot.reflections
        keys = [key for key in select_reflections(reflections, query) if reflections[key].has_learning]
        if self._grouped:
            return self._rows(set(keys))
        name, descending = sort or ("at", True)
        if name == "at":
            return keys if descending else keys[::-1]
        values = {
            "kind": lambda key: reflections[key].kind,
            "effect": lambda key: reflections[key].effectiveness,
            "loop": lambda key: reflections[key].loop_id or reflections[key].task_id,
        }
        return sorted(keys, key=values[name], reverse=descending)

    def _select(self, view: ProjectState, changed: Collection[str] | None = None) -> None:
        """Select the rows; learnings and lessons have a fixed order, so get no arrow."""
        columns = {"": lists.COLUMNS, _LEARNINGS: lists.LEARNING_COLUMNS, _LESSONS: lists.LESSON_COLUMNS}
        self.table.use(columns[self._grouping])
        self.filter_line.show_hint(_LESSON_HINT if self._has_lessons else self.TABLE.hint)
        sort = self._sort
        self._sort = None if self._grouping else sort
        super()._select(view, changed)
        self._sort = sort

    def _sort_by(self, column: str, descending: bool) -> None:
        if not self._grouping:
            super()._sort_by(column, descending)

    def _rows(self, matching: Set[str]) -> list[str]:
        """Return rows of learnings with these reflections; unfolded ones list them."""
        rows = []
        for cluster in (self._clusters or {}).values():
            own = [member.reflection.id for member in cluster.members if member.reflection.id in matching]
            if own:
                rows += [cluster.id, *(reversed(own) if cluster.id in self._unfolded else ())]
        return rows

    def total(self, view: ProjectState) -> int:
        if self._has_lessons:
            return len(self._lessons.joined or ())
        if self._grouped:
            return len(self._clusters or ())
        return sum(one.has_learning for one in view.snapshot.reflections.values())

    def matching(self, shown: int) -> int:
        return sum(key in (self._clusters or {}) for key in self.table.keys) if self._grouped else shown

    def cells(self, key: str) -> Cells:
        now = self.services.now()
        if self._has_lessons:
            joined = self._lessons.get(key)
            return draw_cells(lists.lesson_cells(joined), now, self.glyphs) if joined else {}
        if cluster := self._cluster(key):
            unfit, folded = self._unfit.get(key, ""), key not in self._unfolded
            return draw_cells(lists.cluster_cells(cluster, folded=folded, unfit=unfit), now, self.glyphs)
        reflection = self.view.snapshot.reflections.get(key)
        cells = lists.reflection_cells(reflection, below=self._grouped) if reflection else {}
        return draw_cells(cells, now, self.glyphs)

    def below(self, key: str) -> Content:
        if (joined := self._lesson(key)) is not None:
            lesson = joined.lesson
            return Content.styled(visible_line(lesson.trigger or lesson.why or lesson.title, 400), "$quiet")
        reflection = self.view.snapshot.reflections.get(key)
        text = lists.second_line(reflection) if reflection else ()
        return inline(text, self.services.now(), self.glyphs)

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        if (joined := self._lesson(key)) is not None:
            return tuple(lesson_blocks(self.view, joined))
        if cluster := self._cluster(key):
            return tuple(lists.cluster_blocks(cluster, self._unfit.get(key, "")))
        reflection = self.view.snapshot.reflections.get(key)
        return reflection_document(self.view, reflection).blocks if reflection else ()

    def _cluster(self, key: str | None) -> Cluster | None:
        """Return the learning of a row, or None for the row of a reflection."""
        return (self._clusters or {}).get(key or "") if self._grouped else None

    def _lesson(self, key: str | None) -> JoinedLesson | None:
        """Return the lesson of a row, or None for another row."""
        return self._lessons.get(key) if self._has_lessons else None

    def empty(self) -> Content:
        text = "No reflections yet. Agents write them while they work; ralphdeck drafts one when an attempt ends"
        if self._has_lessons:
            text = "Comparing lessons…" if self._lessons.joined is None else "No lesson of an agent or runner was found"
        elif self._grouped:
            text = "Comparing reflections…" if self._clusters is None else "No learning is shared by two loops yet"
        return Content.styled("; ".join([text, *self._elsewhere()]), "$quiet")

    def _elsewhere(self) -> Iterator[str]:
        """Yield which keys show the other lists that have rows."""
        key, grouping, snapshot = self.services.shown_key("group"), self._grouping, self.view.snapshot
        lessons = snapshot.lessons if self._lessons.joined is None else self._lessons.joined
        counts = {"": (len(snapshot.reflections), "reflection"), _LESSONS: (len(lessons), "lesson")}
        for keys in (key, f"{key} {key}"):
            grouping = _NEXT[grouping]
            count, noun = counts.get(grouping, (0, ""))
            if count:
                yield f"{keys} shows {plural(count, noun)}"

    def why_not(self, action: str) -> str | None:
        cluster = self._cluster(self.table.cursor_key)
        if self._has_lessons and (why := self._why_not_lesson(action)):
            return why
        if action == "to_patterns" and not self._patterns():
            return "No pattern was made from it or found in its session"
        if action == "reject" and not self._has_lessons:
            return "Only lessons of agents can be rejected"
        if self._has_lessons and action == "draft":
            return None
        if action == "open" and cluster is None and self.table.cursor_key and self._home() is None:
            return "Its loop is unknown; press tab to read the reflection"
        if action == "sort" and self._grouped:
            return "Learnings are ordered by their number of loops"
        if action == "draft" and cluster is None:
            key = self.services.shown_key("group")
            do = "Go up to a learning" if self._grouped else f"Press {key} to group by learning"
            return f"{do}; patterns are drafted from learnings"
        if action == "draft" and cluster is not None and cluster.id in self._unfit:
            return f"No pattern to draft: {self._unfit[cluster.id]}"
        return super().why_not(action)

    def _why_not_lesson(self, action: str) -> str | None:
        key = self.table.cursor_key
        joined = self._lesson(key)
        if action == "sort":
            return "Lessons are ordered by the time when they were written"
        if action == "draft":
            return self._lessons.why_no_draft(key)
        if action == "reject":
            return self._lessons.why_no_reject(key)
        if action == "open" and joined is not None and not self._lessons.session(key, self.view.snapshot):
            return "Its session is unknown; press tab to read the lesson"
        if action == "edit_file" and joined is not None:
            return f"It is a file of the agent: {visible_line(place_name(joined.lesson), 200)}"
        return None

    def label_for(self, action: str) -> str | None:
        cluster = self._cluster(self.table.cursor_key)
        match action:
            case "open" if cluster is not None:
                return "unfold" if cluster.id not in self._unfolded else "fold"
            case "open":
                home = self._home()
                return f"show {parse_key(home[1]).kind if home is not None else 'loop'}"
            case "draft" if cluster is not None:
                return f"draft {self.glyphs.arrow} candidate of {lists.count_sources(cluster)}"
            case "draft" if self._has_lessons:
                return "draft"
            case "reject":
                return "reject"
            case "group":
                return {"": "group", _LEARNINGS: "agents' lessons", _LESSONS: "reflections"}[self._grouping]
        return None

    def _home(self) -> tuple[str, str] | None:
        """Return screen and record ID of a reflection's source; None if it is unknown."""
        snapshot = self.view.snapshot
        if self._has_lessons:
            session = self._lessons.session(self.table.cursor_key, snapshot)
            return ("loops", session) if session else None
        reflection = snapshot.reflections.get(self.table.cursor_key or "")
        if reflection is None:
            return None
        if loop := snapshot.find_loop(reflection.loop_id):
            return "loops", loop.id
        attempt = f"{reflection.task_id}.{reflection.attempt}"
        if attempt in snapshot.attempts:
            return "loops", attempt_key(attempt)
        return ("loops", task_key(reflection.task_id)) if reflection.task_id in snapshot.tasks else None

    def action_open(self) -> None:
        """Fold or unfold a learning, or open the loop or task of a reflection or lesson."""
        if cluster := self._cluster(self.table.cursor_key):
            self._unfolded ^= {cluster.id}
            self._select(self.view)
        elif home := self._home():
            self.services.open_record(*home)

    def _patterns(self) -> Sequence[str]:
        """Return the patterns that were made from the row, or found in its session."""
        key, view = self.table.cursor_key, self.view
        if (joined := self._lesson(key)) is not None:
            found: Iterable[str] = joined.patterns
        elif (cluster := self._cluster(key)) is not None:
            found = (self._unfit.get(cluster.id, "").removeprefix(KNOWN),)
        else:
            reflection = view.snapshot.reflections.get(key or "")
            loop = view.snapshot.find_loop(reflection.loop_id) if reflection is not None else None
            found = (one.pattern_id for one in view.loop_patterns(loop.id).extracted) if loop is not None else ()
        return [id for id in found if id in view.snapshot.patterns]

    def action_to_patterns(self) -> None:
        """Open the pattern, or the list of several."""
        found = self._patterns()
        self.services.open_filtered("patterns", build_id_query(found)[0] if len(found) > 1 else "", found[0])

    def action_group(self) -> None:
        self._group(_NEXT[self._grouping])

    def own_keys(self) -> frozenset[str]:
        """Hide the key that rejects a lesson from the key line of the other lists."""
        return super().own_keys() | (frozenset() if self._has_lessons else {"reject"})

    def _group(self, grouping: str) -> None:
        """Show the list that the user wants, and remember it."""
        self._was_chosen = True
        if grouping != self._grouping:
            self.services.user_state.set_here(_GROUPED, grouping)
            self._show_list(grouping)

    def _show_list(self, grouping: str) -> None:
        self._grouping = grouping
        self._query = parse_query(self.filter_line.text, self.fields)
        if grouping:
            self._compare()
        self._select(self.view)
        self._show_details()

    def action_draft(self) -> None:
        if source := self._cluster(self.table.cursor_key) or self._lesson(self.table.cursor_key):
            preview_extraction(self, source.id)

    def action_reject(self) -> None:
        """Ask for the reason, and do not ask about the lesson again."""
        seen, joined = self.view, self._lesson(self.table.cursor_key)
        if joined is None:
            return
        command = reject_lesson(joined)
        title = Content(f"Reject {visible_line(command.about, 100)}: why?")
        detail = Content(
            "Review does not ask about it again; the agent keeps it. The reason is optional. Can be undone."
        )
        dialog = AskLine(title, detail, verb="reject", required=False, overtaken=overtaken(seen, command.key))
        self.ask_user(dialog, lambda reason: self.services.decide(reject_lesson(joined, reason), seen))

    def go_to(self, key: str) -> None:
        """Move the cursor to a reflection or lesson, in the list that contains it."""
        if key in self.view.snapshot.reflections:
            self._group("")
        if key.startswith(LESSON_ID):
            self._group(_LESSONS)
            if self._lessons.joined is None:
                self._lessons.wanted = key
                return
            key = self._lessons.row_of(key) or key
        super().go_to(key)

    def list_state(self) -> ListState:
        return replace(super().list_state(), grouping=self._grouping)

    def restore_list(self, list_state: ListState) -> None:
        """Restore the grouping, then the list, so that the row of the cursor exists."""
        self._group(list_state.grouping)
        super().restore_list(list_state)

    def show_filter(self, text: str, key: str) -> None:
        """Apply a link's filter, and stop grouping: links lead to single reflections."""
        self._group("")
        super().show_filter(text, key)

    def action_edit_file(self) -> None:
        cluster = self._cluster(self.table.cursor_key)
        reflection = cluster.central if cluster else self.view.snapshot.reflections.get(self.table.cursor_key or "")
        if reflection is not None:
            self.services.edit_file(reflection.file)
