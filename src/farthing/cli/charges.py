"""What the command line was asked to compose."""

from __future__ import annotations

from collections.abc import Iterable

from farthing.accounting.comparison import Charges, charges_of_pairs
from farthing.cli.words import charge_of


def charges_of_words(words: Iterable[str]) -> Charges:
    """The charges a list of words stands for.

    >>> charges = charges_of_words(["0.1x100", "0.05,1e-7x20", "gaussian:4x10"])
    >>> charges.k, charges.epsilons, charges.events
    (130, array([0.1 , 0.05]), ((GaussianNoise(noise_multiplier=4.0), 10),))
    """
    return charges_of_pairs([charge_of(word) for word in words])
