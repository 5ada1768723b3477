"""Answers as a ledger keeps them, and back: plain data, with intervals at several confidences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import numpy as np

from farthing.inference import Answer

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


def stored_form(answer: Answer) -> dict[str, Any]:
    """The answer as JSON-ready data."""
    intervals = {}
    for level in LEVELS:
        lower, upper = answer.interval_at(level)
        intervals[str(level)] = [_numbers(lower), _numbers(upper)]
    form = answer.to_dict()
    return {**form, "labels": [_label(label) for label in answer.labels], "intervals": intervals}


def restored(form: Mapping[str, Any]) -> Answer:
    """The answer of `stored_form`. Its interval at another confidence is the next wider one that was stored."""
    intervals = {float(level): ends for level, ends in form["intervals"].items()}

    def interval_at(confidence: float) -> tuple[Any, Any]:
        wide_enough = [level for level in sorted(intervals) if level >= confidence]
        lower, upper = intervals[wide_enough[0]] if wide_enough else ([None], [None])
        size = np.atleast_1d(np.asarray(form["values"], dtype=float)).shape
        return (
            np.broadcast_to(_read(lower, -math.inf), size),
            np.broadcast_to(_read(upper, math.inf), size),
        )

    labels = tuple(_read_label(label) for label in form["labels"])
    return Answer.within(
        form["name"],
        _read(form["values"], math.nan),
        _read(form["standard_errors"], math.inf),
        interval_at,
        labels,
        confidence=form["confidence"],
    )


def records_of(answer: Answer) -> Iterator[dict[str, Any]]:
    """One flat record for each cell."""
    columns = [answer.values, answer.standard_errors, answer.lower, answer.upper]
    cells = zip(*(np.atleast_1d(column).tolist() for column in columns), strict=True)
    for label, (value, error, lower, upper) in zip(answer.labels or (None,), cells, strict=True):
        yield {
            "statistic": answer.name,
            "cell": "" if label is None else label_text(label),
            "value": value,
            "standard_error": error,
            "lower": lower,
            "upper": upper,
            "confidence": answer.confidence,
        }


def label_text(label: Any) -> str:
    """A label for people: a pair of edges as an interval, several columns with commas.

    >>> label_text((0, 18)), label_text(("F", (0, 18))), label_text("M")
    ('0 to 18', 'F, 0 to 18', 'M')
    """
    if isinstance(label, tuple):
        if len(label) == 2 and all(_is_edge(part) for part in label):
            return f"{label[0]} to {label[1]}"
        return ", ".join(label_text(part) for part in label)
    return str(label)


def plain(value: Any) -> Any:
    """Nested data with what JSON cannot say (infinity, NaN) as null.

    >>> plain({"a": [1.0, math.inf]})
    {'a': [1.0, None]}
    """
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_edge(part: Any) -> bool:
    return isinstance(part, int | float | date) and not isinstance(part, bool)


def _label(label: Any) -> Any:
    if isinstance(label, tuple):
        return {"parts": [_label(part) for part in label]}
    if isinstance(label, date):
        return {"date": label.isoformat()}
    return label.item() if isinstance(label, np.generic) else label


def _read_label(label: Any) -> Any:
    if isinstance(label, dict):
        if "date" in label:
            return date.fromisoformat(label["date"])
        return tuple(_read_label(part) for part in label["parts"])
    return label


def _numbers(values: Any) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in np.atleast_1d(values)]


def _read(values: Any, missing: float) -> Any:
    if isinstance(values, list):
        return np.array([missing if value is None else value for value in values], dtype=float)
    return missing if values is None else values
