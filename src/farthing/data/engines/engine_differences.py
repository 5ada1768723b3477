"""Where DuckDB, PostgreSQL and Spark differ, what farthing does about it, and whether that will ever go away.

The table is data, so that tests can ask the engines themselves whether it is still true. A verdict is one of

    never             the engines mean to differ; farthing compiles to something on which they agree
    waiting on them   a gap or a fault upstream; what farthing does about it can go when they close it
    not yet ours      something farthing itself does not do yet
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["DIFFERENCES", "Difference"]

Verdict = Literal["never", "waiting on them", "not yet ours"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that three engines do in different ways.

    >>> print(DIFFERENCES[0])
    x / 0: inf on DuckDB, error on PostgreSQL, error on Spark; a zero divisor is missing (never)
    """

    what: str
    duckdb: str
    postgres: str
    spark: str
    ours: str
    verdict: Verdict

    def __str__(self) -> str:
        each = f"{self.duckdb} on DuckDB, {self.postgres} on PostgreSQL, {self.spark} on Spark"
        return f"{self.what}: {each}; {self.ours} ({self.verdict})"


DIFFERENCES = (
    Difference("x / 0", "inf", "error", "error", "a zero divisor is missing", "never"),
    Difference("ln(0)", "-inf", "error", "missing", "the logarithm of what is not positive is missing", "never"),
    Difference("1e308 * 10", "inf", "error", "inf", "expressions whose bounds could overflow are refused", "never"),
    Difference("1e-308 * 1e-308", "0.0", "error", "0.0", "numbers nearer to zero than 2^-60 are zero", "never"),
    Difference("2^62 * 4", "error", "error", "error", "expressions whose bounds could overflow are refused", "never"),
    Difference("sum of 2^62 + 2^62", "9223372036854775808", "9223372036854775808", "error",
               "sums that could need it are made in decimal(38, 0)", "never"),
    Difference("isnan(NULL)", "missing", "missing", "False", "NaN and NULL are both read as missing", "never"),
    Difference("NaN > 1e308", "True", "True", "True", "NaN is missing before anything is compared", "never"),
    Difference("a flag as a 64-bit number", "1", "error", "1", "CASE WHEN flag THEN 1", "waiting on them"),
    Difference("SHA-256", "sha256", "not in Ibis", "sha2", "Postgres's own functions, by name", "waiting on them"),
    Difference("a random UUID", "uuid", "gen_random_uuid", "not in Ibis",
               "two random numbers side by side on Spark", "waiting on them"),
    Difference("ORDER BY random() in a window", "error", "done", "done",
               "the draw is a column of its own first", "never"),
    Difference("join with rows of the client", "in the process", "CREATE TABLE", "a view of the session",
               "a public table becomes a CASE expression: nothing is ever written", "never"),
    Difference("a sum of integers through Ibis", "an integer", "a float", "an integer",
               "rows are fetched from the driver, not through Ibis", "waiting on them"),
    Difference("errors", "quote cells", "quote cells", "quote cells, also in the client's log",
               "only the class of an error is passed on", "never"),
    Difference("progress", "a share of the work", "none", "a share of the tasks",
               "shown where there is any", "waiting on them"),
    Difference("stopping a query", "at once", "at once", "when its tasks have finished their batch",
               "Ctrl-C stops the engine's work, not only ours", "never"),
    Difference("a time limit", "none", "statement_timeout", "a timer at the client",
               "on DuckDB, Ctrl-C", "not yet ours"),
    Difference("columns that compare text by a collation", "COLLATE", "nondeterministic collations", "COLLATE",
               "text is compared by its bytes, in units, categories and conditions", "never"),
    Difference("blanks at the end of a CHAR(8)", "there is no CHAR", "filled up, no part of it",
               "filled up, part of it", "no part of the text; those of a VARCHAR are", "never"),
    Difference("the first 2 of a list", "the first 2", "of the first dimension", "the first 2",
               "elements are numbered as they come out, and the first ones stay", "never"),
    Difference("a decimal that is NaN", "there is none", "above every number", "there is none",
               "missing, as it is among reals", "never"),
    Difference("timestamps with a time zone", "yes", "yes", "yes", "refused when a dataset is made", "not yet ours"),
)  # fmt: skip
