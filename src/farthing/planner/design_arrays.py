"""A design as arrays: what each slot's noise does to the errors and to the cost, for all slots at once.

`Divider` finds every slot's best noise at one Renyi order and one price of privacy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.cost_estimates import Losses, laplace_log_moment, range_log_moment
from farthing.errors import InvalidValue
from farthing.planner.choice_curves import COARSE, GRID, curve_at, epsilon_at, smooth
from farthing.planner.gaussian_release import gaussian_strength
from farthing.planner.planning_problem import Design, PlannedOutput
from farthing.planner.slot_facts import EXPONENTIAL, GAUSSIAN, LAPLACE, Floats, facts_of, limits_of
from farthing.statistics.measurements import KINDS, Noise, Slot

_FAINTEST = 1e-3  # a slot that an output reads matters at least this much of its slot that matters most


@dataclass(frozen=True, eq=False)
class Model:
    """Arrays over the slots of a design; made once for each design.

    `linear[i, s]` is the mean over cells of output i's squared relative error for each squared step of noise variance
    of slot s, and `driving` the same with a floor: to first order a mean does not depend on its count where the
    expected sum is 0, but it does to second. `curves[i]` is (slot, the same mean on GRID) for an output that is not
    linear. `alone` and `curves_alone` are `linear` and `curves` as they would be if every output had its measurements
    to itself, `choices` what a tool that chooses the output's quantiles one by one makes (see `Output.choices`), and
    `own` is `linear` when every output reads its own slots alone; `read` says which these are. Outputs
    in `linked` weigh other slots, too, by how much noise these have: `linear` is then right at one choice of noises
    (see `at`). The strength of a slot is
    epsilon (Laplace, exponential) or l2 sensitivity / tau (Gaussian): the larger, the dearer. A choice has `parts`
    equal ones, which share `chosen` of its strength; the rest goes to Laplace noise on numbers that move by `beside`
    steps. `promises` remembers how far outputs reach under noises that were tried.
    """

    slots: tuple[Slot, ...]
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    allowed: NDArray[np.bool_]
    linear: Floats
    alone: Floats
    own: Floats
    read: NDArray[np.bool_]
    linked: Mapping[int, PlannedOutput]
    curves: Mapping[int, tuple[int, Floats]]
    curves_alone: Mapping[int, Floats]
    choices: Mapping[int, tuple[int, float]]
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
    promises: dict[tuple[Any, ...], float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, design: Design) -> Model:
        """Ask every slot for its events and every output for its coefficients."""
        slots = tuple(design.slots)
        names = tuple(slot.name for slot in slots)
        place = {name: number for number, name in enumerate(names)}
        linear = np.zeros((len(design.outputs), len(slots)))
        alone = np.zeros(linear.shape)
        read = np.zeros(linear.shape, dtype=bool)
        curves: dict[int, tuple[int, Floats]] = {}
        curves_alone: dict[int, Floats] = {}
        choices: dict[int, tuple[int, float]] = {}
        for row, output in enumerate(design.outputs):
            reference = np.asarray(output.reference, dtype=float)
            read[row, [place[slot.name] for slot in output.slots]] = True
            for matrix, own in ((linear, output.coefficients), (alone, output.alone)):
                for name, coefficients in own.items():
                    matrix[row, place[name]] = float(np.mean(np.asarray(coefficients) / reference**2))
            if not output.coefficients and output.slots:
                tables = [
                    smooth(np.array([float(np.mean(curve(e) / reference**2)) for e in COARSE.tolist()]))
                    for curve in (output.variance_curve, output.alone_curve)
                ]
                curves[row], curves_alone[row] = (place[output.slots[0].name], tables[0]), tables[1]
                choices[row] = output.choices
        facts = np.array([facts_of(slot) for slot in slots])
        allowed = _allowed(slots)
        least, most = limits_of(facts)
        return cls(
            slots,
            names,
            tuple(output.name for output in design.outputs),
            allowed,
            linear,
            alone,
            linear,
            read,
            {row: output for row, output in enumerate(design.outputs) if output.links is not None},
            curves,
            curves_alone,
            choices,
            facts[:, 0],
            facts[:, 1],
            facts[:, 2],
            facts[:, 3],
            facts[:, 4],
            facts[:, 5],
            facts[:, 6],
            facts[:, 7],
            least,
            most,
        )

    @cached_property
    def driving(self) -> Floats:
        """`linear` with a floor for the slots that an output reads."""
        squares = self.l1**2
        floor = _FAINTEST * (self.linear * squares).max(axis=1, keepdims=True) * self.read / squares
        return np.asarray(np.maximum(self.linear, floor))

    def at(self, shares: Shares) -> Model:
        """The same with the weights that linked outputs have at these noises.

        With fixed weights errors are linear in variances; with the best ones they are concave, and no larger. So a
        division that is better by the former is better by the latter: weights and noises are improved in turn.
        """
        if not self.linked:
            return self
        variances = dict(zip(self.names, self.variances(shares.kinds, shares.strengths).tolist(), strict=True))
        links = next(iter(self.linked.values())).links
        assert links is not None
        kinds = {name: KINDS[kind] for name, kind in zip(self.names, shares.kinds.tolist(), strict=True)}
        names, slopes = links.slopes(list(self.linked.values()), variances, kinds)
        linear = self.own.copy()
        linear[list(self.linked)] = 0.0
        linear[np.ix_(list(self.linked), [self.names.index(name) for name in names])] = slopes
        alone = [row for place, row in enumerate(self.linked) if not slopes[place].any()]
        linear[alone] = self.own[alone]
        return replace(self, linear=linear)

    def for_clock(self, held: Collection[str]) -> Model:
        """The same with Gaussian noise wherever it is allowed, but for slots that are held.

        A clock pays for noise by how far it shifts a normal distribution. Laplace noise of the same price has about
        twice the variance.
        """
        free = np.array([name not in held for name in self.names])
        allowed = _allowed(self.slots)
        allowed[free & allowed[:, GAUSSIAN], LAPLACE] = False
        return replace(self, allowed=allowed)

    def for_sums(self) -> Model:
        """The same with every kind of noise that slots may have."""
        return replace(self, allowed=_allowed(self.slots))

    def slots_of(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which slots the outputs in `rows` are made from."""
        there = (self.own[rows] > 0).any(axis=1, keepdims=True)
        slots: NDArray[np.bool_] = np.asarray(np.any(self.read[rows] & there, axis=0))
        for row, (slot, _) in self.curves.items():
            slots[slot] |= bool(rows[row])
        return slots

    def losses(self, kinds: NDArray[np.int64], strengths: Floats, only: NDArray[np.bool_] | None = None) -> Losses:
        """The noises (`only` some of them) as the accountant will see them."""
        here = np.ones(len(kinds), dtype=bool) if only is None else only
        laplace, gaussian, choice = (
            here & (kinds == LAPLACE),
            here & (kinds == GAUSSIAN),
            here & (kinds == EXPONENTIAL),
        )
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

    def strengths_as(self, kinds: NDArray[np.int64], shares: Shares) -> Floats:
        """The strengths that give noise of these kinds the variances of `shares`; infinite where there is none."""
        variances = self.variances(shares.kinds, shares.strengths)
        with np.errstate(divide="ignore"):
            laplace = 2 * self.l1 * np.arcsinh(np.sqrt(0.5 / variances))
            tau = np.sqrt(np.maximum(variances - np.where(variances >= self.wide**2, self.narrowing, 0.0), 0.0))
            other = np.where(kinds == LAPLACE, laplace, self.l2 / tau)
        either = np.isin(kinds, [LAPLACE, GAUSSIAN]) & np.isin(shares.kinds, [LAPLACE, GAUSSIAN])
        other = np.where(either, other, math.inf)
        return np.where(kinds == shares.kinds, shares.strengths, other)

    def errors(self, kinds: NDArray[np.int64], strengths: Floats) -> Floats:
        """Mean squared relative error of every output."""
        out: Floats = np.einsum("ij,j->i", self.linear, self.variances(kinds, strengths))
        for row, (slot, table) in self.curves.items():
            out[row] += curve_at(table, float(strengths[slot]))
        return out

    def squares(self, kinds: NDArray[np.int64], strengths: Floats) -> Floats:
        """What limits speak of: `errors`; of a choice, one over its squared strength.

        The value of a choice may be as good as certain while its interval still narrows: its error would not say how
        strong it is.
        """
        out = self.errors(kinds, strengths)
        for row, (slot, _) in self.curves.items():
            out[row] = strengths[slot] ** -2.0
        return out

    def squares_within(self, errors: Floats, even: Shares) -> Floats:
        """The `squares` of outputs that have these errors (inf: none), and of choices as strong as `even`.

        A value that is as good as certain still has an interval to narrow.
        """
        chosen = np.isin(np.arange(len(errors)), list(self.curves)) & np.isfinite(errors)
        return np.where(chosen, self.squares(even.kinds, even.strengths), errors)

    def strengths_within(self, limits: Floats) -> Floats:
        """The least strengths of choices whose outputs are within these limits; 0 for all other slots."""
        strengths = np.zeros(len(self.names))
        for row, (slot, _) in self.curves.items():
            strengths[slot] = max(float(strengths[slot]), float(limits[row]) ** -0.5)
        return np.minimum(strengths, self.most[:, EXPONENTIAL])

    def shares_alone(self, target: float, delta: float, shares: Floats) -> tuple[Floats, Shares]:
        """Mean squared relative errors of outputs that get a share of the target, and of delta, to themselves.

        The slots of an output share what it gets in the best way: epsilons as cube roots of what they matter, squared
        multipliers as square roots. The better of Laplace and Gaussian noise counts. Also noises of all slots with
        which no output is worse: a slot that several read has the least noise that any of them would have, and a
        choice the shares of all.
        """
        errors = np.zeros(len(shares))
        kinds: Kinds = np.argmax(self.allowed, axis=1)
        strengths = self.least[np.arange(len(kinds)), kinds].copy()
        variances = np.full(len(kinds), math.inf)
        for row, share in enumerate(shares.tolist()):
            own = np.flatnonzero(self.read[row] & (self.own[row] > 0).any())
            if row in self.curves:
                slot, _ = self.curves[row]
                epsilon = min(max(share * target, float(GRID[0])), float(GRID[-1]))
                errors[row] = curve_at(self.curves_alone[row], epsilon)
                # Quantiles share a slot where, with the shares of all, none of them is worse.
                kinds[slot], strengths[slot] = EXPONENTIAL, min(strengths[slot] + epsilon, float(GRID[-1]))
            elif len(own):
                now, alone = self.own[row, own], self.alone[row, own]
                there, budget = alone > 0, (share * target, share * delta)
                if np.array_equal(now > 0, there):
                    errors[row], kind, wanted = self._alone(alone, own, *budget)
                    # A merged slot needs less noise, by the root of how many cells each of its own is cut into.
                    wanted = wanted * np.sqrt(np.divide(now, alone, where=there, out=np.ones(len(own))))
                else:  # by itself it would be measured in another way
                    errors[row], _, _ = self._alone(alone[there], own[there], *budget)
                    error, kind, wanted = self._alone(now, own, *budget)
                    wanted = wanted * math.sqrt(error / errors[row])
                wanted = np.clip(wanted, self.least[own, kind], self.most[own, kind])
                left = (self.l1[own] / wanted) ** 2 * 2 if kind == LAPLACE else (self.l2[own] / wanted) ** 2
                better = left < variances[own]
                variances[own] = np.where(better, left, variances[own])
                kinds[own] = np.where(better, kind, kinds[own])
                strengths[own] = np.where(better, wanted, strengths[own])
        return errors, Shares(kinds, strengths)

    def choices_alone(self, target: float, delta: float, shares: Floats) -> Floats:
        """Squared errors of choices by a tool that divides evenly and gives no intervals; inf for all other outputs.

        Such a tool chooses each quantile from all rows. As many choices as there are statistics,
        each of range e, cost about what one Gaussian release does that is sqrt(count) e / 2 strong (e^2 / 8 of zCDP
        each: Cesar & Rogers, arXiv:2004.07223, Lemma 3.4); or epsilons are added up, where that allows more.
        """
        errors = np.full(len(shares), math.inf)
        for row, (count, matching) in self.choices.items():
            share = float(shares[row])
            epsilon = share * target
            if delta > 0:
                epsilon = max(epsilon, 2 * math.sqrt(count * share) * gaussian_strength(target, delta))
            errors[row] = curve_at(
                self.curves_alone[row], min(max(matching * epsilon, float(GRID[0])), float(GRID[-1]))
            )
        return errors

    def choices_within(self, errors: Floats) -> Floats:
        """The least strengths of choices at which no value has a larger squared error; 0 for all other slots."""
        strengths = np.zeros(len(self.names))
        for row, (slot, table) in self.curves.items():
            if math.isfinite(errors[row]):
                strengths[slot] = max(strengths[slot], epsilon_at(table, float(errors[row])))
        return strengths

    def _alone(self, matters: Floats, own: NDArray[np.intp], epsilon: float, delta: float) -> tuple[float, int, Floats]:
        """The error of a linear output that has its slots to itself, its kind of noise, and their strengths."""
        best = (math.inf, LAPLACE, np.ones(len(own)))
        if self.allowed[own, LAPLACE].all():
            # A measurement of little importance has a share, as in `driving`.
            squares = matters * self.l1[own] ** 2
            part = np.cbrt(np.maximum(squares, _FAINTEST * squares.max()))
            wanted = np.clip(epsilon * part / part.sum(), self.least[own, LAPLACE], self.most[own, LAPLACE])
            x = wanted / (2 * self.l1[own])
            best = float(matters @ (0.5 / np.sinh(np.clip(x, 1e-150, 300.0)) ** 2)), LAPLACE, wanted
        if delta > 0 and self.allowed[own, GAUSSIAN].all():
            part = np.sqrt(matters) * self.l2[own]
            part = np.maximum(part, math.sqrt(_FAINTEST) * part.max())
            wanted = gaussian_strength(epsilon, delta) * np.sqrt(part / part.sum())
            wanted = np.clip(wanted, self.least[own, GAUSSIAN], self.most[own, GAUSSIAN])
            error = float(matters @ (self.l2[own] / wanted) ** 2)
            best = min(best, (error, GAUSSIAN, wanted), key=lambda each: each[0])
        return best

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

    def shares_of(self, noises: Mapping[str, Noise]) -> Shares:
        """Kinds and strengths of noises that are given by the names of slots; Laplace noise of epsilon 1 elsewhere."""
        shares = Shares(np.zeros(len(self.names), dtype=np.int64), np.ones(len(self.names)))
        for place, name in enumerate(self.names):
            if name in noises:
                shares.kinds[place], shares.strengths[place] = self.strength(place, noises[name])
        return shares

    def kept_squares(self, kept: Mapping[str, Mapping[str, Noise]]) -> Floats:
        """The mean squared relative errors of outputs under the noises they are kept with (inf: not kept)."""
        squares, model = (
            np.full(len(self.outputs), math.inf),
            self.for_sums(),
        )  # then, other kinds may have been allowed
        for name, noises in kept.items():
            row, shares = self.outputs.index(name), model.shares_of(noises)
            squares[row] = model.at(shares).errors(shares.kinds, shares.strengths)[row]
        return squares


def _allowed(slots: Sequence[Slot]) -> NDArray[np.bool_]:
    return np.array([[kind in slot.kinds for kind in KINDS] for slot in slots])


Kinds = NDArray[np.int64]

_STEP = 1e-20  # of derivatives by a complex step: exact to rounding
_SECANTS = 16
_SLOT_SHARES_FAINTEST = 1e-13  # least importance relative to the largest: what no output asks for gets next to nothing


@dataclass(frozen=True, eq=False)
class Shares:
    """Kind and strength of every slot (see `Model`)."""

    kinds: Kinds
    strengths: Floats

    def scaled(self, factor: float, model: Model, free: NDArray[np.bool_]) -> Shares:
        """The free slots' strengths times `factor`, as far as mechanisms go."""
        place = np.arange(len(self.kinds))
        wanted = np.clip(self.strengths * factor, model.least[place, self.kinds], model.most[place, self.kinds])
        return Shares(self.kinds, np.where(free, wanted, self.strengths))

    def at_least(self, strengths: Floats) -> Shares:
        """The same kinds, no slot weaker than this."""
        return Shares(self.kinds, np.maximum(self.strengths, strengths))


@dataclass(frozen=True, eq=False)
class Divider:
    """The best noise of every slot for given weights; `held` stays, and `kinds` may be fixed (-1: to be chosen).

    The Renyi divergences of a fixed order add, and so do the (weighted, squared) errors. With a Lagrange multiplier
    `price` the whole is least when every slot minimises
        importance * variance(noise) + price * divergence(noise)
    by itself, over the noises it may have and over their kinds. Gaussian noise has the minimum in closed form; for
    Laplace noise logarithms make the equation nearly a straight line, so a few secant steps solve it for all slots
    together; a choice by exponential weights is looked up in its table.
    """

    model: Model
    held: Shares
    free: NDArray[np.bool_]
    pure: bool
    kinds: Kinds | None = None

    @property
    def without_gaussian(self) -> Divider | None:
        """The same with kinds that are pure; None where a free slot has none."""
        allowed = self.model.allowed
        if not allowed[self.free][:, [LAPLACE, EXPONENTIAL]].any(axis=1).all():
            return None
        return replace(self, kinds=np.where(allowed[:, EXPONENTIAL], EXPONENTIAL, LAPLACE))

    @property
    def all_gaussian(self) -> Divider | None:
        """The same with Gaussian noise wherever it is allowed; None where it is allowed nowhere."""
        allowed = self.model.allowed
        if self.pure or not allowed[self.free][:, GAUSSIAN].any():
            return None
        rest = np.where(allowed[:, EXPONENTIAL], EXPONENTIAL, LAPLACE)
        return replace(self, kinds=np.where(allowed[:, GAUSSIAN], GAUSSIAN, rest))

    def shares(self, weights: Floats, saddle: float, price: float) -> Shares:
        """Every free slot at its own minimum, at the order saddle + 1 (infinite: pure epsilon)."""
        model, place = self.model, np.arange(len(self.free))
        # Small: threads of a product would cost more.
        importance = np.einsum("i,ij->j", weights, model.driving)
        importance = np.maximum(importance, _SLOT_SHARES_FAINTEST * _largest(importance * model.l1**2) / model.l1**2)
        objectives = np.full((len(place), 3), np.inf)
        strengths = np.ones((len(place), 3))
        for kind, solve in ((LAPLACE, self._laplace), (GAUSSIAN, self._gaussian)):
            wanted = self._wanted[kind]
            if wanted.any() and not (kind == GAUSSIAN and math.isinf(saddle)):
                solved, value = solve(wanted, importance[wanted], saddle, price)
                strengths[wanted, kind], objectives[wanted, kind] = solved, value
        if self._wanted[EXPONENTIAL].any():
            self._choices(weights, saddle, price, strengths, objectives)
        chosen = np.argmin(objectives, axis=1)
        kinds = np.where(self.free, chosen, self.held.kinds)
        return Shares(kinds, np.where(self.free, strengths[place, chosen], self.held.strengths))

    @cached_property
    def _wanted(self) -> dict[int, NDArray[np.bool_]]:
        """Which free slots may have each kind."""
        return {kind: self._allowed(kind) for kind in (LAPLACE, GAUSSIAN, EXPONENTIAL)}

    @cached_property
    def _of_laplace(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Sensitivities, steps, and the logarithms of the least and the most epsilon of the slots with such noise."""
        model, wanted = self.model, self._wanted[LAPLACE]
        ends = (np.log(ends[wanted, LAPLACE]) for ends in (model.least, model.most))
        return model.l1[wanted], model.steps[wanted], *ends

    def _allowed(self, kind: int) -> NDArray[np.bool_]:
        allowed: NDArray[np.bool_] = self.model.allowed[:, kind] & self.free
        if kind == GAUSSIAN and self.pure:
            allowed = allowed & False
        return allowed if self.kinds is None else allowed & (self.kinds == kind)

    def _gaussian(
        self, wanted: NDArray[np.bool_], importance: Floats, saddle: float, price: float
    ) -> tuple[Floats, Floats]:
        """importance (l2^2 / mu^2 + narrowing) + price alpha mu^2 / 2 is least at a fourth root."""
        l2, order = self.model.l2[wanted], saddle + 1
        mu = np.exp((np.log(2 * importance) + 2 * np.log(l2) - math.log(price * order)) / 4)
        mu = np.clip(mu, self.model.least[wanted, GAUSSIAN], self.model.most[wanted, GAUSSIAN])
        tau = l2 / mu
        variance = tau**2 + np.where(tau >= self.model.wide[wanted], self.model.narrowing[wanted], 0.0)
        return mu, importance * variance + price * order * mu**2 / 2

    def _laplace(
        self, wanted: NDArray[np.bool_], importance: Floats, saddle: float, price: float
    ) -> tuple[Floats, Floats]:
        """Where the elasticities meet: epsilon dR/depsilon = importance / price * (-epsilon dV/depsilon)."""
        l1, steps, low, high = self._of_laplace
        ratio = np.log(importance) - math.log(price)
        # For small epsilon R is alpha epsilon^2 / 2, for large epsilon it is epsilon; the larger solution is close.
        start = ratio + np.log(4 * l1**2)
        u = np.clip(np.maximum((start - math.log1p(saddle)) / 4, start / 3), low, high)
        before_u, before_g = u, np.zeros_like(u)
        for turn in range(_SECANTS):
            epsilon = np.exp(u)
            push, power = _log_push(epsilon, l1)
            gap = _log_pull(epsilon, saddle, steps) - ratio - push
            slope = 1.4 + power
            if turn:
                moved = u - before_u
                secant = (gap - before_g) / np.where(np.abs(moved) > 1e-9, moved, 1.0)
                slope = np.where((secant > 0.6 * slope) & (secant < 1.7 * slope), secant, slope)
            before_u, before_g = u, gap
            u = np.clip(u - gap / slope, low, high)
            if float(np.abs(u - before_u).max()) < 1e-9:
                break
        epsilon = np.exp(u)
        variance = np.exp(math.log(2.0) - epsilon / l1 - 2 * np.log(-np.expm1(-epsilon / l1)))
        return epsilon, importance * variance + price * _laplace_divergence(epsilon, saddle, steps)

    def _choices(self, weights: Floats, saddle: float, price: float, strengths: Floats, objectives: Floats) -> None:
        wanted = self._wanted[EXPONENTIAL]
        totals = np.zeros((len(wanted), len(GRID)))
        for row, (slot, table) in self.model.curves.items():
            totals[slot] += weights[row] * table
        slots = np.flatnonzero(wanted)
        facts = np.stack((self.model.parts, self.model.chosen, self.model.beside), axis=1)[slots].tolist()
        divergences = {alike: _choice_divergence(saddle, *alike) for alike in set(map(tuple, facts))}
        for slot, own in zip(slots.tolist(), facts, strict=True):
            objective = totals[slot] + price * divergences[tuple(own)]
            best = int(np.argmin(objective))
            strengths[slot, EXPONENTIAL] = _bottom(objective, best)
            objectives[slot, EXPONENTIAL] = float(objective[best])


def _largest(values: Floats) -> float:
    largest = float(values.max(initial=0.0))
    return largest if largest > 0 else 1.0


def _laplace_divergence(epsilon: Floats, saddle: float, steps: Floats) -> Floats:
    if math.isinf(saddle):
        return epsilon
    value: Floats = laplace_log_moment(saddle, epsilon, steps) / saddle
    return value


def _log_pull(epsilon: Floats, saddle: float, steps: Floats) -> Floats:
    """log of epsilon dR / depsilon."""
    if math.isinf(saddle):
        pulled: Floats = np.log(epsilon)
    else:
        moved = laplace_log_moment(saddle, epsilon * (1 + 1j * _STEP), steps).imag / (_STEP * saddle)
        pulled = np.log(np.maximum(moved, 1e-300))
    return pulled


def _log_push(epsilon: Floats, l1: Floats) -> tuple[Floats, Floats]:
    """log of -epsilon dV / depsilon for discrete Laplace noise, V 2 x coth x with x = epsilon / (2 l1), and 2 x coth x.

    The variance falls with about this power of epsilon (2, until noise is below one step).
    """
    x = epsilon / (2 * l1)
    power = 2 * x / np.tanh(x)
    log_variance = math.log(2.0) - 2 * x - 2 * np.log(-np.expm1(-2 * x))
    return log_variance + np.log(power), power


def _choice_divergence(saddle: float, parts: float, chosen: float, beside: float) -> Floats:
    if math.isinf(saddle):
        return GRID
    value: Floats = parts * range_log_moment(saddle, GRID * chosen / parts)
    if beside > 0:
        value = value + laplace_log_moment(saddle, GRID * (1 - chosen), beside)
    return value / saddle


def _bottom(objective: Floats, best: int) -> float:
    """The epsilon at the bottom of the parabola through the least point and its neighbours."""
    if not 0 < best < len(GRID) - 1:
        return float(GRID[best])
    left, middle, right = objective[best - 1 : best + 2]
    bend = left - 2 * middle + right
    shift = 0.5 * (left - right) / bend if bend > 0 else 0.0
    stride = math.log(GRID[1] / GRID[0])
    return float(GRID[best] * math.exp(stride * min(max(float(shift), -0.5), 0.5)))


def noises_of(model: Model, shares: Shares, held: object) -> dict[str, Noise]:
    """Shares as noises in the terms of the design; held ones as they were given."""
    held_noises = held if isinstance(held, dict) else dict(held)  # type: ignore[call-overload]
    return {
        name: held_noises.get(name) or model.noise(place, int(shares.kinds[place]), float(shares.strengths[place]))
        for place, name in enumerate(model.names)
    }
