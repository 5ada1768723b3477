"""The peers of `benchmarks.keys`, run by the interpreter that has them: FACTS.json OUT.json."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable
from typing import Any

Releases = list[dict[str, float]]


def pipelinedp(facts: dict[str, Any], kind: str, strategy: str, keys: list[str] | None) -> Releases:
    """PipelineDP's count of privacy ids, in this process."""
    import pipeline_dp as dp

    out = []
    for _ in range(facts["releases"]):
        accountant = dp.NaiveBudgetAccountant(total_epsilon=facts["epsilon"], total_delta=facts["delta"])
        engine = dp.DPEngine(accountant, dp.LocalBackend())
        params = dp.AggregateParams(
            metrics=[dp.Metrics.PRIVACY_ID_COUNT],
            noise_kind=dp.NoiseKind[kind],
            max_partitions_contributed=facts["most"],
            max_contributions_per_partition=1,
            partition_selection_strategy=dp.PartitionSelectionStrategy[strategy],
        )
        extract = dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: 0,
        )
        public = {} if keys is None else {"public_partitions": keys}
        answer = engine.aggregate(facts["table"], params, extract, **public)
        accountant.compute_budgets()
        out.append({key: float(value.privacy_id_count) for key, value in answer})
    return out


def capped(facts: dict[str, Any]) -> dict[str, int]:
    """Units of each key, after each kept some of its own at random: what OpenDP's measurement is given."""
    own: dict[int, list[str]] = {}
    for person, key in facts["table"]:
        own.setdefault(person, []).append(key)
    counts: dict[str, int] = {}
    for keys in own.values():
        for key in random.sample(keys, min(facts["most"], len(keys))):
            counts[key] = counts.get(key, 0) + 1
    return counts


def opendp_unknown(facts: dict[str, Any], higher: int = 0) -> Releases:
    """OpenDP's Laplace threshold, the least that meets delta by its own account.

    OpenDP 0.16 keeps a noisy count that equals the threshold, and states the delta of those above it: at scale 1 and a
    threshold of 3 it says 0.036, and shows the key of one person in 0.099 of all releases. One step higher is right.
    """
    import opendp.prelude as prelude

    dp: Any = prelude
    dp.enable_features("contrib")
    most, epsilon, delta = facts["most"], facts["epsilon"], facts["delta"]
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i32"))
    metric = dp.l01inf_distance(dp.absolute_distance(T="i32"))

    def made(threshold: int) -> Any:
        return dp.m.make_laplace_threshold(domain, metric, scale=most / epsilon, threshold=threshold)

    low, high = 1, 10_000
    while high - low > 1:
        middle = (low + high) // 2
        spent, leak = made(middle).map((most, most, 1))
        low, high = (low, middle) if spent <= epsilon * (1 + 1e-9) and leak <= delta else (middle, high)
    measurement = made(high + higher)
    answers = (measurement(capped(facts)) for _ in range(facts["releases"]))
    return [{key: float(value) for key, value in answer.items()} for answer in answers]


def opendp_known(facts: dict[str, Any], gaussian: bool) -> Releases:
    """OpenDP's noise on the counts of public keys."""
    import opendp.prelude as prelude

    dp: Any = prelude
    dp.enable_features("contrib")
    most, epsilon, delta = facts["most"], facts["epsilon"], facts["delta"]
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float) if gaussian else dp.l1_distance(T="i64")
    measurement: Any = None if gaussian else dp.m.make_laplace(*space, scale=most / epsilon)
    if gaussian:
        low, high = 0.1, 1000.0
        for _ in range(50):
            middle = (low + high) / 2
            made = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=middle))
            fits = made.map(math.sqrt(most)).epsilon(delta) <= epsilon
            low, high = (low, middle) if fits else (middle, high)
        measurement = dp.m.make_gaussian(*space, scale=high)
    out = []
    for _ in range(facts["releases"]):
        counts = capped(facts)
        noisy = measurement([counts.get(key, 0) for key in facts["public"]])
        out.append(dict(zip(facts["public"], map(float, noisy), strict=True)))
    return out


def main() -> None:
    """Every variant of every peer; what one of them cannot do is a result, too."""
    with open(sys.argv[1], encoding="utf-8") as file:
        facts = json.load(file)
    geometric = "TRUNCATED_GEOMETRIC"
    jobs: dict[str, Callable[[], Releases]] = {
        "PipelineDP, truncated geometric, Laplace": lambda: pipelinedp(facts, "LAPLACE", geometric, None),
        "PipelineDP, truncated geometric, Gaussian": lambda: pipelinedp(facts, "GAUSSIAN", geometric, None),
        "PipelineDP, Gaussian threshold, Gaussian": lambda: pipelinedp(
            facts, "GAUSSIAN", "GAUSSIAN_THRESHOLDING", None
        ),
        "OpenDP, Laplace threshold": lambda: opendp_unknown(facts, 1),
        "OpenDP, Laplace threshold as it states it": lambda: opendp_unknown(facts),
        "known: PipelineDP, Laplace": lambda: pipelinedp(facts, "LAPLACE", geometric, facts["public"]),
        "known: PipelineDP, Gaussian": lambda: pipelinedp(facts, "GAUSSIAN", geometric, facts["public"]),
        "known: OpenDP, Laplace": lambda: opendp_known(facts, gaussian=False),
        "known: OpenDP, Gaussian": lambda: opendp_known(facts, gaussian=True),
    }
    results: dict[str, Any] = {}
    jobs = {
        name: job
        for name, job in jobs.items()
        if name.startswith("known") == bool(facts["public"]) and facts["tool"] in name
    }
    for name, job in jobs.items():
        try:
            results[name] = job()
        except Exception as problem:
            results[name] = f"{type(problem).__name__}: {str(problem)[:200]}"
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
