"""How far an audit is: a bar on a terminal after a second, or whatever the caller wants to do with the share."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Share = Callable[[float], None]


@contextmanager
def shown(progress: Share | bool | None, patience: float = 1.0) -> Iterator[Share]:
    """A function that takes the share done. True shows a bar, None only on a terminal, False nothing.

    >>> with shown(False) as share:
    ...     share(0.5)
    """
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("auditing", total=1.0)
    timer = threading.Timer(patience, bar.start)  # a short audit shows nothing
    timer.daemon = True
    timer.start()
    try:
        yield lambda share: bar.update(task, completed=share)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
