"""The page of the noise study: tables, sentences and figures from finished measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eigencurve._arrays import Array
from eigencurve.experiments.page import ResultsPage, markdown_table
from eigencurve.experiments.studies.noise_measuring import (
    OWN,
    PLAIN,
    Measuring,
    decay_in,
    fewer_examples,
    noisier_examples,
    usual,
)
from eigencurve.experiments.studies.noise_subjects import NoiseScale
from eigencurve.experiments.studies.noise_training import END, MOMENTS, TENTH, Subject
from eigencurve.figures.noise import noise_figure
from eigencurve.hessian.settling import log_curve
from eigencurve.schedules.eigencurve import eigencurve
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum.files import SpectrumFile, spectrum_bytes
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.spectrum import prepare
from eigencurve.spectrum.start import StartEstimate
from eigencurve.theory.candidates import usual_schedules
from eigencurve.theory.quadratic import NoisyQuadratic

# An octave counts if the relative standard error of its noise is below this.
ENOUGH_SIGNAL = 0.5
FLAT, NEAR = 2.0, 0.10
COMPARED = ("cosine", "linear", "wsd", "elastic step", "eigencurve")
METRIC_WORDS = {PLAIN: "", OWN: ", in AdamW's metric"}


@dataclass(frozen=True, eq=False)
class Measured:
    """A network at one moment.

    Attributes:
        step: Number of training steps taken; -1 if unknown.
        metrics: Last measurements of the training run.
        file: Spectrum, its record, and noise and start if they were measured.
    """

    step: int
    metrics: Mapping[str, float]
    file: SpectrumFile


@dataclass(frozen=True, eq=False)
class Studied:
    """Everything that was measured of a network.

    Attributes:
        subject: The network.
        total_steps: Number of steps of its training; 0 if unknown.
        found: Results of each measurement.
    """

    subject: Subject
    total_steps: int
    found: Mapping[Measuring, Measured]

    @property
    def metrics(self) -> list[str]:
        """``"plain"`` and, for an adaptive optimizer, ``"own"``."""
        return list(dict.fromkeys(how.metric for how in self.found))

    def moments(self, metric: str) -> dict[str, Measured]:
        """The results of the first probe in one metric, by moment."""
        wanted = {moment: usual(self.subject, moment, metric) for moment in MOMENTS}
        return {moment: self.found[how] for moment, how in wanted.items() if how in self.found}

    def other_probe(self, metric: str) -> Measured | None:
        """The end, measured from another probe."""
        return self.found.get(usual(self.subject, END, metric, probe=1))

    def title(self, metric: str) -> str:
        """Name of the network and the metric."""
        return self.subject.title + METRIC_WORDS[metric]


def noise_page(scale: NoiseScale, studied: Sequence[Studied]) -> ResultsPage:
    """The whole page."""
    every = [(one, metric) for one in studied for metric in one.metrics]
    parts = [
        _about(scale),
        markdown_table(NETWORK_COLUMNS, [_network_row(one) for one in studied]),
        "## Is the covariance of the noise σ²H?",
        _about_covariance(),
        markdown_table(COVARIANCE_COLUMNS, [_covariance_row(*pair) for pair in every]),
        _covariance_sentence(every),
        *_sample_check(studied),
        "## How the spectrum changes during training",
        _about_training(),
        markdown_table(MOMENT_COLUMNS, [row for pair in every for row in _moment_rows(*pair)]),
        _settled_sentence(every),
        "## Which schedule the noisy quadratic calls best",
        _about_prediction(),
        markdown_table(PREDICTION_COLUMNS, [row for pair in every for row in _prediction_rows(*pair)]),
    ]
    figures, files = {}, {}
    for one, metric in every:
        name = f"noise_{one.subject.name}" + ("_own" if metric == OWN else "")
        figures[f"{name}.png"] = _figure(one, metric)
        end = one.moments(metric)[END].file
        files[f"{name}.npz"] = spectrum_bytes(end.spectrum, ".npz", end.measurement, end.noise, end.start)
        parts += [f"## {one.title(metric)}", f"![noise and schedules]({name}.png)", _octave_table(one, metric)]
    title = "Gradient noise and spectrum during training"
    return ResultsPage("noise", title, "\n\n".join(parts), figures, files, {"networks": [_values(*p) for p in every]})


def _about(scale: NoiseScale) -> str:
    return (
        "Each network is measured at the start, after a tenth and a half of its training steps, and at the end, in eval"
        " mode. The spectrum is that of the Hessian of the mean loss on the first training examples:"
        f" {scale.num_products} Hessian products from one random probe, with isolated eigenvalues counted. The noise"
        f" comes from {scale.num_samples} random sign vectors and the mean gradient of the same examples, with"
        f" {scale.num_noise_steps} products each (`estimate_noise`), for the batch size of the training. Training uses"
        " cosine decay to zero; SGD has momentum 0.9; images are cropped and flipped at random, but not for the"
        " measurements. At the start, batch norm gets the statistics of four training batches, because the initial"
        " ones (mean 0, variance 1) do not normalise in eval mode. The ResNet-20 was trained elsewhere: only its end"
        " is known, and its start is a random initialisation of ours. An example of the transformer is a window of 128"
        " bytes. CIFAR-10 is re-encoded as JPEG, except for the ResNet-20."
    )


NETWORK_COLUMNS = (
    "network", "parameters", "optimizer, peak lr", "weight decay", "batch", "steps", "examples: training",
    "measured", "test accuracy (%)", "test loss",
)  # fmt: skip


def _network_row(one: Studied) -> list[str]:
    subject, end = one.subject, one.moments(PLAIN)[END]
    known = bool(subject.epochs)
    text = subject.network == "transformer"
    return [
        subject.title, f"{end.file.spectrum.dim:,}",
        f"{ {'sgd': 'SGD', 'adamw': 'AdamW'}[subject.optimizer]}, {subject.lr:g}" if known else "–",
        f"{subject.weight_decay:g}", f"{subject.batch_size}", f"{one.total_steps:,}" if known else "–",
        "Penn Treebank's validation text" if text else f"{subject.num_train:,}" if known else "–",
        f"{subject.num_curved}", f"{100 * end.metrics['accuracy']:.1f}" if known else "92 (published)",
        f"{end.metrics['test_loss']:.3f}" if known else "–",
    ]  # fmt: skip


def _about_covariance() -> str:
    return (
        "The paper assumes that the gradient noise n satisfies E[nnᵀ] ⪯ σ²H, and its analysis is exact for equality."
        " Then σ², the trace of the covariance within an octave of |λ| + weight decay divided by the sum of the"
        " eigenvalues there, is the same in every octave, and γ = 1 in C ∝ H^γ. The table is for the end of the"
        f" training. Octaves count if the standard error of their σ² is below {ENOUGH_SIGNAL:.0%}. 'Spread' is the"
        " largest σ² divided by the smallest. One σ² is the trace of the whole covariance divided by the sum of all"
        " eigenvalues."
    )


COVARIANCE_COLUMNS = (
    "network", "one σ²", "γ", "octaves", "smallest σ² (at |λ| + weight decay)", "largest σ² (at)", "spread",
)  # fmt: skip


def _covariance_row(one: Studied, metric: str) -> list[str]:
    noise = _noise(one.moments(metric)[END])
    octaves, seen = noise.octaves, resolved(noise)
    middle, level = octaves.lower[seen] * math.sqrt(2), octaves.sigma2[seen]
    low, high = int(np.argmin(level)), int(np.argmax(level))
    return [
        one.title(metric), _pm(noise.sigma2, noise.sigma2_error), _exponent(noise), f"{len(level)}",
        f"{level[low]:.2e} ({middle[low]:.2g})", f"{level[high]:.2e} ({middle[high]:.2g})", f"{spread(noise):.3g}",
    ]  # fmt: skip


def resolved(noise: NoiseEstimate) -> Array:
    """The octaves with enough signal, as a mask; all of them if there are none."""
    good = noise.octaves.error < ENOUGH_SIGNAL * noise.octaves.sigma2
    return np.asarray(good if good.any() else np.ones_like(good))


def spread(noise: NoiseEstimate) -> float:
    """The largest noise level of an octave with enough signal, divided by the smallest."""
    level = noise.octaves.sigma2[resolved(noise)]
    return float(level.max() / max(float(level.min()), np.finfo(float).tiny))


def _covariance_sentence(every: Sequence[tuple[Studied, str]]) -> str:
    noises = {one.title(metric): _noise(one.moments(metric)[END]) for one, metric in every}
    flat = [name for name, noise in noises.items() if spread(noise) <= FLAT]
    steep = {name: noise for name, noise in noises.items() if abs(noise.exponent - 1) > 2 * noise.exponent_error}
    spreads = [spread(noise) for noise in noises.values()]
    verdict = f"holds within a factor of {FLAT:g} for {'; '.join(flat)}" if flat else "holds for none of the networks"
    slopes = "; ".join(f"{name} ({_exponent(noise)})" for name, noise in steep.items()) or "none"
    return (
        f"Equality, E[nnᵀ] = σ²H with one σ², {verdict}. Over all networks, σ² varies between octaves by factors of"
        f" {min(spreads):.2g} to {max(spreads):.2g}. γ differs from 1 by more than two standard errors for: {slopes}."
        " The inequality E[nnᵀ] ⪯ σ²H holds with the largest σ² of the table, which is then a loose bound in the other"
        " octaves. `NoisyQuadratic(noise=…)` uses the σ² of every octave and needs neither."
    )


def _sample_check(studied: Sequence[Studied]) -> list[str]:
    checked = [one for one in studied if fewer_examples(one.subject) in one.found]
    if not checked:
        return []
    columns = (
        "network", "examples of H", "of the noise", "L", "one σ²", "γ", "spread", "max abs ln f/f_first",
    )  # fmt: skip
    return [
        "The numbers depend on the examples. The next table has the end of the training once more: as above, with a"
        " quarter of the examples, and with the noise of more examples than the Hessian. The Hessian of n examples does"
        " not see all directions in which the gradients of other examples scatter. Their noise falls into flat"
        " directions, and γ is no longer that of one loss. So the Hessian and the noise have the same examples in the"
        " other tables: they are those of training on these examples alone. The last column compares the Eigencurve"
        f" schedules at T = {TYPICAL_STEPS:,}.",
        markdown_table(columns, [row for one in checked for row in _sample_rows(one)]),
    ]


def _sample_rows(one: Studied) -> list[list[str]]:
    ways = [usual(one.subject, END), fewer_examples(one.subject), noisier_examples(one.subject)]
    first, rows = one.found[ways[0]], []
    for how in ways:
        measured = one.found[how]
        noise = _noise(measured)
        prepared = prepare(measured.file.spectrum, noise.weight_decay)
        rows.append([
            one.subject.title, f"{how.num_curved}", f"{how.num_noisy:,}", f"{prepared.L:.3g}",
            _pm(noise.sigma2, noise.sigma2_error), _exponent(noise), f"{spread(noise):.3g}",
            f"{distance(measured, first, noise.weight_decay, TYPICAL_STEPS):.2f}",
        ])  # fmt: skip
    return rows


def _about_training() -> str:
    return (
        "L is the largest eigenvalue and κ the condition number, both of |λ| + weight decay. 'Negative' is the share of"
        " negative eigenvalues, and their share of the sum of |λ|. The distance to the end is max |ln f/f_end| between"
        " the Eigencurve schedules (β = 2) of the moment and of the end, for a run as long as this one and for"
        f" T = {TYPICAL_STEPS:,}. In the rows of the end, it is the distance between two random probes: predicted by"
        " the estimate and, after the slash, measured with a second probe."
    )


MOMENT_COLUMNS = (
    "network", "moment", "steps", "test accuracy (%)", "L", "κ", "negative", "σ²", "γ", "critical batch size",
    "distance to the end, own T", f"distance, T = {TYPICAL_STEPS:,}",
)  # fmt: skip


def _moment_rows(one: Studied, metric: str) -> list[list[str]]:
    return [_moment_row(one, metric, moment, measured) for moment, measured in one.moments(metric).items()]


def _moment_row(one: Studied, metric: str, moment: str, measured: Measured) -> list[str]:
    noise, raw = _noise(measured), measured.file.spectrum
    prepared = prepare(raw, noise.weight_decay)
    below = raw.eigenvalues < 0
    sizes = raw.weights * np.abs(raw.eigenvalues)
    accuracy = measured.metrics.get("accuracy")
    return [
        one.title(metric), moment, f"{measured.step:,}" if measured.step >= 0 else "–",
        "–" if accuracy is None else f"{100 * accuracy:.1f}", f"{prepared.L:.3g}", f"{prepared.kappa:.2g}",
        f"{raw.weights[below].sum():.0%}, {sizes[below].sum() / sizes.sum():.1%}",
        _pm(noise.sigma2, noise.sigma2_error), _exponent(noise), _critical(noise),
        *_distances(one, metric, moment, measured),
    ]  # fmt: skip


def _distances(one: Studied, metric: str, moment: str, measured: Measured) -> list[str]:
    end, decay = one.moments(metric)[END], decay_in(one.subject, metric)
    if moment == END:
        other, record = one.other_probe(metric), measured.file.measurement
        predicted = "–" if record is None else f"{record.across:.2f}"
        seen = "–" if other is None else f"{distance(other, end, decay, TYPICAL_STEPS):.2f}"
        own = "–" if other is None or not one.total_steps else f"{distance(other, end, decay, one.total_steps):.2f}"
        return [f"– / {own}", f"{predicted} / {seen}"]
    own = f"{distance(measured, end, decay, one.total_steps):.2f}" if one.total_steps else "–"
    return [own, f"{distance(measured, end, decay, TYPICAL_STEPS):.2f}"]


def distance(first: Measured, second: Measured, weight_decay: float, total_steps: int) -> float:
    """Largest |ln f/g| between the Eigencurve schedules of two measurements."""
    curves = [log_curve(one.file.spectrum, weight_decay, total_steps) for one in (first, second)]
    return float(np.abs(curves[0] - curves[1]).max())


def _settled_sentence(every: Sequence[tuple[Studied, str]]) -> str:
    found = {
        one.title(metric): distance(
            one.moments(metric)[TENTH], one.moments(metric)[END], decay_in(one.subject, metric), TYPICAL_STEPS
        )
        for one, metric in every
        if TENTH in one.moments(metric)
    }
    near = [name for name, gap in found.items() if gap <= math.log1p(NEAR)]
    gaps = "; ".join(f"{name}: {gap:.2f}" for name, gap in found.items())
    count = f"{len(near)} of {len(found)}"
    return (
        f"Is the schedule after a tenth of the training within {NEAR:.0%} of the final one? For {count}"
        f" ({gaps}, at T = {TYPICAL_STEPS:,})."
    )


def _about_prediction() -> str:
    return (
        "Expected loss of SGD without momentum on the noisy quadratic with the spectrum and the noise of the moment,"
        " and with the initial error from the start to the end of this training, measured at the end. Every schedule"
        " has the steps of the training and its best peak rate up to 2/L. Numbers are losses divided by that of the"
        " numerically best schedule, whose own gap to the lower bound is in the last column. The ResNet-20 has no"
        " known start."
    )


PREDICTION_COLUMNS = ("network", "moment", *COMPARED, "best: gap to the bound")


def _prediction_rows(one: Studied, metric: str) -> list[list[str]]:
    start = one.moments(metric)[END].file.start
    if start is None:
        return []
    return [
        [one.title(metric), moment, *_prediction(measured, start, one.total_steps)]
        for moment, measured in one.moments(metric).items()
    ]


def _prediction(measured: Measured, start: StartEstimate, total_steps: int) -> list[str]:
    noise = _noise(measured)
    prepared = prepare(measured.file.spectrum, noise.weight_decay)
    quadratic = NoisyQuadratic(prepared, noise=noise, initial_error=start)
    usual = usual_schedules(prepared, total_steps, 1 / prepared.L)
    table = quadratic.compare({name: usual[name] for name in COMPARED}, tune_lr=True)
    best = quadratic.search_best(total_steps, quadratic.stable_rate)
    losses = [table[name].loss for name in COMPARED]
    gap = "–" if best.gap is None else f"{best.gap:.1%}"
    return [*("diverged" if loss is None else f"{loss / best.loss:.3f}" for loss in losses), gap]


def _figure(one: Studied, metric: str) -> object:
    moments = one.moments(metric)
    decay, steps = decay_in(one.subject, metric), one.total_steps or TYPICAL_STEPS
    noises = {moment: _noise(measured) for moment, measured in moments.items()}
    curves = {m: eigencurve(prepare(measured.file.spectrum, decay), steps, lr=1.0) for m, measured in moments.items()}
    return noise_figure(noises, curves, one.title(metric))


def _octave_table(one: Studied, metric: str) -> str:
    """σ² of every octave at every moment, each octave by its lower edge in units of the weight decay."""
    columns = {moment: _levels(_noise(measured)) for moment, measured in one.moments(metric).items()}
    decay = decay_in(one.subject, metric)
    rows = [
        [f"{decay * 2.0**octave:.3g}", *(levels.get(octave, "–") for levels in columns.values())]
        for octave in sorted({octave for levels in columns.values() for octave in levels})
    ]
    return "σ² by lower edge of |λ| + weight decay:\n\n" + markdown_table(("from", *columns), rows)


def _levels(noise: NoiseEstimate) -> dict[int, str]:
    octaves = noise.octaves
    places = np.round(np.log2(octaves.lower / noise.weight_decay)).astype(int)
    rows = zip(places.tolist(), octaves.sigma2, octaves.error, strict=True)
    return {place: _pm(level, error) for place, level, error in rows}


def _noise(measured: Measured) -> NoiseEstimate:
    if measured.file.noise is None:
        raise ValueError("the measurement has no noise")
    return measured.file.noise


def _pm(value: float, error: float) -> str:
    return f"{value:.2e} ± {error:.1e}"


def _exponent(noise: NoiseEstimate) -> str:
    return "–" if math.isnan(noise.exponent) else f"{noise.exponent:.2f} ± {noise.exponent_error:.2f}"


def _critical(noise: NoiseEstimate) -> str:
    size = noise.critical_batch_size
    if math.isnan(size):
        return "undefined"
    if math.isinf(size):
        return "not resolved"
    return f"{size:,.0f} ± {size * noise.gradient_curvature_error / noise.gradient_curvature:,.0f}"


def _values(one: Studied, metric: str) -> dict[str, object]:
    rows = [dict(zip(MOMENT_COLUMNS, row, strict=True)) for row in _moment_rows(one, metric)]
    return {"network": one.title(metric), "total_steps": one.total_steps, "moments": rows}
