"""The picture of a reconstruction attack: its points are the numbers it was given."""

from __future__ import annotations

import pytest

from farthing.errors import InvalidValue
from farthing.plots import share_recovered


def test_every_number_is_drawn_where_it_belongs() -> None:
    chart = share_recovered([1.0, 9.0], [1.0, 0.7], rows=20, queries=80, marked=[("ours", 50.0, 0.52)]).to_dict()
    drawn = [layer["data"]["values"] for layer in chart["layer"]]
    assert [{"noise": 1.0, "share": 1.0}, {"noise": 9.0, "share": 0.7}] in drawn
    assert [{"name": "ours", "noise": 50.0, "share": 0.52}] in drawn
    assert "80 counts over random subsets of 20 rows" in chart["title"]["subtitle"][0]


@pytest.mark.parametrize(("noise", "shares"), [([], []), ([1.0], [])])
def test_lists_of_unequal_or_no_length_are_refused(noise: list[float], shares: list[float]) -> None:
    with pytest.raises(InvalidValue, match="one for each noise"):
        share_recovered(noise, shares, rows=2, queries=2)
