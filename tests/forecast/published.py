"""The published runs under EIGENCURVE_DATA."""

from paper.data.curves import published_runs


def gpt_runs(data_path, model):
    """The runs marked "fit" and those marked "predict"."""
    runs = [one for one in _runs(data_path) if one.model == model]
    return tuple([one.run for one in runs if one.split == split] for split in ("fit", "predict"))


def llama_runs(data_path, peak):
    """All schedules at one peak rate, by name."""
    return {one.kind: one.run for one in _runs(data_path) if (one.model, one.peak_lr) == ("llama_124m", peak)}


def _runs(data_path):
    return published_runs(data_path("curves/index.json").parent.parent)
