"""`Client`: a server of farthing, with the names of the local API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from farthing.client.http_connection import Connection, part
from farthing.client.remote_requests import RemoteRequests
from farthing.client.remote_study import RemoteStudy, budget_at, budget_from
from farthing.errors import InvalidValue
from farthing.ledger import Budget, Receipt
from farthing.ledger.table_versions import Version
from farthing.numerics import Bounds
from farthing.privacy import ApproxDP, GaussianNoise, LaplaceNoise
from farthing.study.documents.dataset_declaration import table_facts, unknown_words
from farthing.study.release_list import ReleaseRecord

if TYPE_CHECKING:
    import httpx


_PAGE = 500


@dataclass(frozen=True, slots=True)
class RemoteEntry:
    """One line of a server's ledger, as far as the caller may see it."""

    sequence: int
    kind: str
    dataset: str
    analyst: str
    actor: str
    when: datetime
    request_id: str
    epsilon: float | None
    delta: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What a server found when it read its whole ledger again."""

    ok: bool
    entries: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]


class RemoteLedger:
    """The account, from where one stands: an analyst sees their own grant and entries."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def datasets(self) -> list[str]:
        """The names of all datasets that may be seen."""
        return [str(one["name"]) for one in self._connection.get("/datasets")["datasets"]]

    def budget(self, dataset: str) -> Budget:
        """The state of a budget: the dataset's own, or an analyst's grant in it."""
        return budget_at(self._connection, dataset)

    def entries(self, dataset: str | None = None, since: int = 0) -> Iterator[RemoteEntry]:
        """All entries after `since` in order, or those of one dataset."""
        while True:
            page = self._connection.get("/ledger/entries", dataset=dataset, since=since, limit=_PAGE)
            yield from map(_entry, page["entries"])
            if page["next"] is None:
                return
            since = int(page["next"])

    def releases(self, dataset: str | None = None, last: int = 100) -> list[ReleaseRecord]:
        """The last releases, oldest first: title, statistics, unit, version, who and when."""
        views = self._connection.get("/ledger/releases", dataset=dataset, limit=last)["releases"]
        return [_released(view) for view in reversed(views)]

    def verify(self, receipt: Receipt | None = None) -> Verified:
        """Let the server read everything again, and say whether it contains the receipt if one is given."""
        body = {} if receipt is None else {"receipt": receipt.to_json()}
        verification = self._connection.post("/ledger/verify", body)
        return Verified(
            bool(verification["ok"]),
            int(verification["entries"]),
            tuple(verification["problems"]),
            tuple(verification["notes"]),
        )


def _released(view: Mapping[str, Any]) -> ReleaseRecord:
    version = view["version"]
    return ReleaseRecord(
        str(view["request_id"]),
        tuple(view["accounts"]),
        str(view["title"]),
        tuple(view["statistics"]),
        str(view["unit"]),
        None if version is None else Version(int(version["number"]), str(version["source"])),
        str(view["who"]),
        datetime.fromisoformat(view["when"]),
        float("inf") if view["epsilon"] is None else float(view["epsilon"]),
        float(view["delta"]),
    )


def _entry(view: Mapping[str, Any]) -> RemoteEntry:
    return RemoteEntry(
        int(view["sequence"]),
        str(view["kind"]),
        str(view["dataset"]),
        str(view["analyst"] or ""),
        str(view["actor"]),
        datetime.fromisoformat(view["when"]),
        str(view["request_id"] or ""),
        view["epsilon"],
        view["delta"],
        str(view["sentence"]),
    )


@dataclass(frozen=True, slots=True)
class RemoteComposition:
    """What a server's accountant says of several charges: the optimum, proven, and every theorem beside it."""

    optimal: Bounds
    theorems: tuple[Mapping[str, Any], ...]
    sentence: str


class Client:
    """A server of farthing, with the names of the local API.

    A dataset has a study, a study makes a plan of statistics, a plan becomes a release. The server keeps the rows and
    the account; what it refuses is raised as the same exceptions. A request whose answer was lost on the way is sent
    again under the same request id, which is never charged twice.

    `client.study("survey").plan(ft.count(by="sex")).release()`, `client.ledger.verify()`.

    Args:
        url: The address of the server; https, unless it is on this machine.
        token: An API token, made on its page or by `farthing users token`.
        timeout: How many seconds to wait for one answer.
        insecure: Allow http to another machine, where the token can be read on the way.
        transport: How requests are sent, for tests.

    Raises:
        InvalidValue: If the address or the token has the wrong form.
        MissingExtra: If the extra `client` is not installed.

    >>> Client("http://127.0.0.1:8642", "ft_not-a-real-token")
    Client('http://127.0.0.1:8642')
    >>> Client("http://stats.example.org", "ft_not-a-real-token")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: url='http://stats.example.org': must be https: the token would be readable ...
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 60.0,
        insecure: bool = False,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, token, timeout=timeout, insecure=insecure, transport=transport)

    def datasets(self) -> list[str]:
        """The names of all datasets that the token may see.

        Returns:
            The names.

        Raises:
            RequestRefused: If the server refuses, or cannot be reached.

        >>> import httpx
        >>> server = httpx.MockTransport(lambda request: httpx.Response(200, json={"datasets": [{"name": "survey"}]}))
        >>> Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server).datasets()
        ['survey']
        """
        return [str(one["name"]) for one in self._connection.get("/datasets")["datasets"]]

    def dataset(self, name: str) -> dict[str, Any]:
        """What is public about a dataset: its columns, whom it protects, its budget.

        Args:
            name: The name of the dataset.

        Returns:
            The server's description, as JSON data.

        Raises:
            RequestRefused: If there is no such dataset, or the token may not see it.

        >>> import httpx
        >>> server = httpx.MockTransport(lambda request: httpx.Response(200, json={"name": "survey", "unit": []}))
        >>> Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server).dataset("survey")
        {'name': 'survey', 'unit': []}
        """
        view: dict[str, Any] = self._connection.get(f"/datasets/{part(_text(name, 'name'))}")
        return view

    def register(
        self,
        name: str,
        source: str,
        *,
        schema: Mapping[str, Any],
        epsilon: float | None = None,
        delta: float = 0.0,
        unit: str | Sequence[str] | None = None,
        max_rows: int | str | None = 1,
        rows: int | None = None,
        people: int | None = None,
        neighbours: str = "add-remove",
        account: str | None = None,
        sample: float | None = None,
        renews: str | None = None,
        date: str | None = None,
        period: str | None = None,
        steps: Sequence[Mapping[str, Any]] | None = None,
    ) -> RemoteStudy:
        """Declare a file of the server's data folder as a dataset, with its public facts and its budget (curators).

        Args:
            name: What the server is to call it.
            source: The file, relative to the data folder.
            schema: As for `farthing.dataset`: ["F", "M"], (0, 110), bool, `farthing.unknown("number")`.
            epsilon: The epsilon of a new account; an account that is open keeps its own.
            delta: The delta of a new account.
            unit: The column, or columns, that name a person; None for one row.
            max_rows: How many rows of each unit are kept, "auto" if that is to be found; None if every statistic has a
                bound of its own.
            rows: The number of rows, where that is public.
            people: The number of units, where that is public.
            neighbours: "add-remove" or "replace".
            account: The account that protects its people: by default that of the file, or a new one called `name`.
            sample: The probability with which each unit is in the secret sample that every release draws afresh; by
                default the whole table is read.
            renews: "day", "week", "month", "quarter" or "year": the account has such a budget for each, and the
                dataset is the rows of one period.
            date: With `renews`, the column of dates that says in which period a row lies.
            period: With `renews`, the period, such as "2026-03"; `open_period` opens the next.
            steps: What becomes of the rows before anything is asked, as [[steps]] of a study.toml: [{"where": "age >=
                18"}, {"per_unit": {"visits": "count()"}}].

        Returns:
            The study of the dataset.

        Raises:
            InvalidValue: If an argument is wrong, here or on the server.
            RequestRefused: If the token may not register datasets.

        >>> import httpx
        >>> server = httpx.MockTransport(lambda request: httpx.Response(201, json={"name": "survey"}))
        >>> client = Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server)
        >>> client.register("survey", "survey.csv", schema={"age": (0, 110)}, epsilon=1.0).name
        'survey'
        """
        about = {"name": name, "source": source, "epsilon": epsilon, "delta": delta, "neighbours": neighbours}
        facts = {"unit": [unit] if isinstance(unit, str) else unit, "max_rows": max_rows, "rows": rows}
        facts |= {} if people is None else {"people": people}
        columns = {column: _column(column, values) for column, values in schema.items()}
        drawn: dict[str, Any] = {} if sample is None else {"sample": sample}
        if renews is not None or date is not None or period is not None:
            drawn["renews"] = {"every": renews, "date": date, "period": period}
        drawn |= {} if steps is None else {"steps": [dict(step) for step in steps]}
        self._connection.post("/datasets", {**about, **facts, **drawn, "columns": columns, "account": account})
        return RemoteStudy(self._connection, name)

    def register_linked(
        self,
        name: str,
        table: str,
        tables: Mapping[str, Any],
        *,
        unit: str,
        keys: Mapping[str, str],
        max_rows: Mapping[str, int] | None = None,
        epsilon: float | None = None,
        delta: float = 0.0,
        neighbours: str = "add-remove",
        account: str | None = None,
        sample: float | None = None,
        steps: Sequence[Mapping[str, Any]] | None = None,
    ) -> RemoteStudy:
        """Declare one of several tables that keys link, with the unit of all of them (curators).

        The tables hold the same people, so that one account pays for all: declare each table that is to be asked about,
        under a name of its own, and give the budget once.

        Args:
            name: What the server is to call it.
            table: The table that is asked about, one of `tables`.
            tables: All tables by name, made with `farthing.table`; their sources are files of the server's data folder.
            unit: The column that names a person, with its table: "persons.person_id".
            keys: As for `farthing.linked`: {"visits.person_id": "persons.person_id"}.
            max_rows: How many rows of each unit are kept, by table.
            epsilon: The epsilon of a new account; an account that is open keeps its own.
            delta: The delta of a new account.
            neighbours: "add-remove" or "replace".
            account: The account that protects these people: by default that of the tables, or a new one called `name`.
            sample: As for `register`.
            steps: As for `register`; [{"join": "visits"}] brings the columns of a table that this one leads to.

        Returns:
            The study of the table.

        Raises:
            InvalidValue: If an argument is wrong, here or on the server.
            RequestRefused: If the token may not register datasets.

        >>> import httpx
        >>> from farthing.data import table
        >>> server = httpx.MockTransport(lambda request: httpx.Response(201, json={"name": "visits"}))
        >>> client = Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server)
        >>> tables = {"persons": table("persons.csv", schema={"sex": ["F", "M"]}), "visits": table("v.csv", schema={})}
        >>> keys = {"visits.person": "persons.id"}
        >>> client.register_linked("visits", "visits", tables, unit="persons.id", keys=keys, epsilon=1.0).name
        'visits'
        """
        bounds = max_rows or {}
        for each in bounds:
            if each not in tables:
                raise InvalidValue("max_rows", each, f"must be one of the tables: {', '.join(tables)}")
        words = {each: _table(each, facts, bounds.get(each)) for each, facts in tables.items()}
        about: dict[str, Any] = {"name": name, "table": table, "tables": words, "unit": unit, "keys": dict(keys)}
        about |= {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "account": account}
        drawn: dict[str, Any] = {} if sample is None else {"sample": sample}
        drawn |= {} if steps is None else {"steps": [dict(step) for step in steps]}
        self._connection.post("/datasets", {**about, **drawn})
        return RemoteStudy(self._connection, name)

    def open_period(self, dataset: str, period: str, name: str) -> RemoteStudy:
        """Open another period of a dataset whose account renews, as a dataset of its own (curators).

        It has the budget that every period has: `client.open_period("visits 2026-03", "2026-04", "visits 2026-04")`.

        Args:
            dataset: The name of a dataset that is one period of the account.
            period: The other period.
            name: What the server is to call its rows.

        Returns:
            The study of the new dataset.

        Raises:
            InvalidValue: If the account does not renew, or there is no such period.
            RequestRefused: If the token may not register datasets.

        >>> import httpx
        >>> server = httpx.MockTransport(lambda request: httpx.Response(201, json={"name": "visits 2026-04"}))
        >>> client = Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server)
        >>> client.open_period("visits 2026-03", "2026-04", "visits 2026-04").name
        'visits 2026-04'
        """
        path = f"/datasets/{part(_text(dataset, 'dataset'))}/periods"
        self._connection.post(path, {"name": name, "period": period})
        return RemoteStudy(self._connection, name)

    def correct(
        self,
        dataset: str,
        reason: str,
        *,
        schema: Mapping[str, Any] | None = None,
        max_rows: int | None = None,
        rows: int | None = None,
    ) -> Mapping[str, tuple[str, str]]:
        """Correct a declaration that was wrong; the account keeps its budget, and the ledger what changed (curators).

        Later plans read the table as it is declared from now on. Releases that were made keep their answers, and are
        not free under the new declaration. Unit and neighbours cannot be corrected.

        Args:
            dataset: The name of the dataset.
            reason: Why, in a few words that are not computed from rows.
            schema: The columns that change, as for `register`.
            max_rows: How many rows of each unit are kept; by default as it was declared.
            rows: The number of rows, where that is public; by default as it was declared.

        Returns:
            What changed: by column, how it stood and how it stands now.

        Raises:
            InvalidValue: If nothing changes, or an argument is wrong.
            RequestRefused: If there is no such dataset, or the token may not correct it.

        >>> import httpx
        >>> age = {"what": "age", "before": "0 to 110", "after": "0 to 120"}
        >>> server = httpx.MockTransport(lambda request: httpx.Response(201, json={"changes": [age]}))
        >>> client = Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server)
        >>> client.correct("survey", "some are older", schema={"age": (0, 120)})
        {'age': ('0 to 110', '0 to 120')}
        """
        columns = {column: _column(column, values) for column, values in (schema or {}).items()}
        numbers = {"max_rows": max_rows, "rows": rows}
        body = {"reason": reason, "columns": columns, **{k: v for k, v in numbers.items() if v is not None}}
        path = f"/datasets/{part(_text(dataset, 'dataset'))}/corrections"
        view = self._connection.post(path, body, repeatable=False)
        return {str(one["what"]): (str(one["before"]), str(one["after"])) for one in view["changes"]}

    def grant(self, dataset: str, analyst: str, epsilon: float, delta: float | None = None) -> Budget:
        """Let an analyst spend at most so much of a dataset in all (curators).

        The dataset's own budget still limits it. What the analyst has spent stays spent, and a second grant replaces
        the first: `client.grant("survey", "bob", epsilon=0.5)`.

        Args:
            dataset: The name of the dataset.
            analyst: The name of the analyst.
            epsilon: The epsilon of the grant.
            delta: Its delta; by default a grant that is there keeps its own, and a new one has 0.

        Returns:
            The grant as it then stands.

        Raises:
            InvalidValue: If an argument is wrong.
            RequestRefused: If the token may not grant.

        >>> import httpx
        >>> half, nothing = {"epsilon": 0.5, "delta": 0.0}, {"epsilon": 0.0, "delta": 0.0}
        >>> view = {"dataset": "survey", "analyst": "bob", "total": half, "spent": nothing, "remaining": half}
        >>> view |= {"waiting": 0.0, "withheld": {}, "charges": 0, "unit": "row, add-remove"}
        >>> server = httpx.MockTransport(lambda request: httpx.Response(200, json=view))
        >>> client = Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server)
        >>> client.grant("survey", "bob", epsilon=0.5).remaining
        ApproxDP(epsilon=0.5, delta=0.0)
        """
        path = f"/datasets/{part(_text(dataset, 'dataset'))}/grants/{part(_text(analyst, 'analyst'))}"
        amount = {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
        return budget_from(self._connection.put(path, amount))

    def study(self, dataset: str) -> RemoteStudy:
        """The study of a dataset: its budget as far as it is yours, and everything that can be asked.

        Args:
            dataset: The name of the dataset.

        Returns:
            A study that plans and releases on the server.

        Raises:
            RequestRefused: If there is no such dataset, or the token may not see it.

        >>> import httpx
        >>> server = httpx.MockTransport(lambda request: httpx.Response(200, json={"name": "survey"}))
        >>> Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server).study("survey").name
        'survey'
        """
        return RemoteStudy(self._connection, str(self.dataset(dataset)["name"]))

    @property
    def ledger(self) -> RemoteLedger:
        """The account, as far as it may be seen."""
        return RemoteLedger(self._connection)

    @property
    def requests(self) -> RemoteRequests:
        """What analysts have asked for, and what curators have allowed them."""
        return RemoteRequests(self._connection)

    def compose(
        self,
        charges: Sequence[float | tuple[float, float] | ApproxDP | LaplaceNoise | GaussianNoise],
        delta: float,
        *,
        counts: Sequence[int] | None = None,
    ) -> RemoteComposition:
        """What several charges cost together, by the server's accountant.

        Args:
            charges: Each an epsilon, a pair (epsilon, delta), or an event: `ApproxDP`, `LaplaceNoise`, `GaussianNoise`.
            delta: The delta at which they are compared.
            counts: How often each charge is made; once by default.

        Returns:
            The proven optimum, and every theorem beside it.

        Raises:
            InvalidValue: If something is not a charge, or there is not one count for each.

        >>> import httpx
        >>> costs = {"optimal": {"lower": 0.5, "upper": 0.5}, "theorems": [], "sentence": "epsilon 0.5"}
        >>> server = httpx.MockTransport(lambda request: httpx.Response(200, json=costs))
        >>> client = Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server)
        >>> client.compose([0.25], delta=0.0, counts=[2]).optimal.upper
        0.5
        """
        each = [1] * len(charges) if counts is None else list(counts)
        if len(each) != len(charges):
            raise InvalidValue("counts", each, f"must have one number for each of {len(charges)} charges")
        entries = [{**_charge(charge), "count": count} for charge, count in zip(charges, each, strict=True)]
        composition = self._connection.post("/compose", {"charges": entries, "delta": delta})
        optimal = composition["optimal"]
        upper = float("inf") if optimal["upper"] is None else float(optimal["upper"])
        lower = upper if optimal["lower"] is None else float(optimal["lower"])
        return RemoteComposition(Bounds(lower, upper), tuple(composition["theorems"]), str(composition["sentence"]))

    def me(self) -> dict[str, Any]:
        """Who the token speaks for, and what it may do.

        Returns:
            The user's name, role and scopes, as JSON data.

        Raises:
            RequestRefused: If the token is not valid.

        >>> import httpx
        >>> server = httpx.MockTransport(lambda request: httpx.Response(200, json={"name": "ada", "role": "curator"}))
        >>> Client("http://127.0.0.1:8642", "ft_not-a-real-token", transport=server).me()
        {'name': 'ada', 'role': 'curator'}
        """
        view: dict[str, Any] = self._connection.get("/me")
        return {key: value for key, value in view.items() if key != "csrf"}

    def close(self) -> None:
        """Close the connection; what was charged stays charged."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._connection.url!r})"


def _charge(charge: Any) -> dict[str, Any]:
    """A charge as a server reads it."""
    match charge:
        case LaplaceNoise() | GaussianNoise():
            noise = "laplace" if isinstance(charge, LaplaceNoise) else "gaussian"
            return {"noise": noise, "multiplier": charge.noise_multiplier}
        case ApproxDP():
            return {"epsilon": charge.epsilon, "delta": charge.delta}
        case (epsilon, delta):
            return {"epsilon": epsilon, "delta": delta}
        case int() | float() if not isinstance(charge, bool):
            return {"epsilon": charge}
        case _:
            raise InvalidValue(
                "charge",
                charge,
                "must be an epsilon, a pair or Laplace or Gaussian noise",
                "farthing.compose knows the other events, on this machine",
            )


def _table(name: str, facts: Any, most: int | None) -> dict[str, Any]:
    """One of several linked tables as a server reads it."""
    source, schema = table_facts(name, facts)
    columns = {column: _column(column, values) for column, values in schema.items()}
    return {"source": source, "columns": columns, **({} if most is None else {"max_rows": most})}


def _column(name: str, values: Any) -> dict[str, Any]:
    """A column of a schema as a server reads it."""
    # As in study.toml: {"categories": ["f", "m"], "trim": True, "lower": True}.
    if isinstance(values, Mapping):
        return dict(values)
    if values is bool:
        return {"flags": True}
    if (words := unknown_words(values)) is not None:
        return words
    if isinstance(values, tuple) and len(values) == 2:
        return {"range": list(values)}
    if isinstance(values, list) and values:
        return {"categories": values}
    raise InvalidValue(
        f"schema[{name!r}]",
        values,
        "must be a pair, a list of categories, bool or farthing.unknown(...)",
        'such as (0, 110) or ["F", "M"]',
    )


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidValue(name, value, "must be a text")
    return value
