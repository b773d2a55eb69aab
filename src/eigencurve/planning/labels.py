"""Names of the schedules in menus, legends and tables."""

from __future__ import annotations

# The numerically best schedule, next to the kinds of :data:`eigencurve.schedules.by_kind.FACTORIES`.
BEST = "best"
LABELS = {
    "eigencurve": "Eigencurve",
    "cosine": "Cosine",
    "linear": "Linear",
    "step_decay": "Step decay",
    "elastic_step": "Elastic step decay",
    "cosine_power": "Cosine-power",
    "exponential": "Exponential",
    "inverse_time": "Inverse time",
    "wsd": "WSD (stable, then decay)",
    "constant": "Constant",
    "wsd_cycles": "WSD in cycles (WSD-S)",
    "one_cycle": "One cycle",
    "inverse_sqrt": "Inverse square root",
    "polynomial": "Polynomial",
    "rex": "REX",
    BEST: "Numerically best",
}
