"""StreamFilter: its table against a slow twin at 40 digits, games against analysts, streams of different charges."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from benchmarks.clock_games import Game, Question, played
from benchmarks.clock_streams import drawn_stream
from benchmarks.stream_games import FAULTS, Coarse, for_game, stream_games
from benchmarks.stream_limits import TwoSizes

from farthing.accounting import compose
from farthing.accounting.filters import ClockFilter, StreamFilter, stream_table
from farthing.accounting.filters.clock_costs import CLOCK_UNITS
from farthing.errors import InvalidValue
from farthing.privacy import ApproxDP, GaussianNoise, LaplaceNoise, Sampled

mpf = mpmath.mpf


class Twin:
    """V_k by its definition: chords as functions, Gaussian cells by normal integrals."""

    def __init__(self, lattice: Any, clock: Fraction) -> None:
        self.points = [mpf(lattice.h) * n for n in range(lattice.low, lattice.high + 1)]
        self.h, self.low, self.clock = mpf(lattice.h), lattice.low, mpf(clock.numerator) / clock.denominator
        self.reach = len(lattice.noise) // 2

    def chord(self, values: list[Any], x: Any) -> Any:
        y = mpmath.exp(-x)
        if x <= self.points[0]:
            return values[0]
        if x >= self.points[-1]:
            return 1 - y / mpmath.exp(-self.points[-1]) * (1 - values[-1])
        n = min(int(mpmath.floor(x / self.h)) - self.low, len(values) - 2)
        low, high = mpmath.exp(-self.points[n]), mpmath.exp(-self.points[n + 1])
        return values[n] + (low - y) / (low - high) * (values[n + 1] - values[n])

    def response(self, values: list[Any], size: float) -> list[Any]:
        e = mpf(size)
        truth = 1 / (1 + mpmath.exp(-e))
        return [truth * self.chord(values, x + e) + (1 - truth) * self.chord(values, x - e) for x in self.points]

    def curve(self, clock: Any) -> list[Any]:
        root = mpmath.sqrt(clock)
        moved = [((x + clock / 2) / root, (x - clock / 2) / root) for x in self.points]
        pairs = zip(self.points, moved, strict=True)
        return [mpmath.ncdf(up) - mpmath.exp(-x) * mpmath.ncdf(down) for x, (up, down) in pairs]

    def noise(self, values: list[Any]) -> list[Any]:
        """In every cell a chord is A - B e^-z: its integral is A times the mass under P less B times that under Q."""
        root, s, total = mpmath.sqrt(self.clock), self.clock, []
        for x in self.points:
            mean = mpmath.ncdf((-self.reach * self.h - s / 2) / root) * self.chord(values, x - self.reach * self.h)
            mean += mpmath.ncdf((-self.reach * self.h + s / 2) / root)
            for n in range(-self.reach, self.reach):
                a, b = n * self.h, (n + 1) * self.h
                left, right = self.chord(values, x + a), self.chord(values, x + b)
                fall = (right - left) / (mpmath.exp(-a) - mpmath.exp(-b))
                p, q = (mpmath.ncdf((b + t) / root) - mpmath.ncdf((a + t) / root) for t in (-s / 2, s / 2))
                mean += (left + fall * mpmath.exp(-a)) * p - fall * q
            total.append(mean)
        return total


@pytest.mark.slow
def test_the_table_is_what_its_definition_says_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_table, "_CELLS", 2)
    prices = stream_table._Prices.of(1.0, 0.0331 / 60, 60, 0.1)
    assert prices is not None
    clock = Fraction(331, 10**4 * 60)
    lattice = stream_table._Lattice.of(1.0, clock, prices, 1e-9)
    menus = [menu._replace(prices=menu.prices[::4], sizes=menu.sizes[::4]) for menu in map(prices.menu, range(1, 5))]
    count, rows = lattice.layer(menus, 1, 1.0)
    assert count == 4 and any(n > 1 for menu in menus for n in menu.prices)
    bonus = Fraction(3, 1000)
    _, beside = lattice.layer(menus, 1, 1.0, rows, bonus)
    with mpmath.workdps(40):
        twin = Twin(lattice, clock)
        plain = _twin_rows(twin, menus, [max(mpf(0), -mpmath.expm1(-x)) for x in twin.points])
        raised = _twin_rows(twin, menus, twin.curve(mpf(3) / 1000), plain)
        inner = slice(lattice.margin, -lattice.margin)
        for row, exact in zip([*rows, *beside], [*plain, *raised], strict=True):
            for value, true in zip(row[inner], exact, strict=True):
                assert true * (1 - mpf("1e-14")) <= value <= true * (1 + mpf("1e-9")) + mpf("1e-30")


def _twin_rows(twin: Twin, menus: list[Any], ends: list[Any], after: list[Any] | None = None) -> list[Any]:
    """V_0 .. V_4, with what a charge on the menu leads to."""
    rows = [ends]
    for k, menu in enumerate(menus, start=1):
        moves = [twin.noise(rows[k - 1])]
        asked = zip(menu.prices, menu.sizes, strict=True)
        moves += [twin.response((after or rows)[k - n], size) for n, size in asked if n <= k]
        rows.append([max(column) for column in zip(*moves, strict=True)])
    return rows


def _game(epsilon: float, delta: float, *charges: tuple[Any, int]) -> Game:
    return Game(epsilon, delta, 0.0, 0.02, tuple(Question(charge, size, size) for charge, size in charges))


GAMES = {
    "MoreUnits": _game(1.381620059, 6.95e-06, (ApproxDP(0.08), 4), (GaussianNoise(9.974698252548835), 4)),
    "HalfExchange": _game(0.731899775, 0.00165, (ApproxDP(0.08), 4), (GaussianNoise(9.974698252548835), 4)),
    "SmallerSizes": _game(1.27543816, 5.95e-09, (ApproxDP(0.12), 6), (ApproxDP(0.06), 3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_an_analyst_wins_against_a_planted_fault_and_not_against_the_filter(fault: type[Coarse]) -> None:
    game = GAMES[fault.__name__]
    assert game.reached(for_game(fault)(game)) > 1.2 * game.delta
    assert game.reached(for_game(Coarse)(game)) <= game.delta


@pytest.mark.slow
def test_no_game_is_lost() -> None:
    outcome = played(itertools.islice(stream_games(2), 20), for_game(Coarse), 5)
    assert outcome.games == 5 and outcome.holds and outcome.worst > 0.3, outcome


def _admitted(budget: ClockFilter, stream: list[Any]) -> int:
    for count, event in enumerate(stream):
        if not budget.admits(event):
            return count
        budget = budget.charge(event)
    return len(stream)


@pytest.mark.slow
def test_streams_of_different_charges_come_near_the_optimum_of_fixed_ones_and_never_exceed_it() -> None:
    draw, counts = random.Random(1), []
    for mixed in (False, True, False, True):
        stream = drawn_stream(draw, mixed, count=90)
        most = _admitted(StreamFilter(1.0, 1e-9, leak=0), stream)
        assert compose(stream[:most]).epsilon_at(1e-9).upper <= 1.0
        within = next(n for n in range(most, 90) if compose(stream[: n + 1]).epsilon_at(1e-9).upper > 1.0)
        counts.append((_admitted(ClockFilter(1.0, 1e-9, leak=0), stream), most, within))
    clock, streams, fixed = (sum(column) for column in zip(*counts, strict=True))
    assert 0.87 * fixed < streams <= fixed and streams > 1.05 * clock


def _small(**more: Any) -> Coarse:
    return Coarse(1.0, 1e-9, leak=0, largest=0.05, **more)


def test_gaussian_noise_takes_its_clock_and_other_charges_what_the_menu_says() -> None:
    budget = _small()
    table, start = budget._table, budget._clock
    assert start is not None and table.bonus > 0 and table.count * table.unit + table.bonus == start
    noisy = budget.charge(GaussianNoise(50.0), count=3)
    assert noisy._clock == start - 3 * CLOCK_UNITS // 2500
    assert 0 <= noisy._pocket < table.step * table.unit
    price = table.price(Fraction(1, 25), table.count)
    assert price and budget.charge(0.04)._units == budget.charge(LaplaceNoise(25.0))._units == table.count - price
    assert price * table.unit < 0.95 * CLOCK_UNITS * 0.04**2


def test_the_first_charge_on_the_menu_takes_the_bonus_and_small_ones_and_noise_may_have_it() -> None:
    budget = _small()
    table, start = budget._table, budget._clock
    assert start is not None
    charged = budget.charge(0.04).charge(0.04)
    assert charged._bonus == 0 and charged._clock == charged._units * table.unit
    small = budget.charge(0.005)
    assert small._bonus == table.bonus and small._units < table.count
    whole = GaussianNoise(math.sqrt(CLOCK_UNITS / (start - table.step * table.unit)))
    assert start > 0.96 * budget.PARTS * table.unit and budget.admits(whole) and budget.charge(whole)._bonus == 0
    assert not budget.charge(0.04).admits(whole)


def test_a_bonus_that_charges_on_the_menu_do_not_take_would_not_be_paid_for() -> None:
    table = _small()._table
    lattice, menus = _lattice(table), list(table.menus)
    slack, bonus = 1e-9, Fraction(table.bonus, CLOCK_UNITS)
    count, rows = lattice.layer(menus, table.step, slack)
    taken, _ = lattice.layer(menus, table.step, slack, rows, bonus)
    kept, _ = lattice.layer(menus, table.step, slack, None, bonus)
    assert kept < 0.99 * taken and 0.98 * count < taken <= count
    assert table.count in (taken, taken - 1)


def _lattice(table: stream_table.StreamTable) -> stream_table._Lattice:
    unit = Fraction(table.unit, CLOCK_UNITS)
    prices = stream_table._Prices.of(1.0, float(unit), Coarse.PARTS, 0.05)
    assert prices is not None and prices.step == table.step
    return stream_table._Lattice.of(1.0, unit, prices, 1e-9)


def test_small_charges_and_noise_have_nearly_what_the_clock_alone_gives_them() -> None:
    stream, clock = StreamFilter(1.0, 1e-6, leak=0), ClockFilter(1.0, 1e-6, leak=0, equal_charges=False)
    for charge in (0.01, GaussianNoise(100.0)):
        assert 0.97 * clock._most(charge) < stream._most(charge) <= clock._most(charge)  # type: ignore[arg-type]


@pytest.mark.parametrize("charge", [0.001, 0.12, Sampled(GaussianNoise(5.0), 0.01), LaplaceNoise(500.0)])
def test_what_is_not_on_the_menu_pays_as_on_a_clock_that_is_no_longer_than_the_units(charge: Any) -> None:
    budget, clock = Coarse(1.0, 1e-6, largest=0.05), ClockFilter(1.0, 1e-6, equal_charges=False)
    after, beside = budget.charge(charge), clock.charge(charge)
    assert None not in (after._clock, beside._clock, budget._clock, clock._clock)
    spent, dear = budget._clock - after._clock, clock._clock - beside._clock  # type: ignore[operator]
    assert dear <= spent <= 1.3 * dear + budget._table.step * budget._table.unit
    assert after._pocket >= 0


def test_when_nothing_pays_any_more_plain_sums_go_on_and_what_remains_fits() -> None:
    budget = _small().charge(0.05, count=15)
    assert budget.admits(budget.remaining.epsilon) and not budget.admits(budget.remaining.epsilon * 1.001)
    over = _small().charge(0.9)
    assert over._clock is None and over.admits(0.1) and not over.admits(0.11)


@pytest.mark.parametrize("make", [lambda: Coarse(0.1, 0.3, leak=0), lambda: Coarse(3.0, 1e-6, leak=0, largest=0.01)])
def test_where_all_sizes_are_too_small_for_a_menu_the_clock_is_whole(make: Callable[[], Coarse]) -> None:
    budget = make()
    whole = ClockFilter(budget.epsilon, budget.delta, leak=0)
    assert budget._clock == whole._clock and budget._units == 0
    assert math.isclose(budget.charge(0.01).spent.epsilon, whole.charge(0.01).spent.epsilon)


def test_a_largest_charge_above_the_budget_is_refused() -> None:
    with pytest.raises(InvalidValue, match="largest"):
        StreamFilter(1.0, 1e-9, largest=1.5)


def test_no_filter_promises_95_of_100_charges_of_every_stream() -> None:
    """Theorem 7, and that its programme knows what could have been fixed in advance."""
    game = TwoSizes(1.0, 1e-9, 0.02, 2)
    assert game.fixed[0] == 88 and len(game.fixed) == 28
    for large in (0, 9, 20):
        for more, fits in ((0, True), (1, False)):
            charges = compose([0.04, 0.02], counts=[large, game.fixed[large] + more])
            assert (charges.epsilon_at(1e-9).upper <= 1.0) == fits
    assert game.reached(0.95) > 1.4 and game.reached(1.0) > 2.2 and game.reached(0.85) < 1
