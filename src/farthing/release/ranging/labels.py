"""Labels of ranges that were listed: pairs of ends that read as a range, wherever they stand."""

from __future__ import annotations

from typing import Any


class Between(tuple[Any, Any]):
    """A pair (lower, upper) that is written as a range.

    >>> Between((18, 65)) == (18, 65), str(Between((18, 65)))
    (True, '18 to 65')
    """

    __slots__ = ()

    def __str__(self) -> str:
        lower, upper = (f"{end:.8g}" if isinstance(end, float) else str(end) for end in self)
        return f"{lower} to {upper}"
