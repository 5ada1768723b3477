"""What the accountant answers: a line of JSON for each question on standard input.

Run by its path and not as a part of the server, so that it starts with the arithmetic alone. What it cannot answer in
time is stopped from outside (see `AccountantProcess`); nothing private ever comes here.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from farthing.accounting.comparison import Comparison, charges_of_pairs, comparison_of
from farthing.accounting.composition_game import Budget, CompositionGame, FixedCharges, Strategy, right_at_most
from farthing.accounting.filters import ClockFilter
from farthing.accounting.finite_distributions import Pair, checked_pair, leaky_response, odds_above
from farthing.accounting.game_strategies import at_once, compete, planned, pressing, steady
from farthing.accounting.region_boundaries import GRID, epsilons_of_equals, lower_boundaries
from farthing.accounting.regions import Region
from farthing.accounting.simulation import Simulation, simulate
from farthing.accounting.theorems import count_equal_product_partitions
from farthing.errors import FarthingError, InvalidValue
from farthing.numerics.bounds import number_text, rounded_text, rounded_up_text
from farthing.privacy import ApproxDP, Event, GaussianNoise, LaplaceNoise

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
    epsilon: float,
    delta: float,
    charges: list[Mapping[str, Any]],
    seed: int | None,
    finished: bool,
    fixed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The adaptive composition game so far: the same seed and charges give the same answers, so nothing is kept.

    With `fixed`, the parameters of all rounds are fixed, and only the mechanisms are chosen on the way.

    >>> game = played(1.0, 0.01, [{"epsilon": 0.4}, {"epsilon": 3.0}], seed=3, finished=False)
    >>> [one["answer"] for one in game["rounds"]], game["outcome"]
    ([1.0, None], None)
    >>> fixed = played(1.0, 0.01, [{"epsilon": 0.2}], 3, finished=False, fixed={"epsilon": 0.2, "count": 20})
    >>> round(fixed["epsilon"], 2), fixed["rounds"][0]["spent"] <= 0.2
    (1.94, True)
    """
    number = random.SystemRandom().getrandbits(31) if seed is None else seed
    game = CompositionGame(_budget(epsilon, delta, fixed), seed=number)
    for charge in charges:
        game.ask(_event(charge))
    outcome = game.finish() if finished else None
    return {
        "seed": number,
        "epsilon": game.budget.epsilon,
        "delta": delta,
        "rounds": [
            {
                "answer": one.answer,
                "loss": one.loss,
                "total": one.total,
                "remaining": one.remaining,
                "spent": one.spent,
            }
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


def rivals(epsilon: float, delta: float, fixed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Many games of several strategies with the same secrets and draws, under one budget.

    >>> table = rivals(1.0, 0.01)
    >>> len(table["rivals"]), all(0 <= one["right"] <= 1 for one in table["rivals"])
    (3, True)
    """
    budget = _budget(epsilon, delta, fixed)
    if isinstance(budget, FixedCharges):
        each = float(fixed["epsilon"]) if fixed is not None else 0.0
        strategies: dict[str, Strategy] = {
            "always the most that is allowed": planned(budget),
            "half as much every time": steady(each / 2),
        }
    else:
        strategies = {
            "all at once": at_once,
            "small steps of the same size": steady(epsilon / 10),
            "more while the answers agree": pressing(epsilon / 10),
        }
    tallies = compete(strategies, budget, GAMES)
    return {
        "games": GAMES,
        "right_at_most": right_at_most(budget.epsilon, budget.delta),
        "delta": delta,
        "rivals": [
            {
                "name": name,
                "right": one.right,
                "delta_reached": one.delta_reached,
                "standard_error": one.standard_error,
            }
            for name, one in tallies.items()
        ],
    }


def _budget(epsilon: float, delta: float, fixed: Mapping[str, Any] | None) -> Budget:
    if fixed is None:
        return ClockFilter(epsilon, delta, leak=0)
    return FixedCharges([fixed["epsilon"]] * fixed["count"], delta)


def compared(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Two mechanisms by their regions: which can be made from answers of the other, and how, or why not.

    >>> coin = {"P": ["3/4", "1/4"], "Q": ["1/4", "3/4"]}
    >>> found = compared({"epsilon": 1.0986122886681098, "delta": 0.0}, coin)
    >>> found["relation"], [row["shares"] for row in found["second_from_first"]["rows"]][1:3]
    ('equal', [['1', '0'], ['0', '1']])
    >>> compared(coin, {"P": ["1"], "Q": ["1"]})["first_from_second"]["sentence"]
    'Saying that the person is there on answer 2 of the first has a false-alarm rate of 0.25 and misses 0.25...
    """
    one, other = (_pair(given) for given in (first, second))
    regions = Region.from_distributions(*one), Region.from_distributions(*other)
    forward, backward = simulate(one, other), simulate(other, one)
    relations = {
        (True, True): "equal",
        (True, False): "second inside first",
        (False, True): "first inside second",
        (False, False): "neither",
    }
    return {
        "relation": relations[forward.possible, backward.possible],
        "regions": [[[float(a), float(b)] for a, b in region.corners] for region in regions],
        "second_from_first": _simulation(forward, ("first", "second")),
        "first_from_second": _simulation(backward, ("second", "first")),
    }


def _pair(given: Mapping[str, Any]) -> Pair:
    if "epsilon" in given:
        return leaky_response(odds_above(given["epsilon"]), given["delta"])
    return checked_pair(given["P"], given["Q"])


def _simulation(simulation: Simulation, names: tuple[str, str]) -> dict[str, Any]:
    """A matrix in short numbers, or the test that shows that there is none; outcomes are counted from 1 here."""
    if simulation.witness is not None:
        one = simulation.witness
        alarm, missed, least = (number_text(float(rate), 4) for rate in (one.false_alarm, one.missed, one.least_missed))
        return {
            "rows": [],
            "sentence": (
                f"Saying that the person is there {_places(one.outcomes)} of the {names[1]} has a false-alarm "
                f"rate of {alarm} and misses {missed}. With the same false alarms, every guess from the {names[0]} "
                f"misses at least {least}."
            ),
        }
    close = (
        "exactly" if simulation.error == 0 else f"up to {number_text(float(simulation.error), 3)} in total variation"
    )
    return {
        "rows": [{"shares": [_short(share) for share in row]} for row in simulation.matrix or ()],
        "sentence": f"Answers of the {names[1]} can be made from those of the {names[0]}, {close}.",
    }


def _places(outcomes: Sequence[int]) -> str:
    """
    >>> _places([0]), _places([0, 2, 3]), _places([])
    ('on answer 1', 'on answers 1, 3 and 4', 'on no answer')
    """
    *most, last = [str(place + 1) for place in outcomes] or [""]
    if not last:
        return "on no answer"
    return f"on answers {', '.join(most)} and {last}" if most else f"on answer {last}"


def _short(share: Fraction) -> str:
    """A fraction if it is short, else four places.

    >>> _short(Fraction(1, 3)), _short(Fraction(1, 10**6)), _short(Fraction(123456, 1234567))
    ('1/3', '0', '0.1')
    """
    text = str(share)
    return text if len(text) <= 6 else f"{float(share):.4f}".rstrip("0").rstrip(".")


def partitions(integers: list[int]) -> dict[str, Any]:
    """In how many ways integers split into two parts of equal product, found by asking what privacy costs.

    >>> partitions([2, 3, 6])["partitions"], partitions([2, 3, 5])["partitions"]
    (1, 0)
    """
    result = count_equal_product_partitions(integers)
    return {
        "partitions": result.partitions,
        "oracle_calls": result.oracle_calls,
        "bits": result.bits,
        "subsets": result.subsets,
        "epsilons": [math.log(one) for one in integers],
    }


GAMES = 100  # of each rival


_QUESTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "composed": composed,
    "regions": regions,
    "played": played,
    "rivals": rivals,
    "compared": compared,
    "partitions": partitions,
}


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
