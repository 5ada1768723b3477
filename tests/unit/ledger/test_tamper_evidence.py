"""The key file: made once, kept secret, never replaced, never guessed."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from farthing.errors import InvalidValue, LedgerTampered, LedgerUnavailable
from farthing.ledger import open_ledger
from farthing.ledger.tamper_evidence import (
    KEY_FILE_VARIABLE,
    default_key_file,
    given_key,
    made_key,
    needed_key,
    read_key,
)


def test_a_key_is_32_random_bytes_that_only_the_owner_may_read(tmp_path: Path) -> None:
    key = made_key(tmp_path / "deep" / "a.key")
    assert len(key) == 32 and key != made_key(tmp_path / "b.key")
    assert stat.S_IMODE((tmp_path / "deep" / "a.key").stat().st_mode) == 0o600
    assert made_key(tmp_path / "deep" / "a.key") == key == needed_key(tmp_path / "deep" / "a.key")
    assert os.listdir(tmp_path / "deep") == ["a.key"]


def test_of_many_makers_at_once_one_wins(tmp_path: Path) -> None:
    keys: list[bytes] = []
    makers = [threading.Thread(target=lambda: keys.append(made_key(tmp_path / "a.key"))) for _ in range(16)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert len(keys) == 16 and len(set(keys)) == 1


def test_a_missing_or_spoilt_key_is_refused_with_the_way_out(tmp_path: Path) -> None:
    assert read_key(tmp_path / "a.key") is None
    with pytest.raises(LedgerUnavailable, match=f"restore it from your copy.*{KEY_FILE_VARIABLE}"):
        needed_key(tmp_path / "a.key")
    for spoilt in ("", "zz", "ab" * 31, "é"):
        (tmp_path / "a.key").write_text(spoilt, encoding="utf-8")
        with pytest.raises(LedgerUnavailable, match="restore it from your copy"):
            needed_key(tmp_path / "a.key")
        with pytest.raises(LedgerUnavailable):  # and it is not replaced
            made_key(tmp_path / "a.key")


def test_a_given_key_is_never_shown() -> None:
    with pytest.raises(InvalidValue) as error:
        given_key(b"secret")
    assert "secret" not in str(error.value)
    with pytest.raises(InvalidValue) as error:  # in words and not in bytes, it would pass for a path
        given_key("5ec2e7" * 11)
    assert "5ec2e7" not in str(error.value)
    with pytest.raises(InvalidValue):
        given_key(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        given_key("")


def test_the_default_place_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_key_file("l") == tmp_path / "farthing" / "l.key"
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(tmp_path / "k"))
    assert default_key_file("l") == tmp_path / "k"


def test_a_ledger_opens_with_its_own_key_only(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    open_ledger(path).close()
    key = read_key(tmp_path / "study.db.key")
    assert key is not None
    with open_ledger(path, key=key) as ledger:
        assert ledger.verify().ok
    with pytest.raises(LedgerTampered, match="the key is not this ledger's"):
        open_ledger(path, key=bytes(32))
    (tmp_path / "study.db.key").rename(tmp_path / "elsewhere")
    with pytest.raises(LedgerUnavailable, match="missing"):
        open_ledger(path)
    open_ledger(path, key=tmp_path / "elsewhere").close()


def test_a_key_that_everybody_can_read_is_noted(tmp_path: Path) -> None:
    for mode, notes in ((0o600, 0), (0o640, 0), (0o644, 1)):
        with open_ledger(tmp_path / "study.db") as ledger:
            os.chmod(tmp_path / "study.db.key", mode)
            assert ledger.verify().notes == ()
        with open_ledger(tmp_path / "study.db") as ledger:
            found = ledger.verify()
        assert found.ok and len(found.notes) == notes
    assert "open to every user" in found.notes[0]
