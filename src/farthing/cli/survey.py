"""A made-up health survey for the demo: people, their visits, a study of them, and the truth to hold it against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from farthing.release import Statistic

PEOPLE = 100_000
MOST_VISITS = 3
SEED = 1913  # of made-up people only: randomness that protects real ones is never seeded

Columns = Mapping[str, NDArray[Any]]

STUDY = """\
# A health survey of made-up people. Everything in this file is public.

[dataset]
source = "survey.parquet"
unit = "person_id"                 # whose privacy: a person with all of their visits
max_rows = 3

[schema]
sex = { categories = ["F", "M"] }
smoker = { flags = true }
age = { range = [0, 110] }
bmi = { range = [10.0, 60.0] }
pressure = { range = [70, 220] }
income = { range = [0, 250_000] }

[study]
epsilon = 1.0
delta = 1e-9
ledger = "study.db"

[expected]                         # from last year's report; it only makes the predicted errors better
rows = 200_000
sex = { F = 0.52, M = 0.48 }       # shares
smoker = { true = 0.2, false = 0.8 }
age = [45.0, 18.0]                 # mean and standard deviation
bmi = [26.0, 4.5]
pressure = [125.0, 16.0]
income = [40_000.0, 25_000.0]

[[statistics]]
kind = "count"
by = ["sex", "smoker"]

[[statistics]]
kind = "count"
where = "bmi >= 30"
by = "sex"

[[statistics]]
kind = "histogram"
column = "age"
bins = 11

[[statistics]]
kind = "mean"
column = "income"
within = 75                        # 95 times in 100; the others share what is left

[[statistics]]
kind = "mean"
column = "pressure"
by = "smoker"

[[statistics]]
kind = "std"
column = "pressure"

[[statistics]]
kind = "median"
column = "bmi"
by = "sex"
"""


def survey() -> Columns:
    """One entry for each visit, person after person."""
    rng = np.random.default_rng(SEED)
    visits = rng.integers(1, MOST_VISITS + 1, PEOPLE)
    person = np.repeat(np.arange(PEOPLE), visits)
    sex = rng.random(PEOPLE) < 0.48
    age = np.clip(rng.normal(45, 18, PEOPLE), 0, 110).astype(np.int64)
    smoker = rng.random(PEOPLE) < np.where(sex, 0.24, 0.17)
    income = np.clip(rng.lognormal(10.4, 0.6, PEOPLE), 0, 250_000).astype(np.int64)
    weight = 25.5 + 1.2 * sex + 0.02 * (age - 45) + rng.normal(0, 4, PEOPLE)
    base = 108 + 0.38 * age + 4 * smoker
    return {
        "person_id": person,
        "sex": np.where(sex, "M", "F")[person],
        "smoker": smoker[person],
        "age": age[person],
        "bmi": np.clip(weight[person] + rng.normal(0, 0.8, len(person)), 10.0, 60.0),
        "pressure": np.clip(base[person] + rng.normal(0, 13, len(person)), 70, 220).astype(np.int64),
        "income": income[person],
    }


def write_survey(columns: Columns, path: Path) -> None:
    """The visits as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(dict(columns)), path)


def sixty_means() -> list[Statistic]:
    """More than the study asks for: the means of three columns among people above each of twenty ages."""
    from farthing.release import mean

    ages = range(0, 100, 5)
    return [mean(column, where=f"age >= {age}") for column in ("bmi", "pressure", "income") for age in ages]


def truths(columns: Columns) -> dict[str, list[float]]:
    """The statistics of the study without noise. They can be shown because these people do not exist."""
    sex, smoker, bmi = columns["sex"], columns["smoker"], columns["bmi"]
    age, pressure, income = columns["age"], columns["pressure"], columns["income"]
    of = {name: sex == name for name in ("F", "M")}
    kept = {flag: smoker == flag for flag in (False, True)}
    # A median here is the value that half of the rows do not exceed.
    middle = {name: float(np.quantile(bmi[rows], 0.5, method="inverted_cdf")) for name, rows in of.items()}
    return {
        "count by sex and smoker": [float((of[s] & kept[f]).sum()) for s in of for f in kept],
        "count where bmi >= 30 by sex": [float((rows & (bmi >= 30)).sum()) for rows in of.values()],
        "histogram of age": np.histogram(age, np.linspace(0, 110, 12))[0].astype(float).tolist(),
        "mean of income": [float(income.mean())],
        "mean of pressure by smoker": [float(pressure[rows].mean()) for rows in kept.values()],
        "std of pressure": [float(pressure.std())],
        "median of bmi by sex": list(middle.values()),
    }
