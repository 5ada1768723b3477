"""The same five words, over a server: dataset, study, statistic, plan, release.

Client    a server of farthing, reached with an API token (needs the extra `client`)
"""

from farthing.client.client import Client

__all__ = ["Client"]
