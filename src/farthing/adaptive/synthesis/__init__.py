"""Synthetic tables: select a table that the model gets wrong, measure it with noise, fit the model, and again.

synthesis_prices      what every noise and every choice costs, fixed in advance
synthesis_design      public facts in, prices out; the whole as a question for the curator
value_groups          rare values taken together, and tables of earlier releases as further measurements
select_measure_fit    the only part that sees rows: which tables a round may choose, and its choice
synthesis_transcript  what was drawn, as whole numbers by name, and how it went round by round
layered_model         the model of whole rows that the drawn numbers stand for
"""

from farthing.adaptive.synthesis.layered_model import SyntheticModel
from farthing.adaptive.synthesis.synthesis_design import Synthesise, SynthesisPlan, synthesis_plan
from farthing.adaptive.synthesis.synthesis_prices import Prices

__all__ = ["Prices", "SynthesisPlan", "Synthesise", "SyntheticModel", "synthesis_plan"]
