"""`audit`: look for an event that contradicts what a mechanism claims."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.auditing.epsilon_bounds import (
    Claim,
    detectable_epsilon,
    epsilon_from_rates,
    rate_bounds,
    read_claim,
)
from farthing.auditing.event_search import Candidate, best_events, fitted_scores
from farthing.auditing.output_cells import Outputs, joined
from farthing.auditing.output_samples import Batch, Sampler, batch_of
from farthing.errors import InvalidValue
from farthing.numerics.notebook_tables import html_text
from farthing.privacy.events import checked_count, checked_real


@dataclass(frozen=True)
class AuditReport:
    """A lower bound on the epsilon of a mechanism, the event that showed it, and what could have been shown.

    An audit can contradict a claim; it never proves one.

    Attributes:
        epsilon_lower: The bound on epsilon at `delta`, with `confidence`.
        claimed_epsilon: What was claimed at the same delta.
        delta: A point of the claimed curve.
        confidence: The probability that the bound holds.
        violation: Whether the bound is above the claim.
        event: The set of outputs that showed it, in words.
        family: The kind of set that was searched.
        neighbours: The two inputs.
        direction: Which of the two the set is likelier for.
        hits: How often the event came up in the holdout, on the side that should hit more and on the other.
        holdout: How many outputs of each input the bound was measured on.
        samples: Outputs drawn a side and pair at most, those for choosing the event included.
        seconds: How long it took.
        claim: The claim, in words.
        claimed_points: The claimed curve where it was compared: (epsilon, delta).
        detectable: The least true epsilon that an event of this frequency would have shown to exceed the claim, 19
            times in 20.
        region: Estimated rates (false alarm, missed detection) of the tests {score >= t} for the winning score.
        bound: The winning test with its confidence: false alarms at most this, missed detections at most that.

    >>> from farthing.auditing import audit
    >>> report = audit(lambda bit: bit, 1.0, (0, 1), samples=2_000, confidence=0.999)  # tells the bit itself
    >>> report.violation, report.epsilon_lower > 4
    (True, True)
    >>> print(report)
    The claim (epsilon = 1) is contradicted with confidence 0.999.
    ...
    """

    epsilon_lower: float
    claimed_epsilon: float
    delta: float
    confidence: float
    violation: bool
    event: str
    family: str
    neighbours: tuple[Any, Any]
    direction: str
    hits: tuple[int, int]
    holdout: int
    samples: int
    seconds: float
    claim: str
    claimed_points: tuple[tuple[float, float], ...]
    detectable: float
    region: tuple[tuple[float, float], ...]
    bound: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data; infinity is the string "inf", neighbours are shown as text.

        >>> from farthing.auditing import audit
        >>> audit(lambda bit: 0, 1.0, (0, 1), samples=1_000).to_dict()["violation"]
        False
        """
        return {
            "epsilon_lower": _number(self.epsilon_lower),
            "claimed_epsilon": self.claimed_epsilon,
            "delta": self.delta,
            "confidence": self.confidence,
            "violation": self.violation,
            "event": self.event,
            "family": self.family,
            "neighbours": [short(value) for value in self.neighbours],
            "direction": self.direction,
            "hits": list(self.hits),
            "holdout": self.holdout,
            "samples": self.samples,
            "seconds": self.seconds,
            "claim": self.claim,
            "claimed_points": [list(point) for point in self.claimed_points],
            "detectable": _number(self.detectable),
            "region": [list(point) for point in self.region],
            "bound": list(self.bound),
        }

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def __str__(self) -> str:
        verdict = (
            f"The claim ({self.claim}) is contradicted with confidence {self.confidence:g}."
            if self.violation
            else f"No contradiction of the claim ({self.claim}) was found; that is no proof of it."
        )
        at = f" at delta = {self.delta:.3g}" if self.delta else ""
        could = (
            f"A true epsilon of {self.detectable:.3g} would have been noticed 19 times in 20 by an event this frequent."
            if math.isfinite(self.detectable)
            else "The event is too rare to show any excess with this many samples."
        )
        least, claimed = f"{self.epsilon_lower:.4g}", f"{self.claimed_epsilon:.4g}"
        on, off = (f"{count:,} times on {self._side(place)}" for place, count in enumerate(self.hits))
        return "\n".join(
            [
                verdict,
                f"Epsilon{at} is at least {least} (claimed: {claimed}), confidence {self.confidence:g}.",
                f"Event: {self.event} ({self.family}).",
                f"In {self.holdout:,} samples a side it came up {on}, {off}.",
                could,
                f"{self.samples:,} samples a side in all, {self.seconds:.2g} s.",
            ]
        )

    def _side(self, place: int) -> str:
        first = 0 if self.direction == "first over second" else 1
        return short(self.neighbours[first if place == 0 else 1 - first])


def short(value: object, most: int = 60) -> str:
    """A repr that stays on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


Share = Callable[[float], None]


@contextmanager
def progress_bar(progress: Share | bool | None, patience: float = 1.0) -> Iterator[Share]:
    """A function that takes the share done. True shows a bar, None only on a terminal, False nothing.

    >>> with progress_bar(False) as share:
    ...     share(0.5)
    """
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("auditing", total=1.0)
    timer = threading.Timer(patience, bar.start)  # a short audit shows nothing
    timer.daemon = True
    timer.start()
    try:
        yield lambda share: bar.update(task, completed=share)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


LEAST_SAMPLES = 100
_MOST_TRAINING = 100_000  # a side, for each of the two steps of the choice
_FAIR_TRAINING = 3_000  # below this a choice is blind, and an eighth is not enough
_DIRECTIONS = ("first over second", "second over first")


def audit(
    mechanism: Any,
    claim: Any,
    neighbours: Any,
    *,
    samples: int = 100_000,
    confidence: float = 0.95,
    batch: Batch | None = None,
    workers: int | None = None,
    progress: Share | bool | None = None,
) -> AuditReport:
    """Try to contradict a privacy claim about `mechanism`, by running it on neighbouring tables.

    An eighth of the samples (more of a few) suggests events (tails, likelihood ratios, lowest set bits, keys,
    exceptions ...), as many choose the most promising one, and the rest, which had no part in the choice, bounds its
    two rates by Clopper-Pearson. A correct claim is contradicted with probability at most 1 - confidence, whatever the
    mechanism does, as long as its calls are independent of each other.

    Args:
        mechanism: Any function value -> output, or an object with `release`; an exception is an output too.
        claim: epsilon, (epsilon, delta), an event of farthing.privacy, a list of events, a Composition, or None for the
            mechanism's own `event`. The whole claimed curve is compared, not only one point.
        neighbours: A pair (D, D') as a tuple, or a list of pairs; both directions are tried.
        samples: Outputs for each side and pair.
        confidence: How sure a contradiction must be.
        batch: `batch(value, count)` draws many outputs at once, so that a million take seconds.
        workers: 1 stays in this process; by default each side gets one of its own when that saves time.
        progress: A function that receives the share done; True for a bar, None for a bar on a terminal only.

    Returns:
        The report: `violation`, the lower bound `epsilon_lower`, and the event that gave it.

    Raises:
        InvalidValue: If an argument has the wrong form, or the mechanism fails on every call.
        WorkerLost: If a process that draws samples ends early.

    >>> import random
    >>> def tell(bit):  # says it leaks log(3) = 1.0986, and leaks log(9)
    ...     return bit if random.random() < 0.9 else 1 - bit
    >>> report = audit(tell, 1.0986, (0, 1), samples=20_000, confidence=0.999)
    >>> report.violation, 2.0 < report.epsilon_lower < 2.1972
    (True, True)
    >>> audit(tell, 2.1973, (0, 1), samples=20_000, confidence=0.999).violation
    False
    """
    start = time.perf_counter()
    total, error = _checked_samples(samples), 1 - _checked_confidence(confidence)
    drawing = batch_of(mechanism, batch)
    claimed = read_claim(claim, mechanism)
    pairs = _checked_pairs(neighbours)
    if workers is not None and not checked_count(workers, "workers") >= 1:
        raise InvalidValue("workers", workers, "must be at least 1")
    training = min(max(total // 8, min(total // 5, _FAIR_TRAINING)), _MOST_TRAINING)
    holdout = total - 2 * training
    with Sampler(drawing, pairs, workers) as sampler:
        sampler.pilot(2 * training * len(pairs) + holdout)
        with progress_bar(progress) as share:
            sampler.check_streams(0)
            meter = _ProgressCounter(share, 2 * (2 * training * len(pairs) + holdout))
            tests = _chosen(sampler, pairs, claimed, training, meter)
            meter.expect(2 * holdout * len({test.pair for test in tests}))
            trials = [
                trial
                for pair in dict.fromkeys(test.pair for test in tests)
                for trial in _tried(sampler, [test for test in tests if test.pair == pair], holdout, meter)
            ]
    # Each test has two bounds, and all of them hold together with the confidence that was asked for.
    each = error / (2 * len(trials))
    verdicts = [_Verdict(trial, claimed, holdout, each) for trial in trials]
    best = max(verdicts, key=lambda verdict: (verdict.excess > 0, verdict.at_main, verdict.excess))
    return best.report(pairs, claimed, total, confidence, time.perf_counter() - start)


class _ProgressCounter:
    """Counts outputs and tells the share."""

    def __init__(self, share: Share, total: int) -> None:
        self._share, self._total, self._done = share, total, 0

    def expect(self, more: int) -> None:
        self._total = self._done + more

    def add(self, count: int) -> None:
        self._done += count
        self._share(min(1.0, self._done / self._total))


@dataclass(frozen=True, eq=False)
class _Trial:
    """A candidate with its holdout: hits of both sides at its own threshold and at those of its family."""

    candidate: Candidate
    hits: tuple[int, int]
    curve: NDArray[np.int64]  # 2 x thresholds

    @property
    def ordered(self) -> tuple[int, int]:
        over = self.candidate.over
        return self.hits[over], self.hits[1 - over]


def _chosen(
    sampler: Sampler, pairs: Sequence[tuple[Any, Any]], claimed: Claim, training: int, meter: _ProgressCounter
) -> list[Candidate]:
    """One candidate for the point to report and one for the whole curve, or one that serves both."""
    everything = list(range(len(claimed.points)))
    wanted = [everything, [claimed.points.index(claimed.main)]]
    best: list[Candidate | None] = [None] * len(wanted)
    silent = set()
    for pair in range(len(pairs)):
        fit = _gathered(sampler, pair, training, meter)
        silent |= _exceptions_only(fit)
        choice = _gathered(sampler, pair, training, meter)
        events = best_events(pair, choice, fitted_scores(*fit), claimed.points, wanted)
        for group, candidate in enumerate(events):
            leader = best[group]
            if candidate is not None and (leader is None or candidate.promise > leader.promise):
                best[group] = candidate
    if silent:
        rule = f"must answer at least sometimes, and every call raised {', '.join(sorted(silent))}"
        raise InvalidValue("mechanism", "...", rule, "call it once by hand with one of the neighbours")
    candidates = [candidate for candidate in best if candidate is not None]
    if len(candidates) == 2 and _same(candidates[0], candidates[1]):
        candidates = candidates[1:]
    return candidates


def _same(one: Candidate, other: Candidate) -> bool:
    def key(candidate: Candidate) -> tuple[Any, ...]:
        return candidate.pair, candidate.over, candidate.score, candidate.sign, candidate.threshold

    return key(one) == key(other)


def _gathered(sampler: Sampler, pair: int, count: int, meter: _ProgressCounter) -> tuple[Outputs, Outputs]:
    parts: tuple[list[Outputs], list[Outputs]] = ([], [])
    for side, outputs in sampler.draw(pair, count):
        parts[side].append(outputs)
        meter.add(outputs.count)
    return joined(parts[0]), joined(parts[1])


def _exceptions_only(sides: tuple[Outputs, Outputs]) -> set[str]:
    """The exceptions' names if nothing but exceptions came, else nothing: such an audit would look at nothing."""
    names: set[str] = set()
    for side in sides:
        if set(side.columns) != {"the exception", "the text of the exception"}:
            return set()
        names |= {side.names.get(int(cell), "?") for cell in np.unique(side.cells("the exception"))}
    return names


def _tried(sampler: Sampler, tests: list[Candidate], holdout: int, meter: _ProgressCounter) -> list[_Trial]:
    fields = list(dict.fromkeys(field for test in tests for field in test.score.fields))
    hits = [[0, 0] for _ in tests]
    curves = [np.zeros((2, len(test.thresholds)), dtype=np.int64) for test in tests]
    for side, outputs in sampler.draw(tests[0].pair, holdout, fields):
        for place, test in enumerate(tests):
            scores = test.score.of(outputs)
            hits[place][side] += test.hits(scores)
            ordered = np.sort(test.sign * scores[~np.isnan(scores)])
            curves[place][side] += len(ordered) - np.searchsorted(ordered, test.sign * test.thresholds)
        meter.add(outputs.count)
    return [_Trial(test, (count[0], count[1]), curve) for test, count, curve in zip(tests, hits, curves, strict=True)]


class _Verdict:
    """A trial beside the claim: the point of the claim that it contradicts most, or the one to report."""

    def __init__(self, trial: _Trial, claimed: Claim, holdout: int, error: float) -> None:
        self.trial, self.holdout, self.error = trial, holdout, error
        hits, others = trial.ordered
        self.low, _ = rate_bounds(hits, holdout, error)
        _, self.high = rate_bounds(others, holdout, error)
        main = claimed.points.index(claimed.main)
        # Both bounds hold at once for every (epsilon, delta), so looking at all points of the claim costs nothing.
        excesses = [epsilon_from_rates(self.low, self.high, d) - e for e, d in claimed.points]
        top = int(np.argmax(excesses))
        place = top if excesses[top] > 0 and not excesses[main] > 0 else main
        self.at_main = place == main and (excesses[main] > 0 or trial.candidate.point == main)
        self.epsilon, self.delta = claimed.points[place]
        self.excess = excesses[place]

    def report(
        self,
        pairs: Sequence[tuple[Any, Any]],
        claimed: Claim,
        samples: int,
        confidence: float,
        seconds: float,
    ) -> AuditReport:
        candidate = self.trial.candidate
        rate = self.trial.ordered[0] / self.holdout
        over = candidate.over
        alarms, detections = self.trial.curve[1 - over] / self.holdout, self.trial.curve[over] / self.holdout
        points = sorted({(float(a), float(1 - f)) for a, f in zip(alarms, detections, strict=True)})
        return AuditReport(
            epsilon_lower=epsilon_from_rates(self.low, self.high, self.delta),
            claimed_epsilon=self.epsilon,
            delta=self.delta,
            confidence=confidence,
            violation=bool(self.excess > 0),
            event=candidate.words,
            family=candidate.score.family,
            neighbours=pairs[candidate.pair],
            direction=_DIRECTIONS[over],
            hits=self.trial.ordered,
            holdout=self.holdout,
            samples=samples,
            seconds=seconds,
            claim=claimed.words,
            claimed_points=claimed.points,
            detectable=detectable_epsilon(rate, self.holdout, self.error, self.epsilon, self.delta),
            region=tuple(points),
            bound=(self.high, 1 - self.low),
        )


def _checked_samples(samples: int) -> int:
    count = checked_count(samples, "samples")
    if not count >= LEAST_SAMPLES:
        raise InvalidValue("samples", samples, f"must be at least {LEAST_SAMPLES}", "100,000 is a good start")
    return count


def _checked_confidence(confidence: float) -> float:
    number = checked_real(confidence, "confidence")
    if not 0 < number < 1:
        raise InvalidValue("confidence", confidence, "must be between 0 and 1", "0.95 is usual")
    return number


def _checked_pairs(neighbours: Any) -> list[tuple[Any, Any]]:
    """One pair as a tuple, or a list of pairs."""
    if isinstance(neighbours, tuple) and len(neighbours) == 2:
        return [(neighbours[0], neighbours[1])]
    pairs: list[Any] = neighbours if isinstance(neighbours, list) else []
    if not pairs or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        way_out = "write (D, D') for one pair, or [(D, D'), ...] for several"
        raise InvalidValue("neighbours", "...", "must be a pair of tables or a list of pairs", way_out)
    return [(pair[0], pair[1]) for pair in pairs]
