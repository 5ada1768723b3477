"""The nouns of privacy: events that mechanisms hand over and accountants price."""

from farthing.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

__all__ = [
    "ApproxDP",
    "BoundedRange",
    "Composed",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "Event",
    "GaussianNoise",
    "LaplaceNoise",
    "RandomizedResponse",
    "Sampled",
]
