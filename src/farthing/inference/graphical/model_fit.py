"""The distribution that fits noisy tables best, and is as even as it can be otherwise."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.graphical.elimination import Calibrated, calibrated, lowest_sum
from farthing.inference.graphical.graphical_model import GraphicalModel
from farthing.inference.graphical.junction_tree import JunctionTree, junction_tree
from farthing.inference.graphical.noisy_tables import Cells, Measured, combined, groups_of
from farthing.inference.noise_terms import Floats

_MEMORY = 8
_DECREASE = 1e-4  # of what the slope promises, Armijo's rule
_SHORTEST = 1e-8

State = TypeVar("State")


class Point(NamedTuple, Generic[State]):
    """Where a descent stands: the place, the value there and its gradient."""

    place: Floats
    value: float
    gradient: Floats
    state: State  # whatever the function found on the way


def descent(
    function: Callable[[Floats], Point[State]],
    start: Point[State],
    diagonal: Floats,
    enough: Callable[[Point[State]], bool],
    steps: int,
) -> tuple[Point[State], int]:
    """Go down from `start` until `enough`; the last point and the number of steps, `steps + 1` if it never was enough.

    Limited-memory BFGS (Nocedal & Wright, Numerical Optimization, 2006, Algorithm 7.5) from the given diagonal.

    >>> import numpy as np
    >>> scale = np.array([1.0, 100.0, 3.0])
    >>> def bowl(x): return Point(x, float(scale @ x**2 / 2 - x.sum()), scale * x - 1, None)
    >>> last, steps = descent(bowl, bowl(np.zeros(3)), scale, lambda point: np.abs(point.gradient).max() < 1e-9, 9)
    >>> last.place * scale, steps
    (array([1., 1., 1.]), 1)
    """
    here = start
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    for step in range(1, steps + 1):
        way = -_scaled(here.gradient, pairs, diagonal)
        slope = float(way @ here.gradient)
        if not slope < 0:
            return here, step  # a gradient of nothing but rounding
        length = 1.0
        following = function(here.place + way)
        while not following.value <= here.value + _DECREASE * length * slope + 1e-12 * abs(here.value):
            length *= 0.3
            if length < _SHORTEST:
                return here, steps + 1
            following = function(here.place + length * way)
        moved, turned = following.place - here.place, following.gradient - here.gradient
        curvature = float(moved @ turned)
        if curvature > 1e-12 * float(moved @ (diagonal * moved)):
            pairs.append((moved, turned, curvature))
        here = following
        if enough(here):
            return here, step
    return here, steps + 1


def _scaled(gradient: Floats, pairs: deque[tuple[Floats, Floats, float]], diagonal: Floats) -> Floats:
    """The gradient times the approximate inverse of the curvature."""
    scaled, shares = gradient.copy(), []
    for moved, turned, curvature in reversed(pairs):
        shares.append(float(moved @ scaled) / curvature)
        scaled -= shares[-1] * turned
    if pairs:
        _, turned, curvature = pairs[-1]
        scaled *= curvature / float(turned @ (turned / diagonal))
    scaled /= diagonal
    for (moved, turned, curvature), share in zip(pairs, reversed(shares), strict=True):
        scaled += moved * (share - float(turned @ scaled) / curvature)
    return scaled


_FIRST_PULL = 0.1  # of the total over the noise's variance: from the even table, a few steps solve that
_NEXT_PULL = 0.002  # the same from an earlier model, which is nearly there
_EASED, _EASED_MUCH = 0.25, 0.05
_STIFFEST = 1e3  # times the first pull: steps that short change nothing any more
_FEW_STEPS, _MOST_STEPS = 12, 40
_MOST_CELLS = 2**27  # a gibibyte for each of a few copies
_SOLVED = 0.1  # of what a step has gained: how far it may stay from its own optimum


def fit_graphical(
    sizes: Sequence[int],
    measured: Sequence[Measured],
    total: float,
    *,
    start: GraphicalModel | None = None,
    rounds: int = 400,
    tolerance: float = 1e-3,
    progress: Callable[[int, int], None] | None = None,
) -> GraphicalModel:
    """The distribution of `total` rows over columns of these `sizes` that is nearest to all measured tables.

    Args:
        sizes: How many values each column has.
        measured: Noisy tables of some of the columns.
        total: How many rows there are.
        start: An earlier model, whose weights are a good place to begin.
        rounds: The largest number of passes over the junction tree.
        tolerance: The fit ends when one step lowers the loss by less than this part of it.
        progress: Called with the passes done and their bound.

    Returns:
        The model.

    Raises:
        InvalidValue: If a table does not fit the sizes, or the model would be too large.

    Statement:
        Let f(p) = sum_i |M_i p - y_i|^2 / (2 s_i^2) over tables p >= 0 with sum N, where M_i p are the sums that y_i
        measures with standard deviation s_i. The minimisers share M_i p. Steps p' = argmin f(p) + t KL(p, p_k) from the
        even table p_0 lower f at every step; f(p_k) tends to its least value, and p_k to the minimiser of greatest
        entropy. Every p_k is exp(sum_i w_i) / Z with weights w_i on the measured cells, so that a junction tree of the
        measured sets holds it exactly. With a `start` of further weights: the minimiser of least KL to it instead.
    Source: McKenna, Sheldon & Miklau, arXiv:1901.09136, section 3 (the estimate and its form); Censor & Zenios,
        J. Optim. Theory Appl. 73 (1992) and Teboulle, Math. Oper. Res. 17 (1992) (steps with an entropy distance). Each
        step is solved in its dual, N log Z(w) - w y + t |s w|^2 / 2, by a quasi-Newton method.
    Assumes: finite values, positive standard deviations, total >= 0.
    Direction: f is never below its least value: `model.loss - model.gap` is a proven lower bound of it. Steps are
        solved in part and ended early, so that cells whose best value is zero stay slightly positive. The weights have
        the stated form at every moment, so the model is always that of greatest entropy for its own sums M_i p.
    Checked by: tests/theorems/test_graphical_fit.py

    >>> pair, one = Measured((0, 1), [[30.0, 10.0], [10.0, 50.0]], 1.0), Measured((2,), [75.0, 25.0], 1.0)
    >>> model = fit_graphical((2, 2, 2), [pair, one], 100)
    >>> model.marginal((1, 2)).round(2)
    array([[30., 10.],
           [45., 15.]])
    """
    problem = _Problem(tuple(sizes), combined(measured), total, start)
    here = problem.state(problem.first)
    pull, drift = problem.first_pull, np.zeros_like(here.weights)
    while 0 < pull < _STIFFEST * problem.first_pull and problem.passes < rounds:
        following, steps = _pulled_step(problem, here, pull, drift, tolerance)
        solved = steps <= _MOST_STEPS
        gain = here.loss - following.loss
        if gain > 0:
            drift, here = following.weights - here.weights, following
        if progress is not None:
            progress(min(problem.passes, rounds), rounds)
        small = gain <= tolerance * here.loss
        # An easy step of small gain may only have been pulled too hard, unless that pull is nothing either.
        easy = steps <= _FEW_STEPS and pull * problem.total > tolerance * here.loss
        if solved and (gain <= 0 or (small and not easy)):
            break
        if solved and steps <= _FEW_STEPS:
            pull *= _EASED_MUCH if small else _EASED
        elif not solved:
            pull, drift = pull * 2.0, drift * (0.5 if gain > 0 else 0.0)
    if progress is not None:
        progress(rounds, rounds)
    return problem.model(here)


class _State(NamedTuple):
    weights: Floats
    distribution: Calibrated
    sums: Floats
    loss: float


class _Problem:
    """The measured cells as one vector, and what a vector of weights on them means."""

    def __init__(
        self,
        sizes: tuple[int, ...],
        measured: list[Measured],
        total: float,
        start: GraphicalModel | None,
    ) -> None:
        if not 0 <= total < math.inf:
            raise InvalidValue("total", total, "must be a finite number >= 0")
        if start is not None and start.sizes != sizes:
            raise InvalidValue("start", start.sizes, f"must be a model of columns of the sizes {sizes}")
        self.total, self.passes = float(total), 0
        self._keys = [one.key for one in measured]
        earlier = {} if start is None else dict(start.weights)
        reused = {key: earlier.pop(key) for key in self._keys if key in earlier}
        # Weights of the start on sums that are not measured now stay as they are.
        self._further = earlier
        subsets = [one.subset for one in measured] + [subset for subset, _ in earlier]
        self.tree: JunctionTree = junction_tree(sizes, subsets)
        if self.tree.cells > _MOST_CELLS:
            raise InvalidValue(
                "measured",
                f"tables whose cliques have {self.tree.cells:.3g} cells",
                f"must need at most {_MOST_CELLS:.3g}",
                "measure fewer or smaller sets together; model_cells gives the number in advance",
            )
        self._cells = Cells(self.tree, [(one.subset, one.groups) for one in measured])
        further = Cells(self.tree, [groups_of(key) for key in earlier])
        self._fixed = further.potentials(np.concatenate([*earlier.values()])) if earlier else None
        for one, shape in zip(measured, self._cells.shapes, strict=True):
            if one.values.shape != shape:
                raise InvalidValue("values", one.values.shape, f"must have the shape {shape} for {one.subset}")
        self.values = np.concatenate([np.empty(0)] + [one.values.reshape(-1) for one in measured])
        self.variances = np.concatenate(
            [np.empty(0)] + [np.full(one.values.size, one.standard_deviation**2) for one in measured]
        )
        self.first = np.concatenate(
            [np.empty(0)] + [reused.get(one.key, np.zeros(one.values.size)) for one in measured]
        )

    @property
    def first_pull(self) -> float:
        """A pull towards the start under which the first step is easy; zero if there is nothing to fit."""
        share = _NEXT_PULL if self.first.any() else _FIRST_PULL
        return share * self.total / float(np.median(self.variances)) if self.variances.size else 0.0

    def state(self, weights: Floats) -> _State:
        self.passes += 1
        potentials = self._cells.potentials(weights)
        if self._fixed is not None:
            potentials = [mine + fixed for mine, fixed in zip(potentials, self._fixed, strict=True)]
        distribution = calibrated(self.tree, potentials)
        sums = self.total * self._cells.sums(distribution.marginals)
        return _State(weights, distribution, sums, float(np.sum((sums - self.values) ** 2 / self.variances)) / 2.0)

    def gap(self, state: _State) -> float:
        """How far the loss can be from its least value: what moving all rows to the best single cell would gain."""
        slope = (state.sums - self.values) / self.variances
        return float(slope @ state.sums) - self.total * lowest_sum(self.tree, self._cells.potentials(slope))

    def model(self, state: _State) -> GraphicalModel:
        places = np.cumsum([math.prod(shape) for shape in self._cells.shapes])[:-1]
        fitted = dict(zip(self._keys, np.split(state.weights, places), strict=True)) if self._keys else {}
        return GraphicalModel(
            self.tree,
            self.total,
            state.distribution,
            self._further | fitted,
            state.loss,
            max(0.0, self.gap(state)),
        )


def _pulled_step(problem: _Problem, here: _State, pull: float, guess: Floats, tolerance: float) -> tuple[_State, int]:
    """The distribution of least loss + pull * KL to where we are, in its dual; and the number of steps it took.

    With e the gradient of the dual, sum e^2 / (2 s^2) is how far the step is from its optimum: the rule for enough.
    """
    stiffness = pull * problem.variances

    def dual(change: Floats) -> Point[_State]:
        state = problem.state(here.weights + change)
        value = problem.total * (state.distribution.log_partition - here.distribution.log_partition) - float(
            change @ problem.values
        )
        value += float(stiffness @ change**2) / 2.0
        return Point(change, value, state.sums - problem.values + stiffness * change, state)

    def enough(point: Point[_State]) -> bool:
        missing = float(np.sum(point.gradient**2 / problem.variances)) / 2.0
        return missing <= _SOLVED * max(here.loss - point.state.loss, tolerance * here.loss)

    start = Point(np.zeros_like(guess), 0.0, here.sums - problem.values, here)
    if guess.any():  # cells on their way to zero move by the same amount at every step
        guessed = dual(guess)
        start = guessed if guessed.value < 0 else start
    last, steps = descent(dual, start, start.state.sums + stiffness, enough, _MOST_STEPS)
    return last.state, steps
