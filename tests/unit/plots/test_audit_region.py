"""The picture of an audit holds what its report says."""

from __future__ import annotations

from pathlib import Path

import pytest

from farthing import audit
from farthing.plots import audit_region, save


@pytest.mark.slow
@pytest.mark.parametrize(("claim", "word"), [(0.1, "contradicted"), (100.0, "No test")])
def test_the_title_tells_the_verdict_and_the_points_are_the_reports(claim: float, word: str) -> None:
    report = audit(lambda bit: bit, claim, (0, 1), samples=1_000, workers=1)
    data = audit_region(report).to_dict()
    assert word in data["title"]["text"]
    [estimated] = [layer["data"]["values"] for layer in data["layer"] if "estimated" in str(layer["data"]["values"])]
    assert [(row["P_FA"], row["P_MD"]) for row in estimated] == list(report.region)


@pytest.mark.slow
def test_a_contradiction_lies_below_the_claimed_boundary(tmp_path: Path) -> None:
    report = audit(lambda bit: bit, 1.0, (0, 1), samples=1_000, workers=1)
    data = audit_region(report).to_dict()
    claimed = data["layer"][1]["data"]["values"]
    below = [row for row in claimed if row["P_FA"] <= report.bound[0]]
    assert report.bound[1] < below[-1]["P_MD"]
    assert save(audit_region(report), tmp_path / "region.svg").stat().st_size > 1000
