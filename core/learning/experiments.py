"""Experiments that hold lessons out by chance; docs/experiments.md.

Above, the coin: which patterns are held out, and which never are. It is a keyed hash of the task and the pattern, so
each process that has the secret sees the same side. Below, the statistics of the trials.

A trial is a task for which a lesson was chosen and a coin decided whether the agent got it. The interval of the
difference between the two arms is a confidence sequence: it may be looked at after every trial. It comes from bets on
the coin, given the outcomes, so it needs no assumption about how often errors occur, or that this stays the same.
"""

from __future__ import annotations

import hmac
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from operator import mul
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from core.base.text import plural
from core.records.patterns import DECOMPOSITION_TAG, PatternType

if TYPE_CHECKING:
    from core.learning.maturity import Assessment
    from core.records.events import Event
    from core.records.patterns import Pattern


ALWAYS_TAG: Final = "always"
"""Tag of patterns that are never held out."""
SAME_TASK: Final = timedelta(days=1)  # in which the same text is the same task, from its first assignment
_SAFETY_WORDS: Final = frozenset({"safety", "security", "secrets", "privacy", "data-loss"})  # categories and tags
_KEY_CHARS: Final = 16
_SCALE: Final = 2.0**64


class Experiment(Struct, frozen=True):
    """A user's experiment in one project: share held out, 0..1, and coin secret.

    `open_tasks` are the keys of the tasks at work, for calls that do not say which task they belong to.
    """

    share: float
    secret: bytes
    open_tasks: tuple[str, ...] = ()

    def key_of_text(self, text: str) -> str:
        """Return a key that texts with the same words share, without revealing them."""
        return self._digest("text", " ".join(text.casefold().split()))[:_KEY_CHARS]

    def key_of_task(self, text: str, now: datetime, earlier: Iterable[Event] = ()) -> str:
        """Return the key of the task that has a text `now`.

        `earlier` are the events of the experiment about this text, oldest first: what was first assigned within a day
        is the same task.
        """
        begun: dict[str, datetime] = {}
        for event in earlier:
            if event.trial is not None:
                begun.setdefault(event.trial.task, event.at)
        for task, at in reversed(begun.items()):
            if timedelta() <= now - at < SAME_TASK:
                return task
        return f"{self.key_of_text(text)}@{now:%Y-%m-%d}"

    def holds_out(self, task: str, pattern_id: str) -> bool:
        """Return whether the coin holds a pattern out of a task, by its key."""
        return int(self._digest("coin", task, pattern_id)[:_KEY_CHARS], 16) / _SCALE < self.share

    def _digest(self, *parts: str) -> str:
        # A NUL is in no part, so that no two lists of parts have the same message.
        message = "\0".join(part.replace("\0", " ") for part in parts).encode(errors="surrogateescape")
        return hmac.digest(self.secret, message, "sha256").hex()


def text_key(task: str) -> str:
    """Return the key of the text of a task, from the key of the task."""
    return task.partition("@")[0]


def secret_of_project(secret: bytes, name: str) -> bytes:
    """Derive the secret of a project from the user's secret and its folder's name."""
    return hmac.digest(secret, f"project\0{name}".encode(errors="surrogateescape"), "sha256")


def why_always_given(pattern: Pattern, assessment: Assessment) -> str:
    """Return why a pattern is never held out, or "" if it may be."""
    if assessment.pin is not None:
        return "a person decided on it"
    if ALWAYS_TAG in pattern.tags:
        return f"it has the tag {ALWAYS_TAG}"
    if not _SAFETY_WORDS.isdisjoint({pattern.category.casefold(), *(tag.casefold() for tag in pattern.tags)}):
        return "it is about safety"
    if DECOMPOSITION_TAG in pattern.tags and pattern.type in (PatternType.SUCCESS, PatternType.ANTI):
        return "it is a decomposition strategy"
    return ""


class Assignment(Struct, frozen=True):
    """A pattern for a task, and whether it is held out, with chance `share`, 0..1."""

    pattern_id: str
    is_held_out: bool
    share: float


class Coin(Struct, frozen=True):
    """The coin for the patterns of one task, whose key is `task`.

    If several tasks are possible, `others` are the keys of the other ones: a pattern that is held out of any of them is
    held out here, and the assignment is not recorded.
    """

    experiment: Experiment
    task: str
    others: tuple[str, ...] = ()

    @property
    def logged_task(self) -> str:
        """Key of the recorded assignments; "" if the task is uncertain, and none are."""
        return "" if self.others else self.task

    def assign_all(self, patterns: Iterable[tuple[Pattern, Assessment]]) -> tuple[Assignment, ...]:
        """Decide on patterns for the task; skip those that are always given."""
        return tuple(
            Assignment(pattern.id, self.holds_out(pattern, assessment), self.experiment.share)
            for pattern, assessment in patterns
            if not why_always_given(pattern, assessment)
        )

    def holds_out(self, pattern: Pattern, assessment: Assessment) -> bool:
        """Return whether the task does not get a pattern."""
        if why_always_given(pattern, assessment):
            return False
        return any(self.experiment.holds_out(task, pattern.id) for task in (self.task, *self.others))


# Statistics of the trials.

LEVEL: Final = 0.95  # of the intervals: all verdicts of an experiment are right with this probability
SMALLEST_SHARE: Final = 0.1  # of the tasks without the lesson, and with it
SMALLEST_DIFFERENCE: Final = 0.1  # between two rates; less is "no difference worth having"
EXPECTED_RATES: Final = (0.5, 0.2)  # of returning errors without and with a lesson; used for planning without data
COST_OF_LOOKING: Final = 2.0  # trials of a confidence sequence for one of a test that looks once; see the simulator
MOST_STEPS: Final = 64  # longer trials, and those without a passing test, count as this
MOST_MINUTES: Final = 480

BETS: Final = ((0.05, 1 / 11), (0.15, 2 / 11), (0.3, 3 / 11), (0.5, 3 / 11), (0.75, 2 / 11))
"""Stakes as shares of the largest stake that cannot lose everything, each with its share of the capital."""
RATE_STEPS: Final = 20  # of the running rate: it is rounded, so that few kinds of trials exist
_PRIOR_TRIALS: Final = 10  # weight of each expected rate in the number of further trials
_MOST_NEEDED: Final = 10_000  # a larger number of further trials is reported as "more than" this
_HALVINGS: Final = 12  # of the search for an end of an interval: to 0.0005


class Verdict(StrEnum):
    """What an experiment shows about a lesson."""

    HELPS = "helps"
    HURTS = "hurts"
    NO_DIFFERENCE = "no difference worth having"
    UNDECIDED = "can't tell yet"


class TrialResult(Struct, frozen=True, kw_only=True):
    """One task in which a lesson was given or held out by chance."""

    task: str
    pattern: str
    share: float  # probability with which the lesson was held out, 0.1..0.9
    is_held_out: bool
    outcome: float  # 0..1; 1 if the error returned, or if the task succeeded


class Cell(NamedTuple):
    """A kind of trial: trials in one cell have the same weight in the interval."""

    pattern: str
    share: float
    rate: int  # mean outcome of the earlier trials of the pattern, in steps of 0.05
    is_held_out: bool
    outcome: float


Tally = Counter[tuple[Cell, ...]]
"""The number of tasks by the cells of their trials. Tallies of several projects are added with `+`."""


class Arm(NamedTuple):
    """The trials with the lesson, or those without."""

    trials: int = 0
    total: float = 0.0  # sum of the outcomes

    @property
    def rate(self) -> float | None:
        return self.total / self.trials if self.trials else None


class Comparison(Struct, frozen=True, kw_only=True):
    """The two arms of an experiment, and what can be concluded at this moment."""

    given: Arm
    held_out: Arm
    difference: float | None  # mean outcome with the lesson minus without it; None if an arm is empty
    low: float  # ends of the interval of the difference, -1..1
    high: float
    verdict: Verdict
    needed: int  # estimated further trials until a verdict; 0 if there is one
    harm_e_value: float  # evidence that the lesson hurts; reaches 1 / x with a probability of at most x if it does not


def tally_trials(trials: Iterable[TrialResult]) -> Tally:
    """Count trials by cell in coin order; those of one task are one observation."""
    tasks: defaultdict[str, list[Cell]] = defaultdict(list)
    for trial, cell in place_trials(trials):
        tasks[trial.task].append(cell)
    return Tally(tuple(sorted(cells)) for cells in tasks.values())


def place_trials(trials: Iterable[TrialResult]) -> Iterator[tuple[TrialResult, Cell]]:
    """Yield each trial with its cell.

    Omits repeated trials of a pattern in one task, trials with a share outside of 0.1..0.9, and trials with an outcome
    outside of 0..1.
    """
    earlier: defaultdict[str, Arm] = defaultdict(Arm)
    seen: set[tuple[str, str]] = set()
    for trial in trials:
        is_valid = SMALLEST_SHARE <= trial.share <= 1 - SMALLEST_SHARE and 0 <= trial.outcome <= 1
        if not is_valid or (trial.task, trial.pattern) in seen:
            continue
        seen.add((trial.task, trial.pattern))
        arm = earlier[trial.pattern]
        rate = round((arm.total + 0.5) / (arm.trials + 1) * RATE_STEPS)
        yield (
            trial,
            Cell(trial.pattern, trial.share, min(max(rate, 1), RATE_STEPS - 1), trial.is_held_out, trial.outcome),
        )
        earlier[trial.pattern] = Arm(arm.trials + 1, arm.total + trial.outcome)


def compare_arms(tally: Tally, *, is_higher_better: bool = False) -> Comparison:
    """Compare outcomes with and without lessons, with an anytime-valid interval.

    A tally of several patterns gives their average difference. `is_higher_better` is True for successes, False for
    errors that return.
    """
    given, held_out = _arm(tally, is_held_out=False), _arm(tally, is_held_out=True)
    difference = _difference(tally)
    low, high = _interval(tally, difference or 0.0)
    verdict = _verdict(low, high, is_higher_better)
    share = held_out.trials / (given.trials + held_out.trials) if tally else 0.5
    return Comparison(
        given=given,
        held_out=held_out,
        difference=difference,
        low=low,
        high=high,
        verdict=verdict,
        needed=_further_trials(given, held_out, share, is_higher_better) if verdict is Verdict.UNDECIDED else 0,
        harm_e_value=math.exp(min(_log_capital(tally, 0.0, (-1 if is_higher_better else 1,)), 700.0)),
    )


def _verdict(low: float, high: float, is_higher_better: bool) -> Verdict:
    if not is_higher_better:
        low, high = -high, -low
    if high < 0:
        return Verdict.HURTS
    if low > -SMALLEST_DIFFERENCE and high < SMALLEST_DIFFERENCE:
        return Verdict.NO_DIFFERENCE
    return Verdict.HELPS if low > 0 else Verdict.UNDECIDED


def describe_verdict(comparison: Comparison, *, is_running: bool = True) -> str:
    """Return the verdict in words, or the trials that a running experiment needs."""
    needed = comparison.needed
    if comparison.verdict is not Verdict.UNDECIDED:
        return comparison.verdict.value
    if not is_running:
        return f"stopped; no verdict ({plural(comparison.given.trials + comparison.held_out.trials, 'trial')})"
    if needed > _MOST_NEEDED:
        return f"{comparison.verdict} (more than {plural(_MOST_NEEDED, 'more task')})"
    return f"{comparison.verdict} (about {plural(needed, 'more task')})"


def _arm(tally: Tally, *, is_held_out: bool) -> Arm:
    cells = [(cell, count) for group, count in tally.items() for cell in group if cell.is_held_out == is_held_out]
    return Arm(sum(count for _, count in cells), math.fsum(cell.outcome * count for cell, count in cells))


def _difference(tally: Tally) -> float | None:
    """Average the differences of means per pattern and share, weighted by trials."""
    strata: defaultdict[tuple[str, float], Tally] = defaultdict(Tally)
    for group, count in tally.items():
        for cell in group:
            strata[cell.pattern, cell.share][(cell,)] += count
    weighted: list[tuple[int, float]] = []
    for stratum in strata.values():
        given, held_out = _arm(stratum, is_held_out=False), _arm(stratum, is_held_out=True)
        if given.rate is not None and held_out.rate is not None:
            weighted.append((given.trials + held_out.trials, given.rate - held_out.rate))
    total = sum(trials for trials, _ in weighted)
    return math.fsum(trials * difference for trials, difference in weighted) / total if total else None


def _interval(tally: Tally, difference: float) -> tuple[float, float]:
    """Return the ends: differences where no bet won 1 / (1 - LEVEL) times its stake."""
    limit = math.log(1 / (1 - LEVEL))
    ends = []
    for outside in (-1.0, 1.0):
        inside = difference
        for _ in range(_HALVINGS if _log_capital(tally, outside, (-1, 1)) >= limit else 0):
            middle = (inside + outside) / 2
            if _log_capital(tally, middle, (-1, 1)) >= limit:
                outside = middle
            else:
                inside = middle
        ends.append(outside)
    return ends[0], ends[1]


def _log_capital(tally: Tally, candidate: float, signs: tuple[int, ...]) -> float:
    """Return the log capital of bets that the difference is not `candidate`.

    A trial pays `1 + stake * score`. The score has the mean 0 if the difference is `candidate`, so the capital is then
    a martingale that starts at 1: it ever reaches 20 with a probability of at most 0.05 (Ville's inequality). The signs
    are 1 for bets on a larger difference, -1 for a smaller one; the capital is divided between them.
    """
    counts, logs = tuple(tally.values()), []
    for sign in signs:
        scores = [sign * score_of(group, candidate, sign) for group in tally]
        for bet, part in BETS:
            growth = math.fsum(map(mul, counts, [math.log1p(bet * score) for score in scores]))
            logs.append(math.log(part / len(signs)) + growth)
    most = max(logs)
    return most + math.log(math.fsum(math.exp(value - most) for value in logs))


def score_of(group: tuple[Cell, ...], candidate: float, sign: int) -> float:
    """Return a task's score divided by the largest possible loss of a `sign` bet.

    The score of a trial is the outcome, weighted by the inverse of the probability of its arm, less a prediction from
    the earlier trials, less the candidate; the mean of the trials of one task is one score.
    """
    score = largest_loss = 0.0
    for cell in group:
        given, rate = 1 - cell.share, cell.rate / RATE_STEPS
        prediction = rate + (1 - 2 * given) * candidate
        low, high = -prediction, 1 - prediction
        value = (cell.outcome - prediction) * (-1 / cell.share if cell.is_held_out else 1 / given)
        score += value - candidate
        worst = min(low / given, -high / cell.share) if sign > 0 else -max(high / given, -low / cell.share)
        largest_loss += sign * candidate - worst
    return score / max(largest_loss, 1e-9)


def required_trials(rate_held_out: float, rate_given: float, share: float, power: float = 0.8) -> int:
    """Return the trials in both arms that a fixed-time test of two rates needs.

    `share` is the share without the lesson, 0..1. A confidence sequence needs up to `COST_OF_LOOKING` times as many.
    """
    difference = rate_given - rate_held_out
    return math.ceil(_trials_for(difference, _variance(rate_given, rate_held_out, share), power))


def _variance(rate_given: float, rate_held_out: float, share: float) -> float:
    """Return the variance of the estimated difference, times the number of trials."""
    return rate_held_out * (1 - rate_held_out) / share + rate_given * (1 - rate_given) / (1 - share)


def _trials_for(width: float, variance: float, power: float) -> float:
    from statistics import NormalDist  # takes 3 ms to import, as it imports fractions and random

    normal = NormalDist()
    quantiles = normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(power)
    return quantiles**2 * variance / width**2 if width else math.inf


def _further_trials(given: Arm, held_out: Arm, share: float, is_higher_better: bool) -> int:
    """Estimate the trials until the interval excludes 0 or any useful difference."""
    seen = given.total * held_out.trials - held_out.total * given.trials
    is_given_higher = seen > 0 or (seen == 0 and is_higher_better)
    without, with_lesson = sorted(EXPECTED_RATES, reverse=not is_given_higher)  # the expected size, the seen direction
    rate_given = (given.total + _PRIOR_TRIALS * with_lesson) / (given.trials + _PRIOR_TRIALS)
    rate_held_out = (held_out.total + _PRIOR_TRIALS * without) / (held_out.trials + _PRIOR_TRIALS)
    share = min(max(share, SMALLEST_SHARE), 1 - SMALLEST_SHARE)
    difference = abs(rate_given - rate_held_out)
    width = max(difference, SMALLEST_DIFFERENCE - difference)
    total = COST_OF_LOOKING * _trials_for(width, _variance(rate_given, rate_held_out, share), 0.8)
    needed = max(total - given.trials - held_out.trials, 1.0)
    if needed > _MOST_NEEDED:
        return _MOST_NEEDED + 1
    digit = 10 if needed > 100 else 1  # more digits would promise too much
    digit = 100 if needed > 1000 else digit
    return math.ceil(needed / digit) * digit


def scale_length(length: float | None, most: float) -> float:
    """Scale the steps or minutes until the test passed to a log scale from 0 to 1.

    A difference of such outcomes is a ratio of lengths: `ratio_of_lengths`. None is a trial without a passing test.
    """
    return 1.0 if length is None else math.log(min(max(length, 1.0), most)) / math.log(most)


def ratio_of_lengths(difference: float, most: float) -> float:
    """Return the typical length with the lesson, divided by that without it."""
    return float(most**difference)
