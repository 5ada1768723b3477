"""Mechanisms whose noise can be trusted: exact discrete distributions, drawn from the system's randomness only.

Every mechanism is a frozen value made of public parameters, with an `event` for the accountant and a
`release(value)`. Where it adds noise it knows its exact `variance` and its `error(confidence)`.

randomness, samplers      where noise comes from; single draws and whole vectors, of the same distributions
noise_distributions, value_grid  masses, tails and variances; real numbers in whole steps
additive, private_sum     noise on numbers and vectors; a private sum of bounded rows
randomized_response       one person's answer, and proportions from many
exponential, noisy_max    choosing: the exponential mechanism, top k, report noisy max, permute and flip
quantiles, many_quantiles, counted_quantiles  choosing a quantile, or many at once
sparse_vector, threshold_session  many questions, few of them above a threshold
smooth_median, smooth_noise  noise for the data at hand, by smooth sensitivity
key_selection, weighted_keys  which groups exist
"""

from farthing.mechanisms.additive import DiscreteGaussian, DiscreteLaplace
from farthing.mechanisms.exponential import ExponentialMechanism, TopK
from farthing.mechanisms.key_selection import KeySelection
from farthing.mechanisms.many_quantiles import Quantiles
from farthing.mechanisms.mechanism import Mechanism
from farthing.mechanisms.noisy_max import PermuteAndFlip, ReportNoisyMax, Winner
from farthing.mechanisms.private_sum import BoundedSum
from farthing.mechanisms.quantiles import Quantile
from farthing.mechanisms.randomized_response import Estimate, RandomizedResponse
from farthing.mechanisms.smooth_median import SmoothMedian, SmoothSensitivity, SmoothStatistic
from farthing.mechanisms.sparse_vector import AboveThreshold, SparseVector
from farthing.mechanisms.threshold_session import Above, Below, ThresholdSession
from farthing.mechanisms.weighted_keys import WeightedKeySelection

__all__ = [
    "Above",
    "AboveThreshold",
    "Below",
    "BoundedSum",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Estimate",
    "ExponentialMechanism",
    "KeySelection",
    "Mechanism",
    "PermuteAndFlip",
    "Quantile",
    "Quantiles",
    "RandomizedResponse",
    "ReportNoisyMax",
    "SmoothMedian",
    "SmoothSensitivity",
    "SmoothStatistic",
    "SparseVector",
    "ThresholdSession",
    "TopK",
    "WeightedKeySelection",
    "Winner",
]
