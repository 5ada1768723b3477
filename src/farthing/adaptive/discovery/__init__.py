"""What nobody knows about a table, found for a part of its budget before anything else is planned.

search          one thing to discover: its price, its prediction, its query and its finding
searches        which search a column needs, and what a record of one says
search_cells    the public cells that are searched: round numbers, years, numbers of rows
unit_counts     noisy counts of units in cells, and the range of those that are not empty
value_search    the range of a column of numbers or dates
key_search      the values of a column of text or codes
row_search      how many rows units have: a bound that fits, and what a bound leaves out
"""

from farthing.adaptive.discovery.key_search import KeySearch, key_search
from farthing.adaptive.discovery.row_search import RowSearch, RowTally, bound_of, row_search
from farthing.adaptive.discovery.search import ROWS, Finding, Search
from farthing.adaptive.discovery.searches import finding_of, search_of
from farthing.adaptive.discovery.unit_counts import UnitCounts
from farthing.adaptive.discovery.value_search import ValueSearch, value_search

__all__ = [
    "ROWS",
    "Finding",
    "KeySearch",
    "RowSearch",
    "RowTally",
    "Search",
    "UnitCounts",
    "ValueSearch",
    "bound_of",
    "finding_of",
    "key_search",
    "row_search",
    "search_of",
    "value_search",
]
