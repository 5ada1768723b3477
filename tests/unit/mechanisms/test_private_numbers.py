"""How private numbers are read: nothing rounds unnoticed, and no refusal carries a value along."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import InvalidData
from farthing.mechanisms import BoundedSum, DiscreteLaplace, RandomizedResponse
from farthing.mechanisms.mechanism import checked_integers, checked_reals

WHOLE = st.integers(-(2**70), 2**70) | st.sampled_from([2**53, 2**53 + 1, 2**63, 2**63 + 1, 2**64, -(2**63)])


@pytest.mark.slow
@given(WHOLE, st.integers(0, 5000), st.sampled_from([[], [0.5], [-1], [2**64], [np.uint64(2**63), -1]]))
def test_whole_numbers_read_as_reals_are_never_moved_apart(a: int, distance: int, others: list[Any]) -> None:
    """NumPy reads [2**53 + 1, 0.5] and [-1, 2**63 + 1] as doubles, which would round before any grid."""
    one, other = (checked_reals([value, *others])[0] for value in (a, a + distance))
    assert abs(int(one) - int(other)) <= distance


def test_a_whole_number_of_any_size_is_clamped_not_refused() -> None:
    """A refusal at 2^64 would tell that the value was that large."""
    for huge in (2**63, 2**64, 10**400):
        assert checked_reals(huge) == checked_reals([huge])[0] == checked_reals((1.5, huge))[1] == 2.0**53
        assert checked_reals([-huge, 1])[0] == -(2.0**53)
        assert checked_integers(huge) == checked_integers([1, huge])[1] == 2**62


def test_large_doubles_stay_what_they_are() -> None:
    assert checked_reals([1e300, 1]).tolist() == [1e300, 1.0] and checked_reals([-(2.0**60)])[0] == -(2.0**60)


class Quoting:
    """A foreign column whose errors quote a cell."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("could not convert 'secret' to a number")


@pytest.mark.parametrize(
    "release",
    [
        DiscreteLaplace(1.0).release,
        DiscreteLaplace(1.0, 1.0, grid=0.5).release,
        BoundedSum(1.0, 0.0, 1.0, grid=0.5).release,
        RandomizedResponse(1.0).release_many,
    ],
)
def test_no_refusal_carries_what_a_foreign_object_raised(release: Any) -> None:
    """Not even as its context, which `from None` hides from a traceback but keeps."""
    with pytest.raises(InvalidData) as caught:
        release(Quoting())
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert "secret" not in "".join(traceback.format_exception_only(caught.value))


def test_a_refusal_of_text_does_not_tell_how_long_it_was() -> None:
    for check in (checked_integers, checked_reals):
        with pytest.raises(InvalidData) as caught:
            check(np.array(["a diagnosis of 23 letters"]))
        assert "25" not in str(caught.value) and "text" in str(caught.value)
