from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.inference import Answer, ErrorDistribution, Term
from farthing.inference.answers import decimals_for, with_interval

NORMAL = ErrorDistribution([Term("normal", 245.0)])


def test_one_number_prints_with_the_digits_that_mean_something() -> None:
    answer = Answer.around("mean of income", 41_230.4, NORMAL)
    assert str(answer) == repr(answer) == "41,230 ± 480 (95%)"
    assert isinstance(answer.values, float)
    assert str(Answer.around("share", 0.51234, ErrorDistribution([Term("normal", 0.001)]))) == "0.51234 ± 0.00196 (95%)"
    assert str(Answer.around("total", 1000, ErrorDistribution([]))) == "1,000 (95%)"


@pytest.mark.parametrize(
    ("value", "lower", "upper", "shown"),
    [
        (0.0, 0.0, 7.0, "0 (0 to 7)"),
        (3.0, -math.inf, math.inf, "3 (-∞ to ∞)"),
        (1e20, 0.9e20, 1.1e20, "1e+20 ± 1e+19"),
        (-5.04, -7.04, -3.04, "-5 ± 2"),
        (math.nan, 0.0, 1.0, "unknown (0 to 1)"),
    ],
)
def test_odd_intervals_print(value: float, lower: float, upper: float, shown: str) -> None:
    assert with_interval(value, lower, upper) == shown


def test_digits_of_nothing_are_none() -> None:
    assert decimals_for(0.0) == decimals_for(math.inf) == decimals_for(math.nan) == 0


def test_many_cells_print_as_a_table_that_is_cut() -> None:
    answer = Answer.around(
        "histogram of age", np.arange(100.0), ErrorDistribution([Term("normal", 1.0)]), tuple(range(100))
    )
    text = str(answer)
    assert text.startswith("histogram of age (95%)\n")
    assert text.endswith("... and 76 more")


def test_the_interval_moves_with_the_confidence_and_the_value_stays() -> None:
    answer = Answer.around("x", 10.0, NORMAL)
    wide = answer.at(0.99)
    assert wide.values == answer.values
    assert wide.lower < answer.lower < answer.upper < wide.upper  # type: ignore[operator]
    assert wide.error() == pytest.approx(answer.error(0.99))
    assert answer.error(0.5) < answer.error()  # type: ignore[operator]


def test_an_interval_is_cut_to_where_the_truth_lies_and_holds_the_value() -> None:
    answer = Answer.around(
        "count by sex",
        [0.0, 4.0],
        ErrorDistribution([Term("normal", 2.0)]),
        ("F", "M"),
        centre=[-9.0, 4.0],
        least=0,
    )
    assert list(np.asarray(answer.lower)) == pytest.approx([0.0, 0.08], abs=0.01)
    assert list(np.asarray(answer.upper)) == pytest.approx([3.92, 7.92], abs=0.01)  # and not 0 ± 0
    moved = Answer.around("x", 5.0, ErrorDistribution([Term("normal", 1.0)]), centre=0.0)
    assert moved.lower < 0 < moved.upper == 5.0  # type: ignore[operator]


def test_a_label_gives_an_answer_of_its_own() -> None:
    answer = Answer.around(
        "count",
        [5.0, 7.0],
        ErrorDistribution([Term("normal", np.float64(1.0), np.array([1.0, 2.0]))]),
        ("a", ("b", 1)),
    )
    one = answer["a"]
    assert (one.values, one.name, len(one), len(answer)) == (5.0, "count: a", 1, 2)
    assert answer["b", 1].standard_errors == 2.0
    assert answer["b", 1].name == "count: b, 1"
    assert list(answer) == ["a", ("b", 1)]
    assert one.at(0.5).upper < one.upper  # type: ignore[operator]
    with pytest.raises(InvalidValue, match="'a'"):
        answer["c"]


def test_an_answer_is_plain_data_for_json() -> None:
    answer = Answer.within(
        "x",
        [1.0, 2.0],
        [0.5, math.inf],
        lambda c: (np.array([0.0, -math.inf]), np.array([2.0, math.inf])),
        ("a", ("b", 2)),
    )
    written = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert written == {
        "name": "x",
        "labels": ["a", ["b", 2]],
        "values": [1.0, 2.0],
        "raw": [1.0, 2.0],
        "standard_errors": [0.5, None],
        "lower": [0.0, None],
        "upper": [2.0, None],
        "confidence": 0.95,
        "note": "",
    }


def test_a_note_stays_with_an_answer_and_has_a_line_of_its_own() -> None:
    ends = np.array([0.0, 1.0]), np.array([2.0, 3.0])
    many = Answer.within("x", [1.0, 2.0], 0.5, lambda c: ends, ("a", "b"), note="rests on a guess")
    for answer in (many, many.at(0.5), many["a"], many.renamed("y"), many["b"].at(0.9)):
        assert answer.note == answer.to_dict()["note"] == "rests on a guess"
        assert str(answer).splitlines()[-1] == "note: rests on a guess"
    assert "note" not in str(Answer.around("x", 1.0, NORMAL))


def test_an_answer_survives_pickling() -> None:
    answer = pickle.loads(pickle.dumps(Answer.around("x", 10.0, NORMAL)))
    assert str(answer.at(0.5)) == "10 ± 165 (50%)"
    assert answer.renamed("y").name == "y"


def test_values_and_labels_must_fit() -> None:
    with pytest.raises(InvalidValue, match="one for each label"):
        Answer.around("x", [1.0, 2.0], NORMAL, ("a",))
    with pytest.raises(InvalidValue, match="confidence"):
        Answer.around("x", 1.0, NORMAL, confidence=95)
