"""Strategies on disk: found once, and whatever a file holds, it can only be read as public whole weights."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from farthing.matrix.strategies import Norm, Strategy, strategy_cache
from farthing.matrix.strategies.optimisation import workload_optimum
from farthing.matrix.strategies.optimisation.workload_optimum import optimised
from farthing.matrix.workloads import prefix

WORKLOAD = prefix(20)


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FARTHING_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(workload_optimum, "_MEMORY", {})
    return tmp_path / "kept" / "strategies"


def fresh(norm: Norm = "l1") -> Strategy:
    """As another process would do it."""
    workload_optimum._MEMORY.clear()
    return optimised(WORKLOAD, norm)


def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def searching(*_: object, **__: object) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr(workload_optimum, "_searched", searching)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_strategy_is_found_once(norm: Norm, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fresh(norm)
    assert len(list(place.iterdir())) == 1
    no_search(monkeypatch)
    again = fresh(norm)
    assert np.array_equal(again.matrix, first.matrix)  # type: ignore[attr-defined]
    assert again.levels == first.levels


def test_the_tree_is_remembered_where_it_won(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(workload_optimum, "best_for_laplace", failing)
    first = fresh()
    no_search(monkeypatch)
    assert fresh().levels == first.levels


def test_norms_workloads_and_versions_are_kept_apart(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh("l1")
    fresh("l2")
    optimised(prefix(21), "l1")
    monkeypatch.setattr(workload_optimum, "VERSION", workload_optimum.VERSION + 1)
    fresh("l1")
    assert len(list(place.iterdir())) == 4


def test_what_was_found_in_a_hurry_is_not_kept(place: Path) -> None:
    optimised(prefix(300), "l1", seconds=0.0)
    assert not place.exists()


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for at in range(0, len(content), 7):
        content[at] ^= 0x5A
    path.write_bytes(bytes(content))


def _pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps({"own": [1, 2, 3]}))


def _objects(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, key=np.array(path.stem), own=np.array([object()], dtype=object))


def _another_key(path: Path) -> None:
    arrays = dict(np.load(path))
    arrays["key"] = np.array("0" * 64)
    np.savez(path, **arrays)


def _fractions(path: Path) -> None:
    arrays = dict(np.load(path))
    arrays["own"] = arrays["own"].astype(float)
    np.savez(path, **arrays)


def _a_cell_less(path: Path) -> None:
    arrays = dict(np.load(path))
    arrays["own"] = arrays["own"][1:]
    np.savez(path, **arrays)


def _no_weight(path: Path) -> None:
    arrays = dict(np.load(path))
    arrays["own"] = np.zeros_like(arrays["own"])
    np.savez(path, **arrays)


def _outside(path: Path) -> None:
    arrays = dict(np.load(path))
    arrays["stops"] = arrays["stops"] + 1000
    np.savez(path, **arrays)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "spoil",
    [
        _truncated,
        _flipped,
        _pickled,
        _objects,
        _another_key,
        _fractions,
        _a_cell_less,
        _no_weight,
        _outside,
        _empty,
    ],
    ids=lambda spoil: spoil.__name__,
)
def test_a_file_that_is_no_strategy_is_ignored_and_replaced(spoil: object, place: Path) -> None:
    first = fresh()
    (path,) = place.iterdir()
    sound = path.read_bytes()
    spoil(path)  # type: ignore[operator]
    assert fresh().levels == first.levels
    assert path.read_bytes() == sound


def test_planted_weights_cost_accuracy_and_no_privacy(place: Path) -> None:
    """What is read decides what is measured, and the sensitivity is always that of what is measured."""
    fresh()
    (path,) = place.iterdir()
    arrays = dict(np.load(path))
    arrays["own"] = arrays["own"] * 5
    np.savez(path, **arrays)
    planted = fresh()
    columns = [planted.exact(unit)[0] for unit in np.eye(20, dtype=np.int64)]
    assert planted.levels[0].l1 == max(int(np.abs(column).sum()) for column in columns)


def test_off_keeps_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARTHING_CACHE", "off")
    fresh()
    assert not place.exists() and strategy_cache.folder() is None
    assert strategy_cache.store("0" * 64, {}) is False and strategy_cache.load("0" * 64) is None


def test_a_place_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FARTHING_CACHE", str(tmp_path / "file"))
    assert fresh().levels[0].size > 20


def test_a_write_that_breaks_off_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "replace", breaking)
    fresh()
    assert list(place.iterdir()) == []


@pytest.mark.slow
def test_many_at_once_read_and_write_the_same_strategy() -> None:
    key = strategy_cache.key_of("test")
    arrays: strategy_cache.Arrays = {"own": np.arange(50_000, dtype=np.int32)}

    def use(_: int) -> bool:
        strategy_cache.store(key, arrays)
        held = strategy_cache.load(key)
        return held is not None and np.array_equal(held["own"], arrays["own"])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(64)))


def test_the_users_cache_is_where_the_platform_keeps_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FARTHING_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert strategy_cache.folder() == tmp_path / "farthing" / "strategies"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    folders = {}
    for platform in ("linux", "darwin", "win32"):
        monkeypatch.setattr("sys.platform", platform)
        monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
        folders[platform] = strategy_cache.folder()
    assert folders["linux"] == tmp_path / ".cache" / "farthing" / "strategies"
    assert folders["darwin"] == tmp_path / "Library" / "Caches" / "farthing" / "strategies"
    assert folders["win32"] == tmp_path / "local" / "farthing" / "strategies"


def test_a_small_file_that_unpacks_to_a_huge_one_is_not_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = np.zeros(2**18)
    assert strategy_cache.store("bomb", {"cells": cells})
    assert strategy_cache.load("bomb") is not None
    monkeypatch.setattr(strategy_cache, "_LARGEST_FILE", 2**20)
    np.savez_compressed(place / "bomb.npz", key=np.array("bomb"), cells=cells)
    assert (place / "bomb.npz").stat().st_size < 2**20 < cells.nbytes
    assert strategy_cache.load("bomb") is None
