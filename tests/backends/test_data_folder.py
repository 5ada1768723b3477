"""Tables of a Postgres server that a data folder names: opened by that name, planned and released, never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import farthing as ft
from backends.engine_under_test import PostgresUnderTest, url
from farthing.study.documents.data_folder import ENGINES, DataFolder
from farthing.study.documents.dataset_declaration import declared_dataset


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
