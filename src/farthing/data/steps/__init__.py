"""Transformations: each turns a table into a table, a schema into a schema, and knows its stability.

A step looks at rows one at a time, or at the rows of one unit, never further: that is what makes its stability a
number.
"""
