"""Some of `benchmarks.promises` with seeded noise: coverage, errors as predicted, totals without bias.

The cases are those whose promises were broken once; the whole table is `python -m benchmarks.promises`.
"""

from __future__ import annotations

import pytest
from benchmarks.promise_tables import KINDS, examples
from benchmarks.promises import RELEASES, delivered

from sources import TestSource

pytestmark = pytest.mark.slow

CASES = [
    ("sparse", "count by", False),
    ("sparse", "contingency", True),
    ("wrong bounds", "histogram", False),
    ("tiny", "ranges", False),
    ("skewed", "share", False),
    ("skewed", "mean", True),
    ("panel", "mean by", False),
    ("skewed", "std", False),
    ("wrong bounds", "std", True),
    ("missing values", "variance", True),
    ("missing values", "cdf", False),
]


@pytest.mark.parametrize(("table", "kind", "told"), CASES)
def test_what_is_promised_is_delivered(table: str, kind: str, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farthing.mechanisms.mechanism.SYSTEM", TestSource(16))
    (example,) = [one for one in examples() if one.name == table]
    (asked,) = [one for one in KINDS if one.name == kind]
    found = delivered(example, asked, told=told, releases=RELEASES)
    assert found.faults == ()
