"""The old name of `farthing.matrix.workloads`, until 1.0."""

from farthing.matrix.workloads import *  # noqa: F403
from farthing.matrix.workloads import __all__ as __all__
