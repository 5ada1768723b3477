"""Charges chosen as you go beside those fixed in advance: every share is what filters and `compose` admit."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from farthing import compose
from farthing.accounting.filters import ClockFilter, FullyAdaptiveFilter, RenyiFilter
from farthing.errors import InvalidValue
from farthing.plots import adaptive_charges, largest_charges


@pytest.mark.slow
def test_charges_fit_and_slightly_larger_ones_do_not() -> None:
    rows = {row["account"].split()[0]: row for row in largest_charges(budgets=[(2.0, 1e-5)], ks=[60])}
    fixed = rows["fixed"]["charge"]
    assert compose([fixed], counts=[60]).delta_at(2.0).upper <= 1e-5
    assert compose([1.001 * fixed], counts=[60]).delta_at(2.0).lower > 1e-5
    clock = partial(ClockFilter, equal_charges=False)
    for name, make in {"clock": clock, "Renyi": RenyiFilter, "fully": FullyAdaptiveFilter}.items():
        budget, charge = make(2.0, 1e-5, leak=0), rows[name]["charge"]
        assert budget.admits(charge, count=60) and not budget.admits(1.001 * charge, count=60), name
        assert rows[name]["share"] == pytest.approx(100 * charge / fixed, abs=0.01)
        assert rows["plain"]["share"] < rows[name]["share"] < 100
    assert rows["plain"]["charge"] == pytest.approx(2.0 / 60, rel=1e-3)


def test_there_is_one_panel_a_budget_and_axes_are_named() -> None:
    rows = largest_charges(budgets=[(1.0, 1e-6), (3.0, 1e-6)], ks=[1, 5])
    panels: list[dict[str, Any]] = adaptive_charges(rows).to_dict()["hconcat"]
    assert [panel["title"] for panel in panels] == ["epsilon 1, delta 1e-06", "epsilon 3, delta 1e-06"]
    assert all("log scale" in panel["encoding"]["x"]["title"] for panel in panels)
    assert {row["share"] for row in rows} == {100.0}  # nothing is gained, so nothing is lost


@pytest.mark.parametrize("bad", [{"budgets": [(1.0, 0.0)]}, {"budgets": [(-1.0, 1e-6)]}, {"ks": [0]}])
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        largest_charges(**bad)
