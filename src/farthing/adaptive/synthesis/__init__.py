"""Synthetic tables: select a table that the model gets wrong, measure it with noise, fit the model, and again.

pricing       what every noise and every choice costs, fixed in advance
plan          public facts in, prices out
grouping      rare values taken together
candidates    which tables a round may choose
model_size    how large the model would become
loop          select, measure, fit: the only part that sees rows
transcript    what was drawn, as whole numbers by name
layered       the model of whole rows that the drawn numbers stand for
known_groups  tables of earlier releases, as further measurements
convergence   how it went, round by round
question      the whole as a question for the curator
"""

from farthing.adaptive.synthesis.layered_model import SyntheticModel
from farthing.adaptive.synthesis.synthesis_design import Synthesise, SynthesisPlan, synthesis_plan
from farthing.adaptive.synthesis.synthesis_prices import Prices

__all__ = ["Prices", "SynthesisPlan", "Synthesise", "SyntheticModel", "synthesis_plan"]
