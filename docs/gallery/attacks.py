"""The share of a secret column that comes back from counts over random subsets, for growing noise."""

from __future__ import annotations

from typing import Any

from farthing.auditing.attacks import noisy_reconstructions, private_counts, reconstruct

ROWS, QUERIES, EPSILON, DELTA = 200, 800, 1.0, 1e-9
NOISES = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0)


def recovered(noises: tuple[float, ...] = NOISES, repetitions: int = 20) -> dict[str, Any]:
    """What `share_recovered` draws: normal noise of every width, and private answers to the same questions."""
    size: dict[str, Any] = {"rows": ROWS, "queries": QUERIES, "repetitions": repetitions}
    shares = [one.share for one in noisy_reconstructions(noises, **size)]
    mechanism = private_counts(QUERIES, EPSILON, DELTA)
    width = mechanism.standard_error
    ours = reconstruct(mechanism.release, noise=width, **size).share
    return {
        "noise": list(noises),
        "shares": shares,
        "rows": ROWS,
        "queries": QUERIES,
        "marked": [(f"farthing, epsilon = {EPSILON:g}", width, ours)],
    }
