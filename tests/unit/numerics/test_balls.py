"""Ways in and out of ball arithmetic: outward only, and the working precision is put back."""

from __future__ import annotations

import math
import os
import signal
import threading
from fractions import Fraction

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.numerics.bounds import around, down, lower_fraction, precision, up, upper_fraction


@pytest.mark.slow
@given(st.fractions(min_value=-(10**20), max_value=10**20), st.integers(4, 300))
def test_down_and_up_enclose_every_fraction(value: Fraction, bits: int) -> None:
    with precision(bits):
        ball = flint.arb(flint.fmpq(value.numerator, value.denominator))
        assert Fraction(down(ball)) < value < Fraction(up(ball))


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1e10))
def test_around_holds_its_whole_radius(value: float, error: float) -> None:
    with precision(64):
        ball = around(value, error)
    assert down(ball) <= value - error and up(ball) >= value + error


@pytest.mark.slow
@given(st.fractions(min_value=-(10**20), max_value=10**20), st.integers(4, 300))
def test_fractions_enclose_a_ball(value: Fraction, bits: int) -> None:
    with precision(bits):
        ball = flint.arb(flint.fmpq(value.numerator, value.denominator))
        lower, upper = lower_fraction(ball), upper_fraction(ball)
    assert lower is not None and upper is not None and lower <= value <= upper


def test_fractions_of_absurd_exponents_stay_short() -> None:
    """Written out, e^(-10^13) has 10^13 bits: a charge that small once filled the memory."""
    tiny, huge = (-(flint.arb(10) ** 13)).exp(), (flint.arb(10) ** 13).exp()
    assert upper_fraction(tiny) == -(lower_fraction(-tiny) or 0) > 0
    assert lower_fraction(tiny) == upper_fraction(-tiny) == 0
    assert upper_fraction(huge) is None and lower_fraction(-huge) is None
    assert (lower_fraction(huge) or 0) > 2**1024 and (upper_fraction(-huge) or 0) < -(2**1024)


def test_what_no_double_reaches_goes_outward() -> None:
    huge, tiny = flint.arb(10) ** 400, flint.arb(10) ** -400
    assert up(huge) == math.inf and 0 < down(huge) < math.inf
    assert down(-huge) == -math.inf
    assert up(tiny) == 5e-324 and down(tiny) <= 0


@pytest.mark.parametrize("ball", [flint.arb("nan"), flint.arb(0, math.inf), 1 / flint.arb(0)])
def test_a_ball_that_says_nothing_gives_the_whole_line(ball: flint.arb) -> None:
    assert (down(ball), up(ball)) == (-math.inf, math.inf)


def test_precision_is_put_back_even_after_an_error() -> None:
    before = flint.ctx.prec
    with precision(333):
        assert flint.ctx.prec == 333
        with precision(77):
            assert flint.ctx.prec == 77
        assert flint.ctx.prec == 333
    with pytest.raises(ZeroDivisionError), precision(999):
        _ = 1 / 0
    assert flint.ctx.prec == before


def test_threads_never_see_each_others_precision() -> None:
    wrong: list[int] = []

    def work(bits: int) -> None:
        for _ in range(200):
            with precision(bits):
                flint.arb(2).sqrt()
                if flint.ctx.prec != bits:
                    wrong.append(bits)

    threads = [threading.Thread(target=work, args=(bits,)) for bits in (64, 200, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.draws(false_alarm=0, miss=0)  # nothing is drawn
def test_a_forked_process_does_not_wait_for_a_thread_it_does_not_have() -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with precision(300):
            held.set()
            done.wait(600)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(600)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits forever is ended by the system
        with precision(100):
            os._exit(0 if flint.ctx.prec == 100 else 1)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
