"""Rules of records: anchors, signatures, events, loops and waits."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.records.anchors import MAX_ANCHORS, Anchor, list_anchors, parse_anchor, rename_in_text
from core.records.decisions import SYNC, Author, Decision, Verb, author_of, is_same_user, sign, sign_unattended
from core.records.events import ErrorNote, ErrorType, Event, EventView, GrowingLog, find_event_changes
from core.records.loops import Iteration, Loop, LoopStatus, Outcome, Progress, needs_person, waits_for
from tests.factories import CURATION_NOW, NOW, days_ago, make_event


def test_texts_of_anchors() -> None:
    for text, anchor in {
        "src/cart.py": Anchor("src/cart.py"),
        "./src\\cart.py#Cart.total": Anchor("src/cart.py", "Cart.total"),
        "package.json#@acme/kit": Anchor("package.json", "@acme/kit"),
        "go.mod#github.com/acme/kit": Anchor("go.mod", "github.com/acme/kit"),
        "docs/c#.md": Anchor("docs/c#.md"),
    }.items():
        assert parse_anchor(text) == anchor
    for text in (
        "",
        "#total",
        "/etc/passwd",
        "../a",
        "a/../b",
        "a//b",
        "~/a",
        "C:/a",
        ".git/config",
        "a\nb",
        "a\x9b31mb",
        "a\u202eb",
        "-rf",
        "./--output=a",
        "x" * 401,
    ):
        assert parse_anchor(text) is None, text
    assert len(list_anchors(["a", "a", "", *(f"f{n}" for n in range(20))])) == MAX_ANCHORS


def test_name_in_a_file() -> None:
    for anchor, content, is_in in (
        ("a.py#total", "def total(): ...", True),
        ("a.py#total", "def subtotal(): ... total_2", False),
        ("a.py#Cart.total", "class Cart:\n  def total(self): ...", True),
        ("a.py#Cart.total", "def total(self): ...", False),
        ("a.js#$total", "const $total = 1", True),
        ("package.json#pad", '{"left-pad": "1"}', False),
        ("requirements-dev.txt#Left_Pad", "left-pad[all]>=1", True),
        ("requirements.txt#pytest", "pytest-asyncio==1", False),
        ("pyproject.toml#httpx", '"httpx>=1"', True),
        ("a.py", "", True),
    ):
        parsed = parse_anchor(anchor)
        assert parsed is not None, anchor
        assert parsed.is_in(content) is is_in, anchor


def test_a_renamed_path_is_replaced_only_where_it_is_that_path() -> None:
    for text, expected in (
        ("see src/cart.py.", "see src/basket.py."),
        ("./src/cart.py:12 and `src/cart.py::total`", "./src/basket.py:12 and `src/basket.py::total`"),
        ("cart.py, lib/src/cart.py, ../src/cart.py, src/cart.py.bak, src/cart.pyc", None),
        ("a/src/cart.py", None),
        ("diff --git a/src/cart.py b/src/cart.py", "diff --git a/src/basket.py b/src/basket.py"),
        ("src/cart.py src/tax.py", "src/basket.py src/cart.py"),
    ):
        renames = {"src/cart.py": "src/basket.py", "src/tax.py": "src/cart.py"}
        assert rename_in_text(text, renames) == (text if expected is None else expected), text


def test_a_rename_changes_no_ordinary_words_and_adds_none() -> None:
    for text, old, new, expected in (
        ("Measure the query plan", "Measure", "Never", None),
        ("the test fails", "test", "tests/test", None),
        ("--- a/Makefile\n+the Makefile", "Makefile", "build/Makefile", "--- a/build/Makefile\n+the Makefile"),
        ("see src/cart.py", "src/cart.py", "src/never do this.py", None),
        ("see src/cart.py", "src/cart.py", "src/no,never.py", None),
        ("see src/cart.py", "src/cart.py", "src/größe.py", "see src/größe.py"),
    ):
        assert rename_in_text(text, {old: new}) == (text if expected is None else expected), text


def test_a_signature_shows_its_author() -> None:
    for author in Author:
        assert author_of(sign(author, "ada")) is author, author


def test_programs_are_not_persons() -> None:
    def decided(by: str, **more: object) -> Author:
        return Decision(id="d1", at=CURATION_NOW, by=by, verb=Verb.EXTRACT, subject="x", **more).decided_by  # type: ignore[arg-type]

    assert decided("ada") is Author.PERSON
    assert {decided(SYNC), decided(sign_unattended("ada")), decided("claude", after={"hashes": {}})} == {Author.SCRIPT}
    assert {decided("mcp:claude-code"), decided(sign_unattended("agent:claude"))} == {Author.AGENT}


def test_a_script_of_a_user_is_the_same_user_and_an_agent_or_a_program_of_its_own_is_not() -> None:
    assert is_same_user("ada", "ada (script)") and is_same_user("ada", "ada")
    for other in ("bob", "bob (script)", "agent:ada", "mcp:ada", sign_unattended("ada"), "ada as bob"):
        assert not is_same_user("ada", other), other


_ERROR = ErrorNote(error_type=ErrorType.TIMEOUT, message="late")
_EVENTS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["", "d", "e"])), max_size=3)
_STEPS = st.lists(st.tuples(_EVENTS, st.sets(st.sampled_from("de"))), max_size=5)


@given(_STEPS)
def test_views_equal_the_sorted_events_that_are_not_undone(steps: list[tuple[list[tuple[int, str]], set[str]]]) -> None:
    log = GrowingLog()
    written: list[Event] = []
    views = []
    for added, undone in steps:
        for age, decision in added:
            error = _ERROR if age % 2 else None
            written.append(make_event(len(written), "counted", days_ago(age), decision=decision, error=error))
            log.add(written[-1])
        shown = [event for event in written if event.decision not in undone]
        hidden = [event for event in written if event.decision in undone]
        views.append((EventView(log).without(frozenset(undone)), shown, hidden))
        base, last = EventView(log), [make_event(len(written) + 900 + n, "counted", days_ago(n)) for n in range(2)]
        views.append((base.extended(last).without(frozenset(undone)), [*shown, *last], hidden))
    for view, shown, hidden in views:  # also the earlier ones, after the log grew
        ordered = sorted(shown, key=lambda event: event.at)
        assert [*view] == ordered
        assert len(view) == len(shown)
        assert view.errors == [event for event in shown if event.error]
        assert sorted(view.hidden, key=lambda event: event.id) == sorted(hidden, key=lambda event: event.id)
        assert [view[place] for place in range(len(view))] == ordered
        assert view[1:-1] == tuple(ordered[1:-1])
        assert view == tuple(ordered) == view
    for (before, old, _), (after, new, _) in pairwise(views[::2]):
        changes = find_event_changes(before, after)
        if old and any(event in new for event in before.hidden):
            assert changes is None
        else:
            assert changes is not None
            assert {event.id for event in new} - {event.id for event in old} == {one.id for one in changes.added}
            assert {event.id for event in old} - {event.id for event in new} == {one.id for one in changes.removed}


def test_the_changes_of_another_log_are_unknown() -> None:
    one, two = make_event(1, "counted", days_ago(1)), make_event(1, "counted", days_ago(1))
    assert find_event_changes(EventView.of([one]), EventView.of([two])) is None
    assert find_event_changes((one,), (two,)) is None
    assert find_event_changes((), EventView.of([two])) == ((two,), ())


def test_events_that_are_only_in_memory_are_changes_of_the_log() -> None:
    one, two = make_event(1, "counted", days_ago(2)), make_event(2, "counted", days_ago(1))
    known = EventView.of([one])
    assert find_event_changes(known, known.extended([two])) == ([two], [])
    assert find_event_changes(known.extended([two]), known) is None


def test_the_last_change_is_that_of_the_files_or_of_the_last_iteration_that_changed_something() -> None:
    iterations = (
        Iteration(at=days_ago(3), files=("a.py",)),
        Iteration(at=days_ago(2), outcome=Outcome.SUCCESS),
        Iteration(at=days_ago(1), outcome=Outcome.FAILURE),
        Iteration(files=("b.py",)),
    )
    assert Loop(id="a").changed_at is None
    assert Loop(id="a", iterations=iterations).changed_at == days_ago(2)
    assert Loop(id="a", iterations=iterations, progress=Progress(changed_at=NOW)).changed_at == NOW


def test_the_words_of_the_runner_say_what_a_loop_waits_for() -> None:
    for word, expected in (
        ("waiting for permission", "permission"),
        ("asking_questions", "question"),
        ("blocked", "blocked"),
        ("api_limit", "rate limit"),
        ("needs you", "person"),
    ):
        loop = Loop(id="x:1", runner="x", status=LoopStatus.WAITING, raw_status=word)
        assert waits_for(loop) == expected, word
        assert needs_person(loop) is (expected != "rate limit"), word
    assert waits_for(Loop(id="x:1", runner="x", status=LoopStatus.RUNNING, raw_status="blocked")) == ""
    assert not needs_person(Loop(id="a", status=LoopStatus.WAITING)), "a loop in .aiwg"
