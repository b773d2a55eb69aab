"""The section of the noise page on the covariance of the noise, and on how it depends on the examples."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eigencurve.schedules.units import TYPICAL_STEPS
from eigencurve.spectrum import prepare
from paper.page import markdown_table
from paper.studies.noise_measuring import (
    ENOUGH_SIGNAL,
    Measuring,
    Studied,
    distance,
    exponent_text,
    factor_text,
    fewer_examples,
    noise_of,
    noisier_examples,
    plus_minus,
    resolved,
    spread,
    usual,
)
from paper.studies.noise_training import END

FLAT = 2.0
COVARIANCE_COLUMNS = (
    "network", "one σ²", "γ", "octaves", "smallest σ² (at)", "largest σ² (at)", "spread",
)  # fmt: skip


def covariance_section(studied: Sequence[Studied], every: Sequence[tuple[Studied, str]]) -> list[str]:
    """The paragraphs and tables of the section; ``every`` has each network with each of its metrics."""
    return [
        "## Is the covariance of the noise σ²H?",
        _about_covariance(),
        markdown_table(COVARIANCE_COLUMNS, [_covariance_row(*pair) for pair in every]),
        _covariance_sentence(every),
        *_sample_check(studied),
    ]


def _about_covariance() -> str:
    return (
        "The paper assumes that the gradient noise n satisfies E[nnᵀ] ⪯ σ²H, and its analysis is exact for equality."
        " Then σ², the trace of the covariance within an octave of |λ| + weight decay divided by the sum of the"
        " eigenvalues there, is the same in every octave, and γ = 1 in C ∝ H^γ. The table is for the end of the"
        f" training. Octaves count if they are above the weight decay and the standard error of their σ² is below"
        f" {ENOUGH_SIGNAL:.0%}. The smallest and the largest σ² have their |λ| + weight decay in brackets; 'spread' is"
        " their ratio. One σ² is the trace of the whole covariance divided by the sum of all"
        " eigenvalues."
    )


def _covariance_row(one: Studied, metric: str) -> list[str]:
    noise = noise_of(one.moments(metric)[END])
    octaves, seen = noise.octaves, resolved(noise)
    middle, level = octaves.lower[seen] * math.sqrt(2), octaves.sigma2[seen]
    ends = [f"{level[at]:.2e} ({middle[at]:.2g})" for at in (level.argmin(), level.argmax())] if len(level) else "––"
    return [
        one.title(metric), plus_minus(noise.sigma2, noise.sigma2_error), exponent_text(noise), f"{len(level)}", *ends,
        factor_text(spread(noise)),
    ]  # fmt: skip


def _covariance_sentence(every: Sequence[tuple[Studied, str]]) -> str:
    noises = {one.title(metric): noise_of(one.moments(metric)[END]) for one, metric in every}
    spreads = {name: spread(noise) for name, noise in noises.items() if not math.isnan(spread(noise))}
    flat = [name for name, factor in spreads.items() if factor <= FLAT]
    steep = {name: noise for name, noise in noises.items() if abs(noise.exponent - 1) > 2 * noise.exponent_error}
    verdict = f"holds within a factor of {FLAT:g} for {'; '.join(flat)}" if flat else "holds for none of the networks"
    ends = [factor_text(end(spreads.values())) for end in (min, max)] if spreads else ["unknown", "unknown size"]
    slopes = "; ".join(f"{name} ({exponent_text(noise)})" for name, noise in steep.items()) or "none"
    return (
        f"**Equality, E[nnᵀ] = σ²H with one σ², {verdict}.** At the end of the training, σ² varies between octaves by"
        f" factors of {ends[0]} to {ends[1]}. γ differs from 1 by more than two standard errors for: {slopes}. The"
        " inequality E[nnᵀ] ⪯ σ²H holds with the largest σ² of the table, but this is a loose bound in most octaves."
        " `NoisyQuadratic(noise=…)` takes the σ² of every octave and needs neither."
    )


def _sample_check(studied: Sequence[Studied]) -> list[str]:
    checked = [one for one in studied if len(_ways(one)) > 1]
    if not checked:
        return []
    columns = (
        "network", "examples of H", "of the noise", "L", "one σ²", "γ", "spread", "max abs ln f/f_first",
    )  # fmt: skip
    return [
        "The numbers depend on the examples. The next table has the end of the training once more: as above, with a"
        " quarter of the examples, and with the noise of more examples than the Hessian. In the other tables, the"
        " Hessian and the noise have the same examples, so they are those of training on these examples alone. The"
        " covariance of n examples has a rank below n, so the flat octaves, with many more than n eigenvalues, get less"
        " noise than in training on the whole data set. The noise of other examples does not have this bias. But the"
        " Hessian of n examples is flat in directions in which the gradients of other examples scatter, so the flat"
        " octaves get noise that belongs to sharper ones of the whole data set. The ResNet-20 fits nearly all of its"
        " training examples: a few hard ones make most of its noise, and this many do not represent the others. The"
        f" last column compares the Eigencurve schedules at T = {TYPICAL_STEPS:,}.",
        markdown_table(columns, [row for one in checked for row in _sample_rows(one)]),
        _sample_sentence(checked),
    ]


def _sample_sentence(checked: Sequence[Studied]) -> str:
    exponents = [noise_of(one.results[how]).exponent for one in checked for how in _ways(one)]
    if not any(exponent > 1 for exponent in exponents) or any(exponent <= 1 for exponent in exponents):
        return "γ is not above 1 in every row: whether the noise is steeper than σ²H depends on the examples."
    return "γ is above 1 in every row that has one: the choice of the examples changes how far the noise is from σ²H."


def _sample_rows(one: Studied) -> list[list[str]]:
    first, rows = one.results[usual(one.subject, END)], []
    for how in _ways(one):
        measured = one.results[how]
        noise = noise_of(measured)
        prepared = prepare(measured.file.spectrum, noise.weight_decay)
        rows.append([
            one.subject.title, f"{how.num_curved}", f"{how.num_noisy:,}", f"{prepared.L:.3g}",
            plus_minus(noise.sigma2, noise.sigma2_error), exponent_text(noise), factor_text(spread(noise)),
            f"{distance(measured, first, noise.weight_decay, TYPICAL_STEPS):.2f}",
        ])  # fmt: skip
    return rows


def _ways(one: Studied) -> list[Measuring]:
    """The measurements of the end of the training on different examples."""
    ways = (usual(one.subject, END), fewer_examples(one.subject), noisier_examples(one.subject))
    return [how for how in ways if how in one.results]
