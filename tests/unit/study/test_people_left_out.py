"""How many people a bound may leave out: found for a part of the budget, or public, and said before paying."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import farthing as ft
from farthing.adaptive.discovery import RowTally
from farthing.statistics.coverage import Coverage
from farthing.statistics.design import design_of
from farthing.statistics.statistic import Statistic
from farthing.study.coverage_text import about_rows


def about(study: ft.Study, *asked: Statistic) -> str:
    return str(about_rows(study.dataset, design_of(asked, study.dataset).outputs))


def stays_of(rows_a_person: list[int], folder: Path, **facts: int) -> ft.Study:
    """People in wards n, s, w in turn: with two rows somebody is in two cells, with more in all three."""
    who = [person for person, rows in enumerate(rows_a_person) for _ in range(rows)]
    ward = ["nsw"[place % 3] for rows in rows_a_person for place in range(rows)]
    table = pa.table({"who": who, "ward": ward})
    stays = ft.dataset(table, unit="who", schema={"ward": list("nsw")}, name="stays", **facts)
    return ft.Study(stays, epsilon=900.0, account="stays", ledger=str(folder / "study.db"))


IN_TWO = ft.count(by="ward", of="people", max_cells=2)
UNKNOWN = (
    "nobody knows how many people max_cells=2 leaves out of some cells of count of people by ward: max_cells=3 leaves "
    "nobody out, and discovering rows_per_unit finds a limit for a small part of the budget"
)


def test_a_plan_says_how_many_people_a_max_cells_may_leave_out(tmp_path: Path) -> None:
    """No noise moves what is found at this epsilon: 402 of 1,002 people have more than two rows."""
    sizes = [1] * 300 + [2] * 300 + [3] * 300 + [7] * 100 + [900, 901]
    with contextlib.closing(stays_of(sizes, tmp_path)) as study:
        before = study.plan(IN_TWO, epsilon=1.0)
        assert UNKNOWN in before.notes and UNKNOWN in " ".join(str(before).split())
        assert UNKNOWN in before.to_dict()["notes"]
        study.discover(rows_per_unit=True, epsilon=50.0).release()
        plan = study.plan(IN_TWO, ft.count(by="ward", of="people", max_cells=3, name="all"), epsilon=1.0)
        assert plan.notes == ()
        unseen = "not counting those with more than 1,500 rows, too few to be seen"
        words = f"each who with at most 2 rows counts whole, and about 402 have more (at most 403, 95% sure, {unseen})"
        assert str(plan.about).count(words) == 1 and words in str(plan.release().about)
        for own in (ft.count(by="ward", rows_per_cell=2, max_cells=3), ft.count(max_rows=2)):
            assert words in about(study, own)
        assert "at most 1 row counts whole, and about 702 have more" in about(
            study, ft.count_distinct("ward", max_cells=1)
        )


def test_where_the_number_of_people_is_public_the_limit_has_all_of_them(tmp_path: Path) -> None:
    sizes = [1] * 300 + [2] * 300 + [3] * 300 + [7] * 100 + [900, 901]
    with contextlib.closing(stays_of(sizes, tmp_path, people=1_005)) as study:
        assert UNKNOWN in study.plan(IN_TWO, epsilon=1.0).notes
        study.discover(rows_per_unit=True, epsilon=50.0).release()
        assert "about 402 have more (at most 406, 95% sure)" in about(study, IN_TWO)


def test_public_sizes_of_the_table_limit_it_without_a_search(tmp_path: Path) -> None:
    sizes = [1] * 900 + [3] * 100
    with contextlib.closing(stays_of(sizes, tmp_path, rows=1_200, people=1_000)) as study:
        plan = study.plan(IN_TWO, epsilon=1.0)
        assert plan.notes == () and str(plan.about).endswith(
            "each who with at most 2 rows counts whole, and at most 100 can have more"
        )


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=40),
    st.integers(1, 30),
    st.booleans(),
    st.booleans(),
)
def test_the_public_limit_holds_for_every_table(sizes: list[int], most: int, rows: bool, people: bool) -> None:
    facts = {**({"rows": sum(sizes)} if rows else {}), **({"people": len(sizes)} if people else {})}
    table = pa.table({"who": [1], "ward": ["n"]})
    known = ft.dataset(table, unit="who", schema={"ward": ["n"]}, name="stays", **facts).units_above(most)
    assert known is None or sum(size > most for size in sizes) <= known[1]
    assert known is not None or not (rows and people) or sum(sizes) >= len(sizes) * (most + 1)


def test_people_of_one_row_are_in_one_cell_whatever_max_cells_is() -> None:
    stays = ft.dataset(pa.table({"who": [1, 1], "ward": ["n", "s"]}), unit="who", max_rows=5, schema={"ward": ["n"]})
    each = stays.per_unit(often="any(ward = 'n')")
    said = Coverage.of(ft.count(by="often", of="people", max_cells=1), each, 2)
    assert said.text == "people (one per who, by at most 5 rows)" and said.left_out == ""


@pytest.mark.parametrize("many", [1, 2, 3, 5, 12, 40])
def test_the_limit_of_what_was_found_holds_95_times_in_100(many: int) -> None:
    """Over 4,000 draws of the noise that the search adds; 0.94 is more than 9 standard deviations below 0.9750."""
    draw, highs = np.random.default_rng(many), RowTally([0] * 20, 1.0).highs
    counts = np.array([40] * 10 + [7] * 10)
    above = int(sum(count for count, high in zip(counts, highs, strict=True) if high > many))
    noise = draw.laplace(0.0, 20.0, (4_000, 20)).round()
    found = [RowTally((counts + one).astype(int).tolist(), 20.0).units_above(many) for one in noise]
    assert np.mean([above <= most for _, most, _ in found]) >= 0.94
    whole = [
        RowTally((counts + one).astype(int).tolist(), 20.0).units_above(many, int(counts.sum()) + 9) for one in noise
    ]
    assert np.mean([above + 9 <= most for _, most, _ in whole]) >= 0.94
