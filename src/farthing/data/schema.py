"""Public facts about columns: which categories, which range. Nothing here is ever read from the rows.

A schema is written with plain literals and read once:

    ["F", "M"]                        Categories   text, whole numbers or true/false, one kind
    (0, 110)                          Integers     whole numbers from 0 to 110
    (10.0, 60.0)                      Reals        one bound with a decimal point is enough
    (date(2000, 1, 1), date(2025, 12, 31))         Dates
    bool                              Flags        true or false
    unknown("number")                 Unknown      nobody knows its range or its values: a study finds them first

How text is read can be declared with it: `Categories(["f", "m"], trim=True, lower=True)`, `Reals(0, 60, decimal=",")`.
"""

from __future__ import annotations

import datetime
import math
import numbers
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from farthing.errors import InvalidValue

LARGEST_INTEGER = 2**62 - 1
"""Whole numbers stay below 2^62, so that one addition of two of them cannot leave 64 bits."""

LARGEST_REAL = 2.0**53
"""Real bounds stay within 2^53, so that their whole parts are exact in a double."""

SMALLEST_REAL = 2.0**-60
"""A real number nearer to zero than this (about 9e-19) counts as zero, so that products cannot vanish unnoticed."""

MOST_CATEGORIES = 10_000
LONGEST_CATEGORY = 1_000
LONGEST_NAME = 255
BLANKS = " \t\n\r\v\f"
"""What is around a cell and no part of it."""
OURS = "__farthing"  # names that the queries use themselves

_MOST_KNOWN = 4_096  # expressions that a schema remembers
_EXAMPLE = "for example {'age': (0, 110)}"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Categories:
    """A public list of values of one kind, in the order in which they are reported; a cell outside the list is missing.

    Args:
        values: Text, whole numbers or true and false, each once.
        trim: Leave out the blanks around a cell of text.
        lower: Read a cell of text in lower case; the list is then written that way too.

    Raises:
        InvalidValue: If a value stands twice, or the values are of several kinds.

    >>> Categories(("F", "M"))
    Categories(values=('F', 'M'))
    >>> Categories(["north", "south"], trim=True, lower=True)
    Categories(values=('north', 'south'), trim=True, lower=True)
    >>> Categories(("F", "F"))
    Traceback (most recent call last):
    farthing.errors.InvalidValue: categories='F': must not be listed twice; remove one of the two.
    """

    values: tuple[str | int | bool, ...]
    # How cells are read, and not which values there are: two tables that spell the same values differently can be one.
    trim: bool = field(default=False, compare=False)
    lowered: bool = field(default=False, compare=False)

    def __init__(self, values: Iterable[str | int | bool], *, trim: bool = False, lower: bool = False) -> None:
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "trim", bool(trim))
        object.__setattr__(self, "lowered", bool(lower))
        self._check()

    def __repr__(self) -> str:
        parts = [f"values={self.values!r}"]
        parts += ["trim=True"] * self.trim + ["lower=True"] * self.lowered
        return f"Categories({', '.join(parts)})"

    def _check(self) -> None:
        if isinstance(self.values, str | bytes) or not isinstance(self.values, list | tuple):
            raise InvalidValue("categories", self.values, "must be a list of values", "for example ['F', 'M']")
        if not 1 <= len(self.values) <= MOST_CATEGORIES:
            raise InvalidValue(
                "number of categories",
                len(self.values),
                f"must be between 1 and {MOST_CATEGORIES}",
                "list every category once, and merge rare ones before",
            )
        values = tuple(_category(value) for value in self.values)
        kinds = {type(value) for value in values}
        if len(kinds) > 1:
            raise InvalidValue(
                "categories", values, "must be of one kind", "use only text, only whole numbers or only true/false"
            )
        seen: set[str | int | bool] = set()
        for value in values:
            # Two spellings of one text look the same in every report, and only one of them matches the cells.
            same = unicodedata.normalize("NFC", value) if isinstance(value, str) else value
            if same in seen:
                raise InvalidValue("categories", value, "must not be listed twice", "remove one of the two")
            seen.add(same)
        object.__setattr__(self, "values", values)
        if (self.trim or self.lowered) and not isinstance(values[0], str):
            raise InvalidValue("categories", values, "must be text to be trimmed or put in lower case")
        for value in map(str, values):
            if self.trim and value != value.strip(BLANKS):
                raise InvalidValue(
                    "categories", value, "must have no blanks around it with trim", "write it without them"
                )
            if self.lowered and value != value.lower():
                raise InvalidValue("categories", value, "must be in lower case with lower", f"write {value.lower()!r}")


@dataclass(frozen=True, slots=True)
class Integers:
    """Whole numbers from `lower` to `upper`, both included; a cell outside is clipped.

    Args:
        lower: The least value.
        upper: The greatest value, both within 2^62.

    Raises:
        InvalidValue: If a bound is not a whole number, or lower exceeds upper.

    >>> Integers(0, 110)
    Integers(lower=0, upper=110)
    """

    lower: int
    upper: int

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if not _is_whole(value):
                raise InvalidValue(name, value, "must be a whole number")
            if not abs(int(value)) <= LARGEST_INTEGER:
                raise InvalidValue(name, value, "must be within 2^62", "measure in larger units")
            object.__setattr__(self, name, int(value))
        _refuse_reversed(self.lower, self.upper)


@dataclass(frozen=True, slots=True, repr=False)
class Reals:
    """Numbers from `lower` to `upper`, both included; a cell outside is clipped, NaN is missing.

    Args:
        lower: The least value.
        upper: The greatest value, both within 2^53.
        decimal: Says that the cells are text, and what stands before their fractions: "," or ".".

    Raises:
        InvalidValue: If a bound is not finite, or lower exceeds upper.

    >>> Reals(10, 60.0), Reals(10.0, 60.0, decimal=",")
    (Reals(lower=10.0, upper=60.0), Reals(lower=10.0, upper=60.0, decimal=','))
    """

    lower: float
    upper: float
    decimal: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if not _is_number(value):
                raise InvalidValue(name, value, "must be a number")
            if not abs(value) <= LARGEST_REAL:  # NaN and infinity fail here too
                raise InvalidValue(
                    name,
                    value,
                    "must be a finite number within 2^53",
                    "choose a bound from what is known in public, or measure in larger units",
                )
            if not (value == 0 or abs(value) >= SMALLEST_REAL):
                raise InvalidValue(name, value, "must be 0 or at least 2^-60 in size", "measure in smaller units")
            object.__setattr__(self, name, float(value) + 0.0)  # -0.0 becomes 0.0
        _refuse_reversed(self.lower, self.upper)
        if self.decimal not in ("", ".", ","):
            raise InvalidValue("decimal", self.decimal, 'must be "," or "."', "leave it out for numbers")

    def __repr__(self) -> str:
        decimal = f", decimal={self.decimal!r}" if self.decimal else ""
        return f"Reals(lower={self.lower!r}, upper={self.upper!r}{decimal})"


@dataclass(frozen=True, slots=True)
class Dates:
    """Days from `lower` to `upper`, both included; a cell outside is clipped.

    Args:
        lower: The first day.
        upper: The last day.

    Raises:
        InvalidValue: If a bound is not a date without a time, or lower exceeds upper.

    >>> Dates(datetime.date(2000, 1, 1), datetime.date(2000, 1, 31))
    Dates(lower=datetime.date(2000, 1, 1), upper=datetime.date(2000, 1, 31))
    """

    lower: datetime.date
    upper: datetime.date

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
                raise InvalidValue(name, value, "must be a date without a time", "use datetime.date")
        _refuse_reversed(self.lower, self.upper)


@dataclass(frozen=True, slots=True)
class Flags:
    """True or false; a schema may write it as `bool`.

    >>> Schema.read({"smoker": bool})["smoker"]
    Flags()
    """


Domain: TypeAlias = Categories | Integers | Reals | Dates | Flags
"""What a column may hold."""

KINDS = ("text", "number", "whole number", "date")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A column of which only the kind is known; a study finds its range, or its values, for a part of its budget.

    It is no domain: nothing can use the column before it was found. Made by `farthing.unknown`.

    Args:
        kind: "text", "number", "whole number" or "date".
        trim: Leave out the blanks around a cell of text.
        lower: Read a cell of text in lower case.
        decimal: Says that the cells of numbers are text, and what stands before their fractions: "," or ".".

    Raises:
        InvalidValue: If the kind is none of these, or an option does not belong to it.

    >>> Unknown("number")
    Unknown('number')
    """

    kind: str
    trim: bool = False
    lower: bool = False
    decimal: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidValue("unknown", self.kind, f"must be one of {', '.join(map(repr, KINDS))}")
        if (self.trim or self.lower) and self.kind != "text":
            raise InvalidValue("unknown", self.kind, "must be text to be trimmed or put in lower case")
        if self.decimal and self.kind != "number":
            raise InvalidValue("decimal", self.decimal, "must be left out: it is for numbers")
        if self.decimal not in ("", ".", ","):
            raise InvalidValue("decimal", self.decimal, 'must be "," or "."', "leave it out for numbers")

    def __repr__(self) -> str:
        options = [f", {name}=True" for name in ("trim", "lower") if getattr(self, name)]
        options += [f", decimal={self.decimal!r}"] if self.decimal else []
        return f"Unknown({self.kind!r}{''.join(options)})"

    def widest(self, *, wide_integers: bool = False) -> Domain:
        """All that a column of this kind may hold: what its cells are brought into before they are searched.

        Args:
            wide_integers: Whether whole numbers come as 64-bit integers, and not through doubles.

        Returns:
            The domain.

        Raises:
            InvalidValue: If it is text, which has no bounds.

        >>> Unknown("whole number").widest()
        Integers(lower=-9007199254740992, upper=9007199254740992)
        """
        if self.kind == "number":
            return Reals(-LARGEST_REAL, LARGEST_REAL, self.decimal)
        if self.kind == "whole number":
            most = LARGEST_INTEGER if wide_integers else int(LARGEST_REAL)
            return Integers(-most, most)
        if self.kind == "date":
            return Dates(datetime.date.min, datetime.date.max)
        raise InvalidValue("unknown", self.kind, "must be numbers or dates to have a range")


def unknown(kind: str, *, trim: bool = False, lower: bool = False, decimal: str = "") -> Unknown:
    """Declares that nobody knows what a column holds, only of which kind it is: for a schema.

    `Study.discover` finds the range of numbers and dates, or the values of text, for a part of the budget.

    Args:
        kind: "text", "number", "whole number" or "date".
        trim: Leave out the blanks around a cell of text.
        lower: Read a cell of text in lower case.
        decimal: Says that the cells of numbers are text, and what stands before their fractions: "," or ".".

    Returns:
        The declaration, in place of a domain.

    Raises:
        InvalidValue: If the kind is none of these, or an option does not belong to it.

    >>> Schema.read({"income": unknown("number"), "age": (0, 110)}).unknown
    mappingproxy({'income': Unknown('number')})
    """
    return Unknown(kind, bool(trim), bool(lower), decimal)


def not_found_yet(name: str, argument: str = "column") -> InvalidValue:
    """The refusal of a column that is used before its range or its values were found.

    >>> raise not_found_yet("income")
    Traceback (most recent call last):
    farthing.errors.InvalidValue: column='income': is declared as unknown, and was not found yet; find it first: ...
    """
    way_out = f"find it first: study.discover({name!r}).release(), or farthing discover; or declare it"
    return InvalidValue(argument, name, "is declared as unknown, and was not found yet", way_out)


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns and their domains, in order; frozen and hashable.

    Args:
        columns: The domain of each column. `Schema.read` takes plain literals instead.
        unknown: The columns whose range or values nobody knows yet; they are no columns of the schema until then.
        once_unknown: Those that were declared as unknown, and are known by now.

    Raises:
        InvalidValue: If a name is empty, too long or the same as another but for its case, or a domain is none.

    >>> schema = Schema.read({"sex": ["F", "M"], "age": (0, 110), "bmi": (10.0, 60.0), "smoker": bool})
    >>> schema["age"]
    Integers(lower=0, upper=110)
    >>> list(schema)
    ['sex', 'age', 'bmi', 'smoker']
    >>> "income" in schema
    False
    """

    columns: Mapping[str, Domain]
    unknown: Mapping[str, Unknown] = field(default_factory=dict, repr=False)
    once_unknown: Mapping[str, Unknown] = field(default_factory=dict, repr=False, compare=False)
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise InvalidValue("schema", self.columns, "must be a mapping from names to domains", _EXAMPLE)
        for name, domain in self.columns.items():
            _refuse_bad_name(name)
            if not isinstance(domain, Domain):
                raise InvalidValue(f"schema[{name!r}]", domain, "must be a domain", "use Schema.read for literals")
        for name, kind in self.unknown.items():
            _refuse_bad_name(name)
            if not isinstance(kind, Unknown):
                raise InvalidValue(f"schema[{name!r}]", kind, "must be made by farthing.unknown")
        refuse_alike([*self.columns, *self.unknown])
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "unknown", MappingProxyType(dict(self.unknown)))

    @staticmethod
    def read(literals: Mapping[str, object] | Schema) -> Schema:
        """The schema that plain literals describe; see the top of this module.

        Args:
            literals: For each column a list of categories, a pair of bounds, `bool`, a domain or `unknown(...)`; or a
                schema.

        Returns:
            The schema, with the columns in the same order.

        Raises:
            InvalidValue: If a literal describes no domain.

        >>> Schema.read({"age": (110, 0)})
        Traceback (most recent call last):
        farthing.errors.InvalidValue: schema['age']=(110, 0): lower must not exceed upper; swap the two bounds.
        """
        if isinstance(literals, Schema):
            return literals
        if not isinstance(literals, Mapping):
            raise InvalidValue("schema", literals, "must be a mapping from names to domains", _EXAMPLE)
        if not literals:
            raise InvalidValue("schema", {}, "must name at least one column", _EXAMPLE)
        named = {_refuse_bad_name(name): each for name, each in literals.items()}
        unknowns = {name: kind for name, kind in named.items() if isinstance(kind, Unknown)}
        known = {name: each for name, each in named.items() if name not in unknowns}
        return Schema({name: read_domain(name, value) for name, value in known.items()}, unknowns)

    def with_column(self, name: str, domain: Domain) -> Schema:
        """The same schema with one column more, or with another domain for it.

        Args:
            name: The name of the column.
            domain: What the column may hold.

        Returns:
            A new schema.

        Raises:
            InvalidValue: If the name is the same as another but for its case.

        >>> list(Schema.read({"age": (0, 110)}).with_column("old", Flags()))
        ['age', 'old']
        """
        unknown = {each: kind for each, kind in self.unknown.items() if each != name}
        once_unknown = {**self.once_unknown, **{each: kind for each, kind in self.unknown.items() if each == name}}
        return Schema({**self.columns, name: domain}, unknown, once_unknown)

    def open_text(self, name: str) -> Unknown | None:
        """How a column of text is read whose values nobody listed, found by now or not; None for any other column.

        Args:
            name: The name of the column.

        Returns:
            The declaration.

        >>> Schema.read({"drug": unknown("text", trim=True), "sex": ["F", "M"]}).open_text("drug")
        Unknown('text', trim=True)
        """
        rules = self.unknown.get(name) or self.once_unknown.get(name)
        return rules if rules is not None and rules.kind == "text" else None

    def __getitem__(self, name: str) -> Domain:
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __hash__(self) -> int:
        return hash(
            (frozenset(self.columns.items()), frozenset(self.unknown.items()))
        )  # equality does not ask for the order

    def remembered(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What was made of this schema for a key before, or is made now: a plan reads the same condition many times.

        Args:
            key: Says what it is; equal keys must stand for equal things.
            make: Makes it; what it raises is not remembered.

        Returns:
            What `make` returned, which must not be changed by anybody.

        >>> schema = Schema.read({"age": (0, 110)})
        >>> schema.remembered("columns", lambda: tuple(schema)) is schema.remembered("columns", lambda: ())
        True
        """
        known = self._known.get(key)
        if known is None:
            known = make()
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = known
        return known


def read_domain(name: str, literal: object) -> Domain:
    """The domain that one literal describes; `name` is the column, for the message.

    >>> read_domain("bmi", (10, 60.0))
    Reals(lower=10.0, upper=60.0)
    """
    if isinstance(literal, Domain):
        return literal
    if literal is bool:
        return Flags()
    try:
        if isinstance(literal, list):
            return Categories(tuple(literal))
        if isinstance(literal, tuple) and len(literal) == 2:
            return _range(*literal)
    except InvalidValue as error:
        raise InvalidValue(f"schema[{name!r}]", literal, _inner_rule(error), error.way_out) from None
    raise InvalidValue(
        f"schema[{name!r}]",
        literal,
        "must be a list of categories, a pair (lower, upper) or bool",
        "for example ['F', 'M'], (0, 110), (10.0, 60.0) or bool",
    )


def _range(lower: object, upper: object) -> Domain:
    if _is_whole(lower) and _is_whole(upper):
        return Integers(lower, upper)  # type: ignore[arg-type]
    if _is_number(lower) and _is_number(upper):
        return Reals(lower, upper)  # type: ignore[arg-type]
    if isinstance(lower, datetime.date) or isinstance(upper, datetime.date):
        return Dates(lower, upper)  # type: ignore[arg-type]
    way_out = "a list is written with square brackets"
    if isinstance(lower, str) and isinstance(upper, str):
        way_out = "write dates without quotes in a study.toml, and as datetime.date in Python"
    raise InvalidValue("bounds", (lower, upper), "must be two numbers or two dates", way_out)


def _inner_rule(error: InvalidValue) -> str:
    """The rule of a domain, with the name it talks about where that is not plain."""
    return error.rule if error.name in {"categories", "bounds"} else f"{error.name} {error.rule}"


def _category(value: object) -> str | int | bool:
    if isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}:
        return bool(value)
    if isinstance(value, str):
        if len(value) > LONGEST_CATEGORY:
            raise InvalidValue("categories", value, f"must be at most {LONGEST_CATEGORY} characters long")
        if "\0" in value or any(0xD800 <= ord(character) <= 0xDFFF for character in value):
            raise InvalidValue(
                "categories",
                value,
                "must be text that every engine can hold",
                "remove NUL and half surrogates",
            )
        return str(value)
    if _is_whole(value) and abs(int(value)) <= LARGEST_INTEGER:  # type: ignore[call-overload]
        return int(value)  # type: ignore[call-overload,no-any-return]
    raise InvalidValue(
        "categories",
        value,
        "must be text, a whole number within 2^62 or true/false",
        "give (lower, upper) for a range of numbers",
    )


def refuse_alike(names: Iterable[str], argument: str = "column") -> None:
    """Refuse two names that some engine takes for one.

    DuckDB and Spark ask for neither case: a query for "AGE" is answered with "age", in the bounds of the other.

    >>> refuse_alike(["age", "AGE"])
    Traceback (most recent call last):
    farthing.errors.InvalidValue: column='AGE': must differ from 'age' by more than case; choose another name.
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(folded(name), name)
        if other != name:
            raise InvalidValue(argument, name, f"must differ from {other!r} by more than case", "choose another name")


def folded(name: str) -> str:
    """A name without its case; by way of capitals, as Java compares them (a dotless i is an i there)."""
    return name.upper().casefold()


def _refuse_bad_name(name: object) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise InvalidValue("column", name, f"must be text of 1 to {LONGEST_NAME} characters")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in name):
        raise InvalidValue("column", name, "must not hold control characters", "rename the column")
    if folded(name).startswith(OURS):
        raise InvalidValue("column", name, f"must not start with {OURS}", "choose another name")
    return str(name)  # plain text, also of numpy's


def _refuse_reversed(lower: object, upper: object) -> None:
    if not lower <= upper:  # type: ignore[operator]
        raise InvalidValue("bounds", (lower, upper), "lower must not exceed upper", "swap the two bounds")


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and not math.isnan(value)
