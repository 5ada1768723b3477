"""A design as arrays: what each slot's noise does to the errors and to the cost, for all slots at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.planner.planning_problem import Design
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
)
from farthing.statistics.measurements import KINDS, WIDE_SIGMA, Noise, Slot

Floats = NDArray[np.float64]

REAL_LAPLACE = 2.0**44
"""A number of steps so large that discrete Laplace noise is real Laplace noise to every digit."""


def laplace_log_moment(z: Any, epsilon: Any, steps: Any) -> Any:
    """K(z) of discrete Laplace noise on a number that moves by `steps`; at one step, of randomized response.

    >>> float(laplace_log_moment(1.0, 0.5, REAL_LAPLACE))  # ((z+1) exp(z e) + z exp(-(z+1) e)) / (2z+1), logged
    0.200...
    """
    rate = epsilon / steps
    turn = -(2 * z + 1) * rate
    ends = (1 + np.exp(turn * steps)) / (1 + np.exp(-rate))
    between = np.tanh(rate / 2) * np.exp(turn) * np.expm1(turn * (steps - 1)) / np.expm1(turn)
    return z * epsilon + np.log(ends + between)


def range_log_moment(z: Any, epsilon: Any) -> Any:
    """K(z) of a choice by exponential weights: sinh((z + 1/2) e) / ((2z + 1) sinh(e / 2)), logged.

    >>> float(range_log_moment(1.0, 0.5))
    0.081...
    """
    s = 2 * z + 1
    return z * epsilon + np.log(np.expm1(-s * epsilon) / (s * np.expm1(-epsilon)))


@dataclass(frozen=True, eq=False)
class Losses:
    """The noises of a plan as the accountant will see them, sorted by kind.

    `gaussian` is the sum of 1 / noise_multiplier^2; `laplace` and `steps` are the epsilons and sensitivities of Laplace
    noises; `ranges` and `counts` the epsilons and multiplicities of choices by exponential weights.
    """

    gaussian: float
    laplace: Floats
    steps: Floats
    ranges: Floats
    counts: Floats

    def log_moment(self, z: Any) -> Any:
        """K of all together at each z (an array of one dimension)."""
        total = z * (z + 1) * (self.gaussian / 2)
        column = z[:, None]
        if len(self.laplace):
            total = total + laplace_log_moment(column, self.laplace, self.steps).sum(axis=1)
        if len(self.ranges):
            total = total + (self.counts * range_log_moment(column, self.ranges)).sum(axis=1)
        return total

    def pull(self, saddle: float) -> float:
        """How fast the Renyi divergence of order saddle + 1 grows with the logarithm of a common factor."""
        if np.isinf(saddle):
            return self.pure
        turned = 1 + 1e-20j
        total = (saddle + 1) * self.gaussian
        if len(self.laplace):
            moved = laplace_log_moment(saddle, self.laplace * turned, self.steps).imag
            total += float(moved.sum()) / (1e-20 * saddle)
        if len(self.ranges):
            moved = self.counts * range_log_moment(saddle, self.ranges * turned).imag
            total += float(moved.sum()) / (1e-20 * saddle)
        return total

    @property
    def pure(self) -> float:
        """The sum of the epsilons; infinite with Gaussian noise."""
        if self.gaussian > 0:
            return float("inf")
        return float(self.laplace.sum() + (self.counts * self.ranges).sum())


LAPLACE, GAUSSIAN, EXPONENTIAL = 0, 1, 2
"""Places of the kinds in arrays, in the order of `release.noise.KINDS`."""

GRID = np.exp(np.linspace(math.log(1e-6), math.log(50.0), 321))
"""The epsilons at which the errors of choices by exponential weights are tabulated (between: cubic, in logarithms)."""

_COARSE = GRID[::8]
_FAINTEST = 1e-3  # a slot that an output reads matters at least this much of its slot that matters most
_LARGEST_EPSILON = 50.0  # what mechanisms accept
_NARROWEST = 4.5  # least (sigma^2 - narrowing) of a vector of Gaussian noise, in squared steps: 8 is refused


@dataclass(frozen=True, eq=False)
class Model:
    """Arrays over the slots of a design; made once for each design.

    `linear[i, s]` is the mean over cells of output i's squared relative error for each squared step of noise variance
    of slot s, and `driving` the same with a floor: to first order a mean does not depend on its count where the
    expected sum is 0, but it does to second. `curves[i]` is (slot, the same mean on GRID) for an output that is not
    linear. The strength of a slot is epsilon (Laplace, exponential) or l2 sensitivity / tau (Gaussian): the larger, the
    dearer. A choice has `parts` equal ones, which share `chosen` of its strength; the rest goes to Laplace noise on
    numbers that move by `beside` steps.
    """

    slots: tuple[Slot, ...]
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    allowed: NDArray[np.bool_]
    linear: Floats
    driving: Floats
    curves: Mapping[int, tuple[int, Floats]]
    l1: Floats
    steps: Floats
    l2: Floats
    narrowing: Floats
    wide: Floats
    parts: Floats
    chosen: Floats
    beside: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, design: Design) -> Model:
        """Ask every slot for its events and every output for its coefficients."""
        slots = tuple(design.slots)
        names = tuple(slot.name for slot in slots)
        place = {name: number for number, name in enumerate(names)}
        linear = np.zeros((len(design.outputs), len(slots)))
        read = np.zeros(linear.shape, dtype=bool)
        curves: dict[int, tuple[int, Floats]] = {}
        for row, output in enumerate(design.outputs):
            reference = np.asarray(output.reference, dtype=float)
            read[row, [place[slot.name] for slot in output.slots]] = True
            for name, coefficients in output.coefficients.items():
                linear[row, place[name]] = float(np.mean(np.asarray(coefficients) / reference**2))
            if not output.coefficients and output.slots:
                means = [float(np.mean(output.variance_curve(e) / reference**2)) for e in _COARSE.tolist()]
                curves[row] = place[output.slots[0].name], _smooth(np.array(means))
        facts = np.array([_facts(slot) for slot in slots])
        allowed = np.array([[kind in slot.kinds for kind in KINDS] for slot in slots])
        least, most = _limits(facts)
        squares = facts[:, 0] ** 2
        floor = _FAINTEST * (linear * squares).max(axis=1, keepdims=True) * read / squares
        return cls(
            slots, names, tuple(output.name for output in design.outputs), allowed, linear,
            np.maximum(linear, floor), curves,
            facts[:, 0], facts[:, 1], facts[:, 2], facts[:, 3], facts[:, 4], facts[:, 5], facts[:, 6],
            facts[:, 7], least, most,
        )  # fmt: skip

    def asked(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which slots the outputs in `rows` are made from."""
        slots: NDArray[np.bool_] = np.asarray(np.any(self.driving[rows] > 0, axis=0))
        for row, (slot, _) in self.curves.items():
            slots[slot] |= bool(rows[row])
        return slots

    def losses(
        self, kinds: NDArray[np.int64], strengths: Floats, only: NDArray[np.bool_] | None = None
    ) -> Losses:
        """The noises (`only` some of them) as the accountant will see them."""
        here = np.ones(len(kinds), dtype=bool) if only is None else only
        laplace, gaussian, choice = (
            here & (kinds == LAPLACE), here & (kinds == GAUSSIAN), here & (kinds == EXPONENTIAL)
        )  # fmt: skip
        parts = self.parts[choice]
        noisy = choice & (self.beside > 0)
        return Losses(
            float(np.square(strengths[gaussian]).sum()),
            np.concatenate((strengths[laplace], strengths[noisy] * (1 - self.chosen[noisy]))),
            np.concatenate((self.steps[laplace], self.beside[noisy])),
            strengths[choice] * self.chosen[choice] / parts,
            parts,
        )

    def variances(self, kinds: NDArray[np.int64], strengths: Floats) -> Floats:
        """Noise variance of every slot in squared steps; 0 for a choice by exponential weights, which has none."""
        out = np.exp(self.log_laplace_variance(strengths))
        gaussian = kinds == GAUSSIAN
        tau = self.l2[gaussian] / strengths[gaussian]
        out[gaussian] = tau**2 + np.where(tau >= self.wide[gaussian], self.narrowing[gaussian], 0.0)
        out[kinds == EXPONENTIAL] = 0.0
        return out

    def log_laplace_variance(self, epsilon: Floats) -> Floats:
        """log(1/2 / sinh(1 / (2 scale))^2), without overflow."""
        x = epsilon / (2 * self.l1)
        value: Floats = math.log(2.0) - 2 * x - 2 * np.log(-np.expm1(-2 * x))
        return value

    def errors(self, kinds: NDArray[np.int64], strengths: Floats) -> Floats:
        """Mean squared relative error of every output."""
        out: Floats = np.einsum("ij,j->i", self.linear, self.variances(kinds, strengths))
        for row, (slot, table) in self.curves.items():
            out[row] += curve_at(table, float(strengths[slot]))
        return out

    def noise(self, place: int, kind: int, strength: float) -> Noise:
        """The noise of a slot in the terms of the design."""
        if kind != GAUSSIAN:
            return Noise(KINDS[kind], strength)
        l2 = float(self.l2[place])
        tau = l2 / strength
        narrowing = float(self.narrowing[place]) if tau >= self.wide[place] else 0.0
        return Noise("gaussian", math.sqrt(tau**2 + narrowing) / l2)

    def strength(self, place: int, noise: Noise) -> tuple[int, float]:
        """Kind and strength of a noise given in the terms of the design."""
        kind = KINDS.index(noise.kind)
        if not self.allowed[place, kind]:
            raise InvalidValue("noise", noise.kind, f"must be one of {', '.join(self.slots[place].kinds)}")
        if kind != GAUSSIAN:
            return kind, noise.parameter
        l2 = float(self.l2[place])
        sigma = noise.parameter * l2
        rest = sigma**2 - (float(self.narrowing[place]) if sigma >= self.wide[place] else 0.0)
        return kind, l2 / math.sqrt(rest) if rest > 0 else math.inf


def curve_at(table: Floats, epsilon: float) -> float:
    """A tabulated curve between its points."""
    return math.exp(float(np.interp(math.log(epsilon), np.log(GRID), np.log(table))))


def _facts(slot: Slot) -> tuple[float, ...]:
    """l1, steps of the Laplace loss, l2, narrowing of Gaussian noise and from which width on, and facts of a choice.

    Read off the slot's events: sigma^2 - narrowing is the variance of the continuous noise it is priced by.
    """
    l1 = steps = l2 = parts = 1.0
    narrowing = wide = beside = 0.0
    chosen = 1.0
    if "laplace" in slot.kinds:
        l1, steps = float(slot.sensitivity.l1), _laplace_steps(slot.event(Noise("laplace", 0.5)))
    if "gaussian" in slot.kinds:
        l2 = float(slot.sensitivity.l2)
        sigma = max(1000.0, l2)
        inner = _gaussian_multiplier(slot.event(Noise("gaussian", sigma / l2)))
        narrowing = max(0.0, sigma**2 - (inner * l2) ** 2)
        narrowing = 0.0 if narrowing < 1e-6 * sigma else narrowing
        wide = WIDE_SIGMA if slot.moves_one_number else 0.0
    if "exponential" in slot.kinds:
        parts, chosen, beside = _choices(slot.event(Noise("exponential", 0.5)), 0.5)
    return l1, steps, l2, narrowing, wide, parts, chosen, beside


def _parts(event: Event) -> tuple[tuple[Event, int], ...]:
    return event.parts if isinstance(event, Composed) else ((event, 1),)


def _laplace_steps(event: Event) -> float:
    match event:
        case DiscreteLaplaceNoise(l1_sensitivity=steps):
            return float(steps)
        case LaplaceNoise():
            return REAL_LAPLACE
    raise InvalidValue("event", event, "must be Laplace noise for noise of that kind")


def _gaussian_multiplier(event: Event) -> float:
    """The multiplier of the one Gaussian part; beside it there may be a leak too small to matter to a search."""
    for part, _ in _parts(event):
        match part:
            case (
                GaussianNoise(noise_multiplier=multiplier)
                | DiscreteGaussianNoise(noise_multiplier=multiplier)
            ):
                return float(multiplier)
            case ApproxDP(epsilon=0.0):
                continue
    raise InvalidValue("event", event, "must be Gaussian noise for noise of that kind")


def _choices(event: Event, epsilon: float) -> tuple[float, float, float]:
    """How many equal choices of bounded range, with which share of epsilon, and the steps of the noise beside them."""
    total, spent, beside = 0, 0.0, 0.0
    for part, count in _parts(event):
        match part:
            case BoundedRange(epsilon=own):
                total, spent = total + count, spent + count * own
            case DiscreteLaplaceNoise() if beside == 0 and count == 1:
                beside = _laplace_steps(part)
            case _:
                raise InvalidValue("event", event, "must be choices of bounded range for noise of that kind")
    return float(total), spent / epsilon if beside > 0 else 1.0, beside


def _limits(facts: Floats) -> tuple[Floats, Floats]:
    """Least and largest strengths for each slot and kind: what the mechanisms accept, with a little room."""
    l1, l2, vector = facts[:, 0], facts[:, 2], (facts[:, 3] > 0) & (facts[:, 4] == 0)
    least = np.stack(
        (np.maximum(l1 * 2.0**-55, 1e-12), np.maximum(l2 * 2.0**-55, 1e-11), np.full(len(l1), 1e-6)), 1
    )
    most = np.full((len(l1), 3), _LARGEST_EPSILON)
    most[:, GAUSSIAN] = np.where(vector, np.minimum(l2 / math.sqrt(_NARROWEST), 8.0), 90.0)
    return least, most


def _smooth(coarse: Floats) -> Floats:
    """The table on GRID from values on every eighth point: monotone, by a cubic in logarithms."""
    level = np.log(np.maximum(np.minimum.accumulate(coarse), 1e-300))
    slope = np.gradient(level)
    position = np.arange(len(GRID)) / 8
    left = np.minimum(position.astype(int), len(coarse) - 2)
    u = position - left
    cubic = (
        level[left] * (1 + 2 * u) * (1 - u) ** 2
        + slope[left] * u * (1 - u) ** 2
        + level[left + 1] * u * u * (3 - 2 * u)
        + slope[left + 1] * u * u * (u - 1)
    )
    table: Floats = np.exp(np.minimum.accumulate(cubic))
    return table


_WIDEST = np.exp(np.linspace(math.log(1e-3), math.log(1e9), 57))
_NEAR = np.exp(np.linspace(-0.9, 0.9, 9))
_MOST_POINTS = 1536
_NEGLIGIBLE = 1e-7  # how far epsilon may be off, relatively, for what is missing from the integral


class Cost(NamedTuple):
    """An estimate of epsilon at a delta, the saddle c it was found at, and whether the integral had died out."""

    epsilon: float
    saddle: float
    reliable: bool


def composed_cost(losses: Losses, delta: float, near: float | None = None) -> Cost:
    """Epsilon of the noises together at `delta`; `near` is a saddle to look around first.

    >>> alone = Losses(1 / 16, *(np.zeros(0) for _ in range(4)))     # Gaussian noise of multiplier 4
    >>> round(composed_cost(alone, 1e-6).epsilon, 6)
    1.060702
    """
    sum_of_epsilons = losses.pure
    if delta == 0 or sum_of_epsilons == 0:
        return Cost(sum_of_epsilons, math.inf, True)
    if _one_atom_decides(losses, delta):
        known = near is not None and math.isfinite(near)
        return Cost(sum_of_epsilons, near if known and near else _saddle(losses, delta, None)[0], True)
    c, x, spread = _saddle(losses, delta, near)
    epsilon, reliable = _root_on_line(losses, math.log(delta), c, x, spread)
    return Cost(min(epsilon, sum_of_epsilons), c, reliable)


def saddle_cost(losses: Losses, delta: float, near: float | None = None) -> tuple[float, float]:
    """Epsilon to first order, and the saddle: what steers a search."""
    if delta == 0:
        return losses.pure, math.inf
    c, x, _ = _saddle(losses, delta, near)
    return min(max(x, 1e-300), losses.pure), c


def _one_atom_decides(losses: Losses, delta: float) -> bool:
    """Whether delta is too small against the mass of the largest loss to save anything: epsilons then just add."""
    if losses.gaussian > 0 or len(losses.ranges):
        return False
    log_mass = -float(np.log1p(np.exp(-losses.laplace / losses.steps)).sum())
    # epsilon = sum + log(1 - delta / mass) at the least.
    return math.log(delta) - log_mass < math.log(_NEGLIGIBLE * losses.pure)


def _saddle(losses: Losses, delta: float, near: float | None) -> tuple[float, float, float]:
    """c, its loss x, and the spread of the tilted loss, where the first-order approximation of D(x) is delta."""
    grids = [_WIDEST] if near is None or not 0 < near < math.inf else [near * _NEAR, _WIDEST]
    target = math.log(delta)
    for grid in grids:
        # One complex step gives K and K' together.
        values = losses.log_moment(grid * (1 + 1e-20j))
        first = values.imag / (1e-20 * grid)
        second = np.maximum(np.gradient(first, grid), 0.0)
        x = first - 1 / grid - 1 / (grid + 1)
        curvature = second + 1 / grid**2 + 1 / (grid + 1) ** 2
        log_delta = values.real - x * grid - np.log(grid * (grid + 1)) - 0.5 * np.log(2 * np.pi * curvature)
        below = np.flatnonzero(log_delta <= target)
        if len(below) and below[0] > 0:
            break
    place = int(below[0]) if len(below) else len(grid) - 1
    if place == 0:
        return float(grid[0]), float(x[0]), math.sqrt(float(second[0]))
    share = (log_delta[place - 1] - target) / max(log_delta[place - 1] - log_delta[place], 1e-300)
    share = min(max(float(share), 0.0), 1.0)

    def between(values: Floats) -> float:
        return float(values[place - 1] * (1 - share) + values[place] * share)

    c = math.exp(between(np.log(grid)))
    return c, max(between(x), 0.0), math.sqrt(between(second))


def _root_on_line(losses: Losses, log_delta: float, c: float, x: float, spread: float) -> tuple[float, bool]:
    """The x with log D(x) = log_delta, by Newton on one sampled line."""
    period = max((30 - log_delta) / c, 10 * spread + 30 / (c + 1))
    step = 2 * math.pi / period
    scale = float(losses.log_moment(np.array([c]))[0].real)
    t = np.zeros(0)
    log_phi = np.zeros(0, dtype=complex)
    size = 24
    while len(t) < _MOST_POINTS:
        more = np.arange(len(t), len(t) + size) * step
        log_phi = np.concatenate((log_phi, losses.log_moment(c + 1j * more) - scale))
        t = np.concatenate((t, more))
        if float(log_phi[-8:].real.max()) < -30:
            break
        size = len(t)
    z = c + 1j * t
    weights = np.where(t == 0, 1.0, 2.0) * np.exp(log_phi.real) / (z * (z + 1))
    left_out = math.exp(float(log_phi[-(len(t) // 4) :].real.max())) / float(t[-1])
    reliable = True
    for _ in range(30):
        samples = weights * np.exp(1j * (log_phi.imag - t * x))
        total, change = float(samples.real.sum()), float((samples * z).real.sum())
        if not (total > 0 and change > 0):
            return max(x, 0.0), False
        # log D is off by at most this share, epsilon by that over the slope, which is about c.
        reliable = left_out / (total * step) < _NEGLIGIBLE * c * abs(x)
        value = math.log(step / (2 * math.pi) * total) + scale - c * x
        move = (value - log_delta) * total / change
        x += min(max(move, -spread - 2 / c), spread + 2 / c)
        if abs(move) < 1e-13 * (1 + abs(x)):
            break
    return max(x, 0.0), reliable
