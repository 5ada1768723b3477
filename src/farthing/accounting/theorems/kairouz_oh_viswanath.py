"""Kairouz, Oh and Viswanath exactly: the optimum for k equal charges, enclosed.

Theorems 3.3 and 3.5 have these numbers and forms in published code by J. Murtagh as well; see docs/theorems.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from farthing.accounting.theorems._pool import Pool, ball_of, read_pool, rounded_down, rounded_up
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.numerics.bounds import exact, float_up, precision
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon


def kov_homogeneous_bound(epsilon: float, k: int, delta_g: float, delta: float = 0.0) -> float:
    """Epsilon of k charges (epsilon, delta) at `delta_g`, by the closed form.

    Args:
        epsilon: The epsilon of each charge.
        k: How many charges there are.
        delta_g: The delta of the whole.
        delta: The delta of each charge.

    Returns:
        The epsilon, rounded up; inf where the charges leak more than `delta_g`.

    Raises:
        InvalidValue: If an argument is out of its range.

    Statement:
        For every delta' in [0, 1] the k-fold adaptive composition of (epsilon, delta)-DP mechanisms is
        (epsilon', 1 - (1 - delta)^k (1 - delta'))-DP with epsilon' the least of
            k epsilon,
            drift + epsilon sqrt(2 k ln(e + sqrt(k epsilon^2) / delta')),
            drift + epsilon sqrt(2 k ln(1 / delta')),
        drift = k epsilon (exp(epsilon) - 1) / (exp(epsilon) + 1).
        The constant inside the logarithm is e = 2.718..., not epsilon.
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.4.
    Assumes: k and the parameters fixed before the first answer.
    Direction: an upper bound, rounded up; charge it. delta' is all of delta_g that the leak leaves; inf when the
        leak alone is above delta_g.
    Checked by: tests/theorems/test_kov_homogeneous.py

    >>> round(kov_homogeneous_bound(0.1, 100, 1e-6), 6)
    5.756106
    >>> kov_homogeneous_bound(1.0, 3, 1e-6)
    3.0
    """
    epsilon, k = checked_epsilon(epsilon), checked_count(k, "k")
    delta_g, delta = checked_delta(delta_g, "delta_g"), checked_delta(delta)
    leaks = read_pool([0.0], [delta], [k])
    with precision(128):
        slack = leaks.left_by_product(delta_g)
        if not slack >= 0:
            return math.inf
        one, fold = flint.arb(epsilon), flint.arb(k)
        bounds = [fold * one]
        if slack > 0:
            drift = fold * one * (one / 2).tanh()
            for inside in (flint.arb(1).exp() + fold.sqrt() * one / slack, 1 / slack):
                bounds.append(drift + one * (2 * fold * inside.log()).sqrt())
        return min(rounded_up(bound) for bound in bounds)


def kov_heterogeneous_bound(charges: Any, delta_g: float, deltas: Any = None, counts: Any = None) -> float:
    """Epsilon of the composition at `delta_g`, by the closed form.

    Args:
        charges: Epsilons or (epsilon, delta) pairs, as `farthing.compose` takes them.
        delta_g: The delta of the whole.
        deltas: The delta of each charge, where `charges` are epsilons.
        counts: How often each charge is made; once by default.

    Returns:
        The epsilon, rounded up; inf where the charges leak more than `delta_g`.

    Raises:
        InvalidValue: If something is not a charge, or `delta_g` is not a number from 0 to 1.

    Statement:
        For every delta' in [0, 1] the adaptive composition of (epsilon_i, delta_i)-DP mechanisms is
        (epsilon', 1 - (1 - delta') prod(1 - delta_i))-DP with epsilon' the least of
            sum epsilon_i,
            drift + sqrt(2 S ln(e + sqrt(S) / delta')),
            drift + sqrt(2 S ln(1 / delta')),
        S = sum epsilon_i^2, drift = sum epsilon_i (exp(epsilon_i) - 1) / (exp(epsilon_i) + 1).
        The constant inside the logarithm is e = 2.718..., not epsilon.
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.5.
    Assumes: parameters fixed before the first answer.
    Direction: an upper bound, rounded up; charge it. delta' is all of delta_g that the leaks leave; inf when the
        leaks alone are above delta_g.
    Checked by: tests/theorems/test_kov_heterogeneous.py

    Why the second term holds for every S: the loss exceeds drift + a + y with probability at most
    exp(-(a + y)^2 / 2S), so the tail integral is at most exp(-a^2 / 2S) / (1 + a / S); at the stated a the first
    factor is delta' / (e delta' + sqrt(S)), and (e delta' + sqrt(S)) (1 + a / S) >= sqrt(S) + sqrt(2) > 1.

    >>> round(kov_heterogeneous_bound([0.1, 0.05], 1e-6, deltas=[0, 1e-8], counts=[100, 20]), 6)
    5.954235
    """
    return kov_heterogeneous_of(read_pool(charges, deltas, counts), checked_delta(delta_g, "delta_g"))


def kov_heterogeneous_of(pool: Pool, delta_g: float) -> float:
    """The bound for charges already read."""
    with precision(128):
        slack = rounded_down(pool.left_by_product(delta_g))
        if not slack >= 0:
            return math.inf
        total = pool.epsilon_sum()
        squares, drift = pool.sum_of(np.square), pool.sum_of(lambda e: e * np.tanh(e / 2))
        if slack == 0 or math.isinf(squares) or math.isinf(drift):
            return total
        root = flint.arb(squares).sqrt()
        # Larger sums and a smaller slack only raise each term, so their safe sides give a safe answer.
        logs = [(flint.arb(1).exp() + root / slack).log(), (1 / flint.arb(slack)).log()]
        return min([total, *(rounded_up(drift + root * (2 * log).sqrt()) for log in logs)])


MOST_CHARGES = 10**10
"""The sum runs over some ten standard deviations, sqrt(k) terms; this many charges take seconds."""

_MOST_BITS = 1 << 14


def kov_exact_homogeneous(epsilon: float, k: int, delta_g: float, delta: float = 0.0) -> Bounds:
    """The least epsilon_g of k charges (epsilon, delta) at `delta_g`: no theorem can give less.

    Args:
        epsilon: The epsilon of each charge.
        k: How many charges there are.
        delta_g: The delta of the whole.
        delta: The delta of each charge.

    Returns:
        Bounds that hold the optimum; infinite where the charges leak more than `delta_g`.

    Raises:
        InvalidValue: If an argument is out of its range; a k that is too large for the sum has the closed form.

    Statement:
        The k-fold adaptive composition of (epsilon, delta)-DP mechanisms is (epsilon_g, delta_g)-DP with
            1 - delta_g = (1 - delta)^k (1 - D(epsilon_g)),
            D(x) = sum_i P[i] max(0, 1 - exp(x - L[i])),   L[i] = (k - 2i) epsilon,
            P[i] = C(k, i) exp((k - i) epsilon) / (1 + exp(epsilon))^k,
        and for no smaller epsilon_g does this hold for every such composition.
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.3.
    Assumes: k and the parameters fixed before the first answer; k <= `MOST_CHARGES`.
    Direction: charge `upper`; `lower` is for tests and reports only.
    Checked by: tests/theorems/test_kov_exact.py
    Departs from source: the theorem lists the points epsilon_g = L[i]; between them the same curve is evaluated,
        where it is a straight line in exp(epsilon_g).

    >>> bounds = kov_exact_homogeneous(0.1, 100, 1e-6)
    >>> round(bounds.estimate, 6), bounds.width < 1e-14
    (4.774568, True)
    >>> kov_exact_homogeneous(0.1, 100, 1e-6, delta=1e-7)  # the leaks alone are above delta_g
    Bounds(lower=inf, upper=inf, estimate=inf, proven=True)
    """
    epsilon, k = checked_epsilon(epsilon), checked_count(k, "k")
    if k > MOST_CHARGES:
        raise InvalidValue("k", k, f"must be at most {MOST_CHARGES}", "use kov_homogeneous_bound")
    delta_g, delta = checked_delta(delta_g, "delta_g"), checked_delta(delta)
    leaks = read_pool([0.0], [delta], [k])
    return optimum_of_equals(epsilon, k, lambda: leaks.left_by_product(delta_g))


_MOST_PRINTED = 10**6


def kov_homogeneous_as_printed(epsilon: float, k: int, delta_g: float, delta: float = 0.0) -> float:
    """Epsilon of k charges (epsilon, delta) at `delta_g`, from the list of points that the theorem prints.

    Args:
        epsilon: The epsilon of each charge.
        k: How many charges there are.
        delta_g: The delta of the whole.
        delta: The delta of each charge.

    Returns:
        The least of k epsilon, (k - 2) epsilon, ... that the list allows, rounded up; inf where the charges leak more
        than `delta_g`.

    Raises:
        InvalidValue: If an argument is out of its range.

    Statement:
        For i = 0, 1, ..., floor(k / 2) the k-fold adaptive composition of (epsilon, delta)-DP mechanisms is
        ((k - 2i) epsilon, 1 - (1 - delta)^k (1 - delta_i))-DP, with
            (1 + exp(epsilon))^k delta_i = sum over l < i of C(k, l) (exp((k - l) epsilon) - exp((k - 2i + l) epsilon)).
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.3, as printed.
    Assumes: k and the parameters fixed before the first answer; k <= 10^6.
    Direction: an upper bound, rounded up: less than 2 epsilon above the optimum, `kov_exact_homogeneous`, which lies
        between two points of the list.
    Checked by: tests/theorems/test_kov_exact.py

    >>> kov_homogeneous_as_printed(0.1, 100, 1e-6)
    4.8
    >>> round(kov_exact_homogeneous(0.1, 100, 1e-6).upper, 4)
    4.7746
    """
    epsilon, k = checked_epsilon(epsilon), checked_count(k, "k")
    if k > _MOST_PRINTED:
        raise InvalidValue("k", k, f"must be at most {_MOST_PRINTED}", "use kov_exact_homogeneous")
    delta_g, delta = checked_delta(delta_g, "delta_g"), checked_delta(delta)
    leaks = read_pool([0.0], [delta], [k])
    if epsilon == 0 or k == 0:
        return 0.0 if leaks.left_by_product(delta_g) >= 0 else math.inf
    # The two sums of delta_i agree in their first digits when epsilon is small.
    with precision(256 + 2 * math.ceil(max(0.0, -math.log2(epsilon)))):
        slack = leaks.left_by_product(delta_g)
        if not slack >= 0:
            return math.inf
        one = ball_of(exact(epsilon))
        fall, shrink = (-one).exp(), (-2 * one).exp()
        term = mirrored = (1 + fall) ** -k  # of l = 0, divided by exp(k epsilon)
        inside, outside, scale = term, mirrored, shrink
        best = 0
        for i in range(1, k // 2 + 1):
            # delta_i = sum over l < i of C(k, l) (exp(-l epsilon) - exp((l - 2i) epsilon)) / (1 + exp(-epsilon))^k
            if not inside - scale * outside <= slack:
                break
            best = i
            ratio = flint.arb(k - i + 1) / i
            term, mirrored = term * ratio * fall, mirrored * ratio / fall
            inside, outside, scale = inside + term, outside + mirrored, scale * shrink
    return float_up((k - 2 * best) * exact(epsilon))


def optimum_of_equals(epsilon: float, k: int, slack: Callable[[], Any]) -> Bounds:
    """The optimum of k epsilon-DP mechanisms at the delta `slack()`, a ball in the precision it is called in."""
    with precision(128):
        left = slack()
        if left < 0:
            return Bounds(math.inf, math.inf)
        undecided = not left >= 0
        total = Fraction(k) * Fraction(epsilon)
        if total == 0:
            return Bounds(0.0, math.inf if undecided else 0.0)
        # D reaches 0 at the largest loss and not before; a slack of unknown sign cannot be inverted.
        if not left > 0:
            lower = rounded_down(ball_of(total)) if left.is_zero() else 0.0
            return Bounds(lower, math.inf if undecided else rounded_up(ball_of(total)))
        place = _place(epsilon, k, rounded_down(left.log()))
    # A plateau of D ends 2 epsilon after it began; telling its ends apart takes that many digits.
    bits, digits = 128 + min(_MOST_BITS, int(3 * min(epsilon, _MOST_BITS))), -1
    while True:
        with precision(bits):
            bounds = _Enclosure(epsilon, k, left := slack()).bounds(place)
        former, digits = digits, left.rel_accuracy_bits()
        # A slack that was added up in floats gets no better, and so does nothing that rests on it.
        stuck = digits < bits and digits <= former
        if bounds.width <= 4 * math.ulp(bounds.upper) or bits >= _MOST_BITS or stuck:
            return bounds
        bits *= 2


@dataclass
class _Enclosure:
    """D at one working precision, as the largest of the lines A - exp(x - L[m]) B, one for each m."""

    epsilon: float
    k: int
    slack: Any
    lines: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def bounds(self, m: int) -> Bounds:
        last = (self.k - 1) // 2  # the cell that holds 0, or ends at it
        m = max(0, min(m, last))
        visited = set()
        while m not in visited:  # the float search may be off by a few cells; walk to the right one
            visited.add(m)
            a, b = self.line(m)
            height = (a - self.slack) / b
            if height > 1 and m > 0:
                m -= 1
            elif height < (-2 * flint.arb(self.epsilon)).exp() and m < last:
                m += 1
        # Each line lies below D, so where it meets the slack D is still at or above it: a lower bound, for any m.
        # A line that never meets the slack says nothing, and the search starts at 0.
        crossing = self.loss(m) + height.log() if height > 0 else flint.arb(0)
        upper = self.least_good(max(0.0, rounded_up(crossing)))
        return Bounds(min(max(0.0, rounded_down(crossing)), upper), upper)

    def least_good(self, start: float) -> float:
        """The first float from `start` on, in growing steps, where D is surely at most the slack."""
        top = rounded_up(self.loss(0))
        step = math.ulp(start)
        while start < top:
            if self.surely_good(start):
                return start
            start, step = start + step, 2 * step
        return top  # D is 0 from the largest loss on

    def surely_good(self, x: float) -> bool:
        # The cell of x, exactly: the largest m with L[m] >= x. There line m is D itself.
        m = math.floor((self.k - Fraction(x) / Fraction(self.epsilon)) / 2)
        a, b = self.line(m)
        return bool(a - (flint.arb(x) - self.loss(m)).exp() * b <= self.slack)

    def loss(self, m: int) -> Any:
        return ball_of((self.k - 2 * m) * Fraction(self.epsilon))

    def line(self, m: int) -> tuple[Any, Any]:
        """A = sum of P[i] and B = sum of P[i] exp(L[m] - L[i]), over i = m, m - 1, ..., 0."""
        if m not in self.lines:
            self.lines[m] = _line(self.epsilon, self.k, m)
        return self.lines[m]


def _line(epsilon: float, k: int, m: int) -> tuple[Any, Any]:
    one = flint.arb(epsilon)
    up, down = one.exp(), (-one).exp()
    # P[m] = C(k, m) exp(-m epsilon) / (1 + exp(-epsilon))^k
    p = flint.arb.bin_uiui(k, m) * (-m * one).exp() / (1 + down) ** k
    q = p
    a, b = p, q
    negligible = flint.arb(2) ** -flint.ctx.prec
    for i in range(m, 0, -1):
        ratio = flint.arb(i) / (k - i + 1)
        p *= ratio * up  # P[i - 1] / P[i] = i exp(epsilon) / (k - i + 1)
        q *= ratio * down  # the same times exp(L[i] - L[i - 1]) = exp(-2 epsilon)
        a += p
        b += q
        if i % 16 == 0:
            fall = flint.arb(i - 1) / (k - i + 2) * up
            # The ratios keep falling, so all later terms together are at most a geometric series.
            if fall < 1 and (rest := fall / (1 - fall)) * p < a * negligible:
                between_0_and_rest = rest * flint.arb(0.5, 0.5)
                return a + p * between_0_and_rest, b + q * between_0_and_rest
    return a, b


def _place(epsilon: float, k: int, log_slack: float) -> int:
    """The largest m with D(L[m]) <= slack, up to the rounding of floats."""
    low, high = 0, (k + 1) // 2  # D(L[0]) = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _log_delta(epsilon, k, middle) <= log_slack else (low, middle)
    return low


def _log_delta(epsilon: float, k: int, m: int) -> float:
    """log D(L[m]) for m >= 1 in floats: sum over i < m, from the largest term outwards."""
    chance = 1 / (1 + math.exp(min(epsilon, 700)))
    reach = 200 + int(50 * math.sqrt(k * chance * (1 - chance)))
    anchor = min(m - 1, int(k * chance))
    falling = np.arange(anchor, max(0, anchor - reach), -1.0)
    rising = np.arange(anchor + 1, min(m - 1, anchor + reach) + 1.0)
    # anchor > 0 only if k >= exp(epsilon), so that the exponential cannot overflow where it is used.
    below = np.cumprod(falling / (k - falling + 1) * math.exp(min(epsilon, 700)))
    above = np.cumprod((k - rising + 1) / rising * math.exp(-epsilon))
    mass = np.concatenate([below[::-1], [1.0], above])
    first = anchor - len(below)
    gain = -np.expm1(-2 * epsilon * (m - first - np.arange(len(mass))))
    log_anchor = (
        math.lgamma(k + 1)
        - math.lgamma(anchor + 1)
        - math.lgamma(k - anchor + 1)
        - anchor * epsilon
        - k * math.log1p(math.exp(-epsilon))
    )
    total = float(mass @ gain)
    return log_anchor + math.log(total) if total > 0 else -math.inf
