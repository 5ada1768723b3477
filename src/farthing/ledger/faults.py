"""What went wrong in the database, in words of our own: its messages may quote what was being stored."""

from __future__ import annotations

from farthing.errors import LedgerError, LedgerTampered, LedgerUnavailable

_AGAIN = "retry with the same request id"
_SQLITE: dict[str, tuple[str, str]] = {
    "SQLITE_BUSY": ("another program holds the file", f"close it, then {_AGAIN}"),
    "SQLITE_LOCKED": ("another program holds the file", f"close it, then {_AGAIN}"),
    "SQLITE_FULL": ("the disk or the file's page limit is full", f"make room, then {_AGAIN}"),
    "SQLITE_READONLY": ("the file or its directory is read-only", "give this user the right to write both"),
    "SQLITE_CANTOPEN": ("the file cannot be opened", "check the path and the rights to its directory"),
    "SQLITE_PERM": ("the file cannot be opened", "check the rights to it and to its directory"),
    "SQLITE_IOERR": ("the disk failed to read or write", f"check the disk, then {_AGAIN}"),
}
_SQLITE_DAMAGE = {
    "SQLITE_CORRUPT": "the ledger file is damaged",
    "SQLITE_NOTADB": "the file is not a ledger",
    "SQLITE_CONSTRAINT": "the tables hold rows that the head does not know",
    "SQLITE_ERROR": "the tables are not those of a ledger",
    "SQLITE_MISMATCH": "the tables are not those of a ledger",
    "SQLITE_SCHEMA": "the tables were changed while the ledger was open",
}
# The first two characters of an SQLSTATE are its class.
_POSTGRES: dict[str, tuple[str, str]] = {
    "53": ("the server has run out of disk, memory or connections", f"make room, then {_AGAIN}"),
    "55P03": ("another client holds the ledger", _AGAIN),
    "57014": ("the server took too long", _AGAIN),
    # A pooler between us and the server hands out one connection to several clients, and their statements with it.
    "26": ("the connection is shared with other clients", "connect to the server itself, or in session mode"),
    "42P05": (
        "the connection is shared with other clients",
        "connect to the server itself, or in session mode",
    ),
    "25006": ("the server is read-only", "connect to the primary server"),
    "0A000": ("the server is a standby, or lacks what a ledger needs", "connect to the primary server"),
    "22P05": ("the database's encoding lacks a character of what is to be stored", "use one made with UTF8"),
    "28": ("the server refused the user or password", "check the address of the ledger"),
    "3D": ("the server has no such database", "check the address of the ledger"),
    "42501": ("the user lacks a right on the tables", "ask the owner of the database"),
}
_CONFIRMING = "pg_logical_emit_message"
_POSTGRES_DAMAGE = {
    "21000": "the tables hold a row twice",
    "23502": "a row that was just read is gone",
    "23": "the tables hold rows that the head does not know",
    "42": "the tables are not those of a ledger",
    "XX001": "the server reports damaged data",
    "XX002": "the server reports a damaged index",
    "P0001": "something tried to change what is append-only",
}


def translated(error: Exception) -> LedgerError:
    """The error of ours for an error of the database, without its text."""
    original = getattr(error, "orig", None) or error
    name = getattr(original, "sqlite_errorname", None)
    if isinstance(name, str):
        return _named(name, "_", _SQLITE, _SQLITE_DAMAGE)
    state = getattr(original, "sqlstate", None)
    if state == "42501" and _CONFIRMING in str(original):  # of the text, nothing but this name is repeated
        return LedgerUnavailable(
            f"the user may not execute {_CONFIRMING}, which confirms that a charge is on disk (42501)",
            "ask the server's administrator for GRANT EXECUTE on it",
        )
    if isinstance(state, str):
        return _named(state, "", _POSTGRES, _POSTGRES_DAMAGE)
    unread = type(original).__module__ == "sqlite3" and type(original).__name__ == "OperationalError"
    if unread or isinstance(original, UnicodeDecodeError):
        # Raised by Python and not by SQLite: a text column, or a message about the schema, does not hold text.
        return LedgerTampered("the ledger file holds text that cannot be read")
    return LedgerUnavailable(f"the connection was lost or refused ({type(original).__name__})")


def _named(code: str, joint: str, known: dict[str, tuple[str, str]], damage: dict[str, str]) -> LedgerError:
    """The entry for `code` or for the longest beginning of it that is listed."""
    for beginning in sorted({*known, *damage}, key=len, reverse=True):
        if code == beginning or code.startswith(beginning + joint):
            if beginning in damage:
                return LedgerTampered(f"{damage[beginning]} ({code})")
            reason, way_out = known[beginning]
            return LedgerUnavailable(f"{reason} ({code})", way_out)
    return LedgerUnavailable(f"the database failed ({code})")
