"""A fingerprint of the rows that a dataset reads, by which a steward learns that a table is another one by now.

PRIVATE: two fingerprints are the same only if the rows are, so it is kept under the ledger's key and shown to nobody.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.data.dataset import Dataset
    from farthing.data.sources import Source

MOST_BYTES = 2**30  # of the files of a table that are read whole; of larger ones size, time and both ends
_END = 2**20
_BLOCK = 2**20


def fingerprint_of(dataset: Dataset) -> str | None:
    """A text that is another one when the rows are; None where that could be told only by reading a server's table.

    Where a file lies, what it is called and when it was written do not matter, nor does the order of a list of files.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> def of(*ages):
    ...     return fingerprint_of(dataset(pyarrow.table({"age": list(ages)}), schema={"age": (0, 110)}))
    >>> of(30, 41) == of(30, 41), of(30) == of(31)
    (True, False)
    """
    parts = [_part(source) for source in dataset.sources()]
    if any(part is None for part in parts):
        return None
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def _part(source: Source) -> str | None:
    if source.rows is not None:
        return _arrow(source.rows)
    if not source.files:
        return None
    try:
        whole = sum(os.stat(path).st_size for path in source.files) <= MOST_BYTES
        return " ".join(sorted(_file(path, whole) for path in source.files))
    except OSError:  # whoever reads it next will say so
        return None


def _file(path: str, whole: bool) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        facts = os.fstat(file.fileno())
        if whole:
            while block := file.read(_BLOCK):
                digest.update(block)
        else:
            digest.update(f"{facts.st_size} {facts.st_mtime_ns}".encode())
            digest.update(file.read(_END))
            file.seek(max(0, facts.st_size - _END))
            digest.update(file.read(_END))
    return digest.hexdigest()


class _Sink:
    """Takes what would be written to a file into a digest."""

    closed = False

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        """Take some bytes."""
        self.digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""


def _arrow(table: Any) -> str:
    """Of the columns as Arrow would send them, in one piece however they were cut before."""
    import pyarrow

    sink = _Sink()
    for name in sorted(table.column_names):
        column = table.select([name]).combine_chunks().replace_schema_metadata()
        with pyarrow.ipc.new_stream(pyarrow.PythonFile(sink, "w"), column.schema) as stream:
            stream.write_table(column)
    return sink.digest.hexdigest()
