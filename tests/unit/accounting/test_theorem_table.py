"""One list says under which theorems a price is shown; everything that shows one has the same keys and names."""

from __future__ import annotations

import re
import typing
from dataclasses import fields
from importlib.resources import files

from farthing.accounting.region_boundaries import epsilons_of_equals, lower_boundaries
from farthing.accounting.theorems import BLACK_BOX, COMPARED
from farthing.client.remote_plan import RemotePrice
from farthing.planner import TheoremPrices
from farthing.plots._style import THEOREM_LABELS
from farthing.server.schemas.composition_schema import EpsilonsView, RegionView
from farthing.server.schemas.plan_schema import PriceView

KEYS = [theorem.key for theorem in COMPARED]
BOXES = [theorem.key for theorem in BLACK_BOX]


def test_prices_have_every_theorem_in_its_order() -> None:
    assert list(TheoremPrices(1.0, 2.0, 3.0, 4.0, 5.0, delta=0.0, count=1).to_dict()) == KEYS
    assert [field.name for field in fields(TheoremPrices)][: len(KEYS)] == KEYS
    assert [field.name for field in fields(RemotePrice)][: len(KEYS)] == KEYS
    assert list(PriceView.model_fields)[: len(KEYS)] == KEYS


def test_curves_have_those_that_know_no_noise() -> None:
    assert list(epsilons_of_equals(0.1, 0.0, 3, 1e-6)) == BOXES
    assert list(lower_boundaries(0.1, 0.0, 3)) == BOXES
    assert list(THEOREM_LABELS) == BOXES
    assert list(typing.get_args(RegionView.model_fields["theorem"].annotation)) == BOXES
    assert list(EpsilonsView.model_fields) == ["k", *BOXES]


def test_the_page_calls_them_by_the_same_names() -> None:
    script = files("farthing.web").joinpath("static/js/charts/theorems.js").read_text(encoding="utf-8")
    page = re.findall(r'key: "(\w+)",\s+name: "([^"]+)"', script)
    assert page == [(theorem.key, theorem.name) for theorem in BLACK_BOX]
