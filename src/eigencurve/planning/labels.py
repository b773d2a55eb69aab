"""Names of the schedules in menus, legends and tables."""

from __future__ import annotations

# The numerically best schedule, next to the kinds of :data:`eigencurve.schedules.kinds.FACTORIES`.
BEST = "best"
# The first ones, which the studio shows by default, have different colours.
LABELS = {
    "eigencurve": "Eigencurve",
    "cosine": "Cosine",
    "linear": "Linear",
    "wsd": "WSD, linear tail",
    "elastic_step": "Elastic step decay",
    "wsd_sqrt": "WSD, 1-sqrt tail",
    "step_decay": "Step decay",
    "cosine_power": "Cosine-power",
    "exponential": "Exponential",
    "inverse_time": "Inverse time",
    "constant": "Constant",
    "wsd_cycles": "WSD in cycles (WSD-S)",
    "one_cycle": "One cycle",
    "inverse_sqrt": "Inverse square root",
    "polynomial": "Polynomial",
    "rex": "REX",
    BEST: "Numerically best",
}
