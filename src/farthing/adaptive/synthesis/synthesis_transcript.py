"""What a synthesis has found so far: noisy tables and what was made of them. Nothing here has seen a row.

All of it is whole numbers by name, so that a ledger can keep it and the model can be made again from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.synthesis.value_groups import Places

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Noisy counts over a few columns, and the shares of noise that they were given.

    `places` says for each column where its values (of one column) or its groups (of several) lie in the table;
    `expected` is what the model held there before, for a table that was chosen.
    """

    columns: tuple[int, ...]
    places: tuple[Places, ...]
    values: Whole
    shares: int
    expected: Whole | None = None

    @property
    def chosen(self) -> bool:
        """Whether a private choice fell on it."""
        return self.expected is not None


@dataclass(frozen=True, eq=False)
class Transcript:
    """The groups of every column and the noisy tables, in the order in which they were measured.

    >>> one = NoisyTable((0,), (np.array([0, 1]),), np.array([7, 3]), 40)
    >>> written = Transcript((np.array([0, 1]),), (one,)).written()
    >>> sorted(written)
    ['groups 0', 'table 0 columns', 'table 0 places 0', 'table 0 shares', 'table 0 values']
    >>> Transcript.read(written).tables[0].values
    array([7, 3])
    """

    groups: tuple[Places, ...] = ()
    tables: tuple[NoisyTable, ...] = ()

    def with_tables(self, *more: NoisyTable) -> Transcript:
        """The same with further tables."""
        return replace(self, tables=(*self.tables, *more))

    @property
    def chosen(self) -> list[NoisyTable]:
        """The tables that were chosen, in order."""
        return [table for table in self.tables if table.chosen]

    def written(self) -> dict[str, Whole]:
        """Everything as named arrays of whole numbers."""
        record = {f"groups {column}": places for column, places in enumerate(self.groups)}
        for number, table in enumerate(self.tables):
            name = f"table {number}"
            record[f"{name} columns"] = np.array(table.columns, dtype=np.int64)
            record[f"{name} values"] = table.values
            record[f"{name} shares"] = np.array([table.shares], dtype=np.int64)
            for axis, places in enumerate(table.places):
                record[f"{name} places {axis}"] = places
            if table.expected is not None:
                record[f"{name} expected"] = table.expected
        return record

    @classmethod
    def read(cls, answers: Mapping[str, Any]) -> Transcript:
        """The transcript that `written` stored under these names."""
        groups = tuple(answers[f"groups {column}"] for column in _numbers(answers, "groups"))
        tables = []
        for number in _numbers(answers, "table"):
            name = f"table {number}"
            columns = tuple(int(column) for column in answers[f"{name} columns"])
            places = tuple(np.asarray(answers[f"{name} places {axis}"]) for axis in range(len(columns)))
            shares = int(answers[f"{name} shares"][0])
            values, expected = np.asarray(answers[f"{name} values"]), answers.get(f"{name} expected")
            tables.append(NoisyTable(columns, places, values, shares, expected))
        return cls(groups, tuple(tables))


def _numbers(names: Sequence[str] | Mapping[str, Any], word: str) -> list[int]:
    return sorted({int(name.split()[1]) for name in names if name.split()[0] == word})


def rounds_of(
    transcript: Transcript, names: Sequence[str], standard_error: Callable[[int], float], total: float
) -> list[dict[str, Any]]:
    """For each chosen table: its columns, its cells, the model's error there before it, and the error of its noise.

    Both errors are total variations, as a share of all rows. The first is estimated from the noisy table: squared
    differences exceed the model's own by the variance of the noise, and that is taken off.
    """
    rounds = []
    for table in transcript.chosen:
        assert table.expected is not None
        error = standard_error(table.shares)
        gaps = np.abs(table.values - table.expected).astype(float)
        shrunk = np.sqrt(np.maximum(float(np.sum(gaps**2)) - gaps.size * error**2, 0.0) / np.sum(gaps**2).clip(1e-9))
        rows = max(total, 1.0)
        rounds.append(
            {
                "columns": [names[column] for column in table.columns],
                "cells": int(table.values.size),
                "error_before": min(1.0, float(gaps.sum() * shrunk) / 2 / rows),
                "noise": min(1.0, gaps.size * error * (2 / np.pi) ** 0.5 / 2 / rows),
            }
        )
    return rounds
