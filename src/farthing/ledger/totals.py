"""How an entry says how the accounts stood after it: plain sums for people, a fingerprint for the rest.

Written and compared as text. An entry's totals are its writer's claim; a replay of all entries before it makes the
same text or the ledger does not verify.
"""

from __future__ import annotations

from collections.abc import Mapping

from farthing.ledger.chain import canonical, fingerprint
from farthing.ledger.holdings import Holding
from farthing.ledger.standings import Standing

_MARK = 32  # characters of a fingerprint
_NAMES = {"": '"":'}


def label_of(dataset: str, other: str, analyst: str) -> str:
    """What totals call an account in an entry of `dataset`: the analyst, after its dataset where that is another.

    >>> label_of("flights", "flights", "bob"), label_of("flights", "planes", "bob")
    ('bob', 'planes\\nbob')
    """
    return analyst if other == dataset else f"{other}\n{analyst}"  # no name has a line break in it


def totals_of(states: Mapping[str, tuple[Holding, str]]) -> str:
    """The totals of an entry that leaves these accounts, by analyst, each with its text; nothing for no accounts.

    >>> from farthing.ledger.account import Account
    >>> holding = Holding(Account.of(1.0))
    >>> totals_of({"": (holding, holding.text())})[:51]
    '{"":{"count":0,"leak_units":0,"sum_nano":0,"sum_uni'
    """
    if not states:
        return ""
    parts = (f'{_name(who)}{holding.sums()}{fingerprint(text)}"}}' for who, (holding, text) in states.items())
    return f"{{{','.join(parts)}}}"


def totals_agree(claimed: str, states: Mapping[str, Holding | Standing], *, whole: bool) -> bool:
    """Whether totals are those of these accounts: the sums always, the fingerprints only if `whole`.

    >>> from farthing.ledger.account import Account
    >>> holding = Holding(Account.of(1.0))
    >>> claimed = totals_of({"": (holding, holding.text())})
    >>> totals_agree(claimed, {"": holding}, whole=True), totals_agree(claimed[:-1], {"": holding}, whole=False)
    (True, False)
    """
    if not states:
        return claimed == ""
    place, before = 0, "{"
    for who, holding in states.items():
        lead = f"{before}{_name(who)}{holding.sums()}"
        if not claimed.startswith(lead, place):
            return False
        place += len(lead)
        if whole and claimed[place : place + _MARK] != fingerprint(holding.text()):
            return False
        place, before = place + _MARK, '"},'
    return claimed[place:] == '"}}'


def _name(who: str) -> str:
    return _NAMES.get(who) or f"{canonical(who)}:"
