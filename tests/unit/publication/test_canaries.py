"""Nothing that must stay at home is in a published byte: paths, addresses, passwords, keys, rows, other accounts."""

from __future__ import annotations

import io
import secrets
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.publication.bundle_reader import read_bundle
from farthing.study.documents.study_file import read_study
from publications import FORM

pytestmark = pytest.mark.slow
STUDY = """\
[dataset]
source = "{source}"                # a comment with {comment}
unit = "person"
max_rows = 2
[schema]
sex = {{ categories = ["F", "M"] }}
age = {{ range = [0, 110] }}
[study]
epsilon = 1.0
plan_epsilon = 0.5
ledger = "{ledger}"
account = "patients"
[expected]
rows = 300
[[statistics]]
kind = "count"
by = "sex"
[[statistics]]
kind = "mean"
column = "age"
"""


def test_no_path_row_key_or_comment_is_published(tmp_path: Path) -> None:
    """Canaries are drawn at run time, so that no search finds them in this file."""
    canary = {
        name: f"{name}{secrets.token_hex(8)}" for name in ("folder", "table", "ledger", "comment", "person", "extra")
    }
    home = tmp_path / canary["folder"]
    home.mkdir()
    rng = np.random.default_rng(3)
    columns = {
        "person": [f"{canary['person']}-{number}" for number in range(150) for _ in range(2)],
        "sex": np.where(rng.random(300) < 0.5, "F", "M"),
        "age": rng.integers(0, 110, 300),
        canary["extra"]: [canary["person"]] * 300,
    }
    pq.write_table(pa.table(columns), home / f"{canary['table']}.parquet")
    words = {"source": f"{canary['table']}.parquet", "ledger": f"{canary['ledger']}.db", "comment": canary["comment"]}
    (home / "study.toml").write_text(STUDY.format(**words), encoding="utf-8")
    asked = read_study(home / "study.toml")
    study = asked.study()
    study.ledger.register("another-account-of-the-ledger", epsilon=1.0)
    release = asked.plan(study).release()
    assert canary["comment"] in release.plan["code"]  # what is kept with the answers does have it
    bundle = release.publish(tmp_path / "bundle.zip", FORM)
    key = (home / f"{canary['ledger']}.db.key").read_text().strip()
    study.close()
    secret = [
        *canary.values(),
        release.request_id,
        str(tmp_path),
        key,
        bytes.fromhex(key).decode("latin-1"),
        "another-account",
        "/tmp/",
    ]
    files = read_bundle(bundle)
    files["the archive itself"] = bundle.read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        files["comments"] = archive.comment + b"".join(one.comment + one.extra for one in archive.infolist())
    leaks = [(name, word) for name, content in files.items() for word in secret if _holds(content, word)]
    assert leaks == []
    assert _holds(files["release.json"], "patients")  # the search finds what is there


def _holds(content: bytes, word: str) -> bool:
    texts = {word.encode(), word.encode("utf-16-le"), word.encode().hex().encode()}
    if any(text in content for text in texts):
        return True
    if content[:4] == b"PAR1":  # its metadata has texts of its own
        held = pq.read_table(io.BytesIO(content))
        return word in str(held.to_pylist()) or word in str(held.schema.metadata)
    return False
