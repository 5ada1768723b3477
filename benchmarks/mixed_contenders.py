"""The peers of `benchmarks.mixed`, each called as its users call it: an even share of the budget for every statistic.

A contender takes the table, the number of statistics and the budget, and returns a function from a statistic to a
function that draws one release of it, or to None where the tool has no such statistic. What does not depend on the
noise (sums, scores, trees) is computed once, so that a hundred releases cost little more than one.

Where people have several rows, a tool that can bound a person's rows is told so; for one that protects rows alone,
epsilon is divided by the most rows that a person has. Groups are public for all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.graphical_contenders import opendp_model
from benchmarks.mixed_tables import BOUNDS, CATEGORIES, Asked, People
from benchmarks.peer_noise import (
    Known,
    exponential_choice,
    exponential_interval,
    gaussian,
    geometric,
    laplace,
    permute_and_flip,
)

Draw = Callable[[], Any]  # one number for each cell
Contender = Callable[[Asked], Draw | None]
TOO_FEW = " are too few to compare"
ENOUGH = 100
CANDIDATES = 3_001  # points among which a tool without a rule of its own chooses a quantile


def opendp(people: People, number: int, epsilon: float, delta: float, *, zcdp: bool = False) -> Contender:
    """OpenDP's integer Laplace noise, or Gaussian noise under zCDP, and its quantiles by noisy max.

    The noise is that of its Polars context (`summarize()` shows the same scales: a mean is half sum and half count),
    whose calibration takes seconds for every query. Counts of ranges come out of its consistent tree.
    """
    import opendp.prelude as prelude

    dp: Any = prelude
    dp.enable_features("contrib")
    rows = people.most_rows
    whole = dp.vector_domain(dp.atom_domain(T="i64"))
    space = whole, dp.l2_distance(T=float) if zcdp else dp.l1_distance(T="i64")
    share = (_rho(dp, epsilon, delta) if zcdp else epsilon) / number

    def noise(exact: Any, sensitivity: float, part: float = 1.0) -> Callable[[], Any]:
        make = dp.m.make_gaussian if zcdp else dp.m.make_laplace
        own = share * part
        scale = sensitivity * rows / ((2 * own) ** 0.5 if zcdp else own)
        measurement, numbers = make(*space, scale=scale), [round(float(value)) for value in np.ravel(exact)]
        squares = gaussian(scale, exact) if zcdp else geometric(scale, exact)
        return Known(lambda: np.array(measurement(numbers), dtype=float), squares)

    def quantile(asked: Asked, level: float, truth: float) -> Known:
        lower, upper = asked.bounds
        points = np.linspace(lower, upper, CANDIDATES)
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
        scoring = dp.t.make_quantile_score_candidates(*domain, points.tolist(), level)
        scores = scoring(asked.values(people).tolist())
        measure = dp.zero_concentrated_divergence() if zcdp else dp.max_divergence()
        scored = dp.vector_domain(dp.atom_domain(T="u64")), dp.linf_distance(T="u64")
        part = share / len(asked.levels)

        def selection(scale: float) -> Any:
            return dp.m.make_noisy_max(*scored, measure, scale=scale, negate=True)

        scale = dp.binary_search(lambda s: selection(s).map(scoring.map(rows)) <= part, bounds=(1e-3, 1e12), T=float)
        chosen, losses = selection(scale), np.array(scores, dtype=float) / scale
        law = exponential_choice if zcdp else permute_and_flip
        return Known(lambda: float(points[chosen(scores)]), np.array([law(points, losses, truth)]))

    def contender(asked: Asked) -> Draw | None:
        if asked.kind == "quantiles":
            truths = asked.truth(people).tolist()
            draws = [quantile(asked, level, truth) for level, truth in zip(asked.levels, truths, strict=True)]
            return Known(lambda: [draw() for draw in draws], np.concatenate([draw.squares for draw in draws]))
        counts = asked.counts(people)
        if asked.kind == "ranges":
            branching = dp.t.choose_branching_factor(len(counts))
            tree = dp.t.make_b_ary_tree(whole, dp.l1_distance(T="i64"), len(counts), branching)
            levels = tree.map(1)  # a row is counted once on each
            noisy = noise(tree(counts.tolist()), levels**0.5 if zcdp else levels)
            consistent = dp.t.make_consistent_b_ary_tree(branching)
            return lambda: asked.added(consistent([int(n) for n in noisy()])[: len(counts)])
        if asked.kind in ("count", "histogram", "marginal"):
            return noise(counts, 1)
        lower, upper = asked.bounds
        largest = max(abs(lower), abs(upper))
        if asked.kind == "sum":
            return noise(asked.sums(people), largest)
        if asked.kind == "mean":
            sums, sizes = noise(asked.sums(people), largest, 0.5), noise(counts, 1, 0.5)
            return lambda: _ratio(sums(), sizes())
        # It has no variance for a private number of rows: its users measure three sums, best around the middle.
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        own = asked.values(people) - middle
        parts = [(own.size, 1.0), (own.sum(), half), ((own**2).sum(), half**2)]
        size, first, second = (noise([exact], sensitivity, 1 / 3) for exact, sensitivity in parts)

        def variance() -> Any:
            rows_there = size()
            return _ratio(second(), rows_there) - _ratio(first(), rows_there) ** 2

        return variance

    return contender


def _rho(dp: Any, epsilon: float, delta: float) -> float:
    """The most rho whose curve is within the budget, by OpenDP's own conversion."""
    if not delta > 0:
        raise ValueError("zCDP needs delta > 0")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=float)
    low, high = 1e-12, 10.0
    for _ in range(60):
        rho = (low * high) ** 0.5
        gaussian = dp.m.make_gaussian(*space, scale=(1 / (2 * rho)) ** 0.5)
        fits = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(delta) <= epsilon
        low, high = (rho, high) if fits else (low, rho)
    return low


def diffprivlib(people: People, number: int, epsilon: float, delta: float) -> Contender:
    """IBM's tools on NumPy arrays; the number of rows of a mean is taken as public."""
    from diffprivlib import BudgetAccountant, tools

    unlimited = BudgetAccountant()
    share = epsilon / number / people.most_rows

    def contender(asked: Asked) -> Draw | None:
        cells = asked.cell_of_rows(people)
        if asked.kind in ("count", "histogram", "marginal", "ranges"):
            if asked.where is not None and asked.cells == 1:
                chosen = asked.chosen(people)
                return Known(
                    lambda: [float(tools.count_nonzero(chosen, epsilon=share, accountant=unlimited))],
                    geometric(1 / share, asked.counts(people), 0.0),
                )
            # count_nonzero never exceeds the length of its array: all rows are counted by a histogram of one cell.
            edges = np.arange(asked.cells + 1) - 0.5
            histogram = partial(
                tools.histogram, cells, epsilon=share, bins=edges, range=(edges[0], edges[-1]),
                accountant=unlimited,
            )  # fmt: skip
            if asked.kind == "ranges":
                return lambda: asked.added(histogram()[0])
            return Known(lambda: histogram()[0], geometric(1 / share, asked.counts(people), 0.0))
        values = asked.values(people)
        options = {"bounds": asked.bounds, "accountant": unlimited, "epsilon": share}
        if asked.kind == "quantiles":
            edges = np.sort(np.append(values, asked.bounds))
            ranks, half = np.arange(len(values) + 1), share / len(asked.levels) / 2
            squares = [
                exponential_interval(edges, half * np.abs(ranks - level * len(values)), truth)
                for level, truth in zip(asked.levels, asked.truth(people).tolist(), strict=True)
            ]
            return Known(lambda: tools.quantile(values, list(asked.levels), **options).ravel(), np.array(squares))
        tool = {"sum": tools.sum, "mean": tools.mean, "variance": tools.var}[asked.kind]
        groups = [values[cells == cell] for cell in range(asked.cells)]

        def draw() -> list[float]:
            return [float(tool(group, **options)) if len(group) else np.nan for group in groups]

        lower, upper = asked.bounds
        if asked.kind == "sum":
            ends = lower * len(values), upper * len(values)
            return Known(draw, laplace((upper - lower) / share, asked.truth(people), *ends))
        if asked.kind == "mean":
            scales = [(upper - lower) / max(1, len(group)) / share for group in groups]
            truths = asked.truth(people)
            own = [laplace(scale, truth, lower, upper) for scale, truth in zip(scales, truths, strict=True)]
            return Known(draw, np.concatenate(own))
        return draw

    return contender


def pipelinedp(people: People, number: int, epsilon: float, delta: float) -> Contender:
    """PipelineDP's combiners with Laplace noise; what its engine hands to them is added up once."""
    import pipeline_dp as pdp
    from pipeline_dp import combiners

    def combiner(asked: Asked, metrics: list[Any]) -> Any:
        most, whole = people.most_rows, epsilon / number
        bounds: dict[str, Any] = {"max_partitions_contributed": 1, "max_contributions_per_partition": most}
        if most > 1 and asked.cells > 1 and asked.kind != "mean":
            bounds = {"max_contributions": most}
        elif asked.cells > 1:  # a mean knows no bound on the rows of all groups together: rows are protected
            bounds["max_contributions_per_partition"], whole = 1, whole / most
        if asked.column and asked.kind not in ("histogram", "ranges"):
            bounds |= {"min_value": asked.bounds[0], "max_value": asked.bounds[1]}
        params = pdp.AggregateParams(metrics=metrics, noise_kind=pdp.NoiseKind.LAPLACE, **bounds)
        accountant = pdp.NaiveBudgetAccountant(whole, delta / number)
        made = combiners.create_compound_combiner(params, accountant)
        accountant.compute_budgets()
        return made

    def contender(asked: Asked) -> Draw | None:
        levels = [pdp.Metrics.PERCENTILE(100 * level) for level in asked.levels]
        one = {"sum": pdp.Metrics.SUM, "mean": pdp.Metrics.MEAN, "variance": pdp.Metrics.VARIANCE}
        metrics = levels or [one.get(asked.kind, pdp.Metrics.COUNT)]
        made, cells = combiner(asked, metrics), asked.cell_of_rows(people)
        values = asked.values(people) if asked.column else np.ones(len(cells))
        exact = [made.create_accumulator(values[cells == cell]) for cell in range(asked.cells)]
        if levels:
            # A tree adds its noise once: every release needs a tree of its own.
            def quantiles() -> list[float]:
                found = made.compute_metrics(made.create_accumulator(values))
                return [float(value) for value in found]

            return quantiles

        def draw() -> Any:
            found = [float(made.compute_metrics(accumulator)[0]) for accumulator in exact]
            return asked.added(found) if asked.kind == "ranges" else found

        scale = people.most_rows * number / epsilon
        if asked.kind == "sum":
            scale *= max(map(abs, asked.bounds))
        alone = asked.kind in ("count", "histogram", "marginal", "sum")
        return Known(draw, laplace(scale, asked.truth(people))) if alone else draw

    return contender


def pydp(people: People, number: int, epsilon: float, delta: float) -> Contender:
    """Google's algorithms through PyDP, Laplace noise, one algorithm for each group."""
    from pydp.algorithms import laplacian

    share = epsilon / number / people.most_rows

    def contender(asked: Asked) -> Draw | None:
        cells = asked.cell_of_rows(people)
        if asked.kind in ("count", "histogram", "marginal", "ranges"):
            sizes = asked.counts(people)
            groups = [[1] * int(size) for size in sizes]

            def counts() -> Any:
                found = [float(laplacian.Count(epsilon=share, dtype="int").quick_result(group)) for group in groups]
                return asked.added(found) if asked.kind == "ranges" else found

            if asked.kind == "ranges":
                return counts
            return Known(counts, laplace(1 / share, sizes) + 1 / 12)  # it rounds
        lower, upper = asked.bounds
        values = asked.values(people)
        if asked.kind == "quantiles":
            own = values.tolist()
            part = share / len(asked.levels)
            return lambda: [
                laplacian.Percentile(
                    epsilon=part, percentile=level, lower_bound=lower, upper_bound=upper, dtype="float"
                ).quick_result(own)
                for level in asked.levels
            ]
        algorithm = {
            "sum": laplacian.BoundedSum,
            "mean": laplacian.BoundedMean,
            "variance": laplacian.BoundedVariance,
        }[asked.kind]
        lists = [values[cells == cell].tolist() for cell in range(asked.cells)]

        def draw() -> list[float]:
            options = {"epsilon": share, "lower_bound": lower, "upper_bound": upper, "dtype": "float"}
            return [float(algorithm(**options).quick_result(own)) for own in lists]

        if asked.kind == "sum":
            return Known(draw, laplace(max(abs(lower), abs(upper)) / share, asked.truth(people)))
        return draw

    return contender


def smartnoise(people: People, number: int, epsilon: float, delta: float) -> Contender:
    """SmartNoise SQL on a data frame. A query whose parts cost more than its share by its own count gets less."""
    import pandas
    from snsql import Privacy, from_df

    columns: dict[str, Any] = {name: people.columns[name].astype(int) for name in (*BOUNDS, *CATEGORIES)}
    single = people.person is None
    types: dict[str, Any] = {
        name: {"type": "int", "lower": int(BOUNDS[name][0]), "upper": int(BOUNDS[name][1])}
        if name in BOUNDS
        else {"type": "int"}
        for name in columns
    }
    if not single:
        columns["person"] = people.person
        types["person"] = {"type": "int", "private_id": True}
    table = {"row_privacy": single, "rows": people.rows, "censor_dims": False, "clamp_counts": False, **types}
    if not single:
        table |= {"max_ids": people.most_rows, "sample_max_ids": False}
    metadata = {"": {"people": {"people": table}}}

    def reader(share: float, frame: Any) -> Any:
        return from_df(frame, privacy=Privacy(epsilon=share, delta=max(delta, 1e-12) / number), metadata=metadata)

    def contender(asked: Asked) -> Draw | None:
        if asked.kind == "quantiles":
            return None
        groups, read = list(asked.by), {*asked.by, asked.column, "age"} - {""}
        read |= {"person"} & set(columns) | ({asked.where[0]} if asked.where else set())
        frame = pandas.DataFrame({name: columns[name] for name in columns if name in read})
        if asked.edges:
            places = np.searchsorted(asked.edges, people.columns[asked.column], side="right") - 1
            frame["cell"], groups = np.minimum(places, asked.cells - 1), ["cell"]
            table["cell"] = {"type": "int"}
        what = {"sum": "SUM", "mean": "AVG", "variance": "VAR"}.get(asked.kind)
        query = f"SELECT {''.join(f'{name}, ' for name in groups)}"
        query += f"{what}({asked.column})" if what else "COUNT(*)"
        query += " AS answer FROM people.people"
        if asked.where is not None:
            column, sign, value = asked.where
            query += f" WHERE {column} {sign} {int(value)}"
        query += f" GROUP BY {', '.join(groups)}" if groups else ""
        share = epsilon / number
        for _ in range(3):  # its count of what a query costs is not quite linear
            cost = float(reader(share, frame[:10]).get_privacy_cost(query)[0])
            share *= epsilon / number / cost
        private = reader(share, frame)
        engine, exact = private.reader, {}
        execute = engine.execute

        def remembered(sql: Any, *arguments: Any, **options: Any) -> Any:
            if sql not in exact:
                exact[sql] = execute(sql, *arguments, **options)
            return exact[sql]

        engine.execute = remembered
        sizes = [len(CATEGORIES[name]) for name in asked.by]

        def draw() -> Any:
            found = np.zeros(asked.cells) if not what else np.full(asked.cells, np.nan)
            for *group, answer in private.execute(query)[1:]:
                place = 0 if not groups else int(group[0])
                if sizes:
                    place = int(np.ravel_multi_index([int(code) for code in group], sizes))
                found[place] = np.nan if answer is None else float(answer)
            return asked.added(found) if asked.kind == "ranges" else found

        if asked.kind not in ("count", "histogram", "marginal", "sum"):
            return draw
        (mechanism,) = [one for one in private._get_mechanisms(private._rewrite(query)[0]) if one is not None]
        # Whole numbers are cut to, half a step below on average.
        return Known(draw, laplace(mechanism.scale, asked.truth(people)) + 1 / 3)

    return contender


def tumult(people: People, number: int, epsilon: float, delta: float) -> Contender:
    """Tumult Analytics on a local Spark, pure differential privacy."""
    import os
    import sys
    import tempfile

    import pandas
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddMaxRows, AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's own processes need the same packages
    options = {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false", "spark.driver.memory": "2g"}
    options["spark.sql.warehouse.dir"] = tempfile.mkdtemp(prefix="tumult")
    builder = SparkSession.builder.master("local[1]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def contender(asked: Asked) -> Draw | None:
        groups = list(asked.by)
        frame = pandas.DataFrame({name: people.columns[name] for name in {*groups, asked.column} - {""}})
        if asked.where is not None:
            frame[asked.where[0]] = people.columns[asked.where[0]]
        if frame.empty:
            frame["age"] = people.columns["age"]
        if asked.edges:
            places = np.searchsorted(asked.edges, people.columns[asked.column], side="right") - 1
            frame["cell"], groups = np.minimum(places, asked.cells - 1), ["cell"]
        change = AddOneRow() if people.most_rows == 1 else AddMaxRows(people.most_rows)
        data = spark.createDataFrame(frame).repartition(1).cache()
        query = QueryBuilder("people")
        if asked.where is not None:
            column, sign, value = asked.where
            query = query.filter(f"{column} {sign} {value}")
        keys = {name: list(range(len(CATEGORIES[name]))) for name in asked.by}
        if asked.edges:
            keys = {"cell": list(range(asked.cells))}
        grouped: Any = query.groupby(KeySet.from_dict(keys)) if keys else query
        bounds = asked.bounds if asked.column else (0.0, 0.0)
        tools: dict[str, Callable[[], Any]] = {
            "sum": lambda: grouped.sum(asked.column, *bounds, name="answer"),
            "mean": lambda: grouped.average(asked.column, *bounds, name="answer"),
            "variance": lambda: grouped.variance(asked.column, *bounds, name="answer"),
        }
        if asked.kind == "quantiles":
            wanted = [grouped.quantile(asked.column, level, *bounds, name="answer") for level in asked.levels]
        else:
            wanted = [tools.get(asked.kind, lambda: grouped.count(name="answer"))()]

        def draw() -> Any:
            session = Session.from_dataframe(PureDPBudget(epsilon / number), "people", data, protected_change=change)
            budget = PureDPBudget(epsilon / number / len(wanted))
            answers = [session.evaluate(one, budget).toPandas() for one in wanted]
            if not groups:
                return [float(answer["answer"].iloc[0]) for answer in answers]
            (answer,) = answers
            found = answer.sort_values(groups)["answer"].to_numpy(dtype=float)
            return asked.added(found) if asked.kind == "ranges" else found

        return draw

    return contender


def _ratio(tops: Any, bottoms: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(tops, dtype=float) / np.asarray(bottoms, dtype=float)


PEERS: dict[str, Callable[[People, int, float, float], Contender]] = {
    "OpenDP": opendp,
    "OpenDP zCDP": partial(opendp, zcdp=True),
    "OpenDP model": partial(opendp_model, rho=_rho),
    "diffprivlib": diffprivlib,
    "PipelineDP": pipelinedp,
    "PyDP": pydp,
    "SmartNoise SQL": smartnoise,
    "Tumult": tumult,
}
TOGETHER = ("OpenDP model",)  # one fit answers all statistics


def released(
    peer: str,
    people: People,
    questions: Sequence[Asked],
    epsilon: float,
    delta: float,
    releases: int,
    seconds: float,
) -> dict[str, Any]:
    """Releases of all statistics: as many as were asked for, fewer where they take longer than `seconds`.

    Of noise whose law is known only `ENOUGH` are made, to check the law. What the tool does not have, or fails at, is
    named with the reason.
    """
    import time

    warnings.simplefilter("ignore")
    contender = PEERS[peer](people, len(questions), epsilon, delta)
    draws: dict[str, Draw] = {}
    answers: dict[str, list[list[float]]] = {asked.name: [] for asked in questions}
    missing: dict[str, str] = {}
    known: dict[str, list[float]] = {}

    def attempt(name: str, action: Callable[[], Any]) -> None:
        try:
            found = action()
        except Exception as error:  # a peer may fail in any way it likes; the table shows how
            missing[name] = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            draws.pop(name, None)
            return
        if callable(found):
            draws[name] = found
            if isinstance(found, Known):
                known[name] = found.squares.tolist()
        elif found is None:
            missing[name] = "has none"
        else:
            answers[name].append([float(value) for value in np.ravel(found)])

    for asked in questions:
        attempt(asked.name, partial(contender, asked))
    deadline = time.monotonic() + seconds
    waiting = list(draws)
    for _ in range(releases if peer in TOGETHER else 0):
        for name in list(draws) if time.monotonic() < deadline else ():
            attempt(name, draws[name])
    for place, name in enumerate(waiting):
        # What the others leave of the time is for all that follow: a statistic that is slow takes none from the rest.
        until = time.monotonic() + (deadline - time.monotonic()) / (len(waiting) - place)
        for _ in range(min(releases, ENOUGH) if name in known else releases - len(answers[name])):
            if name in draws and time.monotonic() < until:
                attempt(name, draws[name])
    for name in list(draws):
        if len(answers[name]) < min(2, releases):
            missing[name] = f"{len(answers[name])} releases in {seconds:.0f} s{TOO_FEW}"
            del draws[name]
    found = {name: answers[name] for name in draws}
    return {"answers": found, "missing": missing, "squares": {name: known[name] for name in known if name in found}}
