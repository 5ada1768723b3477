"""Conditions on cells, such as `10 <= age < 25`, as this package needs them: it works on arrays and has no parser.

`farthing.statistics`, which knows the expressions of `farthing.data`, hands over how a column is written in a condition
and how a question becomes one number for each cell. It does so when it is imported; if nobody has imported it, the
first question gets it from `farthing` itself, which has every public name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import ArrayLike

from farthing.inference.noise_terms import Floats

Question = str | Mapping[str, Any] | tuple[Any, Any] | ArrayLike
"""A text, {column: value, (lo, hi) or [values]}, a pair (lo, hi) where there is one axis, or a number for each cell."""


class ConditionLanguage(Protocol):
    """How conditions on whole-numbered axes are written and read."""

    def column_text(self, column: str) -> str:
        """A column's name as it stands in a condition: quoted where it has to be."""

    def coefficients(self, question: Question, columns: tuple[str, ...], shape: tuple[int, ...]) -> Floats:
        """A question as one number for each cell, flat in C order; the cells of an axis are numbered from 0."""


_languages: list[ConditionLanguage] = []


def use_language(language: ConditionLanguage) -> None:
    """Write and read conditions in this language from now on."""
    _languages[:] = [language]


def language() -> ConditionLanguage:
    """The language that conditions are written in.

    >>> language().column_text("age"), language().column_text("date of birth")
    ('age', '"date of birth"')
    >>> language().coefficients("2 <= age < 4", ("age",), (5,))
    array([0., 0., 1., 1., 0.])
    """
    if not _languages:
        _ = sys.modules["farthing"].statistics
    return _languages[0]
