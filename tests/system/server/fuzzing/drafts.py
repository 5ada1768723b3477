"""Good drafts, sessions, conditions and declarations: what the generator alone would never hit upon."""

from __future__ import annotations

import random
from typing import Any

from system.server.fuzzing.tables import KINDS, PEOPLE, REGIONS, VISITS

NUMBERS = {
    "people": ["age", "bmi"], "visits": ["cost", "nights"], "spare": ["age", "bmi"], "small": ["age", "bmi"],
    "broken": ["age"], "torn": ["nights"],
}  # fmt: skip
GROUPS = {
    "people": ["sex", "region", "smoker"], "visits": ["kind", "ward", "urgent"], "spare": ["sex"], "small": ["sex"],
    "broken": ["sex"], "torn": ["kind"],
}  # fmt: skip
DAYS = {"people": ["joined"], "visits": ["day"]}
EDGES = {"age": (0, 110), "bmi": (10.0, 60.0), "cost": (0.0, 10_000.0), "nights": (0, 60)}


def condition(draw: random.Random, dataset: str, columns: list[str] | None = None) -> str:
    """A condition that can be read."""
    usual = {
        "sex": ["sex = 'F'", "sex in ('F', 'M')", "sex <> 'M'"],
        "region": [f"region = '{draw.choice(REGIONS)}'", "region like 'n%'", "lower(region) = 'south'"],
        "smoker": ["smoker", "not smoker"],
        "age": [
            f"age >= {draw.randrange(0, 110)}",
            "age between 18 and 65",
            "age * 2 < 90",
            "not age = 5",
        ],
        "bmi": [f"bmi < {draw.uniform(10, 60):.1f}", "round(bmi) = 25", "sqrt(bmi) > 5"],
        "joined": ["year(joined) >= 2010", "joined < date '2020-02-29'"],
        "kind": [f"kind = '{draw.choice(KINDS)}'", "length(kind) > 5"],
        "ward": ["ward = 7", "ward in (1, 2)"],
        "urgent": ["urgent", "not urgent"],
        "cost": [f"cost > {draw.randrange(10_000)}", "ln(cost + 1) < 8", "cost / 0 > 1"],
        "nights": ["nights % 2 = 0", "nights // 7 >= 1"],
        "day": ["day between '2010-01-01' and '2019-12-31'", "month(day) = 3"],
    }
    names = columns or NUMBERS[dataset] + GROUPS[dataset] + DAYS.get(dataset, [])
    parts = [draw.choice(usual[draw.choice(names)]) for _ in range(draw.choice((1, 1, 2)))]
    return draw.choice((" and ", " or ")).join(parts)


def statistic(draw: random.Random, dataset: str) -> dict[str, Any]:
    """A statistic that can be planned."""
    column, group = draw.choice(NUMBERS[dataset]), draw.choice(GROUPS[dataset])
    low, high = EDGES[column]
    middle = round((low + high) / 2)
    made: dict[str, Any] = draw.choice(
        [
            {"kind": "count"},
            {"kind": "count", "by": group},
            {"kind": "sum", "column": column},
            {"kind": "mean", "column": column},
            {"kind": "mean", "column": column, "by": group},
            {"kind": "variance", "column": column},
            {"kind": "std", "column": column},
            {"kind": "histogram", "column": column, "bins": draw.randrange(1, 12)},
            {"kind": "histogram", "column": column, "bins": [low, middle, high]},
            {"kind": "quantile", "column": column, "probability": draw.choice((0.1, 0.5, 0.9))},
            {"kind": "quantiles", "column": column, "probabilities": [0.25, 0.75]},
            {"kind": "median", "column": column},
            {"kind": "cdf", "column": column, "bins": 8},
            {"kind": "contingency", "columns": GROUPS[dataset][:2]},
            {"kind": "ranges", "column": column, "ranges": [[low, middle], [middle, high]]},
            {"kind": "marginals", "columns": GROUPS[dataset], "way": 1},
            {"kind": "linear_regression", "target": NUMBERS[dataset][0], "features": NUMBERS[dataset][1:]},
        ]
    )
    if draw.random() < 0.3 and made["kind"] != "linear_regression":
        made["where"] = condition(draw, dataset)
    if draw.random() < 0.2:
        made["weight"] = draw.choice((0.5, 2.0))
    return made


def draft(draw: random.Random, dataset: str | None = None) -> dict[str, Any]:
    """A draft that can be planned."""
    chosen = dataset or draw.choice(("people",) * 4 + ("visits",) * 4 + ("spare", "small", "broken", "torn"))
    made: dict[str, Any] = {
        "dataset": chosen,
        "statistics": [statistic(draw, chosen) for _ in range(draw.choice((1, 1, 2, 3)))],
        "epsilon": draw.choice((0.01, 0.1, 0.25, 1.0)),
    }
    if draw.random() < 0.2:
        made["expected"] = {"rows": 300}
    if draw.random() < 0.2:
        made["title"] = draw.choice(("Übersicht", "a table", "x" * 100))
    return made


def session(draw: random.Random) -> dict[str, Any]:
    """A session that can be opened."""
    dataset = draw.choice(("people", "visits"))
    return {
        "dataset": dataset,
        "alpha": draw.choice((0.1, 0.2)),
        "rows": 100_000,
        "queries": draw.choice((10, 100)),
        "columns": draw.sample(GROUPS[dataset], draw.choice((1, 2))),
        "epsilon": draw.choice((0.5, 2.0)),
        **draw.choice(({}, {"updates": 1})),
    }


def declaration(draw: random.Random, name: str) -> dict[str, Any]:
    """A dataset that can be registered."""
    columns, source = draw.choice(((PEOPLE, "people.csv"), (VISITS, "visits.parquet")))
    chosen = draw.sample(sorted(columns), draw.randrange(1, len(columns)))
    made: dict[str, Any] = {
        "name": name,
        "source": source,
        "columns": {each: columns[each] for each in chosen},
        "epsilon": draw.choice((None, None, None, 3.0)),  # the table has an account, with a budget of its own
        "delta": draw.choice((0.0, 1e-6)),
        **draw.choice(({}, {}, {"account": "people"})),
    }
    if source == "people.csv" and draw.random() < 0.8:
        made |= {"unit": "person", "max_rows": draw.choice((1, 5))}
    if draw.random() < 0.3:
        made["rows"] = 300
    if draw.random() < 0.3:
        made["neighbours"] = draw.choice(("add-remove", "replace"))
    return made
