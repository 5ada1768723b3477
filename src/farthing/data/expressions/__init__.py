"""Predicates and derived values: text or Ibis deferred, typed against a schema, total on every engine.

read         text or deferred -> Expression, or InvalidExpression at the place of the fault
Expression   its domain, its columns, its value on one row, its Ibis form
read_column  how raw cells become values, in an engine; `read_cell` is the same in Python
"""

from farthing.data.expressions.expression import Expression, read
from farthing.data.expressions.ibis_compiler import read_cell, read_column

__all__ = ["Expression", "read", "read_cell", "read_column"]
