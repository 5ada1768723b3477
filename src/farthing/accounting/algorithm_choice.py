"""Choose the engine for a multiset of charges, and ask it.

    nothing left to price      -> closed form       (no charges, infeasible or zero target, one atom decides)
    events without a transform -> grid              (algorithms/grid_algorithm.py)
    few transcripts            -> atoms             (algorithms/atoms.py)
    epsilons on one lattice    -> lattice           (algorithms/contour.py with the lattice kernel)
    anything else              -> contour           (algorithms/contour.py with the Gaussian sandwich)

Proofs work on the epsilons themselves; estimates on their sketch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import flint
import numpy as np

from farthing.accounting.algorithms.atoms import Atoms, lattice_work
from farthing.accounting.algorithms.ball_line import BallProof, worthwhile
from farthing.accounting.algorithms.contour import (
    Estimate,
    Proof,
    estimate_line,
    prove,
    reach,
    sampling_work,
    sketched_line,
)
from farthing.accounting.algorithms.gaussian_composition import GaussianCurve
from farthing.accounting.algorithms.line_integral import Saddle, saddle_for_delta, saddle_for_loss
from farthing.accounting.charges import ComposedLoss, Leaks, joined
from farthing.accounting.inversion import Curve, least_epsilon
from farthing.accounting.lattice import Lattice
from farthing.accounting.loss_transforms import Transform
from farthing.numerics import Bounds
from farthing.numerics.bounds import down, precision, up
from farthing.privacy.events import ApproxDP, Event

if TYPE_CHECKING:
    from farthing.accounting.algorithms.grid_algorithm import GridComposition


LARGEST_HALF = 1 << 20


_LARGEST_LOSS = 1300.0


def half_sizes(transform: Transform) -> tuple[int, int] | None:
    """How many atoms each half would have after splitting evenly; None when the engine does not apply."""
    if not transform.only_responses or len(transform.epsilons) > 64:
        return None
    top, log_mass = transform.top()
    if not (top <= _LARGEST_LOSS and log_mass >= -300):  # beyond, exponentials over- or underflow
        return None
    sizes = sorted((int(n) + 1 for n in transform.weights.tolist()), reverse=True)
    left = right = 1
    for size in sizes:  # greedy: the larger ones first, each to the smaller half
        if left <= right:
            left *= size
        else:
            right *= size
    return left, right


_MANY = 4096  # distinct deltas beyond which they are summed in NumPy, with its error bound, not in balls


class Target(NamedTuple):
    """Bounds on log of what D may be; -inf is zero, and NaN in `low` marks a delta that is (maybe) infeasible."""

    low: float
    high: float

    @property
    def infeasible(self) -> bool:
        """No epsilon exists at this delta."""
        return math.isnan(self.high)


def log_survival(leaks: Leaks) -> Any:
    """A ball around log prod(1 - delta_i), at the working precision."""
    if len(leaks.deltas) > _MANY:
        terms = leaks.counts * np.log1p(-leaks.deltas)
        total = float(np.sum(terms))
        return flint.arb(total, 2.0**-45 * -total)
    return sum((int(n) * (-flint.arb(float(d))).log1p() for d, n in zip(*leaks, strict=True)), flint.arb(0))


def leak_of(leaks: Leaks) -> Bounds:
    """1 - prod(1 - delta_i)."""
    if not len(leaks.deltas):
        return Bounds(0.0, 0.0)
    with precision(128):
        leak = -log_survival(leaks).expm1()
        return Bounds(max(0.0, down(leak)), min(1.0, up(leak)), float(leak.mid()))


def target_of(leaks: Leaks, delta: float) -> Target:
    """log of 1 - (1 - delta) / prod(1 - delta_i)."""
    if not len(leaks.deltas):
        if delta == 0:
            return Target(-math.inf, -math.inf)
        return Target(math.nextafter(math.log(delta), -math.inf), math.nextafter(math.log(delta), math.inf))
    for bits in (128, 512, 2048):
        with precision(bits):
            room = -((-flint.arb(delta)).log1p() - log_survival(leaks)).expm1()
            if room > 0:
                if room.rel_accuracy_bits() > 60 or bits == 2048 or len(leaks.deltas) > _MANY:
                    return Target(down(room.log()), up(room.log()))
            elif room < 0:
                return Target(math.nan, math.nan)
            elif room.is_finite() and bits == 2048:
                high = up(room.upper().log()) if room.upper() > 0 else -math.inf
                return _exactly(leaks, delta) or Target(math.nan, high)
    return Target(math.nan, math.inf)


def _exactly(leaks: Leaks, delta: float) -> Target | None:
    """Decide in rationals whether delta is exactly the leak; None when that would take too long."""
    if int(leaks.counts.sum()) > 256:
        return None
    survival = Fraction(1)
    for leak, count in zip(*leaks, strict=True):
        survival *= (1 - Fraction(float(leak))) ** int(count)
    difference = survival - (1 - Fraction(delta))
    if difference == 0:
        return Target(-math.inf, -math.inf)
    return Target(math.nan, math.nan) if difference < 0 else None


_GOAL = 1e-7  # width of the sandwich for generic epsilons, in epsilon
_FINE_GOAL = 4.5e-10  # the same for decimals whose lattice is too fine to walk through
_MOST_WORK = 2.6e9  # factor evaluations that a proof for such decimals may take, some seconds
_QUICK_WORK = 2e7  # what a line does in no time
_WANTED_WORK = 5e8  # where it would take more, the goal is so wide that it takes this, a second or so
_TOP = 1e-13  # relative distance from the largest loss at which one atom decides


class EngineChoice(NamedTuple):
    """An engine's name and why it was chosen.

    Attributes:
        name: The name of the engine, such as "atoms", "lattice", "contour" or "grid".
        reason: Why it was chosen, in a sentence.

    >>> from farthing.accounting import compose
    >>> compose([0.1, 0.2, 0.3, 2**0.5]).engine_at(0.1).name
    'atoms'
    """

    name: str
    reason: str


@dataclass(frozen=True)
class _Solved:
    """An engine set up near one loss: its curve, its own guess of the root, and its slope there."""

    choice: EngineChoice
    log_delta: Callable[[float], Curve]
    guess: float
    slope: float


class Pricing:
    """The engines for one composed loss. Made lazily; never changed."""

    def __init__(self, loss: ComposedLoss) -> None:
        self.loss = loss
        self._latest: tuple[float, _Solved] | None = None

    # --- answers ------------------------------------------------------------------------------------------------

    def leak(self) -> Bounds:
        """1 - prod(1 - delta_i)."""
        return leak_of(self.loss.leaks)

    def epsilon_at(self, delta: float, proof: bool) -> Bounds:
        if self.loss.kinds.grid:
            bounds = (self._grid if proof else self._coarse_grid).epsilon_bounds(delta)
            return Bounds(bounds.lower, bounds.upper, bounds.estimate, proof and bounds.proven)
        target = target_of(self.loss.leaks, delta)
        short = self._closed_form(target, self.loss.transform if proof else self.loss.cheap_transform)
        if short is not None:
            return Bounds(short.lower, short.upper, short.estimate, proof)
        middle = _middle(target)
        if not proof and self._gaussian is None:
            return self._estimated(middle)
        if math.isnan(target.low):  # the leak may or may not exceed delta: only the lower end can be said
            solved = self._solve(target.high)
            lower, _ = least_epsilon(
                solved.log_delta, target.high, target.high, solved.guess, solved.slope, self.loss.top
            )
            return Bounds(lower, math.inf)
        solved = self._solve(middle)
        top = self.loss.top * (1 + self.loss.transform.top_error)
        lower, upper = least_epsilon(solved.log_delta, target.low, target.high, solved.guess, solved.slope, top)
        lower = max(lower, _least_by_top(self.loss.transform, target))
        estimate = math.nan if self._gaussian is not None else max(solved.guess, 0.0)  # NaN: the middle
        return Bounds(min(lower, upper), max(lower, upper), estimate, proof)

    def delta_at(self, epsilon: float, proof: bool) -> Bounds:
        if self.loss.kinds.grid:
            bounds = (self._grid if proof else self._coarse_grid).delta_bounds(epsilon)
            return Bounds(bounds.lower, bounds.upper, bounds.estimate, proof and bounds.proven)
        leak = self.leak()
        transform = self.loss.transform
        if (not transform.terms and not transform.gaussian) or epsilon >= self.loss.top * (1 + transform.top_error):
            return Bounds(leak.lower, leak.upper, leak.estimate, proof)
        top, log_mass = transform.top()
        slack = transform.top_error * top
        if _above_second_loss(transform, slack) > -math.expm1(epsilon - top - 2 * slack):
            near, far = max(0.0, top - slack - epsilon), top + slack - epsilon
            wobble = 2.0**-44 * (1 + abs(log_mass))
            curve = Curve(
                math.log(-math.expm1(-near)) + log_mass - wobble if near > 0 else -math.inf,
                math.log(-math.expm1(-far)) + log_mass + wobble,
            )
        elif epsilon >= top - slack:  # too close to the largest loss to tell from it
            curve = Curve(-math.inf, math.log(2 * slack))
        elif proof or self._gaussian is not None:
            curve = self._solve_at(epsilon).log_delta(epsilon)
        else:
            line = self._estimate_line(saddle_for_loss(self.loss.cheap_transform, epsilon))
            value = line.log_delta(epsilon)
            curve = Curve(value - line.margin, value + line.margin)
            # Nothing was learned: ask the proof after all.
            if not (math.isfinite(value) and line.margin < 0.1):
                curve = self._solve_at(epsilon).log_delta(epsilon)
        curve = Curve(curve.low, min(curve.high, math.log(top + slack - epsilon)))  # 1 - exp(-v) <= v
        low, high = math.exp(curve.low) * (1 - 2.0**-46), math.exp(curve.high) * (1 + 2.0**-46)
        high = math.nextafter(high, math.inf) if curve.high > -math.inf else 0.0  # never 0 by underflow
        middle = math.exp((max(curve.low, -745.0) + curve.high) / 2)
        kept_low, kept_high = (1 - leak.upper) * (1 - 2.0**-50), min(1.0, (1 - leak.lower) * (1 + 2.0**-50))
        return Bounds(
            max(0.0, math.nextafter(leak.lower + kept_low * low, -math.inf)),
            min(1.0, math.nextafter(leak.upper + kept_high * high, math.inf)),
            leak.estimate + (1 - leak.estimate) * middle,
            proof,
        )

    def renyi_at(self, alpha: float) -> Bounds:
        if len(self.loss.leaks.deltas):
            return Bounds(math.inf, math.inf)
        if self.loss.kinds.grid:
            return self._grid.renyi(alpha)
        k = self.loss.transform.cumulants(alpha - 1)
        value, error = k.value / (alpha - 1), k.error / (alpha - 1)
        return Bounds(max(0.0, value - error), value + error, max(0.0, value))

    def engine_at(self, delta: float) -> EngineChoice:
        if self.loss.kinds.grid:
            return EngineChoice("grid", "some events have no transform in closed form; every loss is put on one grid.")
        target = target_of(self.loss.leaks, delta)
        if self._closed_form(target, self.loss.transform) is not None:
            return EngineChoice("closed form", self._why_closed_form(target))
        return self._solve(_middle(target)).choice

    # --- closed forms -------------------------------------------------------------------------------------------

    def _closed_form(self, target: Target, transform: Transform) -> Bounds | None:
        """The answer where no curve is needed."""
        if target.infeasible:
            return Bounds(math.inf, math.inf)
        if not transform.terms and not transform.gaussian:
            return Bounds(0.0, 0.0) if not math.isnan(target.low) else Bounds(0.0, math.inf)
        top, log_mass = transform.top()
        if target.high == -math.inf:
            slack = transform.top_error * top
            return Bounds(max(0.0, top - slack), top + slack, top) if math.isfinite(top) else Bounds(math.inf, math.inf)
        slack = transform.top_error * top
        ratio = math.exp(min(target.high - log_mass, 0.0))
        if ratio < _above_second_loss(transform, slack) and not math.isnan(target.low):
            off = target.high - target.low + 2.0**-44 * (1 + abs(log_mass))
            wide = slack + 1.01 * off * ratio / (1 - ratio)
            x = top + math.log1p(-ratio * math.exp((target.low - target.high) / 2))
            return Bounds(max(0.0, x - wide), max(0.0, x + wide), max(0.0, x))
        # D(0) <= 1 - exp(-top) <= top: with so little to lose, no epsilon is needed.
        if math.log(top) + 2.0**-40 <= target.low:
            return Bounds(0.0, 0.0)
        # D(x) >= mass * (1 - exp(x - top)): within target / mass of the largest loss, one atom decides.
        if target.high - log_mass < math.log(_TOP):
            below = 2 * math.exp(target.high - log_mass)
            upper = top + slack if not math.isnan(target.low) else math.inf
            return Bounds(max(0.0, top - slack - below), upper, min(top, upper))
        return None

    def _why_closed_form(self, target: Target) -> str:
        if target.infeasible:
            return "the charges leak more than this delta, so no epsilon exists."
        if not self.loss.transform.terms and not self.loss.transform.gaussian:
            return "nothing is lost."
        if self.loss.transform.gaussian:
            return "Gaussian noise has no finite epsilon at delta = 0."
        return "delta is so small that only the largest loss matters, and the epsilons add up."

    # --- estimates ----------------------------------------------------------------------------------------------

    def _estimate_line(self, saddle: Saddle) -> Estimate:
        loss = self.loss
        if loss.sketched:
            sampled_epsilons = loss.sampled_epsilons[:0] if loss.calm else loss.sampled_epsilons
            line = sketched_line(loss.sketch_transform, saddle, loss.sketch, sampled_epsilons)
            if line.margin < 1e-6:
                loss.calm = True
                return line
            saddle = Saddle(saddle.c, saddle.x, loss.transform.cumulants(saddle.c))
        return estimate_line(loss.transform, saddle, loss.quick_lattice)

    def _estimated(self, log_target: float) -> Bounds:
        if self.loss.charges.k > 26 or not self._atoms_fit():
            line = self._estimate_line(saddle_for_delta(self.loss.cheap_transform, log_target))
            if line.margin < 1e-9 or not self._atoms_fit():
                x = line.root(log_target)
                margin = line.margin / max(line.slope(x), 1e-12) + 4e-16 * abs(x)
                return _estimated(x, margin)
        x = self._root_by_atoms(log_target)
        return _estimated(x, 1e-12 * (1 + x))

    # --- proofs -------------------------------------------------------------------------------------------------

    @cached_property
    def _grid(self) -> GridComposition:
        # Imported here because most compositions never need it.
        from farthing.accounting.algorithms.grid_algorithm import compose_on_grid

        return compose_on_grid(self._grid_items())

    @cached_property
    def _coarse_grid(self) -> GridComposition:
        """A grid for estimates: its interval is wide, and is the margin."""
        from farthing.accounting.algorithms.grid_algorithm import compose_on_grid

        return compose_on_grid(self._grid_items(), tolerance=1e-3, most_cells=1 << 14)

    def _grid_items(self) -> list[tuple[Event, int]]:
        chunk = joined(self.loss.charges.chunks)
        pairs: dict[tuple[float, float], int] = {}
        for e, d, n in zip(chunk.epsilons.tolist(), chunk.deltas.tolist(), chunk.counts.tolist(), strict=True):
            pairs[e, d] = pairs.get((e, d), 0) + n
        return [*self.loss.charges.events.items(), *((ApproxDP(e, d), n) for (e, d), n in pairs.items())]

    def _atoms_fit(self) -> bool:
        if self.loss.lattice is not None and self.loss.charges.k > 40:
            return False
        sizes = half_sizes(self.loss.transform)
        return sizes is not None and max(sizes) <= LARGEST_HALF

    @cached_property
    def _atoms(self) -> Atoms:
        return Atoms.of(self.loss.transform)

    def _root_by_atoms(self, log_target: float) -> float:
        return self._atoms.root(log_target, saddle_for_delta(self.loss.transform, log_target).x)

    def _solve(self, log_target: float) -> _Solved:
        """The engine for the root of log D = log_target; the latest one is kept, as it is often asked about again."""
        if self._latest is None or self._latest[0] != log_target:
            self._latest = log_target, self._solved_for(log_target)
        return self._latest[1]

    def _solved_for(self, log_target: float) -> _Solved:
        if self._gaussian is not None:
            saddle = saddle_for_delta(self.loss.transform, log_target)
            return self._solved_by_gaussian(max(saddle.x, 0.0), saddle.c)
        if self._atoms_fit():
            return self._solved_by_atoms(self._root_by_atoms(log_target))
        saddle = self._saddle_for_delta(log_target)
        for margin in (1.05, 1.5):  # the saddle is only near the answer
            depths = self._depths(saddle, margin)
            root = -math.inf if depths is None else depths.root(log_target, saddle.x)
            if depths is not None and root > depths.lowest + 16 * depths.blur:
                return self._solved_by_depths(depths, root)
        return self._solved_on_line(saddle, log_target)

    def _depths(self, saddle: Saddle, margin: float) -> Atoms | None:
        """The atoms above the saddle's loss counted on the lattice, where a line would take much longer."""
        transform, lattice = self.loss.transform, self.loss.lattice
        if lattice is None:
            return None
        lowest = max(0.0, self.loss.top - margin * (self.loss.top - saddle.x))
        work = lattice_work(transform, lattice, lowest)
        furthest = min(math.pi / lattice.span, reach(_FINE_GOAL, saddle.c))
        line_work = sampling_work(transform, saddle, furthest)
        if line_work < _QUICK_WORK or not work <= min(_WANTED_WORK, 2 * line_work):
            return None
        return Atoms.on_lattice(transform, lattice, lowest)

    def _solved_by_depths(self, depths: Atoms, x: float) -> _Solved:
        assert self.loss.lattice is not None
        step = self.loss.lattice.step
        choice = EngineChoice("lattice", f"every epsilon is a whole multiple of {step:.12g}; equal losses are counted.")
        return _Solved(choice, depths.log_delta, x, depths.slope(x))

    def _saddle_for_delta(self, log_target: float) -> Saddle:
        """Found on the cheap transform (any line is valid), then evaluated on the true one."""
        saddle = saddle_for_delta(self.loss.cheap_transform, log_target)
        if saddle.x < 0:
            saddle = saddle_for_loss(self.loss.cheap_transform, 0.0)
        return Saddle(saddle.c, saddle.x, self.loss.transform.cumulants(saddle.c))

    def _solve_at(self, x: float) -> _Solved:
        """The engine near the loss x."""
        if self._gaussian is not None:
            return self._solved_by_gaussian(x, 1.0)
        if self._atoms_fit():
            return self._solved_by_atoms(x)
        c = saddle_for_loss(self.loss.cheap_transform, x).c
        saddle = Saddle(c, x, self.loss.transform.cumulants(c))
        depths = self._depths(saddle, 1 + 2.0**-30)
        return self._solved_on_line(saddle, None) if depths is None else self._solved_by_depths(depths, x)

    @cached_property
    def _gaussian(self) -> GaussianCurve | None:
        """The closed form, when there is nothing but Gaussian noise."""
        # Asked first, because the transform sorts all charges, which an estimate can do without.
        if not self.loss.kinds.gaussian:
            return None
        transform = self.loss.transform
        return GaussianCurve.of(self.loss.kinds.gaussian) if transform.gaussian and not transform.terms else None

    def _solved_by_gaussian(self, x: float, slope: float) -> _Solved:
        assert self._gaussian is not None
        choice = EngineChoice("gaussian", "Gaussian noises add up to one, whose curve is known in closed form.")
        return _Solved(choice, self._gaussian.log_delta, x, slope)

    def _solved_by_atoms(self, x: float) -> _Solved:
        slope = self._atoms.slope(x)
        choice = EngineChoice(
            "atoms", f"{self.loss.charges.k} charges have few enough transcripts to enumerate by halves."
        )
        return _Solved(choice, self._atoms.log_delta, x, slope)

    def _solved_on_line(self, saddle: Saddle, log_target: float | None) -> _Solved:
        # The sandwich is (c + 1) mu^2 wide in epsilon and c (c + 1) mu^2 in log delta: whichever was asked for.
        # Small charges want a goal in proportion.
        transform, lattice, most = self.loss.transform, self.loss.lattice, 5e5 if self.loss.lattice is None else 2e6
        scale = min(1.0, self.loss.top)
        goal = _GOAL * scale
        if log_target is None:
            goal /= min(saddle.c, 1.0)
        if lattice is not None:
            fine, period = reach(_FINE_GOAL, saddle.c), math.pi / lattice.span
            most_work = sampling_work(transform, saddle, min(period, fine))
            if period > fine or most_work > _MOST_WORK:
                # Walking through one period would take longer than the sandwich, which is as narrow as work allows.
                lattice, most = None, 4e6
                excess = most_work / _WANTED_WORK if most_work > _MOST_WORK else 1.0
                goal = min(excess**2 * _FINE_GOAL * scale, goal)
        proof = prove(transform, saddle, lattice, goal, most=most)
        line = proof.estimate()
        guess = saddle.x if log_target is None else line.root(log_target, saddle.x)
        slope = line.slope(guess)
        choice = self._line_choice(lattice)
        # Balls where they are cheap, and for lattices where rounding would be all that widens the answer.
        allowed = math.inf if self.loss.lattice is None else 2e-10 * (slope if log_target is not None else 100.0)
        if worthwhile(proof, 4000) or (worthwhile(proof, 4e5) and _rounding(proof, guess) > allowed):
            balls = BallProof.of(proof, lattice, self.loss.exact)
            return _Solved(choice, _off_lattice(balls.log_delta, lattice, self.loss.top), guess, slope)
        return _Solved(choice, _off_lattice(proof.log_delta, lattice, self.loss.top), guess, slope)

    def _line_choice(self, lattice: Lattice | None) -> EngineChoice:
        if lattice is not None:
            reason = f"every epsilon is a whole multiple of {lattice.step:.12g}; nothing is discretised."
            return EngineChoice("lattice", reason)
        if self.loss.lattice is not None:
            start = f"the epsilons' lattice of step {self.loss.lattice.step:.3g} is too fine to enumerate"
        else:
            factors = self.loss.transform.terms + bool(self.loss.transform.gaussian)
            start = f"{factors:,} distinct factors share no lattice"
        return EngineChoice("contour", f"{start}; a Gaussian sandwich bounds the contour integral.")


def _middle(target: Target) -> float:
    """The target's best single value: its upper end where the lower one is not known."""
    return target.high if math.isnan(target.low) else (max(target.low, -1e300) + target.high) / 2


def _estimated(x: float, margin: float) -> Bounds:
    x = max(x, 0.0)
    return Bounds(max(0.0, x - margin), x + margin, x, proven=False)


def _above_second_loss(transform: Transform, slack: float) -> float:
    """D at the second largest loss over the mass of the largest; 0 when the largest has company.

    Above the second largest loss D(x) = mass * (1 - exp(x - top)) exactly, and a ratio below this is reached there.
    """
    if transform.gaussian or len(transform.laplace) or len(transform.ranges):
        return 0.0
    if len(transform.weights) and not transform.weights.min() >= 1:
        return 0.0
    smallest = np.concatenate((transform.epsilons, transform.stepped.rates)).min()
    gap = 2 * float(smallest) * (1 - 2.0**-50) - 4 * slack
    return min(-math.expm1(-gap) * (1 - 2.0**-40), 1 - 1e-6) if gap > 0 else 0.0


def _least_by_top(transform: Transform, target: Target) -> float:
    """A lower bound by the largest loss alone: D(x) >= mass * (1 - exp(x - top)) wherever x is."""
    top, log_mass = transform.top()
    ratio = math.exp(min(0.0, target.high - log_mass + 2.0**-44 * (1 + abs(log_mass)))) if log_mass > -math.inf else 1.0
    if not ratio < 1:
        return 0.0
    return max(0.0, top * (1 - transform.top_error) + math.log1p(-ratio) - 2.0**-50)


def _rounding(proof: Proof, x: float) -> float:
    """How far apart the two ends are for reasons of floating point alone."""
    curve = proof.log_delta(x)
    return curve.high - proof.line.log_delta(x) if math.isfinite(curve.high) else math.inf


def _off_lattice(log_delta: Callable[[float], Curve], lattice: Lattice | None, top: float) -> Callable[[float], Curve]:
    """Keep a safe distance from lattice points, where rounding could count a loss on the wrong side of x."""
    if lattice is None:
        return log_delta
    span = lattice.span
    near = 2.0**-46 * (1 + abs(top))

    def nudged(x: float) -> Curve:
        position = (top - x) / span
        if abs(position - round(position)) * span > near or 4 * near > span:
            return log_delta(x)
        return Curve(log_delta(x + 2 * near).low, log_delta(x - 2 * near).high)

    return nudged
