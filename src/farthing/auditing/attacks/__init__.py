"""Attacks as code, on made-up tables: what answers without differential privacy give away, and what ours do not.

difference, differences             two counts that differ by one person
reconstruct, reconstructions        a secret column from counts over random subsets (Dinur & Nissim 2003)
TracingScheme, trace                questions whose answers reveal whose key was used to answer them (DNRRV 2009)
most_guessed, chance_of_guessing    what epsilon permits anybody, on average and in one run
"""

from farthing.auditing.attacks.difference_attack import (
    Differenced,
    chance_of_guessing,
    difference,
    differences,
    guessed_by_difference,
    most_guessed,
)
from farthing.auditing.attacks.linear_reconstruction import (
    Reconstructed,
    noisy_reconstructions,
    private_counts,
    random_subsets,
    reconstruct,
    reconstructed,
    reconstructions,
)
from farthing.auditing.attacks.traitor_tracing import Accusation, Broadcast, Key, TracingScheme, trace

__all__ = [
    "Accusation",
    "Broadcast",
    "Differenced",
    "Key",
    "Reconstructed",
    "TracingScheme",
    "chance_of_guessing",
    "difference",
    "differences",
    "guessed_by_difference",
    "most_guessed",
    "noisy_reconstructions",
    "private_counts",
    "random_subsets",
    "reconstruct",
    "reconstructed",
    "reconstructions",
    "trace",
]
