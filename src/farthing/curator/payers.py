"""Which accounts of a ledger pay for a dataset: every one whose people are in a table that is read.

An account protects people, and a table belongs to one account: the one that it was registered to. A ledger keeps marks
of the tables of each account, so that another spelling of a path, another order of a list, another name or one more
file of a pattern is no second budget.

A budget counts the privacy of one kind of unit (`unit_of`): one for persons must not be spent on answers that protect
rows only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

from farthing.curator.row_owners import RowOwners
from farthing.data import Dataset
from farthing.data.file_paths import Pattern
from farthing.data.sources import Source
from farthing.data.table_identity import Piece, folder_text, folders_of, pieces_of, source_name
from farthing.errors import InvalidValue
from farthing.ledger.budget import as_stored
from farthing.ledger.budget_policy import OWNED
from farthing.ledger.entries import checked_name
from farthing.ledger.ledger_reader import SourceText
from farthing.ledger.partitions import Part, partition_digest
from farthing.privacy.events import ApproxDP
from farthing.privacy.units import Renewal, Unit, alike, parts_of
from farthing.statistics.measurements import checked_rate

if TYPE_CHECKING:
    from farthing.ledger import Budget, Ledger


_MOST_PIECES = 12  # of old words, which can be put together in 2**11 ways


def unit_of(dataset: Dataset, sampling_rate: float | None = None) -> Unit:
    """The unit of a dataset as a ledger keeps it: who is protected, and which tables are neighbours.

    Args:
        dataset: The table with its public facts.
        sampling_rate: Says that the table is a secret sample, so that the budget is that of the population.

    Returns:
        The unit.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> visits = pyarrow.table({"person": [1, 1], "cost": [10, 20]})
    >>> print(unit_of(dataset(visits, unit="person", max_rows=2, schema={"cost": (0, 99)}), sampling_rate=0.01))
    person, add-remove, secret sample of 0.01
    >>> print(unit_of(dataset(visits, schema={"cost": (0, 99)}, neighbours="replace").group_privacy(3)))
    row, replace, groups of 3
    """
    unit = Unit(dataset.unit, dataset.neighbours, dataset.stability().group)
    if sampling_rate is None:
        return unit
    rate = checked_rate(sampling_rate)
    if unit.group > 1 or dataset.neighbours != "add-remove" or dataset.probability < 1:
        raise InvalidValue(
            "sampling_rate",
            sampling_rate,
            "needs single units that are added or removed, and a table that is not sampled again",
            'pass neighbours="add-remove", or leave the rate out',
        )
    return replace(unit, sampling_rate=rate)


def refuse_other_unit(dataset: Dataset, budget: Budget, sampling_rate: float | None = None, way_out: str = "") -> None:
    """Refuse rows whose unit is not that of the budget; protecting groups of it is more, and welcome."""
    unit = unit_of(dataset, sampling_rate)
    meanings = meanings_of(budget, dataset.source_columns)
    if budget.protects is not None and budget.protects.renewal is not None:
        _refuse_other_period(dataset, budget.dataset, budget.protects.renewal)
        meanings = [replace(budget.protects, renewal=None)]
    if meanings is None or meanings == [unit] or (sampling_rate is None and meanings == [unit.alone]):
        return
    if len(meanings) > 1 and (unit in meanings or unit.alone in meanings):
        either = " or ".join(repr(str(each)) for each in meanings)
        raise InvalidValue(
            "unit",
            str(unit),
            f"may not be the one for which the budget of {budget.dataset!r} was set: an older version wrote "
            f"{budget.unit!r}, which means {either} for this table",
            way_out or "rename that column",
        )
    raise InvalidValue(
        "unit",
        str(unit),
        f"must be {budget.unit!r}, for which the budget of {budget.dataset!r} was set",
        way_out or "make the dataset with that unit and those neighbours",
    )


def _refuse_other_period(dataset: Dataset, account: str, renewal: Renewal) -> None:
    """Refuse rows of any other period than that of the account; what all periods have in common is no budget."""
    terms = f"renews={renewal.every!r}, date={renewal.date!r}"
    if renewal.period is None:
        raise InvalidValue(
            "account",
            account,
            f"has a budget for each {renewal.every}, of the rows of that {renewal.every} by {renewal.date!r}",
            f"study one of them: Study(..., {terms}, period=...), a table by itself",
        )
    read = dataset.period
    if read is None or (read[0], read[1].every, read[1].names[0]) != (renewal.date, renewal.every, renewal.period):
        raise InvalidValue(
            "account",
            account,
            f"has the budget of {renewal.period} by {renewal.date!r}, and no other rows may be read with it",
            f"study them by themselves: Study(..., {terms}, period={renewal.period!r})",
        )


def period_account(account: str, period: str) -> str:
    """What the account of one period is called.

    >>> period_account("patients", "2026-03")
    'patients, 2026-03'
    """
    return f"{account}, {period}"


def renewal_of(ledger: Ledger, account: str) -> Renewal | None:
    """How an account renews; None if it does not, or is not open, or is that of one period."""
    if account not in ledger.datasets():
        return None
    protects = ledger.budget(account).protects
    renewal = None if protects is None else protects.renewal
    return renewal if renewal is not None and renewal.period is None else None


def _renewing(ledger: Ledger, dataset: Dataset, name: str) -> str | None:
    """The account whose tables that of a period stands for: the periods of one account have its tables together."""
    if dataset.period is None:
        return None
    column, periods = dataset.period
    end = period_account("", periods.names[0])
    whole = name.removesuffix(end)
    renewal = renewal_of(ledger, whole) if name.endswith(end) else None
    if renewal is None:
        return None
    if (renewal.every, renewal.date) != (periods.every, column):
        raise InvalidValue(
            "renews",
            periods.every,
            f"must be {renewal.every!r} by {renewal.date!r}, as the account {whole!r} was opened",
            f"pass renews={renewal.every!r}, date={renewal.date!r}",
        )
    if name in ledger.datasets():
        protects = ledger.budget(name).protects
        if protects is None or protects.renewal != replace(renewal, period=periods.names[0]):
            raise InvalidValue(
                "account",
                name,
                f"is an account of its own, and not that of {periods.names[0]} of {whole!r}",
                "let the account that renews have another name",
            )
    return whole


def meanings_of(budget: Budget, columns: Collection[str]) -> list[Unit] | None:
    """What the unit of a budget can mean for a table with these columns; None where any unit will do.

    It is one unit, unless the ledger was written by a version that kept words only: there a column called `row` was
    the same as one row, and a column called `a + b` the same as two columns.

    >>> from farthing.ledger import Budget
    >>> from farthing.privacy import ApproxDP
    >>> old = Budget("visits", "", ApproxDP(1.0), 0.0, 0.0, {}, ApproxDP(1.0), 0, "row, add-remove")
    >>> [str(each) for each in meanings_of(old, ["age"])], len(meanings_of(old, ["age", "row"]))
    (['row, add-remove'], 2)
    """
    if budget.protects is not None:
        return [budget.protects]
    if not budget.unit:
        return None
    parts = parts_of(budget.unit)
    if parts is None:
        return []
    who, rest = parts
    meanings = [rest] if who == "row" else []
    pieces = who.split(" + ")
    if len(pieces) > _MOST_PIECES:
        return meanings
    for cuts in range(len(pieces)):
        for places in combinations(range(1, len(pieces)), cuts):
            ends = [0, *places, len(pieces)]
            names = [" + ".join(pieces[start:end]) for start, end in pairwise(ends)]
            if set(names) <= set(columns):
                meanings.append(replace(rest, columns=tuple(names)))
    return list(dict.fromkeys(meanings))


def rate_of(budget: Budget) -> float | None:
    """The rate of the secret sample that the unit of a budget speaks of.

    >>> from farthing.ledger import Budget
    >>> from farthing.privacy import ApproxDP
    >>> words = "person, add-remove, secret sample of 0.01"
    >>> rate_of(Budget("visits", "", ApproxDP(1.0), 0.0, 0.0, {}, ApproxDP(1.0), 0, words))
    0.01
    """
    if budget.protects is not None:
        return budget.protects.sampling_rate
    parts = parts_of(budget.unit)
    return None if parts is None else parts[1].sampling_rate


def drawn_rate(dataset: Dataset) -> float | None:
    """The rate of the sample that every release of a dataset draws anew; None where it reads all rows.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> people = dataset(pyarrow.table({"age": [30, 45]}), schema={"age": (0, 110)})
    >>> drawn_rate(people), drawn_rate(people.sample(0.25))
    (None, 0.25)
    """
    return dataset.probability if dataset.probability < 1 else None


def sampling_rate_of(dataset: Dataset, rate: float | None) -> float | None:
    """The rate at which a study says that its table was sampled in secret; refused where that cannot be."""
    if rate is None:
        return None
    if dataset.probability < 1:
        raise InvalidValue(
            "sampling_rate",
            rate,
            "must be left out for a dataset that is a sample: every release draws a new one, and is charged for that",
            "study dataset.sample(p) without it, or the whole table with it if that is itself a secret sample",
        )
    number = checked_rate(rate)
    if dataset.neighbours != "add-remove":
        raise InvalidValue(
            "sampling_rate", rate, "needs neighbours that add or remove a unit", 'pass neighbours="add-remove"'
        )
    return number


_OTHER_UNIT = (
    "rows that the account {!r} covers are read: make the dataset with that unit, or keep this study in a ledger of "
    "its own; the two budgets then add up"
)
_FEW = 5  # names in a message
_LONGEST_TITLE = 200
_MORE = re.compile(r"(.*) and \d+ more", re.DOTALL)


@dataclass(frozen=True)
class Accounts:
    """`name` and `others` pay; `sources` are what `name` stands for from now on, besides what it did before."""

    name: str
    others: tuple[str, ...] = ()
    sources: tuple[SourceText, ...] = ()
    title: str = ""  # what people call the first table
    is_open: bool = True  # whether `name` is in the ledger already
    holder: str | None = None  # the account that the tables are registered to, where `name` is one period of it
    is_new: bool = False  # whether the first table is registered to it from now on
    part: Part | None = None  # of another account, which has paid for all parts
    owners: Mapping[str, Sequence[SourceText]] = field(default_factory=dict)  # what is new, by account: `row_owners`

    @property
    def is_news(self) -> bool:
        """Whether the ledger has to write something down about the tables."""
        return bool(self.sources or self.owners)

    @property
    def all(self) -> tuple[str, ...]:
        """Everybody who pays, the first one first."""
        return (self.name, *self.others)

    @property
    def table(self) -> str:
        """The account that the tables belong to: this one, or the one that it is a period or a part of."""
        return self.holder or (self.name if self.part is None else self.part.account)

    @property
    def titles(self) -> tuple[str, ...]:
        """What the ledger writes down about the first table, for people."""
        return (self.title,) if self.is_new or (not self.is_open and self.holder is None) else ()


class Register:
    """What a ledger knows about tables, read once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._marks: Mapping[str, Set[str] | None] = ledger.sources()
        self._patterns = [
            (name, signature, steps)
            for name, known in self._marks.items()
            for signature, _, steps in (mark.partition(" ") for mark in known or ())
            if steps and not steps.startswith(OWNED)
        ]
        self.owners = RowOwners(ledger, self._marks)

    @property
    def names(self) -> Set[str]:
        """The names of all accounts in the ledger."""
        return self._marks.keys()

    def spelled(self, name: str) -> str:
        """The account that a name means, whatever its case and blanks; the name itself where there is none."""
        if name in self.names:
            return name
        return next((each for each in self.names if alike(each) == alike(name)), name)

    def holders(self, piece: Piece) -> set[str]:
        """The accounts that stand for a file or a table, or for a folder or a pattern that it belongs to."""
        marks = set(self._ledger.source_signatures(piece.known_by))
        holding = {name for name, known in self._marks.items() if known and known & marks}
        if holding or not self._patterns or not piece.path:
            return holding
        for folder, steps in folders_of(piece.path):
            (signature,) = self._ledger.source_signatures([folder])
            holding |= {
                name for name, mark, below in self._patterns if mark == signature and Pattern("", below).holds(steps)
            }
        return holding

    def new(self, name: str, sources: Iterable[SourceText]) -> list[SourceText]:
        """Those that an account does not stand for yet."""
        known, wanted = self._marks.get(name) or frozenset(), list(dict.fromkeys(sources))
        marks = self._ledger.source_signatures(wanted)
        return [source for source, mark in zip(wanted, marks, strict=True) if mark not in known]

    def of_older_version(self, source: Source) -> set[str]:
        """Accounts that were opened for it by name, before tables were written down: of such a file, or of several."""
        names = set()
        for name, known in self._marks.items():
            several = _MORE.fullmatch(name)
            if known is None and (several[1] if several else name) in source.earlier_names:
                names.add(name)
        return names


def account_name(ledger: Ledger, dataset: Dataset, account: str | None = None) -> str:
    """The account that a study of this dataset spends from: the one that is named, or else the one of its table.

    That is the account that stands for the table already, under whatever name; else that of the table's own name. Of
    linked tables without an account, it is the one of the table that names the units.
    """
    source, register = dataset.sources()[0], Register(ledger)
    if account is None and not any(map(register.holders, pieces_of(source))):
        source = dataset.home.sources()[0]
    if account is not None:
        return register.spelled(checked_name(account, "account"))
    own = register.spelled(checked_name(source.name, "name"))
    holders = set().union(*map(register.holders, pieces_of(source)))
    if own in holders or (not holders and own in register.names):
        return own
    names = sorted(holders or register.of_older_version(source))
    if len(names) > 1:
        raise InvalidValue(
            "account", None, f"must say which budget pays: {_listed(names)} all cover {own!r}", "pass account="
        )
    return names[0] if names else own


def accounts_of(
    ledger: Ledger, dataset: Dataset, name: str, sampling_rate: float | None = None, *, is_declared: bool = True
) -> Accounts:
    """Everybody who pays for what is computed from a dataset under a name; refused where somebody has no budget.

    `name` stands for the first table and for what belongs to it, and that table belongs to no other account. A file
    in it that another account stands for, and every table that was joined or put below, is paid for by its own account
    too. Tables that keys link hold rows of the same units: the account of each of them pays, read or not, and those
    that have none belong to the first one. Refused, too, where the ledger has another owner for the rows of a table,
    unless the dataset stands for no declaration of one (`is_declared`).
    """
    register, first = Register(ledger), checked_name(name, "account")
    whole = _renewing(ledger, dataset, first)
    part = part_of(ledger, dataset, first)
    others: set[str] = set()
    sources: list[SourceText] = []
    is_new = False
    held: dict[int, list[Set[str]]] = {}  # by source, the accounts of its pieces
    linked = {0, *(place for place, source in enumerate(dataset.sources()) if source in dataset.linked_sources())}
    for place, source in enumerate(dataset.sources()):
        pieces = pieces_of(source)
        holders = [
            # What the first table is becomes the first account's own.
            {first} if place > 0 and set(piece.known_by) & set(sources) else _holding(register, source, piece)
            for piece in pieces
        ]
        held[id(source)] = list(holders)
        if whole is not None:  # of which only the rows of one period are read, as `dataset.period` says
            holders = [{first if each == whole else each for each in holding} for holding in holders]
        if place == 0 and part is not None:  # the account of the whole table has paid for it
            _refuse_other_account(source, part.account, holders)
            others |= set().union(*holders) - {part.account}
            continue
        if place == 0:
            _refuse_other_account(source, first, holders)
            is_new = not all(first in holding for holding in holders)
        for piece, holding in zip(pieces, holders, strict=True):
            if first in holding or (place in linked and not holding):
                sources += piece.kept
            others |= holding
        if place == 0 and not pieces and _is_known(source):  # it is known by its name and by nothing else
            others |= {source.name} & register.names
        if place in linked and (place == 0 or not any(holders)):
            patterns = [(folder_text(pattern.folder), pattern.steps) for pattern in source.patterns]
            sources += patterns
            is_new = is_new or (place == 0 and bool(register.new(whole or first, patterns)))
        if place not in linked and not all(holders or [()]):
            others.add(_by_name(register, source))
    unread, holding_unread = _linked_unread(register, dataset)
    sources += unread if part is None else []
    others |= holding_unread - {whole, part.account if part else None}
    others.discard(first)
    if others and sampling_rate is not None:
        raise InvalidValue(
            "sampling_rate",
            sampling_rate,
            f"needs a table that no other budget pays for, but {_listed(sorted(others))} would pay too",
            "leave the rate out, or study the table by itself",
        )
    for each in sorted({first, *others} & register.names):
        way_out = "" if each == first else _OTHER_UNIT.format(each)
        refuse_other_unit(dataset, ledger.budget(each), sampling_rate, way_out)
    new = tuple(register.new(whole or first, sources))
    title = _title(dataset.sources()[0])
    owners = register.owners.checked(dataset, held, part.account if part else whole or first) if is_declared else {}
    return Accounts(first, tuple(sorted(others)), new, title, first in register.names, whole, is_new, part, owners)


def take_up(ledger: Ledger, accounts: Accounts) -> None:
    """Write down which tables the accounts stand for from now on, and whose the rows of each are."""
    table = accounts.holder or accounts.name
    owners = dict(accounts.owners)
    if accounts.sources or table in owners:
        ledger.attach(table, (*accounts.sources, *owners.pop(table, ())), accounts.titles if accounts.sources else ())
    for account, texts in sorted(owners.items()):
        ledger.attach(account, texts)


def _linked_unread(register: Register, dataset: Dataset) -> tuple[list[SourceText], set[str]]:
    """Of linked tables that are not read now: what those without an account are known by, and the others' accounts.

    All hold the same people, for whom there is no second budget.
    """
    texts, holders = list[SourceText](), set[str]()
    read, own = dataset.sources(), dataset.linked_sources()
    for source in (each for each in (*own, *dataset.linked_beside()) if each not in read):
        pieces = pieces_of(source)
        holding = set().union(*(_holding(register, source, piece) for piece in pieces))
        holders |= holding
        if not holding and source in own:
            texts += [text for piece in pieces for text in piece.kept]
            texts += [(folder_text(pattern.folder), pattern.steps) for pattern in source.patterns]
    return texts, holders


def part_of(ledger: Ledger, dataset: Dataset, name: str) -> Part | None:
    """The part whose account has this name; refused where rows outside of it would be read."""
    part = ledger.parts().get(name) if " / " in name else None
    if part is None:
        return None
    total = ledger.budget(name).total
    same = partition_digest(partition_facts(dataset, part.by, total)) == part.partition
    if not (same and dataset.is_within(part.by, part.value)):
        raise InvalidValue(
            "account",
            name,
            f"pays for rows with {part.by} = {part.value} only, as they were divided when it was opened",
            "use the study that Study.split returned, or a dataset that begins with the same split and reads no other",
        )
    return part


def partition_facts(dataset: Dataset, by: str, budget: ApproxDP) -> dict[str, Any]:
    """What a partition is: how a column divides the table, and the budget of each part."""
    stored = as_stored(budget.epsilon, budget.delta)
    return {"definition": dataset.part_definition(by), "epsilon": stored.epsilon, "delta": stored.delta}


def reach_of(dataset: Dataset, by: str) -> int:
    """In how many parts neighbouring tables may differ; refused where one unit may have rows in several.

    A unit of several rows keeps others of them in every release, so that it may come to be in every part in which it
    has a row, however few are kept.
    """
    unit = unit_of(dataset)
    if dataset.period is not None:
        raise InvalidValue("by", by, "must not divide a table whose account renews", "ask for it in one plan")
    if unit.group > 1 or (unit.columns and by not in unit.columns):
        raise InvalidValue(
            "by",
            by,
            f"must divide units, and the rows of one {' + '.join(unit.columns) or 'group'} may be in several parts",
            f"make {by} a column of the unit if nobody is in two parts, or ask for statistics by={by!r} in one plan",
        )
    return 1 if dataset.neighbours == "add-remove" else 2


def _holding(register: Register, source: Source, piece: Piece) -> set[str]:
    """The accounts that stand for a piece; that of its name for a frame which an older version charged."""
    holding = register.holders(piece)
    if not holding and source.frame is not None:
        holding = {register.spelled(source.name)} & register.names
    return holding


def _refuse_other_account(source: Source, first: str, holders: Sequence[Set[str]]) -> None:
    """A table belongs to one account: another one is no second budget for its people."""
    if not holders or not all(holders) or any(first in holding for holding in holders):
        return
    names = sorted(set().union(*holders))
    raise InvalidValue(
        "account",
        first,
        f"must be {' or '.join(map(repr, names))}: {_title(source)!r} is registered there, and a table belongs to one "
        "account",
        f"pass account={names[0]!r}, or leave it out",
    )


def _title(source: Source) -> str:
    """What people call a table: as it was declared, or as they named it."""
    called = source.declared if source.files and source.declared else source.name
    if source.frame is not None:
        called = f"{source.name} (frame)" if source.is_named else f"a frame ({source.name})"
    text = "".join(letter if letter.isprintable() else "?" for letter in called).strip()
    return text[:_LONGEST_TITLE].strip() or "a table"


def versioned_source(dataset: Dataset, accounts: Accounts) -> tuple[str, str]:
    """What the versions of a dataset's tables are numbered under, in the account they belong to, and its title."""
    names = (source_name(source) for source in dataset.sources())
    title = " + ".join(map(_title, dataset.sources()))[:_LONGEST_TITLE]
    return "\n".join((accounts.table, *names)), title


def table_marks(ledger: Ledger, dataset: Dataset) -> list[list[str]]:
    """Of every table that is read, what a ledger knows it again by; nothing of a frame without a name."""
    return [
        ledger.source_signatures(text for piece in pieces_of(source) for text in piece.known_by)
        for source in dataset.sources()
    ]


def are_other_tables(kept: Sequence[Sequence[str]], marks: Sequence[Sequence[str]]) -> bool:
    """Whether one of the tables is another one than before; where nothing is known of one, nobody can tell.

    >>> [are_other_tables([["a", "b"]], [marks]) for marks in (["b", "c"], ["c"], [])]
    [False, True, False]
    """
    pairs = zip(kept, marks, strict=False)
    return any(before and now and not set(before) & set(now) for before, now in pairs)


def _by_name(register: Register, source: Source) -> str:
    """The account of a further table that none is known to stand for; its people must have one."""
    named = checked_name(source.name, "name")
    is_known = _is_known(source)
    if is_known and named in register.names:
        return named
    older = sorted(register.of_older_version(source))
    if len(older) == 1:
        return older[0]
    if not is_known:
        rule = "must be named, so that the people in it pay from their own budget"
        way_out = 'write dataset(..., name="...") with the name of the budget that protects them'
        if register.names:
            way_out += f": this ledger has {_named(register.names)}"
        else:
            way_out += (
                "; this ledger has none yet: open one with Study(...).register() of that table by itself, or with "
                'Ledger.register("...", epsilon)'
            )
        raise InvalidValue("dataset", source.name, rule, way_out)
    raise InvalidValue(
        "dataset",
        named,
        "must have a budget in this ledger, because the people in it pay too",
        f"open one with Study(...).register() of it, or with Ledger.register({named!r}, ...); or attach it to one that "
        "protects the same people: Ledger.attach",
    )


def _is_known(source: Source) -> bool:
    """Whether its name says which table it is: every frame of a kind has the name of the kind."""
    return source.is_named or source.frame is None


def _named(names: Set[str]) -> str:
    """Some of the names, which are no secret; all of them where they are few."""
    few = [repr(name) for name in sorted(names)[:_FEW]]
    return ", ".join(few) + f" and {len(names) - _FEW} more" * (len(names) > _FEW)


def _listed(names: Iterable[str]) -> str:
    return " and ".join(map(repr, names))
