"""The table stays where it is: schemas, expressions, datasets, stability and bounded aggregates.

schema        public facts about columns: categories, ranges, dates
expressions   predicates and derived columns, typed and total on every engine
"""
