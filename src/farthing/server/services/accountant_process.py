"""The accountant in a process of its own: questions on standard input, answers on standard output, a line of JSON each.

Run by its path and not as a part of the server, so that it starts with the arithmetic alone. What it cannot answer in
time is stopped from outside (see `AccountantProcess`); nothing private ever comes here.
"""

from __future__ import annotations

import json
import logging
import math
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from farthing.accounting.comparison import Comparison, charges_of_pairs, comparison_of
from farthing.accounting.composition_game import CompositionGame
from farthing.accounting.filters import ClockFilter
from farthing.accounting.region_boundaries import GRID, epsilons_of_equals, lower_boundaries
from farthing.errors import FarthingError, InvalidValue, RequestRefused
from farthing.numerics.bounds import rounded_text, rounded_up_text
from farthing.privacy import ApproxDP, Event, GaussianNoise, LaplaceNoise

SECONDS = 8.0  # that an answer may take
STARTING = 30.0  # that the process may take to begin
WAITING = 9.0  # to wait for the questions before
_log = logging.getLogger("farthing.server")
_PROGRAM = Path(__file__)


class AccountantProcess:
    """A process that answers one question at a time; started when it is first needed."""

    def __init__(self, seconds: float = SECONDS, waiting: float = WAITING) -> None:
        self._seconds, self._waiting = seconds, waiting
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, what: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The answer; refuses what is wrong, what takes too long, and what comes while too much else waits."""
        if not self._turn.acquire(timeout=self._waiting):
            raise RequestRefused(
                "rate_limited",
                "the accountant is busy with other questions; ask again in a few seconds.",
                {"retry_after": 5},
            )
        try:
            reply = self._answer(json.dumps({"what": what, "with": dict(facts)}, allow_nan=False))
        finally:
            self._turn.release()
        if "answer" in reply:
            result: dict[str, Any] = reply["answer"]
            return result
        if "refused" in reply:
            refusal = dict(reply["refused"])
            raise RequestRefused("invalid_value", refusal.pop("message"), refusal)
        if "failed" in reply:
            _log.warning("a question about %s could not be worked out (%s)", what, reply["failed"])
            raise RequestRefused(
                "invalid_value",
                "these numbers are too far apart to compute with; use ones nearer to 1.",
            )
        raise RequestRefused(
            "too_large",
            f"this takes more than {self._seconds:g} seconds to prove; ask about fewer charges, or more similar ones, "
            "or use `farthing compose`, which has no such limit.",
        )

    def close(self) -> None:
        """End the process, if there is one."""
        with self._turn:
            self._stop()

    def _answer(self, question: str) -> dict[str, Any]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = _started()
            self._line(STARTING)
        line = self._line(self._seconds, question)
        reply: dict[str, Any] = json.loads(line) if line else {}
        return reply

    def _line(self, seconds: float, question: str | None = None) -> str:
        """The next line of the process; empty if it took too long and was stopped, or died of the question."""
        process = self._process
        if process is None:
            return ""
        assert process.stdin is not None and process.stdout is not None
        late = threading.Timer(seconds, process.kill)
        late.daemon = True
        late.start()
        try:
            if question is not None:
                process.stdin.write(question + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            late.cancel()
        if line.endswith("\n"):
            return line
        self._stop()
        return ""

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _started() -> subprocess.Popen[str]:
    # -P: a file beside it that is named like a module must not be imported. One thread: others want the cores too.
    return subprocess.Popen(
        [sys.executable, "-P", str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )


LEAST_DRAWN = 1e-12
MEMORY = 3 << 30  # bytes that a question may need
_NOISES: dict[str, Callable[[float], Event]] = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}


def composed(charges: list[Mapping[str, Any]], delta: float) -> dict[str, Any]:
    """The optimum beside every theorem.

    >>> result = composed([{"epsilon": 0.1, "count": 100}], 1e-6)
    >>> round(result["optimal"]["upper"], 4), result["sentence"]
    (4.7746, '100 mechanisms together cost epsilon 4.775 at delta 1e-06; adding up says 10, 109 % more.')
    """
    pairs = [(_event(charge), int(charge.get("count", 1))) for charge in charges]
    comparison = comparison_of(charges_of_pairs(pairs), delta)
    return {
        "k": comparison.k,
        "delta": delta,
        "optimal": {"lower": _finite(comparison.optimal.lower), "upper": _finite(comparison.optimal.upper)},
        "theorems": [
            {
                "name": line.name,
                "epsilon": _finite(line.epsilon) if line.applies else None,
                "waste_percent": _finite(line.waste_percent),
                "source": line.source,
                "remark": line.note,
            }
            for line in comparison.lines
        ],
        "engine": comparison.engine,
        "sentence": _sentence(comparison),
        "notes": list(comparison.notes),
    }


def regions(k: int, epsilon: float, delta: float, at_delta: float) -> dict[str, Any]:
    """The region of error rates that each theorem leaves to an attacker, and epsilon on the way from 1 to k mechanisms.

    >>> result = regions(k=30, epsilon=0.1, delta=0.001, at_delta=0.1)
    >>> [region["theorem"] for region in result["regions"]], result["epsilon_of"][-1]["k"]
    (['basic', 'advanced', 'kov', 'optimal'], 30)
    """
    # A smaller epsilon looks the same, and the engines need numbers that are not lost beside 1.
    curves = lower_boundaries(max(epsilon, LEAST_DRAWN) if epsilon else 0.0, delta, k)
    return {
        "regions": [
            {
                "theorem": key,
                "points": [[float(a), _between(float(b))] for a, b in zip(GRID, curve, strict=True)],
            }
            for key, curve in curves.items()
        ],
        "epsilon_of": [
            {
                "k": fold,
                **{key: _finite(value) for key, value in epsilons_of_equals(epsilon, delta, fold, at_delta).items()},
            }
            for fold in _folds(k)
        ],
    }


def played(
    epsilon: float, delta: float, charges: list[Mapping[str, Any]], seed: int | None, finished: bool
) -> dict[str, Any]:
    """The adaptive composition game so far: the same seed and charges give the same answers, so nothing is kept.

    >>> game = played(1.0, 0.01, [{"epsilon": 0.4}, {"epsilon": 3.0}], seed=3, finished=False)
    >>> [one["answer"] for one in game["rounds"]], game["outcome"]
    ([1.0, None], None)
    """
    number = random.SystemRandom().getrandbits(31) if seed is None else seed
    game = CompositionGame(ClockFilter(epsilon, delta, leak=0), seed=number)
    for charge in charges:
        game.ask(_event(charge))
    outcome = game.finish() if finished else None
    return {
        "seed": number,
        "epsilon": epsilon,
        "delta": delta,
        "rounds": [
            {"answer": one.answer, "loss": one.loss, "total": one.total, "remaining": one.remaining}
            for one in game.rounds
        ],
        "total": game.total,
        "remaining": game.remaining,
        "outcome": None
        if outcome is None
        else {
            "secret": outcome.secret,
            "guess": outcome.guess,
            "right": outcome.right,
            "loss": outcome.loss,
            "right_at_most": outcome.right_at_most,
            "sentence": outcome.sentence,
        },
    }


_QUESTIONS: dict[str, Callable[..., dict[str, Any]]] = {"composed": composed, "regions": regions, "played": played}


def answer(line: str) -> dict[str, Any]:
    """The reply to a question: `answer`, or `refused` with the fields of the refusal.

    >>> answer('{"what": "regions", "with": {"k": 1, "epsilon": 1, "delta": 2, "at_delta": 0}}')["refused"]["name"]
    'delta'
    """
    asked = json.loads(line)
    try:
        return {"answer": _QUESTIONS[asked["what"]](**asked["with"])}
    except InvalidValue as refusal:
        return {
            "refused": {
                "message": str(refusal),
                "name": refusal.name,
                "rule": refusal.rule,
                "way_out": refusal.way_out,
            }
        }
    except FarthingError as refusal:
        return {"refused": {"message": str(refusal)}}
    except (MemoryError, ArithmeticError, RecursionError, TypeError, ValueError, AssertionError) as problem:
        return {"failed": type(problem).__name__}  # of numbers that are too large, too small or too many


def _event(charge: Mapping[str, Any]) -> Event:
    noise = charge.get("noise")
    if noise is not None:
        return _NOISES[noise](charge["multiplier"])
    return ApproxDP(charge["epsilon"], charge.get("delta", 0.0))


def _sentence(comparison: Comparison) -> str:
    several = "1 mechanism costs" if comparison.k == 1 else f"{comparison.k:,} mechanisms together cost"
    if comparison.reason:
        return f"No finite epsilon exists: {comparison.reason}."
    optimum, delta = rounded_up_text(comparison.optimal.upper, 4), rounded_text(comparison.delta, 3)
    whole = f"{several} epsilon {optimum} at delta {delta}"
    plain = next((line for line in comparison.lines if line.name == "basic sum" and line.applies), None)
    if plain is None or not math.isfinite(plain.epsilon) or not plain.waste_percent:
        return f"{whole}; adding up gains or loses nothing here."
    if plain.waste_percent < 1:
        return f"{whole}; adding up says {rounded_up_text(plain.epsilon, 4)}: no gain yet (less than 1 %)."
    more = f"{plain.waste_percent:,.0f} % more" if plain.waste_percent < 1e6 else "more than 10,000 times as much"
    return f"{whole}; adding up says {rounded_up_text(plain.epsilon, 4)}, {more}."


def _folds(k: int, most: int = 32) -> list[int]:
    """Numbers from 1 to k, both included, in even steps of their logarithms."""
    return sorted({1, k, *(round(k ** (step / most)) for step in range(most))})


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _between(value: float) -> float:
    return min(1.0, max(0.0, value))


def main() -> None:
    """Say when everything is loaded, then answer until the input ends."""
    _limit_memory()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line), allow_nan=False), flush=True)


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    except (ImportError, OSError, ValueError):  # not everywhere; the limit of time holds everywhere
        return


if __name__ == "__main__":
    main()
