"""A progress bar on stderr for work that takes over a second; shorter work shows nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

PATIENCE = 1.0  # seconds before anything is shown


class Stages:
    """What is being done now, and how much of it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None

    def begin(self, description: str, *, measured: bool = False) -> None:
        """Name the next piece of work; `measured` when `share` will say how far it is."""
        if self._task is not None:
            self._progress.update(self._task, visible=False)
        self._task = self._progress.add_task(description, total=1.0 if measured else None)

    def share(self, done: float) -> None:
        """How much of the present piece is done, between 0 and 1."""
        if self._task is not None:
            self._progress.update(self._task, completed=done)


@contextmanager
def stages(console: Console, patience: float = PATIENCE) -> Iterator[Stages]:
    """Stages shown on `console` once they have lasted `patience` seconds; nothing remains of them at the end.

    >>> from rich.console import Console
    >>> with stages(Console(stderr=True)) as work:
    ...     work.begin("reading", measured=True)
    ...     work.share(1.0)
    """
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
    )
    progress = Progress(*columns, console=console, transient=True)
    if not console.is_terminal:  # a log file wants neither spinners nor cursor movements
        yield Stages(progress)
        return
    # A timer rather than a check between pieces: one long proof is a single piece.
    timer = threading.Timer(patience, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield Stages(progress)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
