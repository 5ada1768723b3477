"""Tables of a Postgres server that a data folder names: opened by that name, planned and released, never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import farthing as ft
from backends.engine_under_test import DuckDBUnderTest, PostgresUnderTest, url
from farthing.data import Count, postgres_table
from farthing.errors import EngineError, InvalidValue
from farthing.study.documents.data_folder import ENGINES, DataFolder
from farthing.study.documents.dataset_declaration import declared_dataset, opened_sources


def test_a_named_table_of_postgres_is_a_dataset(
    postgres_server: dict[str, Any], postgres_engine: PostgresUnderTest, tmp_path: Path
) -> None:
    rows = pa.table({"age": list(range(60)), "weight": [70.5] * 60, "sex": ["F", "M"] * 30})
    table = postgres_engine.load(rows).get_name()
    address = url(postgres_server, "reader")
    (tmp_path / ENGINES).write_text(f'[registry]\nurl = "{address}"\ntable = "{table}"\n')
    folder = DataFolder(tmp_path)
    assert [(each.name, each.engine, each.columns) for each in folder.listed()] == [("registry", "postgres", ())]
    (described,) = folder.listed("registry")
    assert dict(described.columns) == {"age": "whole numbers", "weight": "real numbers", "sex": "categories"}
    source = folder.opened("registry")
    assert folder.opened("registry") is source
    columns = {"age": {"range": [0, 110]}, "weight": {"range": [0, 300]}, "sex": {"categories": ["F", "M"]}}
    made = declared_dataset("people", {"columns": columns}, source)
    assert made.engine == "postgres" and made.name == "people" and table not in str(made.stability())
    study = ft.Study(made, 20.0, ledger=str(tmp_path / "study.db"), account="people")
    release = study.plan(ft.count(by="sex")).release()
    assert all(abs(value - 30) < 5 for value in release["count by sex"].values)
    assert table not in release.to_json() and address not in release.to_json()
    study.close()


@pytest.mark.draws(false_alarm=0, miss=0)  # no unit has more rows than are kept
def test_linked_tables_of_one_address_share_a_connection(
    postgres_server: dict[str, Any], postgres_engine: PostgresUnderTest, tmp_path: Path
) -> None:
    persons = pa.table({"person_id": list(range(40)), "sex": ["F", "M"] * 20})
    visits = pa.table({"person_id": [str(n % 40) for n in range(80)], "ward": ["A", "B"] * 40})  # numbers lead to text
    address = url(postgres_server, "reader")
    (tmp_path / ENGINES).write_text(
        "".join(
            f'[{name}]\nurl = "{address}"\ntable = "{postgres_engine.load(rows).get_name()}"\n'
            for name, rows in (("people", persons), ("stays", visits))
        )
    )
    folder = DataFolder(tmp_path)
    facts = {
        "table": "visits",
        "unit": "persons.person_id",
        "tables": {
            "persons": {"source": "people", "columns": {"sex": {"categories": ["F", "M"]}}},
            "visits": {"source": "stays", "columns": {"ward": {"categories": ["A", "B"]}}, "max_rows": 2},
        },
        "keys": {"visits.person_id": "persons.person_id"},
        "steps": [{"join": "persons"}],
    }
    made = declared_dataset("stays", facts, opened_sources(facts, folder.opened))
    assert made.exact({"n": Count(by=["ward", "sex"])})["n"].tolist() == [[40, 0], [0, 40]]
    assert folder.opened("people").engine is folder.opened("stays").engine
    lost = folder.opened("people")
    lost.engine.backend.con.close()
    again = [folder.answering(name) for name in ("people", "stays")]  # both are opened again, in one connection
    assert again[0].engine is again[1].engine is not lost.engine
    # A table that is opened when the connection was lost: the others follow.
    again[0].engine.backend.con.close()
    folder._open.popitem()
    (fresh, *_) = [folder.opened(name) for name in ("stays", "people")]
    assert fresh.engine is folder.opened("people").engine and not fresh.engine.backend.con.closed


def test_a_table_is_opened_beside_another_of_the_same_address_only(
    postgres_server: dict[str, Any], postgres_engine: PostgresUnderTest
) -> None:
    name = postgres_engine.load(pa.table({"who": [1], "sex": ["F"]})).get_name()
    address = url(postgres_server, "reader")
    first = postgres_table(address, name)
    assert postgres_table(address, name, beside=first).get_backend() is first.get_backend()
    for here, there in (("://reader", "://owner"), (postgres_server["host"], "elsewhere"), ("registry", "postgres")):
        with pytest.raises(InvalidValue, match="must be at the same address"):
            postgres_table(address.replace(here, there), name, beside=first)
    with pytest.raises(InvalidValue, match="must be at the same address"):
        postgres_table(address, name, beside=DuckDBUnderTest().load(pa.table({"who": [1]})))
    with pytest.raises(InvalidValue, match="must be left out"):
        postgres_table(address, name, timeout=1.0, beside=first)
    two = [ft.table(postgres_table(address, name), schema={"sex": ["F"]}) for _ in range(2)]
    with pytest.raises(InvalidValue, match=r"beside=\.\.\."):
        ft.linked(a=two[0], b=two[1], unit="a.who", keys={"b.who": "a.who"})
    first.get_backend().con.close()
    with pytest.raises(EngineError, match="connection is gone"):
        postgres_table(address, name, beside=first)
