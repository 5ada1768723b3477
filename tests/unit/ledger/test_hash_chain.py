"""Marks: what is signed, and that nothing else carries the same mark."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.ledger import tamper_evidence as chain_module
from farthing.ledger.tamper_evidence import Chain, canonical

KEY = bytes(range(32))
PARTS = st.lists(st.one_of(st.text(max_size=4), st.integers(-5, 5)), max_size=4).map(tuple)


@pytest.mark.parametrize("key", [KEY, bytes(range(64)), bytes(range(65)), bytes(range(200))])
def test_a_mark_is_an_hmac_over_framed_parts(key: bytes) -> None:
    message = b"s4:heads1:li7;s2:ab"
    for _ in range(2):  # what is hashed once must not be used up by the first mark
        assert Chain(key, "l").head(7, "ab") == hmac.new(key, message, hashlib.sha256).hexdigest()


@pytest.mark.slow
@given(PARTS, PARTS)
def test_different_parts_have_different_marks(one: tuple[object, ...], other: tuple[object, ...]) -> None:
    chain = Chain(KEY, "l")
    assert (chain.entry(one) == chain.entry(other)) == (one == other)


@pytest.mark.slow
@given(st.tuples(*(st.integers() if n in (0, 6) else st.text(max_size=4) for n in range(11))))
def test_an_entry_is_spelled_like_any_other_parts(fields: tuple[object, ...]) -> None:
    """The short way of the usual kinds of fields, against the way that suits all."""
    assert chain_module._spelled_entry(fields) == chain_module._spelled(fields)
    swapped = (*fields[1:], fields[0])
    assert chain_module._spelled_entry(swapped) == chain_module._spelled(swapped)


def test_a_number_and_its_digits_have_different_marks() -> None:
    chain = Chain(KEY, "l")
    assert chain.entry((1,)) != chain.entry(("1",))


@pytest.mark.parametrize("part", [1.0, True, None, b"x", ("a",)])
def test_only_text_and_whole_numbers_are_signed(part: object) -> None:
    with pytest.raises(TypeError):
        Chain(KEY, "l").entry((part,))


def test_kinds_ledgers_and_keys_are_apart() -> None:
    chain = Chain(KEY, "l")
    marks = {
        chain.head(1, "a"),
        Chain(KEY, "m").head(1, "a"),
        Chain(bytes(32), "l").head(1, "a"),
        chain.entry((1, "a")),
        chain.account("1", "a", 1, "a"),
        chain.answer("1", "a"),
    }
    assert len(marks) == 6


def test_the_key_is_in_no_repr() -> None:
    assert KEY.hex() not in repr(Chain(KEY, "l")) and str(KEY) not in repr(Chain(KEY, "l"))


def test_nan_has_no_canonical_spelling() -> None:
    with pytest.raises(ValueError):
        canonical({"epsilon": float("nan")})
