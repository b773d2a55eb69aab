"""Gradient noise and spectrum of several networks at the start, after a tenth, a half and at the end of training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from eigencurve import NoisyQuadratic, eigencurve
from eigencurve.hessian import keep_freed_memory
from eigencurve.schedules.kinds import schedule_of_kind
from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum import prepare
from eigencurve.spectrum.files import spectrum_bytes
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.start import StartEstimate
from paper.engine.progress import show_status
from paper.engine.request import Request
from paper.figures import noise_figure
from paper.page import ResultsPage, made_by_line, markdown_table
from paper.studies.noise_covariance import covariance_section
from paper.studies.noise_measuring import (
    OWN,
    PLAIN,
    Measured,
    Studied,
    decay_in,
    distance,
    exponent_text,
    file_of,
    load_measured,
    measure,
    measurings,
    noise_of,
    plus_minus,
)
from paper.studies.noise_training import (
    END,
    HALF,
    START,
    TENTH,
    NoiseScale,
    Subject,
    noise_scale,
    problem_of,
    state_at,
    train_subject,
)
from paper.training.devices import threads

COMMAND = "python -m paper noise"
NEAR = 0.10
COMPARED = ("cosine", "linear", "wsd", "elastic step", "eigencurve")


def make(request: Request) -> ResultsPage:
    """Train, measure and compare; finished parts are kept next to the store, so a killed study resumes."""
    keep_freed_memory()
    scale, folder = noise_scale(request.scale), request.checkpoints / "noise"
    folder.mkdir(exist_ok=True)
    with threads(1):
        studied = [study(subject, scale, request.data, folder, request.progress) for subject in scale.subjects]
    return noise_page(scale, studied)


def study(subject: Subject, scale: NoiseScale, data: Path | None, folder: Path, progress: bool = False) -> Studied:
    """Train a network and measure it at every moment, except what was done before."""
    problem = problem_of(subject, data)
    files: Mapping[str, Path] = {}
    if subject.epochs:
        show_status(f"{subject.title}: training ...", progress)
        files = train_subject(subject, problem, folder, progress)
    results = {}
    for how in measurings(subject, scale):
        state = state_at(subject, problem, files, how.moment)
        path = file_of(subject, problem, scale, how, folder)
        if not path.exists():
            probe = f", probe {how.probe}" if how.probe else ""
            about = f"{how.moment}, {how.metric}, {how.num_curved} examples{probe}"
            show_status(f"{subject.title}: {about} ...", progress)
            measure(subject, problem, scale, how, state, path, made_by_line(COMMAND))
        results[how] = Measured(state.step, state.metrics, load_measured(path))
    steps = 0 if problem.task is None else subject.epochs * problem.task.steps_per_epoch
    return Studied(subject, steps, results)


def noise_page(scale: NoiseScale, studied: Sequence[Studied]) -> ResultsPage:
    """The whole page."""
    every = [(one, metric) for one in studied for metric in one.metrics]
    parts = [
        _about(scale),
        markdown_table(NETWORK_COLUMNS, [_network_row(one) for one in studied]),
        *covariance_section(studied, every),
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
    noise, raw = noise_of(measured), measured.file.spectrum
    prepared = prepare(raw, noise.weight_decay)
    below = raw.eigenvalues < 0
    sizes = raw.weights * np.abs(raw.eigenvalues)
    accuracy = measured.metrics.get("accuracy")
    return [
        one.title(metric), moment, f"{measured.step:,}" if measured.step >= 0 else "–",
        "–" if accuracy is None else f"{100 * accuracy:.1f}", f"{prepared.L:.3g}", f"{prepared.kappa:.2g}",
        f"{raw.weights[below].sum():.0%}, {sizes[below].sum() / sizes.sum():.1%}",
        plus_minus(noise.sigma2, noise.sigma2_error), exponent_text(noise), _critical(noise),
        *_distances(one, metric, moment, measured),
    ]  # fmt: skip


def _distances(one: Studied, metric: str, moment: str, measured: Measured) -> list[str]:
    end, decay = one.moments(metric)[END], decay_in(one.subject, metric)
    if moment == END:
        other, record = one.other_probe(metric), measured.file.measurement
        predicted = "–" if record is None else f"{record.error_between_probes:.2f}"
        seen = "–" if other is None else f"{distance(other, end, decay, TYPICAL_STEPS):.2f}"
        own = "–" if other is None or not one.total_steps else f"{distance(other, end, decay, one.total_steps):.2f}"
        return [f"– / {own}", f"{predicted} / {seen}"]
    own = f"{distance(measured, end, decay, one.total_steps):.2f}" if one.total_steps else "–"
    return [own, f"{distance(measured, end, decay, TYPICAL_STEPS):.2f}"]


def _settled_sentence(every: Sequence[tuple[Studied, str]]) -> str:
    gaps = {moment: _gaps(every, moment) for moment in (START, TENTH, HALF)}
    near = [name for name, gap in gaps[TENTH].items() if gap <= math.log1p(NEAR)]
    verdict = "No" if not near else "Yes" if len(near) == len(gaps[TENTH]) else f"Only for {'; '.join(near)}"
    tenth = "; ".join(f"{name}: {gap:.2f}" for name, gap in gaps[TENTH].items())
    factors = "; ".join(
        f"{moment}: {math.exp(min(known.values())):.1f} to {math.exp(max(known.values())):.1f}"
        for moment, known in gaps.items()
        if known
    )
    return (
        f"**Is the schedule after a tenth of the training within {NEAR:.0%} of the final one? {verdict}.** The"
        f" distances at T = {TYPICAL_STEPS:,} are: {tenth}. As factors between the rates of the schedules, the"
        f" distances to the end are in these ranges: {factors}."
    )


def _gaps(every: Sequence[tuple[Studied, str]], moment: str) -> dict[str, float]:
    """Distance of the schedules of a moment to those of the end, for the networks that were trained here."""
    return {
        one.title(metric): distance(
            one.moments(metric)[moment], one.moments(metric)[END], decay_in(one.subject, metric), TYPICAL_STEPS
        )
        for one, metric in every
        if one.total_steps and moment in one.moments(metric)
    }


def _about_prediction() -> str:
    return (
        "Expected loss of SGD without momentum on the noisy quadratic with the spectrum and the noise of the moment,"
        " and with the initial error from the start to the end of this training, measured at the end. The quadratic"
        " of the end is a poor model that far away: its excess loss at the start, in the third column, is much larger"
        " than the one or two nats that the loss really falls by, so bias counts too much here. Every schedule"
        " has the steps of the training and its best peak rate up to 2/L. Numbers are losses divided by that of the"
        " numerically best schedule, whose own gap to the lower bound is in the last column. The ResNet-20 has no"
        " known start."
    )


PREDICTION_COLUMNS = ("network", "moment", "excess loss of the start", *COMPARED, "best: gap to the bound")


def _prediction_rows(one: Studied, metric: str) -> list[list[str]]:
    start = one.moments(metric)[END].file.start
    if start is None:
        return []
    return [
        [one.title(metric), moment, f"{start.loss:.3g}", *_prediction(measured, start, one.total_steps)]
        for moment, measured in one.moments(metric).items()
    ]


def _prediction(measured: Measured, start: StartEstimate, total_steps: int) -> list[str]:
    noise = noise_of(measured)
    prepared = prepare(measured.file.spectrum, noise.weight_decay)
    quadratic = NoisyQuadratic(prepared, noise=noise, initial_error=start)
    schedules = {
        name: schedule_of_kind(name.replace(" ", "_"), total_steps, 1 / prepared.L, prepared) for name in COMPARED
    }
    table = quadratic.compare(schedules, tune_lr=True)
    best = quadratic.search_best(total_steps, quadratic.stable_rate)
    losses = [table[name].loss for name in COMPARED]
    gap = "–" if best.gap is None else f"{best.gap:.1%}"
    return [*("diverged" if loss is None else f"{loss / best.loss:.3f}" for loss in losses), gap]


def _figure(one: Studied, metric: str) -> object:
    moments = one.moments(metric)
    decay, steps = decay_in(one.subject, metric), one.total_steps or TYPICAL_STEPS
    noises = {moment: noise_of(measured) for moment, measured in moments.items()}
    curves = {m: eigencurve(prepare(measured.file.spectrum, decay), steps, lr=1.0) for m, measured in moments.items()}
    return noise_figure(noises, curves, one.title(metric))


def _octave_table(one: Studied, metric: str) -> str:
    """σ² of every octave at every moment, each octave by its lower edge in units of the weight decay."""
    columns = {moment: _levels(noise_of(measured)) for moment, measured in one.moments(metric).items()}
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
    return {place: plus_minus(level, error) for place, level, error in rows}


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
