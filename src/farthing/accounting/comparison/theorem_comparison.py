"""The optimum beside every theorem, as a value."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.accounting import theorems
from farthing.accounting.compose import Composition, compose
from farthing.accounting.event_price import price_of
from farthing.numerics import Bounds
from farthing.numerics.bounds import as_typed, ceiling, rounded_up
from farthing.privacy import ApproxDP, Event, Sampled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Charges:
    """(epsilon, delta, count) rows as arrays, and the remaining events.

    Attributes:
        epsilons: The epsilon of each row.
        deltas: The delta of each row.
        counts: How often each row is charged.
        events: The remaining events, each with its count.

    >>> from farthing.privacy import GaussianNoise
    >>> charges = charges_of_pairs([(ApproxDP(0.1), 100), (GaussianNoise(4.0), 10)])
    >>> charges.k, charges.epsilons, charges.events
    (110, array([0.1]), ((GaussianNoise(noise_multiplier=4.0), 10),))
    """

    epsilons: Floats
    deltas: Floats
    counts: Integers
    events: tuple[tuple[Event, int], ...] = ()

    @property
    def k(self) -> int:
        """How many mechanisms run, repetitions included."""
        counts: list[int] = self.counts.tolist()
        return sum(counts) + sum(count for _, count in self.events)

    def without_leaks(self) -> Charges:
        """The same charges with every delta of a guarantee set to 0."""
        return Charges(self.epsilons, np.zeros_like(self.deltas), self.counts, self.events)

    def composition(self) -> Composition:
        """The composition of all pairs and events."""
        composed = compose(self.epsilons, self.deltas, self.counts)
        if not self.events:
            return composed
        return composed.plus([event for event, _ in self.events], counts=[count for _, count in self.events])


def charges_of_pairs(pairs: Sequence[tuple[Event, int]]) -> Charges:
    """Events with counts, the plain guarantees among them as arrays.

    Args:
        pairs: Events, each with its count.

    Returns:
        The charges.

    >>> charges_of_pairs([(ApproxDP(1.0), 2)])
    Charges(epsilons=array([1.]), deltas=array([0.]), counts=array([2]), events=())
    """
    rows = [(event.epsilon, event.delta, count) for event, count in pairs if isinstance(event, ApproxDP)]
    return Charges(
        np.array([row[0] for row in rows], dtype=np.float64),
        np.array([row[1] for row in rows], dtype=np.float64),
        np.array([row[2] for row in rows], dtype=np.int64),
        tuple((event, count) for event, count in pairs if not isinstance(event, ApproxDP)),
    )


def joined(parts: Sequence[Charges]) -> Charges:
    """Several lists of charges as one.

    Args:
        parts: The lists.

    Returns:
        One list of all their charges.

    >>> joined([charges_of_pairs([(ApproxDP(0.1), 1)]), charges_of_pairs([(ApproxDP(0.3), 2)])]).k
    3
    """
    empty = np.zeros(0)
    return Charges(
        np.concatenate([empty, *(part.epsilons for part in parts)]),
        np.concatenate([empty, *(part.deltas for part in parts)]),
        np.concatenate([empty.astype(np.int64), *(part.counts for part in parts)]),
        tuple(pair for part in parts for pair in part.events),
    )


MOST_PRICED = 200  # distinct noises; pricing each of more would take longer than the optimum itself


@dataclass(frozen=True)
class Guarantees:
    """The charges as the theorems see them; `shared` counts the noises that were given a share of delta."""

    epsilons: Floats
    deltas: Floats
    counts: Integers
    shared: int = 0


def guarantee_of(event: Event) -> tuple[float, float] | None:
    """(epsilon, delta) of one event, rounded up; None where epsilon is infinite unless delta is given away.

    >>> from farthing.privacy import GaussianNoise, LaplaceNoise
    >>> guarantee_of(LaplaceNoise(4.0)), guarantee_of(GaussianNoise(4.0))
    ((0.25, 0.0), None)
    """
    price = price_of(event)
    return None if price.epsilon is None else (rounded_up(price.epsilon), rounded_up(price.leak))


def guarantees_of(charges: Charges, delta: float, share: float) -> Guarantees | None:
    """Every charge as a guarantee; noise without a pure one takes an equal part of `share * delta`.

    None when no part of delta can be given away, or when there are too many kinds of noise to price each.

    >>> from farthing.accounting.comparison import charges_of_pairs
    >>> from farthing.privacy import ApproxDP, GaussianNoise, LaplaceNoise
    >>> charges = charges_of_pairs([(ApproxDP(0.1), 9), (LaplaceNoise(2.0), 1), (GaussianNoise(4.0), 5)])
    >>> seen = guarantees_of(charges, 1e-6, share=0.5)
    >>> seen.counts, seen.shared, seen.deltas[-1] <= 1e-7
    (array([9, 1, 5]), 5, np.True_)
    """
    guarantees = [(guarantee_of(event), event, count) for event, count in charges.events]
    open_ended = [(event, count) for guarantee, event, count in guarantees if guarantee is None]
    shared = sum(count for _, count in open_ended)
    part = math.nextafter(share * delta / shared, 0.0) if shared else 0.0
    if shared and (not part > 0 or len(open_ended) > MOST_PRICED):
        return None
    rows = [
        (guarantee or (compose([event]).epsilon_at(part).upper, part), count) for guarantee, event, count in guarantees
    ]
    return Guarantees(
        np.concatenate([charges.epsilons, np.array([pair[0] for pair, _ in rows], dtype=np.float64)]),
        np.concatenate([charges.deltas, np.array([pair[1] for pair, _ in rows], dtype=np.float64)]),
        np.concatenate([charges.counts, np.array([count for _, count in rows], dtype=np.int64)]),
        shared,
    )


# Of the target delta, what is set aside for noise that has no pure guarantee. Each theorem is shown at its best share:
# half leaves the other half for its own slack, all suits the plain sum, which has none.
SHARES = (0.5, 1.0)

_USUAL_ORDERS = math.log(63)  # alpha up to 64
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Line:
    """One theorem: its epsilon, and how much more that is than the optimum.

    Attributes:
        name: The theorem.
        epsilon: The epsilon that it gives.
        source: Where it stands.
        applies: Whether it says anything about these charges.
        note: Why not, if it does not.
        waste: How much more than the optimum.
        waste_percent: The same as a part of the optimum.
    """

    name: str
    epsilon: float
    source: str
    applies: bool
    note: str
    waste: float | None = None
    waste_percent: float | None = None


@dataclass(frozen=True)
class Comparison:
    """The optimum, how it was proven, and what every theorem says.

    Attributes:
        k: How many mechanisms run.
        delta: The delta of the whole.
        delta_is_default: Whether nobody asked for this delta.
        optimal: The optimum.
        reason: Why there is no optimum, if there is none.
        engine: Which engine proved it.
        engine_reason: Why that one.
        lines: What every theorem says.
        at_epsilon: An epsilon that was asked about, and its delta.
        notes: What to know about the numbers.
        seconds: How long the optimum took.
        seconds_in_all: How long everything took.
    """

    k: int
    delta: float
    delta_is_default: bool
    optimal: Bounds
    reason: str
    engine: str
    engine_reason: str
    lines: tuple[Line, ...]
    at_epsilon: tuple[float, Bounds] | None
    notes: tuple[str, ...]
    seconds: float
    seconds_in_all: float


def comparison_of(
    charges: Charges,
    delta: float,
    *,
    epsilon: float | None = None,
    proof: bool = True,
    delta_is_default: bool = False,
) -> Comparison:
    """Compose `charges`, ask every theorem the same question, and say what each wastes.

    Args:
        charges: What is composed.
        delta: The delta of the whole.
        epsilon: An epsilon whose delta is wanted too.
        proof: Whether the optimum must be proven.
        delta_is_default: Whether nobody asked for this delta.

    Returns:
        The optimum and one line for each theorem.

    Raises:
        InvalidValue: If `delta` or `epsilon` is out of range.

    >>> from farthing.accounting.comparison import charges_of_pairs
    >>> from farthing.privacy import ApproxDP
    >>> hundred = comparison_of(charges_of_pairs([(ApproxDP(0.1), 100)]), 1e-6)
    >>> round(hundred.optimal.upper, 6), hundred.k, len(hundred.lines) > 3
    (4.774568, 100, True)
    """
    start = time.perf_counter()
    composition = charges.composition()
    optimal = composition.epsilon_at(delta, proof=proof)
    seconds = time.perf_counter() - start
    at_epsilon = None if epsilon is None else (epsilon, composition.delta_at(epsilon, proof=proof))
    engine, why = ("estimate", "no proof was requested") if not proof else _engine(composition, delta)
    lines, notes = _lines(charges, delta, optimal)
    if charges.events:
        lines += (_renyi_of_own_noise(charges, composition.leak.upper, delta, optimal),)
    return Comparison(
        k=composition.k,
        delta=delta,
        delta_is_default=delta_is_default,
        optimal=optimal,
        reason=_why_infinite(composition, delta, optimal),
        engine=engine,
        engine_reason=why.rstrip("."),
        lines=lines,
        at_epsilon=at_epsilon,
        notes=notes,
        seconds=seconds,
        seconds_in_all=time.perf_counter() - start,
    )


def _lines(charges: Charges, delta: float, optimal: Bounds) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    best: dict[str, Line] = {}
    shared = 0
    for share in SHARES:
        guarantees = guarantees_of(charges, delta, share)
        if guarantees is None:
            continue
        shared = guarantees.shared
        rows = theorems.table(guarantees.epsilons, guarantees.deltas, guarantees.counts, delta)
        if charges.events:
            rows.append(_class_row(guarantees, delta))
        for row in rows:
            line = _line(row.name, row.epsilon, row.source, row.applies, row.note, optimal)
            if row.name not in best or _beats(line, best[row.name]):
                best[row.name] = line
        if not shared:
            break  # nothing was shared out, so the share makes no difference
    if not best:
        return (), ("The theorems are left out: they need a guarantee for each noise, and here there is none.",)
    if not shared:
        return tuple(best.values()), ()
    note = (
        f"The theorems use only an (epsilon, delta) guarantee of each noise: {shared:,} Gaussian-type "
        f"{'noise is' if shared == 1 else 'noises are'} charged at an even share of delta each."
    )
    return tuple(best.values()), (note,)


def _class_row(guarantees: Guarantees, delta: float) -> theorems.Row:
    """The optimum when only the guarantees are known: what knowing the noise saves is the difference."""
    # Nobody charges this line, so it is not worth the time of a second proof.
    worst = compose(guarantees.epsilons, guarantees.deltas, guarantees.counts).epsilon_at(delta, proof=False)
    return theorems.Row(
        "optimal, noise unknown", worst.upper, "MV16 Theorem 1.5", True, "worst of the class, estimated"
    )


def _renyi_of_own_noise(charges: Charges, leak: float, delta: float, optimal: Bounds) -> Line:
    """What a Renyi accountant that knows the noise would say: the usual way to price Gaussian noise."""
    name, source = "Renyi, noise known", "CKS20 Proposition 12"
    # Leaks are paid first: (delta - leak) / (1 - leak) is left, and delta - leak is less.
    slack = math.nextafter(delta - leak, -math.inf) if leak else delta
    if not slack > 0:
        return Line(name, math.inf, source, False, "nothing of delta is left")
    composition = charges.without_leaks().composition()

    # Divergences of sampled noise take time in proportion to their order, so there the usual orders must do.
    top = _USUAL_ORDERS if any(isinstance(event, Sampled) for event, _ in charges.events) else math.inf

    def price(log_order: float) -> float:
        if log_order > top:
            return math.inf
        alpha = 1 + math.exp(log_order)
        divergence = composition.renyi_at(alpha).upper
        return theorems.epsilon_of_renyi_improved(alpha, divergence, slack) if divergence < math.inf else math.inf

    # Every order gives a valid bound, so the search only has to be good. For Gaussian noise the best order is known in
    # terms of the optimum; a few golden sections around it serve the other kinds.
    root = math.sqrt(2 * math.log(1 / slack))
    reach = math.sqrt(root**2 + 2 * optimal.upper) - root
    if not 0 < reach < math.inf:
        return Line(name, math.inf, source, False, "the optimum is 0 or infinite")
    epsilon = min(_least_nearby(price, min(top, math.log(root / reach))), _at_order_infinity(charges))
    notes = ("the leaks are paid first" if leak else "", "orders up to 64" if math.isfinite(top) else "")
    return _line(name, epsilon, source, True, "; ".join(filter(None, notes)), optimal)


def _at_order_infinity(charges: Charges) -> float:
    """The sum of the pure epsilons, infinite when a noise has none."""
    guarantees = guarantees_of(charges.without_leaks(), 0.0, share=0.0)
    return (
        math.inf if guarantees is None else theorems.basic_composition(guarantees.epsilons, counts=guarantees.counts)[0]
    )


def _least_nearby(price: Callable[[float], float], place: float, sections: int = 6) -> float:
    """The least value met while walking downhill from `place` in unit steps, then in golden sections."""
    here, (step, there) = (
        price(place),
        min(((step, price(place + step)) for step in (-1.0, 1.0)), key=lambda neighbour: neighbour[1]),
    )
    while there < here and abs(place) < 30:
        place, here, there = place + step, there, price(place + 2 * step)
    best, low, high = here, place - 1, place + 1
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = price(left), price(right)
    for _ in range(sections):
        best = min(best, at_left, at_right)
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = price(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = price(right)
    return min(best, at_left, at_right)


def _line(name: str, epsilon: float, source: str, applies: bool, note: str, optimal: Bounds) -> Line:
    if not applies or math.isinf(optimal.upper):
        return Line(name, epsilon, source, applies, note)
    waste = max(0.0, epsilon - optimal.upper)
    percent = 100 * waste / optimal.upper if optimal.upper > 0 else None
    return Line(name, epsilon, source, applies, note, waste, percent)


def _beats(line: Line, other: Line) -> bool:
    return line.applies and (not other.applies or line.epsilon < other.epsilon)


def _engine(composition: Composition, delta: float) -> tuple[str, str]:
    choice = composition.engine_at(delta)
    return choice.name, choice.reason


def _why_infinite(composition: Composition, delta: float, optimal: Bounds) -> str:
    """Why no epsilon exists at `delta`, and which delta would do; empty when one exists."""
    if not math.isinf(optimal.upper):
        return ""
    leak = composition.leak.upper
    if delta < leak:
        return (
            f"the leaks compose to 1 - prod(1 - delta_i) = {ceiling(leak)}, more than delta = {as_typed(delta)}; "
            f"the least feasible delta is {ceiling(leak)}"
        )
    return f"noise of Gaussian type has none at delta = {as_typed(delta)}; choose a larger delta"
