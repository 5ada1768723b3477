"""The tables of the server's store. Times are whole nanoseconds since 1970 (UTC); JSON is kept as text."""

from __future__ import annotations

import sqlalchemy as sa

SCHEMA = "farthing_server"  # on PostgreSQL; in a file of its own there is no schema

metadata = sa.MetaData(schema=SCHEMA)


def _text(name: str, **how: bool) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=how.pop("nullable", False), **how)  # type: ignore[arg-type]


def _time(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


users = sa.Table(
    "users",
    metadata,
    _text("name", primary_key=True),
    _text("role"),
    _text("password_hash", nullable=True),
    _text("oidc_subject", nullable=True, unique=True),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    _time("created"),
)
tokens = sa.Table(
    "tokens",
    metadata,
    _text("id", primary_key=True),
    _text("user", index=True),
    _text("label"),
    _text("hash", unique=True),
    _text("scopes"),  # separated by blanks
    _time("expires"),
    _time("created"),
    _time("revoked", nullable=True),
)
logins = sa.Table(
    "logins",
    metadata,
    _text("hash", primary_key=True),
    _text("user", index=True),
    _text("csrf_hash"),
    _time("expires"),
    _text("via"),
)
links = sa.Table(
    "links",
    metadata,
    _text("hash", primary_key=True),
    _text("user"),
    _time("expires"),
    _time("used", nullable=True),
)
attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    _text("key"),
    _time("at"),
    sa.Index("attempts_of_key", "key", "at"),
)
oidc_flows = sa.Table(
    "oidc_flows",
    metadata,
    _text("state_hash", primary_key=True),
    _text("nonce"),
    _text("verifier"),
    _time("expires"),
)
declarations = sa.Table(
    "declarations",
    metadata,
    _text("name", primary_key=True),
    _text("body"),
    _text("created_by"),
    _time("created"),
)
studies = sa.Table(
    "studies",
    metadata,
    _text("id", primary_key=True),
    _text("owner", index=True),
    _text("dataset"),
    _text("title"),
    _time("created"),
)
drafts = sa.Table(
    "drafts",
    metadata,
    _text("id", primary_key=True),
    _text("owner", index=True),
    _text("dataset"),
    _text("study", nullable=True),
    _text("body"),
    sa.Column("version", sa.Integer, nullable=False),
    _time("created"),
    _time("changed"),
)
jobs = sa.Table(
    "jobs",
    metadata,
    _text("id", primary_key=True),  # the request id in the ledger
    _text("owner", index=True),
    _text("role"),
    _text("kind"),
    _text("body"),
    _text("state"),
    sa.Column("progress", sa.Float, nullable=False, default=0.0),
    _time("heartbeat", nullable=True),
    _text("worker", nullable=True),
    _text("error", nullable=True),
    _time("created"),
    _time("changed"),
    sa.Index("jobs_by_state", "state", "created"),
)
asked = sa.Table(
    "asked",
    metadata,
    _text("session", primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    _text("owner"),
    _text("question"),
    _text("answer"),
    _time("at"),
)
deposits = sa.Table(
    "deposits",
    metadata,
    _text("release", primary_key=True),  # the request id in the ledger
    _text("dataverse", primary_key=True),  # the address of the server
    _text("owner"),
    _text("asked"),  # the details and the plan; never a token
    _text("persistent_id"),
    _text("digest"),
    _text("noted"),  # how far the deposit itself says that it is
    _text("state"),
    _text("steps"),
    _text("error", nullable=True),
    _text("runner"),
    _time("heartbeat"),
    _time("created"),
)
