"""Detection of the common decomposition strategies in free text."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from core.base.polarity import MAX_TEXT
from core.learning.inversion import extract_strategies

FILE_TYPE: Final = "Split by file type"
COMPONENT: Final = "Split by component"
LAYER: Final = "Split by layer (UI/logic/data)"
FEATURE: Final = "Split by feature"
ONE_FILE: Final = "One file per subtask"
TYPES_FIRST: Final = "Handle shared types first"
ROUTES: Final = "Separate API routes"
TESTS_ALONGSIDE: Final = "Tests alongside implementation"
TESTS_APART: Final = "Tests in separate subtask"
PARALLEL: Final = "Maximize parallelization"
SEQUENTIAL: Final = "Sequential execution order"
DEPENDENCIES: Final = "Respect dependency chain"

TITLES: Final = (
    FILE_TYPE,
    COMPONENT,
    LAYER,
    FEATURE,
    ONE_FILE,
    TYPES_FIRST,
    ROUTES,
    TESTS_ALONGSIDE,
    TESTS_APART,
    PARALLEL,
    SEQUENTIAL,
    DEPENDENCIES,
)

IN_USE: Final[list[tuple[str, list[str]]]] = [
    ("Group the files by extension", [FILE_TYPE]),
    ("Group files by type", [FILE_TYPE]),
    ("One subtask per file type", [FILE_TYPE]),
    ("Divide by type of file", [FILE_TYPE]),
    ("The work is divided by components.", [COMPONENT]),
    ("Each component gets its own sub-task", [COMPONENT]),
    ("break it down into components", [COMPONENT]),
    ("a component-based split", [COMPONENT]),
    ("Decompose the task by architectural layer", [LAYER]),
    ("one agent per layer", [LAYER]),
    ("vertical slices", [FEATURE]),
    ("one subtask for each feature", [FEATURE]),
    ("feature-wise", [FEATURE]),
    ("by layer and feature", [LAYER, FEATURE]),
    ("every file has its own subtask", [ONE_FILE]),
    ("types first", [TYPES_FIRST]),
    ("Start with the shared types", [TYPES_FIRST]),
    ("First, define the common types, then fan out", [TYPES_FIRST]),
    ("Define shared interfaces up front", [TYPES_FIRST]),
    ("shared types before anything else", [TYPES_FIRST]),
    ("API endpoints go in their own subtask", [ROUTES]),
    ("a separate subtask for each endpoint", [ROUTES]),
    ("co-locate tests", [TESTS_ALONGSIDE]),
    ("Implementation and tests go together", [TESTS_ALONGSIDE]),
    ("each subtask includes its own tests", [TESTS_ALONGSIDE]),
    ("a dedicated testing subtask", [TESTS_APART]),
    ("separate the tests from the code", [TESTS_APART]),
    ("parallelise as much as possible", [PARALLEL]),
    ("fully parallel", [PARALLEL]),
    ("run them one after the other", [SEQUENTIAL]),
    ("execute the subtasks sequentially", [SEQUENTIAL]),
    ("one subtask at a time", [SEQUENTIAL]),
    ("in sequence", [SEQUENTIAL]),
    ("honour the dependencies", [DEPENDENCIES]),
    ("order subtasks by their dependencies", [DEPENDENCIES]),
    ("in topological order", [DEPENDENCIES]),
    ("each subtask waits for its dependencies", [DEPENDENCIES]),
    ("The API is separate", [ROUTES]),
    ("Let's split this into one subtask per feature and write the tests alongside.", [FEATURE, TESTS_ALONGSIDE]),
    ("Maximising parallelization", [PARALLEL]),
    ("maximum parallelism", [PARALLEL]),
    ("Parallelize everything", [PARALLEL]),
    ("run all the subtasks concurrently", [PARALLEL]),
    ("as much parallelism as possible", [PARALLEL]),
    ("as parallel as possible", [PARALLEL]),
    ("parallelisation should be maximised", [PARALLEL]),
    ("sequential order", [SEQUENTIAL]),
    ("Work through the subtasks one by one", [SEQUENTIAL]),
    ("Run one subtask after another", [SEQUENTIAL]),
    ("strictly sequential", [SEQUENTIAL]),
    ("run the subtasks in order", [SEQUENTIAL]),
    ("in series", [SEQUENTIAL]),
    ("begin by defining shared types", [TYPES_FIRST]),
    ("extract common types before the rest", [TYPES_FIRST]),
    ("separate subtask for API routes", [ROUTES]),
    ("separate out the API routes", [ROUTES]),
    ("split the API routes off", [ROUTES]),
    ("Routes and endpoints get separate subtasks", [ROUTES]),
    ("tests with implementation", [TESTS_ALONGSIDE]),
    ("tests live beside the code", [TESTS_ALONGSIDE]),
    ("colocated tests", [TESTS_ALONGSIDE]),
    ("test files next to the sources", [TESTS_ALONGSIDE]),
    ("keep each test next to its component", [TESTS_ALONGSIDE]),
    ("tests in the same subtask as the implementation", [TESTS_ALONGSIDE]),
    ("tests go in another subtask", [TESTS_APART]),
    ("a final subtask for the tests", [TESTS_APART]),
    ("one file for each subtask", [ONE_FILE]),
    ("each subtask owns a single file", [ONE_FILE]),
    ("every subtask only touches one file", [ONE_FILE]),
    ("each file is a subtask", [ONE_FILE]),
    ("split on feature boundaries", [FEATURE]),
    ("per-feature split", [FEATURE]),
    ("feature-based decomposition", [FEATURE]),
    ("split UI, logic and data", [LAYER]),
    ("splitting across layers", [LAYER]),
    ("split into UI components", [COMPONENT]),
    ("a subtask for every component", [COMPONENT]),
    ("split by layer / component", [LAYER, COMPONENT]),
    ("One subtask should own one file", [ONE_FILE]),
    ("File-per-subtask", [ONE_FILE]),
    ("Subtasks follow the chain of dependencies", [DEPENDENCIES]),
    ("Shared types at the beginning", [TYPES_FIRST]),
    ("Every implementation subtask includes tests", [TESTS_ALONGSIDE]),
    ("Implementation together with its tests", [TESTS_ALONGSIDE]),
    ("front-end, logic, and database layers", [LAYER]),
    ("feature slices", [FEATURE]),
    ("split by end-user features", [FEATURE]),
    ("subtasks are organised around features", [FEATURE]),
    ("topologically sorted", [DEPENDENCIES]),
    ("Carve the work up along feature boundaries", [FEATURE]),
    ("Divide the work according to component", [COMPONENT]),
    ("slice the work horizontally", [LAYER]),
    ("Tests come last, in a dedicated task", [TESTS_APART]),
    ("Work in the order their dependencies dictate", [DEPENDENCIES]),
    ("Subtasks must wait for what they depend on", [DEPENDENCIES]),
    ("feature-based", [FEATURE]),
    ("Component-based.", [COMPONENT]),
    ("The strategy is feature-based", [FEATURE]),
    ("Like last time, split by feature", [FEATURE]),
    ("As in past attempts, split by feature", [FEATURE]),
    ("Past attempts show that splitting by feature works", [FEATURE]),
    ("The previously defined shared types go first", [TYPES_FIRST]),
]
PARTLY_NEGATED: Final[list[tuple[str, list[str]]]] = [
    ("Instead of one file per subtask we group by component", [COMPONENT]),
    ("Instead of splitting by layer let's split by feature", [FEATURE]),
    ("Rather than one file per subtask they went by component", [COMPONENT]),
    ("Instead of splitting by layer as we did by component, split by feature", [FEATURE]),
    ("Make sure not to ignore the dependency chain.", [DEPENDENCIES]),
    ("Take care not to violate the dependency order", [DEPENDENCIES]),
    ("Run everything in parallel without breaking the dependency chain", [PARALLEL, DEPENDENCIES]),
    ("Past attempts split by file type; this time, by layer.", [LAYER]),
    ("Last time we split by layer, this time by feature", [FEATURE]),
    ("Previously, we split by layer. Now split by feature.", [FEATURE]),
    ("We used to split by layer and now we split by feature", [FEATURE]),
    ("No subtask edits more than one file", [ONE_FILE]),
    ("Instead of splitting by layer, by file type, or by component, split by feature", [FEATURE]),
    ("Layers overlap, we can't split by layer, so split by feature", [FEATURE]),
    ("Don't split by layer, split by feature", [FEATURE]),
    ("We do not split by layer, we split by feature", [FEATURE]),
    ("not only by feature but also by layer", [FEATURE, LAYER]),
    ("don't hesitate to split by feature", [FEATURE]),
    ("Don't forget to follow the dependency order", [DEPENDENCIES]),
    ("Do not skip tests alongside the implementation", [TESTS_ALONGSIDE]),
    ("There's no reason not to split by feature", [FEATURE]),
    ("Avoid conflicts by splitting by feature", [FEATURE]),
    ("tests not in a separate subtask but next to the code", [TESTS_ALONGSIDE]),
    ("Do not put tests in a separate subtask, keep them alongside the implementation", [TESTS_ALONGSIDE]),
    ("Avoid:\n- split by file type\n- one file per subtask\n\nDo:\n- split by feature", [FEATURE]),
    ("We can work without conflicts if we split by feature", [FEATURE]),
    ("Don't run the subtasks one after the other, run them all in parallel", [PARALLEL]),
    ("Prefer splitting by feature over splitting by layer", [FEATURE]),
    ("Don't just split by feature, also maximise parallelism", [FEATURE, PARALLEL]),
    ("The subtasks aren't sequential; run them in parallel.", [PARALLEL]),
    ("We split by feature without splitting by layer, and tests stay next to the code", [FEATURE, TESTS_ALONGSIDE]),
    ("I don't think splitting by layer works, let's split by feature", [FEATURE]),
    ("We never split by layer and always split by feature", [FEATURE]),
    ("Don't split by layer and split by feature instead", [FEATURE]),
    ("Not splitting by layer this time, splitting by feature", [FEATURE]),
    ("Split by feature, which avoids one file per subtask", [FEATURE]),
    ("It's not a bad idea to split by feature", [FEATURE]),
    ("splitting by feature, as opposed to by layer", [FEATURE]),
    ("I'd rather split by feature than by layer", [FEATURE]),
    ("Split by component, excluding tests in a separate subtask", [COMPONENT]),
    ("Tasks run in parallel rather than sequentially", [PARALLEL]),
    ("Neither split by layer nor by file type, but by feature", [FEATURE]),
    ("Don't split by file type - split by feature.", [FEATURE]),
    ("Split by feature\nDon't split by layer\nOne file per subtask", [FEATURE, ONE_FILE]),
]
NEGATED: Final = [
    "neglect the dependency chain",
    "That would violate the dependency order",
    "We previously split by layer",
    "we won't be splitting the work by component",
    "Splitting by file type should be avoided",
    "Split by layer is not an option",
    "We decided against splitting by layer",
    "ignore the dependency order",
    "do not, under any circumstances, split by layer",
    "cannot run everything in parallel",
    "It's a bad idea to split by layer",
    "We shouldn't split by component",
    "We aren't going to run everything in parallel",
    "Splitting by layer doesn't work here",
    "Splitting by layer never works",
    "split by file type isn't what we want",
    "Nobody should split by layer",
    "None of the subtasks run in parallel",
    "We considered splitting by layer but rejected it",
    "Splitting by layer was rejected",
    "It would be wrong to split by layer",
    "We refuse to split by layer",
    "Stop splitting by layer",
    "Do not split by layer (it failed) or by component",
    "It isn't necessary to split by layer.",
    "Split by layer? No.",
    "We opted out of splitting by layer",
    "## Anti-Patterns to Avoid\n\nBased on past failures, avoid these decomposition strategies:\n\n"
    "- AVOID: Split by file type. Failed 12/15 times (80% failure rate)\n- One file per subtask",
]
SOMETHING_ELSE: Final = [
    "feature flags guarded by features",
    "It is required by a component",
    "by feature flag",
    "",
    "split",
    "sequential ids",
    "a list of features by priority",
    "Users log in; the feature is tested by hand",
    "Refactor the component and its file types",
    "one file",
    "Add tests.",
    "Rename the shared types",
    "Fix the API routes",
    "the dependency is outdated",
    "run the tests",
    "each subtask runs the tests",
    "several files per subtask",
    "The tests fail in the API",
    "Refactor the component-based architecture",
    "The UI is component-based.",
]


def test_the_example_has_its_exact_outcome() -> None:
    text = "We'll split by file type, one file per subtask"
    assert extract_strategies(text) == ["Split by file type", "One file per subtask"]


def test_each_title_is_found_in_itself() -> None:
    for title in TITLES:
        assert extract_strategies(title) == [title], title
        assert extract_strategies(title.upper()) == [title], title
        assert extract_strategies(f"Don't {title.lower()}") == [], title


def test_natural_wordings() -> None:
    for text, found in IN_USE:
        assert extract_strategies(text) == found, text


def test_a_negated_mention_is_not_a_use() -> None:
    for text in NEGATED:
        assert extract_strategies(text) == [], text


def test_a_negation_ends_with_its_clause() -> None:
    for text, found in PARTLY_NEGATED:
        assert extract_strategies(text) == found, text


def test_similar_words_about_other_things_do_not_count() -> None:
    for text in SOMETHING_ELSE:
        assert extract_strategies(text) == [], text


def test_strategies_are_listed_once_in_order_of_the_text() -> None:
    text = "Types first. Split by feature. Split the rest by feature. Types first!"
    assert extract_strategies(text) == [TYPES_FIRST, FEATURE]


@given(st.lists(st.sampled_from(TITLES), max_size=8))
def test_sentences_are_parsed_separately(titles: list[str]) -> None:
    found = extract_strategies(". ".join(titles))
    assert found == list(dict.fromkeys(titles))
    assert extract_strategies("\n".join(f"- {title}" for title in found)) == found


_WORDS = st.sampled_from(
    ("not", "don't", "avoid", "instead of", "more than", "and", "but", "so", ",", ".", "(", ")", "\n- ", *TITLES)
)


@given(st.text(max_size=200) | st.lists(_WORDS, max_size=30).map(" ".join))
def test_any_text_is_parsed(text: str) -> None:
    found = extract_strategies(text)
    assert set(found) <= set(TITLES)
    assert len(found) == len(set(found))


def test_a_huge_hostile_text_is_parsed() -> None:
    for part in (
        "not not not split by ",
        "split ",
        "a",
        "'a",
        "by the ",
        "tests in ",
        ", ",
        "(",
        "by layer, ",
        "- \n",
        "\n",
        "\ufdfa",
    ):
        text = part * (1_000_000 // len(part))
        assert set(extract_strategies(text)) <= {LAYER}, part


def test_text_beyond_the_limit_is_not_read() -> None:
    assert extract_strategies(" " * MAX_TEXT + "Split by feature") == []
