"""Detection of the common decomposition strategies in free text."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from core.base.negation import MAX_TEXT
from core.learning.strategies import extract_strategies

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
    ("We'll split by file type, one file per subtask", [FILE_TYPE, ONE_FILE]),
    ("Splitting the work by file-type.", [FILE_TYPE]),
    ("Group the files by extension", [FILE_TYPE]),
    ("Group files by type", [FILE_TYPE]),
    ("One subtask per file type", [FILE_TYPE]),
    ("Divide by type of file", [FILE_TYPE]),
    ("split\nby\n  component", [COMPONENT]),
    ("The work is divided by components.", [COMPONENT]),
    ("One subtask per component", [COMPONENT]),
    ("Each component gets its own sub-task", [COMPONENT]),
    ("break it down into components", [COMPONENT]),
    ("go component by component", [COMPONENT]),
    ("a component-based split", [COMPONENT]),
    ("Decompose the task by architectural layer", [LAYER]),
    ("Split it into layers: UI, logic and data", [LAYER]),
    ("Split by layer (UI/logic/data)", [LAYER]),
    ("one agent per layer", [LAYER]),
    ("split it up by feature", [FEATURE]),
    ("SPLIT BY FEATURE", [FEATURE]),
    ("Split by **feature**", [FEATURE]),
    ("vertical slices", [FEATURE]),
    ("one subtask for each feature", [FEATURE]),
    ("feature-wise", [FEATURE]),
    ("by layer and feature", [LAYER, FEATURE]),
    ("exactly one file per subtask", [ONE_FILE]),
    ("Each subtask touches exactly one file", [ONE_FILE]),
    ("every file has its own subtask", [ONE_FILE]),
    ("1 file per task", [ONE_FILE]),
    ("at most one file per sub task", [ONE_FILE]),
    ("types first", [TYPES_FIRST]),
    ("The shared types are handled first", [TYPES_FIRST]),
    ("Start with the shared types", [TYPES_FIRST]),
    ("First, define the common types, then fan out", [TYPES_FIRST]),
    ("Define shared interfaces up front", [TYPES_FIRST]),
    ("shared types before anything else", [TYPES_FIRST]),
    ("Separate the API routes", [ROUTES]),
    ("API endpoints go in their own subtask", [ROUTES]),
    ("keep API routes separate", [ROUTES]),
    ("a separate subtask for each endpoint", [ROUTES]),
    ("tests next to the code", [TESTS_ALONGSIDE]),
    ("Keep tests alongside the implementation", [TESTS_ALONGSIDE]),
    ("co-locate tests", [TESTS_ALONGSIDE]),
    ("write the tests together with the code", [TESTS_ALONGSIDE]),
    ("Implementation and tests go together", [TESTS_ALONGSIDE]),
    ("each subtask includes its own tests", [TESTS_ALONGSIDE]),
    ("tests in a separate subtask", [TESTS_APART]),
    ("a separate subtask for tests", [TESTS_APART]),
    ("tests get their own subtask", [TESTS_APART]),
    ("a dedicated testing subtask", [TESTS_APART]),
    ("separate the tests from the code", [TESTS_APART]),
    ("parallelise as much as possible", [PARALLEL]),
    ("Maximize parallelism", [PARALLEL]),
    ("maximise parallelisation", [PARALLEL]),
    ("run everything in parallel", [PARALLEL]),
    ("run as many subtasks in parallel as possible", [PARALLEL]),
    ("fully parallel", [PARALLEL]),
    ("run them one after the other", [SEQUENTIAL]),
    ("execute the subtasks sequentially", [SEQUENTIAL]),
    ("Sequential execution order", [SEQUENTIAL]),
    ("one subtask at a time", [SEQUENTIAL]),
    ("in sequence", [SEQUENTIAL]),
    ("follow the dependency order", [DEPENDENCIES]),
    ("Respect dependency chain", [DEPENDENCIES]),
    ("honour the dependencies", [DEPENDENCIES]),
    ("order subtasks by their dependencies", [DEPENDENCIES]),
    ("in topological order", [DEPENDENCIES]),
    ("each subtask waits for its dependencies", [DEPENDENCIES]),
    (
        "Split by feature; tests alongside implementation; maximize parallelization",
        [FEATURE, TESTS_ALONGSIDE, PARALLEL],
    ),
    ("- Split by feature\n- One file per subtask\n- Types first", [FEATURE, ONE_FILE, TYPES_FIRST]),
    ("1. types first\n2. split by layer\n3. tests in a separate subtask", [TYPES_FIRST, LAYER, TESTS_APART]),
    ("The API is separate", [ROUTES]),
    ("Only one file per subtask", [ONE_FILE]),
    ("Let's split this into one subtask per feature and write the tests alongside.", [FEATURE, TESTS_ALONGSIDE]),
    ("Execute in dependency order", [DEPENDENCIES]),
    ("Execute sequentially, respecting the dependency chain", [SEQUENTIAL, DEPENDENCIES]),
    ("Honor dependency ordering", [DEPENDENCIES]),
    ("Honour the dependency chain.", [DEPENDENCIES]),
    ("Maximising parallelization", [PARALLEL]),
    ("maximum parallelism", [PARALLEL]),
    ("Parallelize everything", [PARALLEL]),
    ("run all the subtasks concurrently", [PARALLEL]),
    ("run tasks in parallel wherever possible", [PARALLEL]),
    ("as much parallelism as possible", [PARALLEL]),
    ("as parallel as possible", [PARALLEL]),
    ("parallelisation should be maximised", [PARALLEL]),
    ("sequential order", [SEQUENTIAL]),
    ("Work through the subtasks one by one", [SEQUENTIAL]),
    ("Run one subtask after another", [SEQUENTIAL]),
    ("strictly sequential", [SEQUENTIAL]),
    ("run the subtasks in order", [SEQUENTIAL]),
    ("in series", [SEQUENTIAL]),
    ("handle the shared types first", [TYPES_FIRST]),
    ("shared type definitions come first", [TYPES_FIRST]),
    ("begin by defining shared types", [TYPES_FIRST]),
    ("extract common types before the rest", [TYPES_FIRST]),
    ("do the types first, then the features", [TYPES_FIRST]),
    ("the types go first", [TYPES_FIRST]),
    ("API routes in a separate subtask", [ROUTES]),
    ("API routes are separate", [ROUTES]),
    ("separate subtask for API routes", [ROUTES]),
    ("separate out the API routes", [ROUTES]),
    ("split the API routes off", [ROUTES]),
    ("put the API routes into their own subtask", [ROUTES]),
    ("Routes and endpoints get separate subtasks", [ROUTES]),
    ("tests with implementation", [TESTS_ALONGSIDE]),
    ("tests live beside the code", [TESTS_ALONGSIDE]),
    ("colocated tests", [TESTS_ALONGSIDE]),
    ("test files next to the sources", [TESTS_ALONGSIDE]),
    ("write tests next to the implementation", [TESTS_ALONGSIDE]),
    ("keep each test next to its component", [TESTS_ALONGSIDE]),
    ("tests in the same subtask as the implementation", [TESTS_ALONGSIDE]),
    ("tests as a separate subtask", [TESTS_APART]),
    ("testing is its own subtask", [TESTS_APART]),
    ("put all tests in one separate subtask", [TESTS_APART]),
    ("write tests in their own subtask", [TESTS_APART]),
    ("tests go in another subtask", [TESTS_APART]),
    ("a final subtask for the tests", [TESTS_APART]),
    ("separate test subtask", [TESTS_APART]),
    ("one file for each subtask", [ONE_FILE]),
    ("each subtask gets one file", [ONE_FILE]),
    ("each subtask owns a single file", [ONE_FILE]),
    ("one subtask per file", [ONE_FILE]),
    ("a single file per subtask", [ONE_FILE]),
    ("one-file-per-subtask", [ONE_FILE]),
    ("every subtask only touches one file", [ONE_FILE]),
    ("each file is a subtask", [ONE_FILE]),
    ("split along feature lines", [FEATURE]),
    ("split on feature boundaries", [FEATURE]),
    ("per-feature split", [FEATURE]),
    ("a split by features", [FEATURE]),
    ("feature-based decomposition", [FEATURE]),
    ("Organise the work by feature", [FEATURE]),
    ("separate by layer: UI, logic, data", [LAYER]),
    ("UI / logic / data split", [LAYER]),
    ("split UI, logic and data", [LAYER]),
    ("layer-by-layer", [LAYER]),
    ("splitting across layers", [LAYER]),
    ("split into UI components", [COMPONENT]),
    ("a subtask for every component", [COMPONENT]),
    ("split by layer / component", [LAYER, COMPONENT]),
    ("Run in order to split by feature", [FEATURE]),
    ("By feature.", [FEATURE]),
    ("Strategy: by component", [COMPONENT]),
    ("strategy = feature-based split", [FEATURE]),
    ("file-based decomposition", [ONE_FILE]),
    ("Maximize parallelization while respecting the dependency chain", [PARALLEL, DEPENDENCIES]),
    ("‘Split by feature’ and “one file per subtask”", [FEATURE, ONE_FILE]),
    ("Each subtask should only modify one file", [ONE_FILE]),
    ("One subtask should own one file", [ONE_FILE]),
    ("File-per-subtask", [ONE_FILE]),
    ("Subtasks follow the chain of dependencies", [DEPENDENCIES]),
    ("Shared types at the beginning", [TYPES_FIRST]),
    ("Handle types that are shared first", [TYPES_FIRST]),
    ("Every implementation subtask includes tests", [TESTS_ALONGSIDE]),
    ("Implementation together with its tests", [TESTS_ALONGSIDE]),
    ("front-end, logic, and database layers", [LAYER]),
    ("feature slices", [FEATURE]),
    ("split by end-user features", [FEATURE]),
    ("subtasks are organised around features", [FEATURE]),
    ("topologically sorted", [DEPENDENCIES]),
    ("Split by file\u00a0type", [FILE_TYPE]),
    ("Split by fea\u00adture", [FEATURE]),
    ("Carve the work up along feature boundaries", [FEATURE]),
    ("Divide the work according to component", [COMPONENT]),
    ("Slice it vertically, feature after feature", [FEATURE]),
    ("slice the work horizontally", [LAYER]),
    ("Tests come last, in a dedicated task", [TESTS_APART]),
    ("Work in the order their dependencies dictate", [DEPENDENCIES]),
    ("Subtasks must wait for what they depend on", [DEPENDENCIES]),
    ("feature-based", [FEATURE]),
    ("Component-based.", [COMPONENT]),
    ("Strategy: layer-based, one file per subtask", [LAYER, ONE_FILE]),
    ("file-based", [ONE_FILE]),
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
    ("Last time it failed, split by feature", [FEATURE]),
    ("No subtask edits more than one file", [ONE_FILE]),
    ("AVOID: Split by file type. Failed 12/15 times.\nSplit by feature", [FEATURE]),
    ("Instead of splitting by layer, split by feature", [FEATURE]),
    ("Instead of by layer, by feature", [FEATURE]),
    ("Instead of splitting by layer, by file type, or by component, split by feature", [FEATURE]),
    ("split by feature rather than by layer", [FEATURE]),
    ("Rather than split by layer, we split by feature", [FEATURE]),
    ("not by component but by feature", [FEATURE]),
    ("Split by feature, not by layer", [FEATURE]),
    ("Split by feature, not by layer, with tests next to the code", [FEATURE, TESTS_ALONGSIDE]),
    ("Split by feature (not by layer) and keep tests alongside the code", [FEATURE, TESTS_ALONGSIDE]),
    ("Don't split by file type; one file per subtask", [ONE_FILE]),
    ("Don't split by file type. One file per subtask.", [ONE_FILE]),
    ("Don't split by file type, but keep one file per subtask", [ONE_FILE]),
    ("Layers overlap, we can't split by layer, so split by feature", [FEATURE]),
    ("We don't split by layer, instead we split by feature", [FEATURE]),
    ("Don't split by layer, split by feature", [FEATURE]),
    ("Don't split by layer, split by feature instead", [FEATURE]),
    ("We do not split by layer, we split by feature", [FEATURE]),
    ("not only by feature but also by layer", [FEATURE, LAYER]),
    ("don't hesitate to split by feature", [FEATURE]),
    ("Don't forget to follow the dependency order", [DEPENDENCIES]),
    ("Do not skip tests alongside the implementation", [TESTS_ALONGSIDE]),
    ("There's no reason not to split by feature", [FEATURE]),
    ("Avoid conflicts by splitting by feature", [FEATURE]),
    ("To avoid merge conflicts, split by component", [COMPONENT]),
    ("There is no shared state, so run everything in parallel", [PARALLEL]),
    ("No shared state: one file per subtask", [ONE_FILE]),
    ("tests not in a separate subtask but next to the code", [TESTS_ALONGSIDE]),
    ("Do not put tests in a separate subtask, keep them alongside the implementation", [TESTS_ALONGSIDE]),
    ("don't touch more than one file per subtask", [ONE_FILE]),
    ("No, split by feature", [FEATURE]),
    ("Avoid:\n- split by file type\n- one file per subtask\n\nDo:\n- split by feature", [FEATURE]),
    ("How to avoid conflicts:\n- split by feature", [FEATURE]),
    ("We can work without conflicts if we split by feature", [FEATURE]),
    ("Split by feature — not by layer — with one file per subtask", [FEATURE, ONE_FILE]),
    ("Don't run the subtasks one after the other, run them all in parallel", [PARALLEL]),
    ("No tests in separate subtasks; tests live next to the code they test", [TESTS_ALONGSIDE]),
    ("Split by component instead of by layer", [COMPONENT]),
    ("split by component instead of by layer, and follow the dependency chain", [COMPONENT, DEPENDENCIES]),
    ("Prefer splitting by feature over splitting by layer", [FEATURE]),
    ("Don't just split by feature, also maximise parallelism", [FEATURE, PARALLEL]),
    ("Rather than one file per subtask, split by component.", [COMPONENT]),
    ("Split by component, rather than one file per subtask.", [COMPONENT]),
    ("Do not maximise parallelism; go one after another.", [SEQUENTIAL]),
    ("The subtasks aren't sequential; run them in parallel.", [PARALLEL]),
    ("by component, not by feature", [COMPONENT]),
    ("not by feature; by component", [COMPONENT]),
    ("We split by feature, never by layer", [FEATURE]),
    ("We split by feature without splitting by layer, and tests stay next to the code", [FEATURE, TESTS_ALONGSIDE]),
    ("Split by feature. Don't split by layer. One file per subtask.", [FEATURE, ONE_FILE]),
    ("Do split by feature, don't split by layer", [FEATURE]),
    ("split by feature, no separate subtask for tests, types first", [FEATURE, TYPES_FIRST]),
    ("I don't think splitting by layer works, let's split by feature", [FEATURE]),
    ("We never split by layer and always split by feature", [FEATURE]),
    ("Don't split by layer and split by feature instead", [FEATURE]),
    ("Not splitting by layer this time, splitting by feature", [FEATURE]),
    ("Split by feature, so that no two agents edit one file per subtask", [FEATURE]),
    ("not sequential execution but as parallel as possible", [PARALLEL]),
    ("Split by feature, which avoids one file per subtask", [FEATURE]),
    ("Split by feature to avoid one file per subtask", [FEATURE]),
    ("Not only split by feature, but one file per subtask too", [FEATURE, ONE_FILE]),
    ("It's not a bad idea to split by feature", [FEATURE]),
    ("We never put more than one file per subtask", [ONE_FILE]),
    ("We don't split by layer and we run sequentially", [SEQUENTIAL]),
    ("Unlike last time, split by feature", [FEATURE]),
    ("Split by layer, not one file per subtask", [LAYER]),
    ("splitting by feature, as opposed to by layer", [FEATURE]),
    ("I'd rather split by feature than by layer", [FEATURE]),
    ("Split by component w/o tests in a separate subtask", [COMPONENT]),
    ("Split by component, excluding tests in a separate subtask", [COMPONENT]),
    ("Tasks run in parallel rather than sequentially", [PARALLEL]),
    ("Avoid: one file per subtask, sequential execution. Prefer: split by feature.", [FEATURE]),
    ("Neither split by layer nor by file type, but by feature", [FEATURE]),
    ("Never split by layer, always by feature", [FEATURE]),
    ("Don't split by file type - split by feature.", [FEATURE]),
    ("DON'T SPLIT BY LAYER. SPLIT BY FEATURE.", [FEATURE]),
    ("Split by feature\nDon't split by layer\nOne file per subtask", [FEATURE, ONE_FILE]),
]
NEGATED: Final = [
    "neglect the dependency chain",
    "That would violate the dependency order",
    "Last time we split by layer",
    "We previously split by layer",
    "don't split by file type",
    "don’t split by file type",
    "Do not split by layer.",
    "dont split by layer",
    "we won't be splitting the work by component",
    "avoid one file per subtask",
    "AVOID: Split by file type. Failed 5/7 times (71% failure rate)",
    "instead of splitting by layer",
    "Don't split by layer (UI/logic/data)",
    "never split by file type",
    "without a separate subtask for tests",
    "no need to maximise parallelism",
    "Don't split by file type, by layer or by component",
    "don't split by layer, run sequentially, or maximise parallelism",
    "neither by layer nor by component",
    "Splitting by file type should be avoided",
    "Split by layer is not an option",
    "Tests should not go in a separate subtask",
    "We decided against splitting by layer",
    "Don't handle shared types first",
    "ignore the dependency order",
    "more than one file per subtask",
    "Nothing runs in parallel",
    "do not, under any circumstances, split by layer",
    "cannot run everything in parallel",
    "It's a bad idea to split by layer",
    "We no longer split by layer",
    "Tests must not be split out",
    "API routes should not be separate",
    "Don't parallelise everything",
    "Not all subtasks run in parallel",
    "Tests won't get their own subtask",
    "We shouldn't split by component",
    "We should not be splitting the app by component.",
    "Please do not use one file per subtask",
    "We aren't going to run everything in parallel",
    "There's no point in splitting by layer",
    "Splitting by layer doesn't work here",
    "Splitting by layer never works",
    "split by file type isn't what we want",
    "Nobody should split by layer",
    "None of the subtasks run in parallel",
    "Don't bother with tests in a separate subtask",
    "Not by feature.",
    "We considered splitting by layer but rejected it",
    "Splitting by layer was rejected",
    "It would be wrong to split by layer",
    "Under no circumstances split by layer",
    "By no means split by layer",
    "We refuse to split by layer",
    "Stop splitting by layer",
    "I don't think we should split by layer",
    "Do not split by layer and do not split by component",
    "Don't split by layer or component",
    "Do not split by layer (it failed) or by component",
    "don't split by layer/component",
    "We do not want tests in a separate subtask.",
    "There will be no subtask for tests",
    "there are no shared types to handle first",
    "no dependency chain to respect",
    "not one file per subtask",
    "never ever split by layer",
    "It is not necessary to maximize parallelization",
    "Parallelization need not be maximised",
    "no one file per subtask rule here",
    "we don't, however, split by layer",
    "Unlike last time, we don't split by feature",
    "It isn't necessary to split by layer.",
    "donʼt split by layer",
    "Split by layer? No.",
    "We opted out of splitting by layer",
    "Avoid splitting by layer, by file type and one file per subtask.",
    "Splitting by layer is not recommended",
    "We decided not to split by layer",
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
