"""One run of a threshold mechanism: it holds the secret noise, answers one question at a time, and stops."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from farthing.errors import BudgetExceeded, FarthingError
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers.single_draws import Bits, geometric


@dataclass(frozen=True, slots=True)
class Above:
    """The noisy value was at or above the noisy threshold; `gap` says by how much, if that was asked for.

    Attributes:
        gap: By how much the noisy value passed the noisy threshold; None where no gap was asked for.

    >>> bool(Above(gap=12))
    True
    """

    gap: float | None = None

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Below:
    """The noisy value was below the noisy threshold.

    >>> bool(Below())
    False
    """

    def __bool__(self) -> bool:
        return False


class ThresholdSession:
    """Questions in, `Above` or `Below` out, until the stated number of positives is used up.

    Made by `AboveThreshold.start` and `SparseVector.start`. Threads may share a session: questions are answered one
    after the other. It cannot be copied, pickled or carried into a forked process, for each copy would give its own
    positives against the same secret noise.

    Args:
        threshold: The threshold, in whole steps.
        rates: The rates of the noise on the threshold and on the answers.
        positives: After how many answers above the threshold the session stops.
        fresh: Whether to draw the threshold's noise again after each positive.
        read: Turns a private value into whole steps, or refuses it.
        show_gap: Turns a gap in steps into units of the value; None where no gap is asked for.
        source: Where random bits come from.

    >>> from farthing.mechanisms.sparse_vector import SparseVector
    >>> session = SparseVector(epsilon=1.0, positives=2).start(threshold=1000)
    >>> session.ask(9000), session.positives_left
    (Above(gap=None), 1)
    >>> session
    ThresholdSession(positives_left=1)
    """

    __slots__ = (
        "_bits",
        "_fresh",
        "_left",
        "_lock",
        "_noise",
        "_process",
        "_rates",
        "_read",
        "_show_gap",
        "_threshold",
    )

    def __init__(
        self,
        *,
        threshold: int,
        rates: tuple[Fraction, Fraction],
        positives: int,
        fresh: bool,
        read: Callable[[object], int],
        show_gap: Callable[[int], float] | None,
        source: Source,
    ) -> None:
        self._threshold = threshold
        self._rates = rates
        self._left = positives
        self._fresh = fresh
        self._read = read
        self._show_gap = show_gap
        self._bits = Bits(source)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._noise = geometric(rates[0], self._bits)

    @property
    def positives_left(self) -> int:
        """How many answers may still be "above"."""
        return self._left

    @property
    def stopped(self) -> bool:
        """Whether the last positive has been given; from then on `ask` refuses."""
        return self._left == 0

    def ask(self, value: object) -> Above | Below:
        """Whether this private value is above the threshold; a value of the wrong kind is refused and costs nothing.

        Args:
            value: The private value.

        Returns:
            `Above` or `Below`; both can be read as a truth value.

        Raises:
            InvalidData: If the value has the wrong form.
            BudgetExceeded: If the positives are used up.
            FarthingError: If the process was forked since the session started.
        """
        return self._ask_steps(self._read(value))

    def _ask_steps(self, value: int) -> Above | Below:
        if os.getpid() != self._process:
            raise FarthingError("this session belongs to the process that started it; start and pay for another.")
        with self._lock:
            if self._left == 0:
                raise BudgetExceeded(
                    "this session has given its last positive; start and pay for another.",
                    requested=1,
                    remaining=0,
                )
            gap = value + geometric(self._rates[1], self._bits) - self._threshold - self._noise
            if gap < 0:
                return Below()
            self._left -= 1
            if self._fresh and self._left:
                self._noise = geometric(self._rates[0], self._bits)
            return Above(None if self._show_gap is None else self._show_gap(gap))

    def __repr__(self) -> str:
        return f"ThresholdSession(positives_left={self._left})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a session cannot be copied or pickled: a copy would answer with the same noise")
