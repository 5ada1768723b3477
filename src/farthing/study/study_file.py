"""A study described in a file: `study.toml`.

[dataset] and [schema]   the table and its public facts (see farthing.data.declaration)

[study]
epsilon = 1.0
delta = 1e-9
ledger = "study.db"                # beside this file, or a Postgres URL

[expected]                         # what is known from elsewhere; it makes the foretold errors true
rows = 100_000
income = [41_000.0, 20_000.0]      # mean and standard deviation of a column
sex = { F = 0.52, M = 0.48 }       # shares of its categories

[[statistics]]
kind = "mean"
column = "income"
by = "sex"
weight = 2.0
within = 500                       # required error, at `confidence` (0.95 unless told)
"""

from __future__ import annotations

import difflib
import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from farthing.data import Categories, Dataset, Flags, Integers, Reals
from farthing.data.declaration import read_declaration
from farthing.errors import InvalidValue
from farthing.ledger import Ledger
from farthing.release import Statistic
from farthing.release.statistics import CONSTRUCTORS
from farthing.study.plan import Plan
from farthing.study.study import Study

STUDY_KEYS = ("epsilon", "delta", "ledger", "name", "analyst", "sampling_rate", "plan_epsilon")
CONTROLS = ("weight", "within", "confidence")


@dataclass(frozen=True)
class StudyFile:
    """A study.toml, read and checked; nothing is opened until it is asked for."""

    path: Path
    text: str
    facts: Mapping[str, Any]
    statistics: tuple[Statistic, ...]
    controls: tuple[Mapping[str, Any], ...]

    @cached_property
    def dataset(self) -> Dataset:
        """The table it describes."""
        return read_declaration(self.path)

    @property
    def ledger_url(self) -> str:
        """The ledger's file (beside the study) or URL."""
        given = str(self.facts["study"]["ledger"])
        return given if "://" in given else str(self.path.parent / given)

    @property
    def request_id(self) -> str:
        """The same file asks for the same release: a second run is answered from the ledger."""
        return f"{self.path.stem[:40]}-{hashlib.sha256(self.text.encode()).hexdigest()[:24]}"

    def study(self, ledger: Ledger | str | None = None) -> Study:
        """The study, with its ledger opened."""
        about = self.facts["study"]
        options = {key: about[key] for key in ("name", "analyst", "sampling_rate") if key in about}
        return Study(
            self.dataset,
            about["epsilon"],
            about.get("delta", 0.0),
            ledger=self.ledger_url if ledger is None else ledger,
            **options,
        )

    def plan(self, study: Study | None = None) -> Plan:
        """The plan, with the weights and requirements of the file."""
        whole = study or self.study()
        plan = whole.plan(
            *self.statistics, epsilon=self.facts["study"].get("plan_epsilon"), expected=self.expected
        )
        plan = replace(plan, from_file=True, _given=plan.allocation)
        for statistic, control in zip(self.statistics, self.controls, strict=True):
            if "weight" in control:
                plan = plan.weight(statistic.name, control["weight"])
        for statistic, control in zip(self.statistics, self.controls, strict=True):
            if "within" in control:
                plan = plan.require(statistic.name, control["within"], control.get("confidence", 0.95))
        return replace(plan, code=tuple(self.text.splitlines()))

    @property
    def expected(self) -> dict[str, Any]:
        """What the steward expects, with TOML's lists and tables as the columns mean them."""
        return {name: self._meant(name, value) for name, value in self.facts.get("expected", {}).items()}

    def _meant(self, name: str, value: Any) -> Any:
        if name not in self.dataset.schema:
            return value
        domain = self.dataset.schema[name]
        if isinstance(value, dict) and isinstance(domain, Categories | Flags):
            known = domain.values if isinstance(domain, Categories) else (False, True)
            # Keys of a TOML table are texts: `true` and `3` stand for the category that is written so.
            written = {str(one).lower() if isinstance(one, bool) else str(one): one for one in known}
            return {written.get(key, key): share for key, share in value.items()}
        if isinstance(value, list) and len(value) == 2 and isinstance(domain, Integers | Reals):
            return tuple(value)  # its mean and standard deviation
        return value


def read_study(path: str | os.PathLike[str], *, statistics: bool = True) -> StudyFile:
    """The study that a file describes; what is wrong with it is said with its place.

    `statistics` says that there must be some to release; what asks for other things can do without.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        facts = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or type(problem).__name__
        raise InvalidValue("file", str(file), f"cannot be read ({reason})", "check the path") from None
    except tomllib.TOMLDecodeError as problem:
        raise InvalidValue("file", str(file), f"is not valid TOML ({problem})", "correct that line") from None
    _refuse_unknown(facts, ("dataset", "schema", "study", "expected", "statistics"), "")
    about = _table(facts, "study", "[study]")
    _refuse_unknown(about, STUDY_KEYS, "study.")
    for key, hint in (("epsilon", "epsilon = 1.0"), ("ledger", 'ledger = "study.db"')):
        if key not in about:
            raise InvalidValue(f"study.{key}", None, "must be given", f"write {hint} below [study]")
    if not isinstance(about["ledger"], str) or not about["ledger"]:
        raise InvalidValue("study.ledger", about["ledger"], "must be a file name or a URL")
    if "expected" in facts:
        _table(facts, "expected", "[expected]")
    asked: Any = facts.get("statistics", None if statistics else [])
    listed = isinstance(asked, list) and all(isinstance(entry, dict) for entry in asked)
    if not listed or (statistics and not asked):
        raise InvalidValue(
            "statistics",
            asked,
            "must be a list of at least one",
            'write [[statistics]] and kind = "count" below it',
        )
    read = [_statistic(entry, f"statistics[{place}]") for place, entry in enumerate(asked)]
    return StudyFile(file, text, facts, tuple(one for one, _ in read), tuple(control for _, control in read))


def _statistic(entry: Mapping[str, Any], where: str) -> tuple[Statistic, dict[str, Any]]:
    rest = dict(entry)
    kind = rest.pop("kind", None)
    if kind not in CONSTRUCTORS:
        known = ", ".join(CONSTRUCTORS)
        raise InvalidValue(f"{where}.kind", kind, "must be a kind of statistic", f"there are: {known}")
    control = {key: rest.pop(key) for key in CONTROLS if key in rest}
    if "confidence" in control and "within" not in control:
        raise InvalidValue(f"{where}.confidence", control["confidence"], "must stand beside within")
    if kind == "linear_regression" and "column" in rest:
        rest["target"] = rest.pop("column")
    make = CONSTRUCTORS[kind]
    allowed = _parameters(make)
    _refuse_unknown(rest, allowed, f"{where}.", (*allowed, *CONTROLS))
    try:
        return make(**rest), control
    except TypeError:  # a parameter is missing; the names of all of them are public
        missing = [name for name in allowed[: _positional(make)] if name not in rest]
        raise InvalidValue(
            f"{where}.{missing[0] if missing else 'kind'}", None, f"must be given for a {kind}"
        ) from None


def _parameters(make: Any) -> tuple[str, ...]:
    import inspect

    return tuple(inspect.signature(make).parameters)


def _positional(make: Any) -> int:
    import inspect

    return sum(
        parameter.default is parameter.empty for parameter in inspect.signature(make).parameters.values()
    )


def _table(facts: Mapping[str, Any], name: str, header: str) -> dict[str, Any]:
    found = facts.get(name)
    if not isinstance(found, dict):
        raise InvalidValue(name, found, "must be a table of the file", f"write {header} and its lines below")
    return found


def _refuse_unknown(
    found: Mapping[str, Any], known: tuple[str, ...], prefix: str, shown: tuple[str, ...] | None = None
) -> None:
    for key in found:
        if key not in known:
            near = difflib.get_close_matches(key, shown or known, n=1)
            hint = f"did you mean {near[0]}" if near else f"there are: {', '.join(shown or known)}"
            raise InvalidValue(f"{prefix}{key}", found[key], "is not known", hint)
