"""The nouns of privacy: events that mechanisms hand over and accountants price."""

from farthing.privacy.events import (
    ApproxDP,
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
    "Composed",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "Event",
    "GaussianNoise",
    "LaplaceNoise",
    "RandomizedResponse",
    "Sampled",
]
