"""Open a ledger, or make one, and refuse one that does not verify."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from farthing.errors import InvalidValue, LedgerTampered, LedgerUnavailable, NotAllowed
from farthing.ledger.entries import APPEND, ROLES, Entry, checked_choice, checked_name, clock
from farthing.ledger.ledger import Ledger
from farthing.ledger.ledger_change import Memory, entry_of
from farthing.ledger.ledger_store import Link, Run, Store
from farthing.ledger.ledger_tables import COLUMNS, ENTRIES, HEAD, TABLES
from farthing.ledger.postgres_store import PostgresStore, public_address
from farthing.ledger.sqlite_store import SQLiteStore
from farthing.ledger.tamper_evidence import (
    GENESIS,
    Chain,
    Key,
    Witness,
    canonical,
    default_key_file,
    given_key,
    made_key,
    needed_key,
    notes_on_key,
    sync_directory,
    witness_of,
)
from farthing.ledger.verification import Known, Progress, shape_of, verify_store
from farthing.privacy.events import checked_real

FORMAT = 3
_READ = (2, FORMAT)  # in format 2 accounts added up Renyi divergences
_FORMS = 'use a path such as "study.db", or "postgresql://user@host/database"'


def open_ledger(
    url: str | os.PathLike[str],
    *,
    actor: str | None = None,
    role: str = "curator",
    key: Key = None,
    create: bool = True,
    timeout: float = 10.0,
    progress: Progress | None = None,
) -> Ledger:
    """Open the ledger at a path (SQLite) or an address (PostgreSQL); make it if there is none and `create`.

    The whole ledger is verified first, and one that does not verify is not opened.

    Args:
        url: A path such as "study.db", or an address such as "postgresql://user@host/database".
        actor: Who acts; the login name by default.
        role: What they may do: "curator" (everything), "analyst" (spend their own grant) or "auditor" (read).
        key: The path of the key file, or the key itself; by default `<path>.key`, or for a server
            `$FARTHING_LEDGER_KEY_FILE` or a file in the user's configuration.
        create: Whether to make the ledger if there is none.
        timeout: How many seconds to wait for other users of the ledger.
        progress: Called with how many entries are verified, and how many there are.

    Returns:
        The open ledger; use it in a `with` statement, or close it.

    Raises:
        InvalidValue: If an argument has the wrong form.
        LedgerUnavailable: If there is none and `create` is false, or it cannot be reached.
        LedgerTampered: If it does not verify.
        NotAllowed: If somebody other than a curator would make it.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_ledger(os.path.join(folder, "study.db"), actor="ada") as ledger:
    ...         _ = ledger.register("census", epsilon=1.0, delta=1e-9)
    ...         [entry.kind for entry in ledger.entries()]
    ['created', 'dataset']
    """
    who = checked_name(_login() if actor is None else actor, "actor")
    part = checked_choice(role, "role", ROLES)
    secret = given_key(key)
    wait = checked_real(timeout, "timeout")
    if not 0 < wait <= 3600:
        raise InvalidValue("timeout", timeout, "must be above 0 and at most 3600 seconds")
    store = store_of(url, wait)
    try:
        return _opened(store, secret, who, part, create, progress)
    except BaseException:
        store.close()
        raise


def has_ledger(url: str | os.PathLike[str], timeout: float = 10.0) -> bool:
    """Whether there is a ledger at a path or an address; nothing is made and nothing is verified.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     before, _ = has_ledger(f"{folder}/study.db"), open_ledger(f"{folder}/study.db").close()
    ...     before, has_ledger(f"{folder}/study.db")
    (False, True)
    """
    store = store_of(url, timeout)
    try:
        return _identity_in(store) is not None
    finally:
        store.close()


def store_of(url: object, timeout: float) -> Store:
    """The store that an address names."""
    if isinstance(url, os.PathLike):
        return SQLiteStore(Path(url), timeout)
    if not isinstance(url, str) or not url or "\0" in url:
        shy = "..." if url and isinstance(url, str | bytes) else url  # it may hold a password
        raise InvalidValue("url", shy, "must be the path or the address of a ledger", _FORMS)
    if "://" not in url:
        if url == ":memory:":
            raise InvalidValue("url", url, "must be a file: a ledger in memory forgets what was spent", _FORMS)
        return SQLiteStore(Path(url), timeout)
    return _addressed(url, timeout)


def _addressed(url: str, timeout: float) -> Store:
    import sqlalchemy as sa

    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        # Not shown: it may hold a password.
        raise InvalidValue("url", "...", "must be a path or an address that can be read", _FORMS) from None
    system = parsed.drivername.partition("+")[0]
    if system == "sqlite" and parsed.database and parsed.database != ":memory:":
        return SQLiteStore(Path(parsed.database), timeout)
    if "@" in (parsed.host or ""):
        raise InvalidValue("url", "...", "must have one @", "write @ in a password as %40")
    if system in ("postgresql", "postgres"):
        return PostgresStore(parsed.set(drivername="postgresql+psycopg"), timeout)
    raise InvalidValue("url", public_address(parsed), "must name an SQLite file or a PostgreSQL server", _FORMS)


def _opened(
    store: Store, secret: bytes | Path | None, actor: str, role: str, create: bool, progress: Progress | None
) -> Ledger:
    ledger = _identity_in(store)
    if ledger is None:
        if not create:
            raise LedgerUnavailable(
                f"there is no ledger at {store.name}",
                "check the path; a release makes one, and so does "
                f"farthing ledger budget set {shlex.quote(store.name)} DATASET --epsilon 1 --new",
            )
        if role != "curator":
            raise NotAllowed(role, "make a ledger", "ask a curator to make it")
        ledger = _make_ledger(store, secret, actor)
    place = _key_file(store, secret, ledger)
    chain = Chain(secret if isinstance(secret, bytes) else needed_key(place), ledger)
    witness = _witness(store, place, ledger)
    seen = witness.read(chain)  # before the snapshot, which is then no older
    _check_key(store, chain)
    verification, replay = verify_store(store, chain, Known(seen, witness.place), progress)
    if not verification.ok:
        raise LedgerTampered(verification.problems[0], sequence=verification.first_bad)
    memory = Memory(replay.sequence, replay.mac)
    memory.accounts.update({whose: sequence for whose, (sequence, _) in replay.accounts.items()})
    noted = witness.read(chain)
    if noted is None or noted[0] < replay.sequence:  # another process may have gone on meanwhile
        witness.note((replay.sequence, replay.mac, chain.head(replay.sequence, replay.mac)))
    if isinstance(store, PostgresStore):
        with store.reading() as link:
            witness.note_place(store.place(link))
    notes = () if isinstance(secret, bytes) else notes_on_key(place)
    verification = replace(verification, notes=(*notes, *verification.notes))
    return Ledger(store, chain, witness, memory, actor, role, verification, notes)


def _identity_in(store: Store) -> str | None:
    """The identity of the ledger in a store, or None if there is no ledger."""
    if isinstance(store, SQLiteStore) and not _has_content(store.path):
        return None
    with store.reading() as link:
        return _identity(store, link)


def _has_content(path: Path) -> bool:
    """Whether there is a file with something in it. An empty one was left by somebody who was about to make it."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LedgerUnavailable(
            f"the file cannot be reached ({type(error).__name__})", "check the path and the rights to it"
        ) from None


def _identity(store: Store, link: Link) -> str | None:
    tables = {name for (name,) in link.run(store.list_tables).fetchall()}
    if not tables & set(TABLES):
        if tables and isinstance(store, SQLiteStore):
            raise LedgerUnavailable(f"{store.name} is a database of something else", "choose another path")
        return None
    if not set(TABLES) <= tables:
        raise LedgerTampered("a table of the ledger is missing")
    row = link.run(f"SELECT ledger FROM {HEAD}").fetchone()
    if row is None or not isinstance(row[0], str):
        raise LedgerTampered("the head row is missing")
    return row[0]


def _make_ledger(store: Store, secret: bytes | Path | None, actor: str) -> str:
    """Make the ledger; if another process was faster, theirs is the ledger."""
    if isinstance(store, SQLiteStore):
        _make_file(store)
    with store.writing() as link:
        store.lock_making(link.run)
        existing = _identity(store, link)
        if existing is not None:
            return existing
        ledger = str(uuid.uuid4())
        place = _key_file(store, secret, ledger)
        if _witness(store, place, ledger).exists:
            raise LedgerTampered(
                f"{store.name} is empty, and the witness {_witness(store, place, ledger).place} has seen "
                "entries of it: restore it from its newest copy, or begin another ledger at another path"
            )
        if isinstance(store, PostgresStore):
            _check_never_seen(store, link, place.parent)
        chain = Chain(secret if isinstance(secret, bytes) else made_key(place), ledger)
        store.create_tables(link)
        _write_first(store, link.run, chain, actor)
    if isinstance(store, SQLiteStore):
        sync_directory(store.path.parent)
    return ledger


def _check_never_seen(store: PostgresStore, link: Link, folder: Path) -> None:
    """Dropping the tables must not give a fresh budget to the next process that opens the ledger."""
    seen = witness_of(store.place(link), folder)
    if seen is not None:
        raise LedgerTampered(
            f"{store.name} has no ledger, and the witness {seen} has seen one there: restore it from its newest "
            "copy, or remove the witness if it was given up on purpose"
        )


def _make_file(store: SQLiteStore) -> None:
    if not store.path.parent.is_dir():
        raise LedgerUnavailable(f"the directory of {store.name} does not exist", "make it first")
    try:
        os.close(os.open(store.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise LedgerUnavailable(
            f"{store.name} cannot be made ({type(error).__name__})",
            "give this user the right to write its directory",
        ) from None


def _write_first(store: Store, run: Run, chain: Chain, actor: str) -> None:
    body = canonical({"ledger": chain.ledger, "format": FORMAT, "shape": shape_of(store, run)})
    fields = (1, "created", "", "", actor, "curator", clock(), "", body, "", GENESIS)
    entry = Entry(*fields, chain.entry(fields))
    run(store.sql(APPEND), entry)
    run(
        store.sql(f"INSERT INTO {HEAD} (one, ledger, sequence, mac, seal) VALUES (1, ?, 1, ?, ?)"),
        (chain.ledger, entry.mac, chain.head(1, entry.mac)),
    )


def _key_file(store: Store, secret: bytes | Path | None, ledger: str) -> Path:
    """Where the key is; for a key that was given as bytes, where the witness stands."""
    if isinstance(secret, Path):
        return secret
    return store.beside(".key") if isinstance(store, SQLiteStore) else default_key_file(ledger)


def _witness(store: Store, key_file: Path, ledger: str) -> Witness:
    if isinstance(store, SQLiteStore):
        return Witness(store.beside(".witness"))
    return Witness(key_file.with_name(f"{ledger}.witness") if key_file.parent.is_dir() else None)


def _check_key(store: Store, chain: Chain) -> None:
    """Say so if the format is another, or the key another ledger's, before everything looks like an edit."""
    with store.reading() as link:
        _check_format(link)
        row = link.run(f"SELECT {', '.join(COLUMNS)} FROM {ENTRIES} WHERE sequence = 1").fetchone()
    try:
        if row is not None:
            entry_of(chain, row)
    except LedgerTampered:
        raise LedgerTampered(
            "entry 1 does not carry the signature it was written with: the key is not this ledger's, or it was edited",
            sequence=1,
        ) from None


def _check_format(link: Link) -> None:
    """What the first entry says of its format. Not signed yet: a lie here is found by its signature a moment later."""
    row = link.run(f"SELECT body FROM {ENTRIES} WHERE sequence = 1").fetchone()
    with suppress(TypeError, ValueError, RecursionError):
        version = json.loads(row[0]).get("format") if row is not None else FORMAT
        if type(version) is int and version not in _READ:
            raise LedgerUnavailable(
                f"it has format {version} and this farthing reads formats {' and '.join(map(str, _READ))}",
                "use the version of farthing that made it, or a newer one",
            )


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "steward"
