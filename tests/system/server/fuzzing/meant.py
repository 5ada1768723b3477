"""What somebody who means well sends to each operation: one line for each, and a test that none is missing.

The generator knows the shapes that the description tells. It does not know which plan exists, which columns a table has
or what a good condition looks like, so that most of what it makes is refused at the door; these get further.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dataverse_server import launch_link
from publications import FORM
from system.server.fuzzing import drafts
from system.server.fuzzing.known import Known
from system.server.fuzzing.people import Way
from system.server.fuzzing.tables import BUDGET, DECLARED

V = "/api/v1"


@dataclass
class Wish:
    """A request: what stands in its path, its query and its body."""

    path: dict[str, Any] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True)
class Mind:
    """Who asks, what they know, and dice."""

    draw: random.Random
    known: Known
    way: Way
    user: str
    plain: bool  # nobody has got through yet: nothing that may be refused for a good reason

    def one(self, kind: str, owner: str | None = None, otherwise: str = "none-such") -> str:
        """One of the ids of a kind: one's own unless told."""
        found = self.known.all(kind, self.user if owner is None else owner)
        return self.draw.choice(found) if found else otherwise

    def dispensable(self, kind: str, owner: str | None = None) -> str:
        """One that may go."""
        return self.known.dispensable(kind, self.user if owner is None else owner)

    def dataset(self) -> str:
        return self.one("own dataset" if self.draw.random() < 0.2 else "dataset", "", "people")

    def loose_dataset(self) -> str:
        """One whose budget may be changed without taking it from other cases."""
        return self.one("own dataset", "", "spare") if self.draw.random() < 0.5 else "spare"

    def release(self) -> str:
        """One's own; whoever may see everything also looks at others'."""
        if self.way.role != "analyst" and self.draw.random() < 0.5:
            return self.one("release", "analyst", self.one("release", "curator"))
        return self.one("release", otherwise=self.one("release", "curator"))

    def draft(self, dataset: str | None = None) -> dict[str, Any]:
        if self.plain:
            return {"dataset": "people", "statistics": [{"kind": "count", "by": "sex"}], "epsilon": 0.1}
        return drafts.draft(self.draw, dataset)

    def amount(self) -> dict[str, Any]:
        epsilon = self.draw.choice((0.0, 0.5, 1, 7.25))
        return {"epsilon": epsilon} if self.draw.random() < 0.3 else {"epsilon": epsilon, "delta": 1e-7}

    def proof(self) -> dict[str, Any]:
        return self.draw.choice(({}, {"proof": "false"}, {"proof": "true"}))


def _nothing(_: Mind) -> Wish:
    return Wish()


def _login(mind: Mind) -> Wish:
    mind.known.people.forget_attempts()
    user = mind.draw.choice(("expendable", "curator.mover", "Analyst.mover"))
    return Wish(body={"user": user, "password": mind.known.people.passwords.get(user.lower(), "gone")})


def _password(mind: Mind) -> Wish:
    mind.known.people.forget_attempts()
    fresh = mind.known.people.canaries.secret("password", secrets.token_urlsafe(18))
    return Wish(body={"old": mind.known.people.passwords.get(mind.user, "none"), "new": fresh})


def _new_user(mind: Mind) -> Wish:
    password = mind.known.people.canaries.secret("password", secrets.token_urlsafe(18))
    made: dict[str, Any] = {
        "name": mind.known.fresh(),
        "role": mind.draw.choice(("curator", "analyst", "auditor")),
    }
    if mind.draw.random() < 0.7:
        made["password"] = password
    if mind.draw.random() < 0.3:
        made["oidc_subject"] = mind.known.fresh()
    return Wish(body=made)


def _changed_user(mind: Mind) -> Wish:
    change = mind.draw.choice(
        ({"role": "auditor"}, {"disabled": True}, {"disabled": False}, {"oidc_subject": None}, {})
    )
    return Wish({"name": mind.one("person", "")}, body=dict(change))


def _new_token(mind: Mind) -> Wish:
    scopes = mind.draw.sample(sorted(mind.way.scopes), 1) if mind.way.scopes else ["read"]
    return Wish(body={"label": "für später", "scopes": scopes, "days": mind.draw.randrange(1, 366)})


def _link(mind: Mind) -> Wish:
    return Wish(query={"token": mind.known.people.link("expendable")} if mind.draw.random() < 0.7 else {})


def _sources(mind: Mind) -> Wish:
    only = mind.draw.choice((None, "people.csv", "visits.parquet", "broken.csv", "registry"))
    return Wish(query={} if only is None or mind.plain else {"only": only})


def _new_dataset(mind: Mind) -> Wish:
    """Another name for a table whose budget may be changed: it has an account, and needs none."""
    name = mind.known.fresh()
    if mind.plain:
        words = {key: value for key, value in DECLARED["spare"].items() if key not in BUDGET}
        return Wish(body={"name": name, **words})
    return Wish(body=drafts.declaration(mind.draw, name))


def _check(mind: Mind) -> Wish:
    made = drafts.declaration(mind.draw, mind.known.fresh())
    if mind.draw.random() < 0.4:
        made["columns"] = {}
    if mind.draw.random() < 0.2 and not mind.plain:
        made["source"] = mind.draw.choice(("registry", "broken.csv"))
    return Wish(body=made)


def _grant(mind: Mind) -> Wish:
    user = "expendable" if mind.plain or mind.draw.random() < 0.5 else mind.one("person", "")
    return Wish({"name": mind.loose_dataset(), "user": user}, body=mind.amount())


def _correction(*, check: bool) -> Callable[[Mind], Wish]:
    """A higher bound than anybody asked for, of a dataset that other cases do not need as it is."""

    def wish(mind: Mind) -> Wish:
        age = {"range": [0, mind.draw.choice((112, 115, 120, 125))]}
        words: dict[str, Any] = {"columns": {"age": age}} | ({} if check else {"reason": "some are older, über 110"})
        return Wish({"name": "spare" if mind.plain else mind.loose_dataset()}, body=words)

    return wish


def _next_period(mind: Mind) -> Wish:
    month = f"20{mind.draw.randrange(10, 26)}-{mind.draw.randrange(1, 13):02d}"
    return Wish({"name": "monthly"}, body={"name": mind.known.fresh(), "period": month})


def _parts(mind: Mind) -> Wish:
    if mind.plain:
        return Wish({"name": "visits"}, body={"by": "kind", "epsilon": 0.001})  # a row is its unit
    amount = mind.draw.choice((0.001, 0.002, 5.0))
    return Wish({"name": mind.loose_dataset()}, body={"by": mind.draw.choice(("sex", "age")), "epsilon": amount})


def _reserve(mind: Mind) -> Wish:
    label = mind.draw.choice(("next year", "x"))
    if mind.plain:
        return Wish({"name": "torn", "label": label}, body={"epsilon": 1.0, "delta": 1e-7})
    return Wish({"name": mind.loose_dataset(), "label": label}, body=mind.amount())


def _plan_change(mind: Mind) -> Wish:
    plan = mind.one("plan")
    body, version = mind.known.drafts.get(plan, ({"dataset": "people"}, 1))
    return Wish({"id": plan}, mind.proof(), {**mind.draft(body["dataset"]), "version": version})


def _plan_save(mind: Mind) -> Wish:
    made = mind.draft()
    study = mind.one(f"study of {made['dataset']}", otherwise="")
    return Wish(query=mind.proof(), body=made | ({"study": study} if study and mind.draw.random() < 0.5 else {}))


def _release(mind: Mind) -> Wish:
    name = mind.known.fresh()
    first = not mind.known.all("release", mind.user)
    what: dict[str, Any] = {"draft": mind.draft("people" if first else None)}
    if mind.draw.random() < 0.3 and mind.known.all("plan", mind.user):
        what = {"plan": mind.one("plan")}
    if mind.draw.random() < 0.2 and not first:
        what["confirmed_epsilon"] = mind.draw.choice((0.001, 5.0))
    return Wish(body={**what, "request_id": name, "wait": 20.0})


def _row_count(mind: Mind) -> Wish:
    body = {"request_id": mind.known.fresh(), "share": 0.01, "wait": 20.0}
    return Wish({"name": "people" if mind.plain else mind.dataset()}, body=body)  # of visits the number is public


def _discovery(mind: Mind) -> Wish:
    """How many rows people have: that can be asked of a table whose columns are all known. Visits name nobody."""
    body = {"rows_per_unit": True, "epsilon": 0.01}
    return Wish({"name": "people" if mind.plain else mind.dataset()}, body=body)


def _search(mind: Mind) -> Wish:
    wish = _discovery(mind)
    return Wish(wish.path, body={**wish.body, "request_id": mind.known.fresh(), "wait": 20.0})


def _session(mind: Mind) -> Wish:
    return Wish(body={**drafts.session(mind.draw), "request_id": mind.known.fresh(), "wait": 20.0})


def _series(mind: Mind) -> dict[str, Any]:
    """Counts of a year that is long over: some of its months can be released."""
    body: dict[str, Any] = {"dataset": "people", "date": "joined", "steps": 12, "first": "2020-01", "epsilon": 0.5}
    if mind.plain:
        return body
    more: dict[str, Any] = mind.draw.choice(({}, {"append_only": True}, {"by": ["sex"]}, {"where": "age >= 18"}))
    return body | more


def _open_series(mind: Mind) -> Wish:
    return Wish(body={**_series(mind), "request_id": mind.known.fresh(), "wait": 20.0})


def _table(mind: Mind) -> dict[str, Any]:
    """A synthetic table of a column or two, as often as not in words that were sent before."""
    body: dict[str, Any] = {"dataset": "people", "columns": ["sex"], "epsilon": 0.01}
    if mind.plain:
        return body
    more = mind.draw.choice(
        ({}, {"missing": False}, {"columns": ["sex", "joined"], "bins": {"joined": 4}}, {"known": []})
    )
    return body | more


def _make_table(mind: Mind) -> Wish:
    return Wish(body={**_table(mind), "request_id": mind.known.fresh(), "wait": 20.0})


def _ask(mind: Mind) -> Wish:
    session = mind.one("session")
    opened = mind.known.asked.get(session, {"dataset": "people", "columns": ["sex"]})
    return Wish(
        {"id": session},
        body={"question": drafts.condition(mind.draw, opened["dataset"], opened.get("columns"))},
    )


def _download(mind: Mind) -> Wish:
    kind = mind.draw.choice(("csv", "json", "html", "python", "receipt"))
    return Wish({"request_id": mind.release()}, {"format": kind})


def _publication(mind: Mind) -> Wish:
    return Wish({"request_id": mind.release()}, body=FORM)


def _deposit(mind: Mind) -> Wish:
    people = mind.known.people
    place = {"dataverse": people.archive, "collection": "birds", "token": people.archive_token}
    return Wish({"request_id": mind.release()}, body={"publication": FORM, **place})


def _entries(mind: Mind) -> Wish:
    query = {"limit": mind.draw.choice((1, 7, 1000)), "since": mind.draw.choice((0, 3, 50))}
    more = mind.draw.choice(({}, {"dataset": "people"}, {"newest": "true"}))
    return Wish(query=query | more)


def _compose(mind: Mind) -> Wish:
    charge = mind.draw.choice(
        ({"epsilon": 0.1, "count": 20}, {"epsilon": 0.2, "delta": 1e-8}, {"noise": "gaussian", "multiplier": 4.0},
         {"noise": "laplace", "multiplier": 10.0, "count": 3})
    )  # fmt: skip
    return Wish(body={"charges": [charge], "delta": mind.draw.choice((1e-6, 0.01))})


def _regions(mind: Mind) -> Wish:
    return Wish(body={"k": mind.draw.randrange(1, 30), "epsilon": 0.1, "delta": 0.001, "at_delta": 0.1})


def _play(mind: Mind) -> Wish:
    charges = [{"epsilon": 0.2}, {"noise": "gaussian", "multiplier": 4.0}][: mind.draw.randrange(3)]
    return Wish(body={"charges": charges, "seed": mind.draw.randrange(100), "finished": mind.draw.random() < 0.5})


def _new_request(mind: Mind) -> Wish:
    purpose = mind.draw.choice(("a talk", "table 4, für das Jahrbuch"))
    return Wish(body={"draft": mind.draft("people" if mind.plain else None), "purpose": purpose})


def _decided(body: dict[str, Any] | None, *, own: bool = False) -> Callable[[Mind], Wish]:
    """About the newest request that waits: one's own, or anybody's."""

    def wish(mind: Mind) -> Wish:
        owner = mind.user if own else ""
        if not mind.known.all("request", owner):
            mind.known.dispensable("request", owner)
        known = mind.plain or mind.draw.random() < 0.7
        return Wish({"id": mind.known.all("request", owner)[-1] if known else "999999"}, body=body)

    return wish


def _changed_request(mind: Mind) -> Wish:
    return _decided({"draft": {**mind.draft(), "dataset": "people"}, "reason": "less will do"})(mind)


def _policy(mind: Mind) -> Wish:
    user = "expendable" if mind.plain or mind.draw.random() < 0.5 else mind.one("person", "")
    body = {**mind.amount(), "per": mind.draw.choice(("week", "quarter")), "statistics": ["count"], "columns": ["sex"]}
    return Wish({"name": "people" if mind.plain else mind.loose_dataset(), "user": user}, body=body)


def _goes(kind: str) -> Callable[[Mind], Wish]:
    return lambda mind: Wish({"id": mind.dispensable(kind)})


MEANT: dict[tuple[str, str], Callable[[Mind], Wish]] = {
    ("GET", "/healthz"): _nothing,
    ("GET", "/readyz"): _nothing,
    ("GET", "/metrics"): _nothing,
    ("GET", "/login"): _link,
    ("GET", "/oidc/start"): _nothing,
    ("GET", "/oidc/callback"): lambda mind: Wish(query={"code": "c" * 20, "state": mind.known.fresh()}),
    ("GET", f"{V}/sign-in"): _nothing,
    ("POST", f"{V}/login"): _login,
    ("POST", f"{V}/logout"): _nothing,
    ("GET", f"{V}/me"): _nothing,
    ("POST", f"{V}/password"): _password,
    ("GET", f"{V}/users"): _nothing,
    ("POST", f"{V}/users"): _new_user,
    ("PATCH", f"{V}/users/{{name}}"): _changed_user,
    ("DELETE", f"{V}/users/{{name}}"): lambda mind: Wish({"name": mind.dispensable("person", "")}),
    ("GET", f"{V}/tokens"): _nothing,
    ("POST", f"{V}/tokens"): _new_token,
    ("DELETE", f"{V}/tokens/{{id}}"): _goes("token"),
    ("GET", f"{V}/sources"): _sources,
    ("GET", f"{V}/datasets"): _nothing,
    ("POST", f"{V}/datasets"): _new_dataset,
    ("POST", f"{V}/datasets/check"): _check,
    ("GET", f"{V}/datasets/{{name}}"): lambda mind: Wish({"name": mind.dataset()}),
    ("GET", f"{V}/datasets/{{name}}/budget"): lambda mind: Wish({"name": mind.dataset()}),
    ("PUT", f"{V}/datasets/{{name}}/budget"): lambda mind: Wish({"name": mind.loose_dataset()}, body=mind.amount()),
    ("POST", f"{V}/datasets/{{name}}/rows"): _row_count,
    ("POST", f"{V}/datasets/{{name}}/discoveries/price"): _discovery,
    ("POST", f"{V}/datasets/{{name}}/discoveries"): _search,
    ("POST", f"{V}/datasets/{{name}}/corrections/check"): _correction(check=True),
    ("POST", f"{V}/datasets/{{name}}/corrections"): _correction(check=False),
    ("POST", f"{V}/datasets/{{name}}/periods"): _next_period,
    ("POST", f"{V}/datasets/{{name}}/parts/price"): _parts,
    ("POST", f"{V}/datasets/{{name}}/parts"): _parts,
    ("PUT", f"{V}/datasets/{{name}}/grants/{{user}}"): _grant,
    ("PUT", f"{V}/datasets/{{name}}/reserves/{{label}}"): _reserve,
    ("GET", f"{V}/studies"): _nothing,
    ("POST", f"{V}/studies"): lambda mind: Wish(
        body={"dataset": mind.draw.choice(("people", "visits", "spare")), "title": "a study, 1 ü"}
    ),
    ("GET", f"{V}/studies/{{id}}"): lambda mind: Wish({"id": mind.one("study")}),
    ("DELETE", f"{V}/studies/{{id}}"): _goes("study"),
    ("POST", f"{V}/plans/price"): lambda mind: Wish(query=mind.proof(), body=mind.draft()),
    ("POST", f"{V}/sql"): lambda mind: Wish(
        body={"dataset": "people", "sql": f"SELECT COUNT(*) FROM people WHERE age > {mind.draw.randrange(90)}"}
    ),
    ("GET", f"{V}/plans"): lambda mind: Wish(query=mind.draw.choice(({}, {"dataset": "people"}))),
    ("POST", f"{V}/plans"): _plan_save,
    ("GET", f"{V}/plans/{{id}}"): lambda mind: Wish({"id": mind.one("plan")}, mind.proof()),
    ("PUT", f"{V}/plans/{{id}}"): _plan_change,
    ("DELETE", f"{V}/plans/{{id}}"): _goes("plan"),
    ("GET", f"{V}/releases"): lambda mind: Wish(query=mind.draw.choice(({}, {"dataset": "people"}))),
    ("POST", f"{V}/releases"): _release,
    ("GET", f"{V}/releases/{{request_id}}"): lambda mind: Wish({"request_id": mind.release()}),
    ("GET", f"{V}/releases/{{request_id}}/events"): lambda mind: Wish({"request_id": mind.release()}),
    ("GET", f"{V}/releases/{{request_id}}/table"): lambda mind: Wish({"request_id": mind.release()}),
    ("GET", f"{V}/releases/{{request_id}}/download"): _download,
    ("POST", f"{V}/releases/{{request_id}}/publication/preview"): _publication,
    ("POST", f"{V}/releases/{{request_id}}/publication"): _publication,
    ("GET", f"{V}/publishing"): _nothing,
    ("POST", f"{V}/launches"): lambda mind: Wish(body={"callback": launch_link(mind.known.people.archive)}),
    ("GET", f"{V}/releases/{{request_id}}/deposits"): lambda mind: Wish({"request_id": mind.release()}),
    ("POST", f"{V}/releases/{{request_id}}/deposits"): _deposit,
    ("POST", f"{V}/sessions/price"): lambda mind: Wish(body=drafts.session(mind.draw)),
    ("GET", f"{V}/sessions"): _nothing,
    ("POST", f"{V}/sessions"): _session,
    ("GET", f"{V}/sessions/{{id}}"): lambda mind: Wish({"id": mind.one("session")}, {"limit": 3}),
    ("POST", f"{V}/sessions/{{id}}/ask"): _ask,
    ("POST", f"{V}/series/price"): lambda mind: Wish(body=_series(mind)),
    ("GET", f"{V}/series"): lambda mind: Wish(query=mind.draw.choice(({}, {"dataset": "people"}))),
    ("POST", f"{V}/series"): _open_series,
    ("GET", f"{V}/series/{{id}}"): lambda mind: Wish({"id": mind.one("series")}),
    ("POST", f"{V}/series/{{id}}/release"): lambda mind: Wish({"id": mind.one("series")}, body={"until": "2020-03"}),
    ("POST", f"{V}/synthetic-tables/price"): lambda mind: Wish(body=_table(mind)),
    ("GET", f"{V}/synthetic-tables"): lambda mind: Wish(query=mind.draw.choice(({}, {"dataset": "people"}))),
    ("POST", f"{V}/synthetic-tables"): _make_table,
    ("GET", f"{V}/synthetic-tables/{{id}}"): lambda mind: Wish({"id": mind.one("synthetic table")}),
    ("GET", f"{V}/synthetic-tables/{{id}}/download"): lambda mind: Wish(
        {"id": mind.one("synthetic table")}, {"format": mind.draw.choice(("csv", "json", "html")), "rows": 7}
    ),
    ("GET", f"{V}/requests"): lambda mind: Wish(query=mind.draw.choice(({}, {"dataset": "people"}, {"state": "open"}))),
    ("POST", f"{V}/requests"): _new_request,
    ("GET", f"{V}/requests/{{id}}"): _decided(None),
    ("POST", f"{V}/requests/{{id}}/approve"): _decided({"version": 1, "expires": "2035-12-31"}),
    ("POST", f"{V}/requests/{{id}}/change"): _changed_request,
    ("POST", f"{V}/requests/{{id}}/decline"): _decided({"reason": "not this year"}),
    ("POST", f"{V}/requests/{{id}}/withdraw"): _decided(None, own=True),
    ("GET", f"{V}/policies"): lambda mind: Wish(query=mind.draw.choice(({}, {"dataset": "people"}))),
    ("PUT", f"{V}/datasets/{{name}}/policies/{{user}}"): _policy,
    ("GET", f"{V}/ledger"): _nothing,
    ("GET", f"{V}/ledger/entries"): _entries,
    ("GET", f"{V}/ledger/releases"): lambda mind: Wish(
        query=mind.draw.choice(({}, {"dataset": "people"}, {"limit": 3}))
    ),
    ("POST", f"{V}/ledger/verify"): lambda mind: Wish(body={"receipt": mind.draw.choice(mind.known.receipts)}),
    ("GET", f"{V}/ledger/burn-down"): lambda mind: Wish(query={"dataset": mind.draw.choice(("people", "visits"))}),
    ("GET", f"{V}/ledger/export"): _nothing,
    ("POST", f"{V}/compose"): _compose,
    ("POST", f"{V}/regions"): _regions,
    ("POST", f"{V}/play"): _play,
    ("POST", f"{V}/rivals"): lambda mind: Wish(body=mind.draw.choice(({}, {"fixed": {"epsilon": 0.2, "count": 5}}))),
    ("POST", f"{V}/simulate"): lambda mind: Wish(
        body={"first": {"epsilon": 1.0}, "second": {"P": ["1/2", "0.5"], "Q": ["1/4", "0.75"]}}
    ),
    ("POST", f"{V}/partitions"): lambda mind: Wish(body={"integers": [2, 3, mind.draw.randrange(1, 9)]}),
}
