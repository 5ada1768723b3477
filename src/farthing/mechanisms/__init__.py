"""Mechanisms whose noise can be trusted: exact discrete laws, drawn from the system's randomness only.

Every mechanism is a frozen value made of public parameters, with an `event` for the accountant and a
`release(value)`. Where it adds noise it knows its exact `variance` and its `error(confidence)`.

    randomness, exact, samplers      where noise comes from; single draws and whole vectors, the same laws
    laws, grid                       masses, tails and variances; real numbers in whole steps
    additive, sums                   noise on numbers and vectors; a private sum of bounded rows
"""

from farthing.mechanisms.additive import DiscreteGaussian, DiscreteLaplace
from farthing.mechanisms.base import Mechanism
from farthing.mechanisms.sums import BoundedSum

__all__ = [
    "BoundedSum",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Mechanism",
]
