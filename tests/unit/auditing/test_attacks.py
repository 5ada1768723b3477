"""The attacks do work, and do not work against private answers: both are asserted, so that each check can fail."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.adaptive.query_session import QuerySession, plan_query_session
from farthing.adaptive.session_journal import MemoryJournal
from farthing.auditing.attacks import (
    chance_of_guessing,
    difference,
    differences,
    guessed_by_difference,
    most_guessed,
    private_counts,
    random_subsets,
    reconstruct,
    reconstructed,
)
from farthing.errors import InvalidValue
from farthing.mechanisms import DiscreteLaplace
from farthing.statistics.cells.cell_axes import Axis
from sources import TestSource

ALPHA = 1e-6


def slack(repetitions: int) -> float:
    """Hoeffding: the mean of so many independent shares is this far above its expectation with chance ALPHA."""
    return math.sqrt(-math.log(ALPHA) / (2 * repetitions))


def test_differencing_finds_the_person_in_exact_counts_and_not_in_private_ones() -> None:
    assert difference(lambda counts: counts, repetitions=500).share == 1.0
    runs, source = 20_000, TestSource(3)
    private = DiscreteLaplace(1.0, l1_sensitivity=2, cells=2 * runs)

    def told(counts: Any) -> Any:
        return np.asarray(private._answer(counts.reshape(-1), source)).reshape(counts.shape)

    found = difference(told, repetitions=runs)
    assert 0.5 < found.share <= most_guessed(1.0) + slack(runs)


def test_differencing_works_when_the_noise_is_fifty_times_too_small() -> None:
    small = DiscreteLaplace(50.0, l1_sensitivity=2, cells=2_000)
    told = lambda counts: np.asarray(small.release(counts.reshape(-1))).reshape(counts.shape)  # noqa: E731
    assert difference(told, repetitions=1_000).share > most_guessed(1.0) + slack(1_000)


def test_rounding_hides_most_pairs_of_counts_and_no_person() -> None:
    shares = {one.answers: one.share for one in differences(1.0, repetitions=1_000)}
    assert 0.5 < shares["rounded to tens"] < 0.65 and shares["rounded to tens, ten pairs"] == 1.0


def test_one_count_about_one_person_reaches_the_bound() -> None:
    runs, source = 40_000, TestSource(4)
    secret = np.random.default_rng(5).integers(0, 2, runs)
    told = DiscreteLaplace(1.0, cells=runs)._answer(secret, source)
    share = float(np.mean(guessed_by_difference(told, np.zeros(runs)) == (secret == 1)))
    assert share == pytest.approx(most_guessed(1.0), abs=5 * math.sqrt(0.2 / runs))


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["least squares", "linear programme"])
def test_exact_counts_and_too_accurate_ones_give_the_column_back(decoder: Any) -> None:
    size: dict[str, Any] = {"rows": 60, "queries": 240, "repetitions": 3, "decoder": decoder}
    rng, width = np.random.default_rng(1), math.sqrt(60) / 5
    assert reconstruct(lambda counts: counts, **size).share > 0.95
    assert reconstruct(lambda counts: counts // 5 * 5 + 2, noise=1.4, **size).share > 0.9
    blurred = reconstruct(lambda counts: counts + rng.normal(0, width, len(counts)), noise=width, **size)
    assert blurred.share > 0.9


@pytest.mark.parametrize(("queries", "epsilon"), [(1, 1.0), (4, 1.0), (40, 50.0)])
def test_few_counts_or_much_budget_have_laplace_noise(queries: int, epsilon: float) -> None:
    assert isinstance(private_counts(queries, epsilon, 1e-9), DiscreteLaplace)


@pytest.mark.slow
def test_private_counts_of_the_same_questions_give_no_more_than_epsilon_permits() -> None:
    mechanism, runs, source = private_counts(400, 1.0, 1e-9), 400, TestSource(8)
    size: dict[str, Any] = {"rows": 100, "queries": 400, "repetitions": runs}
    noise = mechanism.standard_error
    found = reconstruct(lambda counts: mechanism._answer(counts, source), noise=noise, **size)
    assert found.share <= most_guessed(1.0, 1e-9) + slack(runs)
    assert found.share < 0.56  # far below what is permitted, in fact: the noise is shared by all rows
    rng, size["repetitions"] = np.random.default_rng(2), 20
    short = reconstruct(lambda counts: counts + rng.normal(0, noise / 50, len(counts)), noise=noise / 50, **size)
    assert short.share > 0.95 > most_guessed(1.0, 1e-9) + slack(runs)


@pytest.mark.slow
def test_what_a_study_answers_about_every_person_stays_within_the_bound(tmp_path: Path) -> None:
    """One run is enough with delta = 0: the number of right guesses is at most binomial."""
    people, epsilon = 600, 1.0
    secret = np.random.default_rng(9).random(people) < 0.5
    table = pa.table({"person": np.arange(people), "secret": secret})
    schema = {"person": (0, people - 1), "secret": bool}
    dataset = ft.dataset(table, schema=schema, neighbours="replace")
    study = ft.Study(dataset, epsilon, account="people", ledger=tmp_path / "study.db")
    told = study.plan(ft.count(where="secret", by="person", name="c")).release()["c"]
    subsets = random_subsets(1_200, people)
    for guess in (
        np.asarray(told.values) > 0.5,
        reconstructed(subsets, subsets.astype(int) @ np.asarray(told.values), noise=60.0),
    ):
        right = int(np.sum(guess == secret))
        assert chance_of_guessing(right, people, epsilon) > ALPHA
        assert right < 0.75 * people
    assert chance_of_guessing(int(0.95 * people), people, epsilon) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize(("start", "epsilon", "alpha"), [("auto", 1.0, 0.5), ("cells", 3.0, 0.4)])
def test_ten_thousand_online_answers_do_not_give_the_column_back(start: str, epsilon: float, alpha: float) -> None:
    people, questions = 500, 10_000
    secret = np.random.default_rng(10).random(people) < 0.5
    cells = np.zeros((people, 2), dtype=np.int64)
    cells[np.arange(people), secret.astype(int)] = 1
    axes = [Axis("person", range(people)), Axis("secret", (0, 1))]
    plan = plan_query_session(axes, epsilon, 0.0, alpha, questions, people, sensitivity=2, start=start)
    session = QuerySession(plan, axes, lambda: cells, MemoryJournal())
    subsets = random_subsets(questions, people)
    told = []
    asked = np.zeros((people, 2))
    for subset in subsets:
        asked[:, 1] = subset
        told.append(session.ask(asked.copy()).value)
    exact = subsets.astype(int) @ secret.astype(int)
    errors = np.abs(np.array(told) - exact)
    assert errors.max() <= alpha * people
    guess = reconstructed(subsets, told, noise=float(np.std(told - exact)))
    right = int(np.sum(guess == secret))
    assert chance_of_guessing(right, people, epsilon) > ALPHA
    assert np.mean(reconstructed(subsets, exact) == secret) > 0.95


def test_bad_arguments_are_refused() -> None:
    subsets = random_subsets(4, 3)
    with pytest.raises(InvalidValue, match="one number for each of the 4"):
        reconstructed(subsets, [1, 2])
    with pytest.raises(InvalidValue, match="decoder"):
        reconstructed(subsets, [1, 2, 3, 4], decoder="magic")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="repetitions"):
        reconstruct(lambda counts: counts, repetitions=-1)
