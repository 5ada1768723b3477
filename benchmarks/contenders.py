"""The libraries, each called the way its users call it: from charges to epsilon, nothing kept between calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.cases import GAUSSIAN, LAPLACE, Case

# dp-accounting's own default for `value_discretization_interval`, and prv-accountant's usual error.
DEFAULT_INTERVAL = 1e-4
PRV_ERROR = 0.01


@dataclass(frozen=True)
class Answer:
    """An epsilon with the sides the library vouches for (None where it vouches for nothing)."""

    epsilon: float
    lower: float | None = None
    upper: float | None = None


Run = Callable[[], Answer]


def farthing(case: Case, *, proof: bool) -> Run:
    """The optimum, with or without its proof."""
    import numpy as np

    from farthing import compose
    from farthing.privacy import GaussianNoise, LaplaceNoise

    if case.kind == "noise":
        events = [LaplaceNoise(m) for m, _ in LAPLACE] + [GaussianNoise(m) for m, _ in GAUSSIAN]
        arguments: dict[str, Any] = {"charges": events, "counts": [n for _, n in LAPLACE + GAUSSIAN]}
    elif case.kind == "repeated":
        arguments = {"charges": np.array([case.low]), "counts": np.array([case.k])}
    else:
        arguments = {"charges": case.epsilons()}

    def run() -> Answer:
        bounds = compose(**arguments).epsilon_at(case.delta, proof=proof)
        return Answer(bounds.estimate, bounds.lower, bounds.upper)

    return run


def dp_accounting(case: Case, *, interval: float = DEFAULT_INTERVAL, tree: bool = False) -> Run:
    """Google's privacy loss distributions. Distinct charges are composed one by one, as its accountant does, or,
    with `tree`, pairwise in a balanced tree, which its users would have to wire by hand."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    def of_epsilon(epsilon: float) -> Any:
        return pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0), interval)

    def parts() -> list[Any]:
        if case.kind == "repeated":
            return [of_epsilon(case.low).self_compose(case.k)]
        if case.kind == "distinct":
            return [of_epsilon(float(e)) for e in case.epsilons()]
        settings = {"value_discretization_interval": interval}
        noises = [(pld.from_laplace_mechanism(m, **settings), n) for m, n in LAPLACE]
        noises += [(pld.from_gaussian_mechanism(m, **settings), n) for m, n in GAUSSIAN]
        return [noise.self_compose(n) for noise, n in noises]

    def run() -> Answer:
        remaining = parts()
        while len(remaining) > 1:
            if tree:
                pairs = zip(remaining[::2], remaining[1::2], strict=False)
                odd = remaining[-1:] if len(remaining) % 2 else []
                remaining = [a.compose(b) for a, b in pairs] + odd
            else:
                first, second, *rest = remaining
                remaining = [first.compose(second), *rest]
        epsilon = float(remaining[0].get_epsilon_for_delta(case.delta))
        return Answer(epsilon, None, epsilon)

    return run


def prv_accountant(case: Case, *, error: float = PRV_ERROR) -> Run:
    """Microsoft's privacy random variables; delta_error is the thousandth of delta that its README suggests."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import GaussianMechanism, LaplaceMechanism, PureDPMechanism

    def run() -> Answer:
        if case.kind == "repeated":
            variables, counts = [PureDPMechanism(case.low)], [case.k]
        elif case.kind == "distinct":
            variables, counts = [PureDPMechanism(float(e)) for e in case.epsilons()], [1] * case.k
        else:
            variables = [LaplaceMechanism(1 / m) for m, _ in LAPLACE] + [GaussianMechanism(m) for m, _ in GAUSSIAN]
            counts = [n for _, n in LAPLACE + GAUSSIAN]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            accountant = PRVAccountant(variables, error, case.delta / 1000, counts)
            lower, estimate, upper = accountant.compute_epsilon(case.delta, counts)
        return Answer(float(estimate), float(lower), float(upper))

    return run


CONTENDERS: dict[str, Callable[..., Run]] = {
    "farthing": farthing,
    "dp-accounting": dp_accounting,
    "prv-accountant": prv_accountant,
}
