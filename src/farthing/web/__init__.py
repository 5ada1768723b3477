"""The page: plain files that a browser reads, served by `farthing.server` and carried inside the wheel."""

from __future__ import annotations

from pathlib import Path

__all__ = ["static_folder"]


def static_folder() -> Path:
    """The folder with everything the page loads.

    Returns:
        The path of the folder that holds `index.html` and what it refers to.

    >>> (static_folder() / "index.html").is_file()
    True
    """
    return Path(__file__).parent / "static"
