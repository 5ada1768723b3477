"""How each table that an account stands for says whose its rows are, as the ledger keeps it: once, and for good.

The charges of an account add up for one meaning of "the rows of a person". A table that is read by its senders in one
query and by its receivers in another has two: taking one person away changes more of both answers than either says.

    pay: (ann, bob), (bob, ann), (cy, bob)    by sender, cy has 1 row; by receiver, bob has 2
    without bob, whose rows are those by receiver, the query by sender loses two rows of ann and cy

So the first charge writes down the columns, under the marks by which the table is known, and another way to the owners
of its rows is refused from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from farthing.data import Dataset
from farthing.data.file_paths import Pattern
from farthing.data.owner_conflicts import refuse_two_owners
from farthing.data.ownership import Ownership, owner_words
from farthing.data.sources import Source
from farthing.data.table_identity import Piece, folder_text, folders_of, pieces_of, source_name
from farthing.data.view_columns import view_digest
from farthing.errors import InvalidValue
from farthing.ledger.budget_policy import OWNED
from farthing.ledger.ledger_reader import SourceText
from farthing.ledger.tamper_evidence import canonical
from farthing.privacy.units import alike

if TYPE_CHECKING:
    from farthing.ledger import Ledger

Marks = Mapping[str, Set[str] | None]
"""By account, what a ledger keeps of its tables; None where an older version did not say."""


class _Known(NamedTuple):
    account: str
    owner: Mapping[str, Any]


class _Declared(NamedTuple):
    """A declaration as the ledger keeps it, and all marks that the parent's table has now."""

    owner: dict[str, Any]
    parent: frozenset[str] = frozenset()

    def is_recorded(self, recorded: Mapping[str, Any]) -> bool:
        """Whether a record says the same; a parent is the same table if one of its marks is."""
        if any(recorded.get(key) != self.owner.get(key) for key in ("by", "to", "as")):
            return False
        return self.parent == frozenset(recorded.get("table", ())) or bool(self.parent & {*recorded.get("table", ())})


class RowOwners:
    """What a ledger knows about the owners of rows, read once."""

    def __init__(self, ledger: Ledger, marks: Marks) -> None:
        self._ledger = ledger
        self._known: dict[str, list[_Known]] = {}
        self._patterns: list[tuple[str, str]] = []
        for account, texts in marks.items():
            for mark in texts or ():
                signature, _, rest = mark.partition(" ")
                if rest.startswith(OWNED):
                    known = _Known(account, json.loads(rest.removeprefix(OWNED)))
                    self._known.setdefault(signature, []).append(known)
                elif rest:
                    self._patterns.append((signature, rest))

    def checked(
        self, dataset: Dataset, holders: Mapping[int, list[Set[str]]], table: str
    ) -> dict[str, list[SourceText]]:
        """What is new, by account: how the tables that are read say whose their rows are; refused where they differ.

        `holders` are the accounts of each piece of the sources that are read, by the id of the source; `table` is the
        account of those that have none.
        """
        owners = dataset.owners()
        refuse_two_owners(owners)
        read, new = dataset.sources(), dict[str, list[SourceText]]()
        for each in owners:
            declared, source, pieces = self._declared(each), each.source, pieces_of(each.source)
            accounts = holders.get(id(source), [set[str]()] * len(pieces))
            texts = {_text(text): accounts for accounts, text in self._kept(source, pieces, accounts, table)}
            for piece in pieces:
                self._refuse_other(each, declared, self._texts_over(piece), piece.title)
            if not pieces:
                self._refuse_other(each, declared, list(texts), source.name)
            if any(source is one for one in read):
                for text, names in texts.items():
                    for account in names or {table}:
                        if not self._has(account, text):
                            new.setdefault(account, []).append((text, OWNED + canonical(declared.owner)))
        return new

    @staticmethod
    def _kept(
        source: Source, pieces: Sequence[Piece], accounts: Sequence[Set[str]], table: str
    ) -> Iterator[tuple[Set[str], SourceText]]:
        """What the owners of a source are kept under, each with the accounts that keep it."""
        for piece, holding in zip(pieces, accounts, strict=True):
            yield from ((holding, text) for text in piece.kept)
        yield from ((set[str]().union(*accounts), (folder_text(one.folder), one.steps)) for one in source.patterns)
        if not pieces and (source.is_named or source.frame is None):  # it is known by its name, in this account
            yield {table}, f"table named {alike(source.name)} in {table}"

    def _declared(self, owner: Ownership) -> _Declared:
        # Columns that name a unit together name the same unit in every order.
        declared: dict[str, Any] = {"by": sorted(owner.stored_columns)}
        parent = owner.parent
        if parent is None:
            return _Declared(declared)
        pieces = pieces_of(parent)
        alone = len(pieces) == 1 or (pieces and parent.engine.name != "duckdb")  # others begin with the table itself
        kept = pieces[0].kept if alone and not parent.patterns else (source_name(parent),)
        known_by = pieces[0].known_by if alone and not parent.patterns else (source_name(parent),)
        signed = self._ledger.source_signatures
        declared |= {"to": owner.stored_target, "of": _title(parent), "as": view_digest(parent), "table": signed(kept)}
        return _Declared(declared, frozenset(signed(known_by)))

    def _texts_over(self, piece: Piece) -> list[str]:
        """What a piece is known by, with the patterns of the ledger that it belongs to."""
        texts = [_text(text) for text in piece.known_by]
        if self._patterns and piece.path:
            for folder, steps in folders_of(piece.path):
                (signature,) = self._ledger.source_signatures([folder])
                below = (rest for mark, rest in self._patterns if mark == signature)
                texts += [_text((folder, rest)) for rest in below if Pattern("", rest).holds(steps)]
        return texts

    def _refuse_other(self, owner: Ownership, declared: _Declared, texts: Iterable[str], title: str) -> None:
        """Refuse another way to the owners of a table's rows than the ledger has."""
        for mark in self._ledger.source_signatures(texts):
            for account, recorded in self._known.get(mark, ()):
                if not declared.is_recorded(recorded):
                    raise InvalidValue(
                        "keys" if owner.place else "unit",
                        _words(declared.owner),
                        f"must be {_words(recorded)!r}: the account {account!r} counts the rows of {title} so, and its "
                        "budget holds for one owner of every row",
                        "declare the table as it is recorded",
                    )

    def _has(self, account: str, text: str) -> bool:
        (mark,) = self._ledger.source_signatures([text])
        return any(known.account == account for known in self._known.get(mark, ()))


def _text(source: SourceText) -> str:
    """What the owners of a table are kept under, beside the text that the table itself is known by."""
    return f"owners of {' '.join(source) if isinstance(source, tuple) else source}"


def _title(source: Source) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in source.name)[:200] or "a table"


def _words(owner: Mapping[str, Any]) -> str:
    return owner_words(owner["by"], owner.get("to", ""), owner.get("of", ""))
