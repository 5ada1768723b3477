"""The lines of Python that made a plan, for the report of its release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.statistics import Statistic
    from farthing.study.study import Study


def study_lines(study: Study) -> tuple[str, ...]:
    """The dataset and the study, by what is public about them."""
    data = study.dataset
    unit = f", unit={_one(data.unit)!r}, max_rows={data.rows_per_unit}" if data.unit else ""
    given = "".join(
        f", {name}={value!r}"
        for name, value in (("analyst", study.analyst), ("sampling_rate", study.sampling_rate))
        if value is not None
    )
    return (
        "import farthing as ft",
        f"dataset = ft.dataset({data.name!r}{unit}, schema=...)  # columns: {', '.join(data.schema)}",
        f"study = ft.Study(dataset, epsilon={study.epsilon!r}, delta={study.delta!r}, "
        f"name={study.name!r}, ledger=...{given})",
    )


def asking_lines(
    word: str, asked: Sequence[Statistic], options: Mapping[str, Any], expected: Mapping[str, Any] | None
) -> tuple[str, ...]:
    """`plan = study.plan(...)` with one line for each statistic.

    >>> from farthing.statistics import count
    >>> print("\\n".join(asking_lines("plan", [count()], {"epsilon": 0.5}, None)))
    plan = study.plan(
        ft.count(),
        epsilon=0.5,
    )
    """
    given = {**options, **({"expected": dict(expected)} if expected else {})}
    return (
        f"plan = study.{word}(",
        *(f"    ft.{statistic!r}," for statistic in asked),
        *(f"    {name}={value!r}," for name, value in given.items() if value is not None),
        ")",
    )


def control_line(control: str, *words: Any, **options: Any) -> str:
    """`plan = plan.control(...)`.

    >>> control_line("require", "mean of income", within=500)
    "plan = plan.require('mean of income', within=500)"
    """
    said = [*map(repr, words), *(f"{name}={value!r}" for name, value in options.items())]
    return f"plan = plan.{control}({', '.join(said)})"


def _one(unit: tuple[str, ...]) -> Any:
    return unit[0] if len(unit) == 1 else list(unit)
