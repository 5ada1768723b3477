"""One measurement in a fresh process: `python -m benchmarks.worker '{"what": ..., "case": ..., "options": {...}}'`.

A fresh process, because peak memory is a high-water mark of the process and because caches of one contender must not
serve another. Prints one line of JSON.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from benchmarks.cases import CASES, Case

# A quick call is repeated and the best time taken: the best is the least disturbed by whatever else the machine does.
REPEAT_FOR_SECONDS = 0.5
REPEAT_AT_MOST = 7


def best_of(run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[Any, float, float]:
    """The result, the seconds of the first call, and the least seconds over all calls."""
    times: list[float] = []
    while not times or (sum(times) < REPEAT_FOR_SECONDS and len(times) < REPEAT_AT_MOST):
        start = clock()
        result = run()
        times.append(clock() - start)
    return result, times[0], min(times)


def peak_megabytes() -> float:
    """The most memory this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def measure(case: Case, contender: str, options: dict[str, Any]) -> dict[str, Any]:
    """One contender on one case."""
    from benchmarks.contenders import CONTENDERS

    run = CONTENDERS[contender](case, **options)
    answer, first, best = best_of(run)
    return asdict(answer) | {"first_seconds": first, "seconds": best}


def truth(case: Case) -> dict[str, Any]:
    """The optimum by an independent route."""
    from benchmarks.truth import true_epsilon

    return {"epsilon": true_epsilon(case)}


def sorting(case: Case) -> dict[str, Any]:
    """numpy.sort of the same array, as a yardstick for how fast this machine passes over it."""
    import numpy as np

    values = case.epsilons()
    return {"seconds": best_of(lambda: np.sort(values))[2]}


def appending(case: Case) -> dict[str, Any]:
    """Compose and ask (the first cost), then append one charge and ask again; both without proof."""
    from farthing import compose

    values = case.epsilons()

    def first() -> Any:
        composition = compose(values)
        composition.epsilon_at(case.delta, proof=False)
        return composition

    composition, _, first_seconds = best_of(first)
    answer, _, again = best_of(lambda: composition.plus([0.0123]).epsilon_at(case.delta, proof=False))
    return {"epsilon": answer.estimate, "first_seconds": first_seconds, "seconds": again}


def decimals(count: int) -> dict[str, Any]:
    """`count` charges as people type them: two or three decimals, proven."""
    import numpy as np

    from farthing import compose

    charges = np.round(np.random.default_rng(2026).uniform(0.01, 0.2, count), 3)
    bounds, _, best = best_of(lambda: compose(charges).epsilon_at(1e-9))
    return {"epsilon": bounds.estimate, "lower": bounds.lower, "upper": bounds.upper, "seconds": best}


def sampling(distribution: str, scale: int, sampler: str, size: int) -> dict[str, Any]:
    """One vector of noise, in seconds of the processor: a busy machine must not blur a ratio."""
    from benchmarks.samplers import drawing

    _, first, best = best_of(drawing(distribution, scale, sampler, size), time.process_time)
    return {"first_seconds": first, "seconds": best}


def mixed(
    contender: str, table: str, questions: str, epsilon: float, delta: float, releases: int, seconds: float
) -> dict[str, Any]:
    """Many releases of ordinary statistics by one peer, within `seconds` where it is slow."""
    from benchmarks.mixed_contenders import released
    from benchmarks.mixed_tables import QUESTIONS, People

    asked = QUESTIONS[questions]()
    return released(contender, People.load(table), asked, epsilon, delta, releases, seconds)


def main(argument: str) -> None:
    """Run what the argument asks for and print it; a failure is a result too, told in one line."""
    task = json.loads(argument)
    what = task.pop("what")
    if "case" in task:
        task["case"] = CASES[task["case"]]
    actions: dict[str, Callable[..., dict[str, Any]]] = {
        action.__name__: action for action in (measure, truth, sorting, appending, decimals, sampling, mixed)
    }
    try:
        result = actions[what](**task)
    except Exception as error:  # a peer may fail in any way it likes; the table shows how
        result = {"failure": f"{type(error).__name__}: {error}".rstrip(": ")[:120]}
    if math.isnan(result.get("epsilon", 0.0)):
        result["failure"] = "answers nan"
    print(json.dumps(result | {"peak_megabytes": peak_megabytes()}))


if __name__ == "__main__":
    main(sys.argv[1])
