"""Every workload against its own matrix, and the matrix against what its labels say."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InvalidValue
from farthing.matrix.workloads import (
    Workload,
    all_ranges,
    conjunctions,
    identity,
    marginals,
    prefix,
    product,
    ranges,
    total,
    union,
)

SHAPES = [(1,), (7,), (2, 3), (3, 1, 2)]


def intervals(size: int) -> st.SearchStrategy[Workload]:
    edges = st.lists(st.integers(0, size), min_size=2, max_size=2, unique=True).map(sorted)
    pairs = st.lists(edges, min_size=1, max_size=6)
    return st.one_of(
        st.sampled_from([prefix(size), all_ranges(size), identity(size), total(size)]),
        pairs.map(lambda listed: ranges(size, listed)),
    )


@st.composite
def workloads(draw: st.DrawFn, depth: int = 1) -> Workload:
    shape = draw(st.sampled_from(SHAPES))
    return draw(over(shape, depth))


def over(shape: tuple[int, ...], depth: int) -> st.SearchStrategy[Workload]:
    subsets = [s for k in range(len(shape) + 1) for s in itertools.combinations(range(len(shape)), k)]
    kinds: list[st.SearchStrategy[Workload]] = [
        st.tuples(*map(intervals, shape)).map(lambda factors: product(*factors)),
        st.lists(st.sampled_from(subsets), min_size=1, max_size=4).map(lambda chosen: marginals(shape, subsets=chosen)),
    ]
    if len(shape) == 1:
        kinds.append(intervals(shape[0]))
    if depth:
        parts = st.lists(over(shape, 0), min_size=1, max_size=3)
        kinds.append(parts.map(lambda given: union(*given)))
        kinds.append(parts.map(lambda given: union(*given, weights=[2.0 + i for i in range(len(given))])))
        if len(shape) == 2:
            unions = st.lists(intervals(shape[1]), min_size=2, max_size=2).map(lambda given: union(*given))
            kinds.append(st.tuples(intervals(shape[0]), unions).map(lambda pair: product(*pair, columns=("x0", "x1"))))
    return st.one_of(kinds)


def weights_of(workload: Workload) -> np.ndarray:
    """The importance of every query, by the parts."""
    parts = getattr(workload, "weights", None)
    if parts is None:
        return np.ones(workload.queries)
    return np.repeat(parts, [part.queries for part in workload.parts])  # type: ignore[attr-defined]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(workloads(), st.integers(0, 2**32))
def test_every_product_equals_that_of_the_written_matrix(workload: Workload, seed: int) -> None:
    draw = np.random.default_rng(seed)
    dense = workload.matrix()
    assert dense.shape == (workload.queries, workload.cells)
    x, y = (draw.integers(-9, 10, size).astype(float) for size in (workload.cells, workload.queries))
    root = draw.integers(-9, 10, (workload.cells, 2)).astype(float)
    weighted = weights_of(workload)[:, None] * dense
    assert np.array_equal(workload.answers(x), dense @ x)
    assert np.array_equal(workload.answers(x.reshape(workload.shape)), dense @ x)
    assert np.array_equal(workload.transposed(y), dense.T @ y)
    assert np.array_equal(workload.gram(), weighted.T @ weighted)
    assert np.array_equal(workload.gram_times(x), weighted.T @ (weighted @ x))
    assert np.array_equal(workload.gram_times(root), weighted.T @ (weighted @ root))
    assert workload.trace == np.sum(weighted**2)
    covariance = root @ root.T + np.diag(np.abs(x))
    assert np.allclose(workload.query_variances(covariance), np.diag(dense @ covariance @ dense.T), atol=1e-9)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(workloads())
def test_workloads_pickle_small_and_equal_themselves(workload: Workload) -> None:
    workload.gram_times(np.zeros(workload.cells))
    stored = pickle.dumps(workload)
    again = pickle.loads(stored)
    assert len(stored) < 2_000
    assert again == workload and hash(again) == hash(workload) and again.digest == workload.digest
    assert np.array_equal(again.matrix(), workload.matrix())


def test_matrices_are_what_their_names_say() -> None:
    cells = np.arange(5)
    assert np.array_equal(prefix(5).matrix(), cells <= cells[:, None])
    found = {tuple(row) for row in all_ranges(5).matrix()}
    assert found == {tuple((a <= cells) & (cells < b)) for a in range(5) for b in range(a + 1, 6)}
    assert np.array_equal(ranges(5, [(1, 3), (0, 5)]).matrix(), [[0, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    assert np.array_equal(
        product(prefix(2), total(3), identity(2)).matrix(),
        np.kron(np.kron(prefix(2).matrix(), np.ones((1, 3))), np.eye(2)),
    )
    table = np.arange(24.0).reshape(2, 3, 4)
    answers = marginals((2, 3, 4), way=2, up_to=True).answers(table)
    parts = [table.sum().ravel(), table.sum((1, 2)), table.sum((0, 2)), table.sum((0, 1))]
    parts += [table.sum(2).ravel(), table.sum(1).ravel(), table.sum(0).ravel()]
    assert np.array_equal(answers, np.concatenate(parts))


def test_marginals_never_need_the_whole_domain_to_be_answered_from_tables() -> None:
    workload = marginals({f"c{i}": 10 for i in range(30)}, way=2)
    assert workload.cells == 10**30 and workload.queries == 435 * 100
    assert workload.label(12_345) == "c4 = 4 and c18 = 5"
    tables = {subset: np.full((10, 10), float(sum(subset))) for subset in workload.subsets}
    answers = workload.answers_from(tables)
    assert answers[12_345] == 22.0
    assert all(np.array_equal(tables[own], table) for own, table in workload.tables(answers).items())
    assert len(workload.digest) == 64 and workload.trace == 435e30


def test_axes_of_one_value_are_no_burden() -> None:
    workload = marginals((1,) * 70 + (3, 2), way=1)
    dense = workload.matrix()
    assert np.array_equal(workload.answers(np.arange(6)), [15.0] * 70 + [1.0, 5.0, 9.0, 6.0, 9.0])
    assert np.array_equal(workload.query_variances(np.eye(6)), np.diag(dense @ dense.T))


@pytest.mark.slow
def test_large_workloads_stay_implicit() -> None:
    n = 2**20
    assert prefix(n).answers(np.ones(n))[-1] == n
    assert all_ranges(n).gram_times(np.ones(n))[0] == n * (n + 1) / 2
    assert all_ranges(n).trace == float(n * (n + 1) * (n + 2) // 6)
    labels = [all_ranges(n).label(n * (n + 1) // 2 - back) for back in (1, 2, 3)]
    assert labels == [f"x = {n - 1}", f"{n - 2} <= x < {n}", f"x = {n - 2}"]
    with pytest.raises(InvalidValue, match="at most 67,108,864 to be answered one by one"):
        all_ranges(n).answers(np.ones(n))
    with pytest.raises(InvalidValue, match="use gram_times"):
        prefix(n).gram()
    with pytest.raises(InvalidValue, match="at most 16,777,216 entries"):
        prefix(n).matrix()


@pytest.mark.parametrize("size", [1, 2, 9, 100])
def test_labels_of_all_ranges_agree_with_their_edges(size: int) -> None:
    workload = all_ranges(size)
    listed = ranges(size, np.stack([workload.starts, workload.stops], axis=1))
    assert [workload.label(i) for i in range(workload.queries)] == [listed.label(i) for i in range(workload.queries)]


def test_columns_are_named_once_and_kept() -> None:
    assert product(prefix(3), prefix(4), identity(2)).columns == ("x0", "x1", "x2")
    assert product(product(prefix(3), prefix(4)), identity(2)).columns == ("x0", "x1", "x")
    assert product(prefix(3, "age"), identity(2, column="sex")).columns == ("age", "sex")
    assert union(prefix(3), identity(3, column="age")).columns == ("age",)
    assert conjunctions((2, 2), 1, columns=("a b", "c")).label(0) == '"a b" = 0'
    with pytest.raises(InvalidValue, match="columns="):
        product(prefix(3, "age"), prefix(4, "age"))
    with pytest.raises(InvalidValue, match="same columns"):
        union(prefix(3, "age"), prefix(3, "height"))


def test_digests_tell_workloads_apart_and_names_do_not_matter() -> None:
    kinds = [
        prefix(6), all_ranges(6), identity(6), total(6), ranges(6, [(0, 6)]), ranges(6, [(0, 5)]), prefix(7),
        identity(2, 3), identity(3, 2), marginals((2, 3), way=1), marginals((2, 3), way=2),
        union(prefix(6), total(6)), union(prefix(6), total(6), weights=(1, 2)),
    ]  # fmt: skip
    assert len({workload.digest for workload in kinds}) == len(kinds)
    assert prefix(6, "age").digest == prefix(6).digest and prefix(6, "age") != prefix(6)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: prefix(0), "n=0: must be a number of cells, whole and >= 1"),
        (lambda: prefix(True), "n=True: must be a number"),
        (lambda: prefix(2.5), "n=2.5: must be a number"),  # type: ignore[arg-type]
        (lambda: ranges([(0, 5)]), r"write ranges\(n, pairs\)"),  # type: ignore[arg-type]
        (lambda: ranges(9), r"write ranges\(n, pairs\)"),
        (lambda: ranges(9, [(3, 3)]), r"pairs=\(3, 3\): must have 0 <= lo < hi <= 9"),
        (lambda: ranges(9, [(-1, 3)]), r"pairs=\(-1, 3\)"),
        (lambda: ranges(9, [(0.0, 3.0)]), "whole numbers"),
        (lambda: ranges(9, []), "one or more"),
        (lambda: identity(), "for each axis"),
        (lambda: identity(4, 5, columns=("a", "a")), "2 different names"),
        (lambda: marginals({"a": 2}), "for example way=2"),
        (lambda: marginals({"a": 2}, way=2), "way=2: must be a whole number from 1 to 1"),
        (lambda: marginals((2, 2), way=0), "way=0: must be a whole number from 1 to 2"),
        (lambda: marginals("abc", way=1), "how many values each column has"),
        (lambda: marginals({"a": 2}, subsets=[("b",)]), "different columns among a"),
        (lambda: marginals((2,) * 60, way=30), "list subsets"),
        (lambda: marginals((2, 3), way=1).answers_from({(0,): [1, 2]}), r"\(1,\): is missing"),
        (lambda: marginals((2, 3), way=1).answers_from({(0, 1): [1, 2]}), "tables of the workload"),
        (lambda: union(prefix(3), prefix(4)), "same shape"),
        (lambda: union(prefix(3), weights=(0.0,)), "numbers from 1e-50"),
        (lambda: union(prefix(3), weights=(float("nan"),)), "numbers from 1e-50"),
        (lambda: product(), "must be workloads"),
        (lambda: prefix(3).answers([1, 2]), r"histogram=\(2,\): must be 3 numbers"),
        (lambda: identity(2, 3).answers(np.ones((3, 2))), r"must be 6 numbers"),
        (lambda: prefix(3).label(3), "0 to 2"),
        (lambda: prefix(3).query_variances(np.eye(2)), r"\(3, 3\)"),
        (lambda: prefix(3).gram_times(np.eye(2)), r"\(3, m\)"),
    ],
)
def test_mistakes_are_refused_with_a_way_out(attempt, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidValue, match=message):
        attempt()
