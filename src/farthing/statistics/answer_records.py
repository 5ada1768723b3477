"""Answers as a ledger keeps them, and back: plain data, with intervals at several confidences.

An answer has a note of what declared bounds do to it (`with_bounds`), from public facts and the number alone.
`PostProcessing` is what the curator runs between the noise and the record.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data import Integers, Reals
from farthing.data.schema import Dates, Schema
from farthing.inference import Answer
from farthing.inference.error_distributions import KeptInterval
from farthing.inference.noisy_numbers import CellNoise
from farthing.statistics.counts.top_values import ranked
from farthing.statistics.marginals.marginal_queries import restored_queries
from farthing.statistics.measurements import Noise, Output
from farthing.statistics.ranges.cell_conditions import Between
from farthing.statistics.ranges.error_shapes import ShapedInterval
from farthing.statistics.statistic import MOMENTS, QUANTILES, Statistic
from farthing.statistics.withheld_cells import withheld

Floats = NDArray[np.float64]
Limits = tuple[Floats | float, Floats | float]
CHECK = "check the bounds with farthing check"
BEYOND = "rare values beyond it may not have been seen"
_CLIPPED = (*MOMENTS, "cdf", "linear_regression")  # quantiles say it beside what their interval rests on
_NEAR = 1e-9  # of the distance of the limits


def clipped_columns(statistic: Statistic, schema: Schema) -> tuple[str, ...]:
    """The columns of a statistic whose values outside declared bounds count as the nearer one."""
    if statistic.kind not in (*_CLIPPED, *QUANTILES):
        return ()
    return tuple(name for name in statistic.columns if isinstance(schema[name], Integers | Reals | Dates))


def outside(lower: object, upper: object) -> str:
    """Which values count as a bound; in full, since 1,234,567 is not 1.23457e+06.

    >>> outside(0, 1_234_567.0), outside(10.5, 60.0)
    ('outside 0 to 1234567', 'outside 10.5 to 60')
    """
    texts = (f"{bound:.15g}" if isinstance(bound, int | float) else str(bound) for bound in (lower, upper))
    return "outside " + " to ".join(texts)


def too_few_rows(statistic: Statistic, whole: int, cells: int) -> str:
    """That intervals are all that the bounds allow: the number beside such a one says nothing.

    >>> from farthing.statistics import median
    >>> too_few_rows(median("age"), 1, 1)
    'the interval is as wide as the bounds: there are too few rows for this epsilon'
    >>> too_few_rows(median("age", by="sex"), 1, 2).rpartition("or ")[2]
    'the categories of sex do not match the file: farthing check'
    """
    which = "the interval is" if cells == 1 else f"{whole:,} of {cells:,} intervals {'is' if whole == 1 else 'are'}"
    text = f"{which} as wide as the bounds: there are too few rows for this epsilon"
    if not statistic.by:
        return text
    named = " and ".join(statistic.by)
    return f"{text}, or the categories of {named} do not match the file: farthing check"


def with_note(answer: Answer, *notes: str) -> Answer:
    """The answer with more to say, after what it says already.

    >>> with_note(Answer.within("n", 3.0, 1.0, lambda confidence: (1.0, 5.0), note="rounded"), "found").note
    'rounded; found'
    """
    return replace(answer, note="; ".join(note for note in (answer.note, *notes) if note))


def with_bounds(
    answer: Answer, statistic: Statistic, schema: Schema, limits: Limits | None, findings: Container[str] = ()
) -> Answer:
    """The answer with a note of what its bounds do; `limits` are the least and the most that they allow each cell.

    The ranges of columns in `findings` were not declared. The note is a function of the declaration, of what was found
    and of the released interval, so that it costs nothing.
    """
    columns = clipped_columns(statistic, schema)
    if not columns:
        return answer
    said = [answer.note] if answer.note else []
    if statistic.kind in _CLIPPED:
        said.insert(0, _clipped(columns, schema))
    if limits is not None:
        said += _reached(answer, statistic, limits, {name in findings for name in columns})
    return replace(answer, note="; ".join(said))


def _clipped(columns: Sequence[str], schema: Schema) -> str:
    spans = []
    for name in columns:
        domain = schema[name]
        assert isinstance(domain, Integers | Reals | Dates)
        spans.append(outside(domain.lower, domain.upper))
    if len(columns) > 1:
        spans = [f"of {name} {span}" for name, span in zip(columns, spans, strict=True)]
    text = f"values {', '.join(spans[:-1])}{' and ' if len(spans) > 1 else ''}{spans[-1]} count as the nearer bound"
    whole = [name for name in columns if isinstance(schema[name], Integers)]
    which = f"of {' and '.join(whole)} " if len(columns) > 1 else ""
    return f"{text}; fractions {which}are rounded down" if whole else text


def _reached(answer: Answer, statistic: Statistic, limits: Limits, origins: set[bool]) -> list[str]:
    """That an interval reaches a limit; not of one that reaches both, which says nothing at all.

    `origins` has whether bounds were found, or declared, or both where some were.
    """
    least, most = (np.asarray(limit, dtype=float) for limit in limits)
    room = _NEAR * np.abs(most - least)
    below = np.atleast_1d(answer.lower) <= least + room
    above = np.atleast_1d(answer.upper) >= most - room
    one_sided = below ^ above
    if not one_sided.any():
        return []
    cells, reached = len(one_sided), int(one_sided.sum())
    which = "the interval reaches"
    if cells > 1:
        which = f"{reached:,} of {cells:,} intervals {'reaches' if reached == 1 else 'reach'}"
    bound = "declared or found" if len(origins) > 1 else "found" if True in origins else "declared"
    way_out = BEYOND if origins == {True} else CHECK
    if statistic.kind not in ("variance", "std"):
        return [f"{which} the {bound} bound: {way_out}"]
    at_least, at_most = (below & one_sided).any(), (above & one_sided).any()
    where = {
        (True, False): "0, as if all values were the same, or beyond one bound",
        (False, True): f"the most that the {bound} bounds allow",
        (True, True): f"0 or the most that the {bound} bounds allow",
    }[bool(at_least), bool(at_most)]
    return [f"{which} {where}: {way_out}"]


LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


def stored_form(answer: Answer, levels: Sequence[float] = ()) -> dict[str, Any]:
    """The answer as JSON-ready data; `levels` are further confidences to keep its interval at."""
    if isinstance(answer.interval_at, ShapedInterval):
        return _shaped_form(answer, answer.interval_at)
    form = {**answer.to_dict(), "labels": [_label(label) for label in answer.labels]}
    if answer.noise is not None and answer.noise.small:
        form["noise"] = answer.noise.stored()
    intervals = {}
    kept, interval = list(dict.fromkeys((*LEVELS, *levels))), answer.interval_at
    ends = interval.at_levels(kept) if isinstance(interval, KeptInterval) else map(interval, kept)
    for level, (lower, upper) in zip(kept, ends, strict=True):
        intervals[str(level)] = [_numbers(lower), _numbers(upper)]
    return {**form, "intervals": intervals}


def _shaped_form(answer: Answer, interval: ShapedInterval) -> dict[str, Any]:
    """An answer of very many cells: what its numbers are made of, each once."""
    asking = None if answer.asking is None else answer.asking.stored()
    own_labels = hasattr(answer.asking, "labels")
    around = interval.stored()
    values = [float(f"{value:.9g}") for value in np.atleast_1d(answer.values)]
    usual = [max(number, interval.least) for number in around["centre"]]
    return {
        "name": answer.name,
        "labels": None if own_labels else [_label(label) for label in answer.labels],
        "values": None if values == usual else values,
        "standard_errors": _runs(np.atleast_1d(answer.standard_errors)),
        "confidence": answer.confidence,
        "note": answer.note,
        "asking": asking,
        "shaped": around,
    }


def shown_form(answer: Answer) -> dict[str, Any]:
    """The same for people's programs: under "plain", cells, values, errors and intervals of very many in lists."""
    form = stored_form(answer)
    if "shaped" not in form:
        return form
    cells = {
        "labels": [_label(label) for label in answer.labels],
        "values": _numbers(answer.values),
        "standard_errors": _numbers(answer.standard_errors),
        "lower": _numbers(answer.lower),
        "upper": _numbers(answer.upper),
    }
    return {**form, "plain": cells}


def _restored_shaped(form: Mapping[str, Any]) -> Answer:
    errors = np.repeat(*map(np.array, zip(*form["standard_errors"], strict=True)))
    interval = ShapedInterval.restored(form["shaped"], errors)
    centre = interval.centre
    usual = form["values"] is None
    values = np.maximum(centre, interval.least) if usual else np.array(form["values"], dtype=float)
    asking = None if form["asking"] is None else restored_queries(form["asking"], centre, values)
    labels = form["labels"]
    return Answer.within(
        form["name"],
        values,
        errors,
        interval,
        asking.labels() if labels is None else tuple(_read_label(label) for label in labels),  # type: ignore[union-attr]
        confidence=form["confidence"],
        note=form["note"],
        asking=asking,
        raw=centre,
    )


def _runs(numbers: Any) -> list[list[float]]:
    """[number, how often] for runs of equal numbers: all cells of a table may have one standard error."""
    ends = np.append(np.flatnonzero(np.diff(numbers)) + 1, len(numbers))
    starts = np.append(0, ends[:-1])
    return [[float(numbers[start]), int(end - start)] for start, end in zip(starts, ends, strict=True)]


def restored(form: Mapping[str, Any], release: str = "") -> Answer:
    """The answer of `stored_form`. Its interval at another confidence is the next wider one that was stored.

    `release` names the release that it is of, so that its noises are not mixed up with those of others.
    """
    if "shaped" in form:
        return _restored_shaped(form)
    labels = tuple(_read_label(label) for label in form["labels"])
    intervals = {float(level): ends for level, ends in form["intervals"].items()}

    def interval_at(confidence: float) -> tuple[Any, Any]:
        wide_enough = [level for level in sorted(intervals) if level >= confidence]
        lower, upper = intervals[wide_enough[0]] if wide_enough else ([None], [None])
        size = np.atleast_1d(np.asarray(form["values"], dtype=float)).shape
        return (
            np.broadcast_to(_read(lower, -math.inf), size),
            np.broadcast_to(_read(upper, math.inf), size),
        )

    answer = Answer.within(
        form["name"],
        _read(form["values"], math.nan),
        _read(form["standard_errors"], math.inf),
        interval_at,
        labels,
        confidence=form["confidence"],
        note=form.get("note", ""),  # answers of older ledgers have none, nor raw numbers
        raw=_read(form.get("raw", form["values"]), math.nan),
    )
    if not release or "noise" not in form:
        return answer
    return replace(answer, noise=CellNoise.restored(form["noise"], release, answer.name))


def records_of(answer: Answer, together: Answer | None = None, counts: str | None = None) -> Iterator[dict[str, Any]]:
    """One flat record for each cell; `together` is the same answer with intervals that hold for everything at once.

    `counts` says what its numbers count.
    """
    wide = answer if together is None else together
    columns = [answer.values, answer.raw, answer.standard_errors, answer.lower, answer.upper, wide.lower, wide.upper]
    cells = zip(*(np.atleast_1d(column).tolist() for column in columns), strict=True)
    names = label_texts(answer.labels) or [""]
    for name, (value, raw, error, lower, upper, least, most) in zip(names, cells, strict=True):
        yield {
            "statistic": answer.name,
            "cell": name,
            **({} if counts is None else {"counts": counts}),
            "value": value,
            "raw": raw,
            "standard_error": error,
            "lower": lower,
            "upper": upper,
            "confidence": answer.confidence,
            **({} if together is None else {"lower_at_once": least, "upper_at_once": most}),
            "note": answer.note,
        }


def label_texts(labels: Sequence[Any]) -> list[str]:
    """Labels for people: a pair of edges as an interval, several columns with commas.

    >>> label_texts([(0, 18), (18, 65)]), label_texts([("F", (0.0, 1.5))]), label_texts([(1, 1), (1, 2)])
    (['0 to 18', '18 to 65'], ['F, 0 to 1.5'], ['1, 1', '1, 2'])
    >>> label_texts([(date(2024, 12, 31), 5)])
    ['2024-12-31, 5']
    """
    bins = _are_bins(labels)
    return [_interval(label) if bins else _label_text(label) for label in labels]


def are_neighbours(labels: Sequence[Any]) -> bool:
    """Whether labels are the rising values or bins of one column of numbers or dates.

    >>> are_neighbours([(0, 18), (18, 65)]), are_neighbours([1, 2, 5]), are_neighbours(["F", "M"])
    (True, True, False)
    """
    return _are_bins(labels) or (all(map(_is_edge, labels)) and all(a < b for a, b in pairwise(labels)))


def _are_bins(labels: Sequence[Any]) -> bool:
    return all(_is_interval(label) for label in labels) and all(a[1] == b[0] for a, b in pairwise(labels))


def _label_text(label: Any) -> str:
    if isinstance(label, Between):
        return str(label)
    if isinstance(label, tuple):
        return ", ".join(_interval(part) if _is_interval(part) else _label_text(part) for part in label)
    return f"{label:.8g}" if isinstance(label, float) else str(label)


def _interval(label: Any) -> str:
    return f"{_label_text(label[0])} to {_label_text(label[1])}"


def _is_interval(label: Any) -> bool:
    if not (isinstance(label, tuple) and len(label) == 2 and all(map(_is_edge, label))):
        return False
    alike = isinstance(label[0], date) == isinstance(label[1], date)  # a day and a number are two columns
    return alike and bool(label[0] < label[1])


def answers_from(
    outputs: Sequence[Output],
    noises: Mapping[str, Noise],
    schema: Schema,
    measured: Mapping[str, Any],
    findings: Sequence[Mapping[str, str]] = (),
) -> list[Answer]:
    """The answers of a plan from its noisy numbers, in the order of its outputs: post-processing only.

    `findings` has, for each output, notes on columns whose values or range were found, by column.
    """
    answers = []
    for output, notes in zip(outputs, findings or [{}] * len(outputs), strict=True):
        asked, answer = output.statistic, output.answer(measured, noises)
        answer = with_note(with_bounds(answer, asked, schema, output.limits(measured), notes), *notes.values())
        if asked.kind != "top":
            answer = replace(answer, noise=output.noise_in(measured, noises))
        else:
            known = len(answer.labels)
            answer = ranked(answer, asked.most, independent=output.independent)
            if known < asked.most and asked.column in notes:
                answer = with_note(answer, f"only {known:,} values were found: others may be more frequent than these")
        answers.append(answer)
    return answers


@dataclass(frozen=True)
class PostProcessing:
    """What a plan makes of its noisy numbers, as the curator records it: answers beside the plan that predicted them.

    It runs inside the curator, after the noise, and sees no rows. `levels` are, for each output, further confidences at
    which its interval is kept: that at which all numbers of the plan hold at once, and that of its own cells. If a
    policy says that cells must hold at least so many people, `least` is that number, and `rows_of_one` what one person
    can add to a cell of each output. `findings` has, for each output, notes on columns that were found, by column.
    """

    outputs: tuple[Output, ...]
    noises: Mapping[str, Noise]
    schema: Schema
    levels: tuple[tuple[float, float], ...]
    plan: Mapping[str, Any]
    least: int = 0
    rows_of_one: tuple[int, ...] = ()
    findings: tuple[Mapping[str, str], ...] = ()

    def __call__(self, measured: Mapping[str, Any]) -> dict[str, Any]:
        """The answers and the plan as plain data."""
        answers = answers_from(self.outputs, self.noises, self.schema, measured, self.findings)
        if self.least:
            answers = withheld(answers, self.outputs, self.least, self.rows_of_one)
        stored = [stored_form(answer, kept) for answer, kept in zip(answers, self.levels, strict=True)]
        return {"answers": stored, "plan": self.plan}


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
        key = "between" if isinstance(label, Between) else "parts"
        return {key: [_label(part) for part in label]}
    if isinstance(label, date):
        return {"date": label.isoformat()}
    return label.item() if isinstance(label, np.generic) else label


def _read_label(label: Any) -> Any:
    if isinstance(label, dict):
        if "date" in label:
            return date.fromisoformat(label["date"])
        if "between" in label:
            return Between(_read_label(part) for part in label["between"])
        return tuple(_read_label(part) for part in label["parts"])
    return label


def _numbers(values: Any) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in np.atleast_1d(values)]


def _read(values: Any, missing: float) -> Any:
    if isinstance(values, list):
        return np.array([missing if value is None else value for value in values], dtype=float)
    return missing if values is None else values
