"""Altair charts of privacy: regions, trade-off curves, theorems side by side.

    privacy_regions         what k mechanisms guarantee against tests, as nested regions
    region_polygons         any regions in one picture
    compare_regions         the same mechanisms under four theorems
    epsilon_against_k       epsilon of the whole against the number of mechanisms
    epsilon_against_delta   ... and against delta
    adaptive_charges        how large charges chosen as you go may be, beside those fixed in advance
    heterogeneous_gap       what the KOV closed form wastes on unequal charges
    theorem_bars            one comparison, as `farthing compose --plot` draws it
    tradeoff_curve          the f-DP curve of one composition
    audit_region            what an audit estimated, against what was claimed
    error_growth            total error of strategies against the number of cells, with slopes
    burn_down               a ledger's budget as it is used up
    plan_chart              what each statistic of a plan takes, and the price under each theorem
    release_chart           released values with their intervals
    holdout_claims          what analysts claim about pure noise, naive and careful
    convergence             the errors and updates of online answers, question by question
    synthesis_rounds        how a synthesis converged, round by round
    share_recovered         what a reconstruction attack finds, against the noise
    save                    any chart to SVG, PNG or a self-contained HTML file

Charts need the extra `plots` (`pip install 'farthing[plots]'`); importing this package does not.
"""

from farthing.plots.adaptive_charts import adaptive_charges, largest_charges
from farthing.plots.attack_charts import holdout_claims, share_recovered
from farthing.plots.audit_charts import audit_region
from farthing.plots.burn_down import Moment, burn_down
from farthing.plots.chart_files import save
from farthing.plots.convergence_charts import convergence, synthesis_rounds
from farthing.plots.growth_charts import error_growth, growth_exponent
from farthing.plots.plan_charts import plan_chart, release_chart
from farthing.plots.region_charts import compare_regions, privacy_regions, region_polygons, tradeoff_curve
from farthing.plots.theorem_charts import (
    dominated_gap,
    epsilon_against_delta,
    epsilon_against_k,
    heterogeneous_gap,
    spread_gap,
    theorem_bars,
)

__all__ = [
    "Moment",
    "adaptive_charges",
    "audit_region",
    "burn_down",
    "compare_regions",
    "convergence",
    "dominated_gap",
    "epsilon_against_delta",
    "epsilon_against_k",
    "error_growth",
    "growth_exponent",
    "heterogeneous_gap",
    "holdout_claims",
    "largest_charges",
    "plan_chart",
    "privacy_regions",
    "region_polygons",
    "release_chart",
    "save",
    "share_recovered",
    "spread_gap",
    "synthesis_rounds",
    "theorem_bars",
    "tradeoff_curve",
]
