"""Words that are refused with a reason of their own; every other unknown word is refused as unknown."""

from __future__ import annotations

_AGGREGATE = (
    "a statistic of many rows cannot stand inside an expression about one row",
    "ask for it as a statistic",
)
_FILE = ("an expression cannot read files or other tables", "register that table as a dataset of its own")
_RANDOM = ("the result must depend on the row alone", "use sample(...) of the dataset for random rows")
_CLOCK = ("the result must depend on the row alone", "write the date, for example date '2026-01-31'")
_PATTERN = ("patterns are matched by like only", "use like '%...%', which is tried on the public categories")
_QUERY = ("sub-queries are not allowed", "join the other table to the dataset first")
_STATEMENT = ("this is a statement, not an expression about one row", "remove it")
_FAILS = ("a function that can fail would show the row that failed", "leave it out")
_WINDOW = ("an expression sees one row at a time", "leave it out")
_TEXT = ("new text cannot be made from text", "use case when ... then ... for new categories")
_SPECIAL = ("numbers that are not finite are not understood", "a missing number is found by x is null")

_GROUPS = {
    _AGGREGATE: "sum avg mean count min max median stddev variance mode quantile list string_agg array_agg "
    "any_value first last",
    _FILE: "read_csv read_csv_auto read_parquet read_text read_blob read_json read_json_auto glob pg_read_file "
    "pg_read_binary_file pg_ls_dir lo_import dblink parquet_scan sniff_csv postgres_scan sqlite_scan query query_table",
    _RANDOM: "random rand randn uuid gen_random_uuid setseed nextval",
    _CLOCK: "now today current_date current_timestamp current_time clock_timestamp localtimestamp getdate",
    _PATTERN: "regexp_matches regexp_full_match regexp_replace regexp_extract rlike regexp similar ilike glob_match",
    _QUERY: "select exists with from union any some values",
    _STATEMENT: "attach detach copy install load pragma set drop create insert update delete export import call use "
    "alter grant explain",
    _FAILS: "error raise_error assert_true raise pg_sleep sleep getenv current_setting pg_terminate_backend "
    "strptime to_date to_timestamp json_extract try try_cast to_number",
    _WINDOW: "over partition row_number rank dense_rank lag lead ntile",
    _TEXT: "concat concat_ws replace substring substr trim ltrim rtrim reverse repeat format printf "
    "chr ascii md5 sha256 hash",
    _SPECIAL: "nan inf infinity",
}  # fmt: skip

REASONS: dict[str, tuple[str, str]] = {
    word: reason for reason, words in _GROUPS.items() for word in words.split()
}
