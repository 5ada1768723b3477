"""No unit moves the counts of whole rows by more than their sensitivity, whatever was done to the table before."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.test_neighbours import SCHEMA, TYPES, Case, cases, run, table_of
from farthing.data import dataset
from farthing.data.coded_rows import coded_axes, coded_rows, sensitivity_of_coded_rows


@pytest.mark.slow
@given(cases(), st.booleans())
@settings(max_examples=8)
def test_no_unit_moves_coded_rows_beyond_their_sensitivity(case: Case, missing: bool) -> None:
    chain = [step for step in case.chain if step[0] not in ("join", "explode")]
    unit: dict[str, Any] = {} if case.by_row else {"unit": "person", "max_rows": case.most}
    for pair in case.worlds[:3]:
        tables = []
        for world, _ in pair:
            base = dataset(table_of(world, TYPES), schema=SCHEMA, neighbours=case.neighbours, **unit)
            whole = run(chain, base, None).group_privacy(case.group)
            axes = coded_axes(whole.schema, missing=missing)
            codes, counts = coded_rows(whole, axes)
            tables.append(Counter(dict(zip(map(tuple, codes.tolist()), counts.tolist(), strict=True))))
        before, after = tables
        change = [abs(before[row] - after[row]) for row in before | after]
        claim = sensitivity_of_coded_rows(whole, axes)
        assert sum(change) <= claim.l1
        assert sum(each * each for each in change) <= claim.l2_squared
        assert max(change, default=0) <= claim.linf
        assert sum(each > 0 for each in change) <= claim.l0
