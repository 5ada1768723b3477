"""A table that is itself a secret sample is amplified once, as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from asking import Rows, plan, state_of, the_people
from farthing.curator import Answered, Curator, unit_of
from farthing.data import dataset
from farthing.errors import InvalidValue
from farthing.ledger import Ledger


def sampled(ledger: Ledger, request_id: str = "r-1", rate: float | None = 0.01, **options: Any) -> Answered:
    return Curator(ledger).release(
        the_people(), plan(), ledger_name="sample", request_id=request_id, sampling_rate=rate, **options
    )


@pytest.fixture
def sample_ledger(ledger: Ledger) -> Ledger:
    Curator(ledger).register(the_people(), "sample", epsilon=1.0, delta=1e-6, sampling_rate=0.01)
    return ledger


@pytest.mark.slow
def test_a_secret_sample_is_charged_what_it_costs_the_population(sample_ledger: Ledger) -> None:
    sampled(sample_ledger)
    whole = np.log1p(0.01 * np.expm1(0.25))
    assert sample_ledger.budget("sample").spent_upper == pytest.approx(whole, rel=1e-6)
    assert sample_ledger.budget("sample").unit == "row, add-remove, secret sample of 0.01"


def test_a_second_release_of_a_secret_sample_is_refused(sample_ledger: Ledger, rows: Rows) -> None:
    """Two releases at inner epsilon 5 and rate 0.01 would be charged 1.8 together, and cost 5.4."""
    sampled(sample_ledger)
    assert sampled(sample_ledger).repeated  # the same request is no second one
    with pytest.raises(InvalidValue, match="holds for one release of 'sample'"):
        sampled(sample_ledger, "r-2")
    assert sample_ledger.budget("sample").count == 1 and rows.reads == 1


def test_of_two_releases_of_a_secret_sample_at_once_one_is_run(
    sample_ledger: Ledger, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process charges between our look at the account and our own charge."""
    charge = sample_ledger.charge

    def overtaken(*arguments: Any, **named: Any) -> Any:
        charge("sample", 0.001, request_id="quicker")
        return charge(*arguments, **named)

    monkeypatch.setattr(sample_ledger, "charge", overtaken)
    with pytest.raises(InvalidValue, match="holds for one release"):
        sampled(sample_ledger)
    assert rows.reads == 0 and state_of(sample_ledger) == "forfeited"


def test_a_sampling_rate_is_the_registered_one_or_none(sample_ledger: Ledger, rows: Rows) -> None:
    for rate in (0.001, None):
        with pytest.raises(InvalidValue, match=r"must be 'row, add-remove, secret sample of 0\.01'"):
            sampled(sample_ledger, rate=rate)
    with pytest.raises(InvalidValue, match="must be 'row, add-remove'"):
        Curator(sample_ledger).release(the_people(), plan(), ledger_name="survey", sampling_rate=0.01)
    assert rows.reads == 0


def test_amplification_needs_units_that_come_and_go_one_by_one() -> None:
    replaced = dataset(pa.table({"age": [1]}), schema={"age": (0, 110)}, neighbours="replace")
    for table in (the_people().group_privacy(2), the_people().sample(0.5), replaced):
        with pytest.raises(InvalidValue, match="needs single units that are added or removed"):
            unit_of(table, 0.01)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan"), True])
def test_a_sampling_rate_is_a_probability(rate: Any) -> None:
    with pytest.raises(InvalidValue, match="sampling_rate"):
        unit_of(the_people(), rate)
