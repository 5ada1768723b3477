"""Counts and durations of requests, in the text that Prometheus reads. No person and no dataset is named."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """What this process has answered since it started.

    >>> metrics = Metrics()
    >>> metrics.count("/healthz", "GET", 200, 0.003)
    >>> print(metrics.text({"queued": 2}))
    # HELP farthing_requests_total Requests answered.
    # TYPE farthing_requests_total counter
    farthing_requests_total{route="/healthz",method="GET",status="200"} 1
    ...
    farthing_jobs{state="queued"} 2
    <BLANKLINE>
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Note one request; `route` is the template, never the path that was asked for."""
        with self._lock:
            self._requests[route, method if method in _METHODS else "other", status] += 1
            self._durations.setdefault(route, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self, jobs: Mapping[str, int]) -> str:
        """Everything, as text."""
        with self._lock:
            requests = sorted(self._requests.items())
            durations = sorted((route, list(counts)) for route, counts in self._durations.items())
            seconds = dict(self._seconds)
        lines = _headed("farthing_requests_total", "counter", "Requests answered.")
        lines += [
            f'farthing_requests_total{{route="{route}",method="{method}",status="{status}"}} {count}'
            for (route, method, status), count in requests
        ]
        name = "farthing_request_duration_seconds"
        lines += _headed(name, "histogram", "How long requests took.")
        for route, counts in durations:
            total = 0
            for bound, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
                total += count
                lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{route="{route}"}} {seconds[route]:.6f}')
            lines.append(f'{name}_count{{route="{route}"}} {total}')
        lines += _headed("farthing_jobs", "gauge", "Releases and sessions by state.")
        lines += [f'farthing_jobs{{state="{state}"}} {count}' for state, count in sorted(jobs.items())]
        return "\n".join(lines) + "\n"


def _headed(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
