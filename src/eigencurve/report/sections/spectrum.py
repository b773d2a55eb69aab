"""Section about the spectrum: facts, octaves with error bars, the negative part, and a table."""

from __future__ import annotations

from eigencurve.figures.spectra import negative_panel, octave_panel
from eigencurve.planning.doubts import exponent_doubt, negative_doubt, settling_doubt
from eigencurve.planning.limits import RateLimit, rate_limit
from eigencurve.planning.subject import Subject
from eigencurve.report.page import Markup, Section, facts, figure, note, paragraph, side_by_side, table, with_commands
from eigencurve.report.svg import inline_svg
from eigencurve.spectrum.describe import SpectrumDescription, describe_spectrum
from eigencurve.spectrum.power_law import PowerLaw, fitted_law

INTRODUCTION = (
    "An eigenvalue of the Hessian measures how strongly the loss curves along one direction in parameter space. In a"
    " network most directions are nearly flat and a few are steep, and one learning rate has to suit them all: large"
    " enough to make progress along the flat directions, and small enough at the end not to oscillate along the steep"
    " ones. Each bar shows the share of eigenvalues in one octave, a range that spans a factor of two."
)
LETTERS = (
    "The condition number κ = L/μ measures how unequal the directions are. The extra term, (Σ √s)² over the shares s of"
    " the octaves, is the factor between the theory's guarantee for this schedule and the best convergence rate of any"
    " method; 1 is ideal."
)
NEGATIVE = (
    " A few negative eigenvalues are normal, because training stops near a minimum, not at it; the schedule uses their"
    " absolute value. Many or large ones mean that the spectrum was measured far from a minimum, so it may not describe"
    " the end of training."
)


def spectrum_section(subject: Subject, limit: RateLimit | None = None) -> Section:
    """Build the section about the spectrum.

    Args:
        subject: The spectrum.
        limit: Largest stable rate; by default that of plain SGD, or of the optimizer in whose metric it was measured.
    """
    described = describe_spectrum(subject.spectrum, subject.fraction_negative)
    blocks = [
        paragraph(INTRODUCTION),
        facts(_facts(described, limit or rate_limit(subject), subject.negative_text)),
        *(note(*with_commands(doubt)) for doubt in _doubts(subject) if doubt),
        paragraph(LETTERS),
        side_by_side(*_figures(subject, described)),
        _table(subject, described),
        paragraph(_origin(subject)),
    ]
    return Section("Curvature of the loss", blocks)


def _doubts(subject: Subject) -> tuple[str, ...]:
    return settling_doubt(subject), negative_doubt(subject), exponent_doubt(subject)


def _facts(described: SpectrumDescription, limit: RateLimit, negative: str) -> list[tuple[str, str]]:
    law = "none" if described.exponent is None else f"{described.exponent:.3f} ± {described.exponent_error:.1g}"
    return [
        ("parameters d", "unknown" if described.dim is None else f"{described.dim:,}"),
        ("smallest eigenvalue μ", f"{described.mu:.4g}"),
        ("largest eigenvalue L", f"{described.L:.4g}"),
        (f"largest stable rate {limit.formula}", f"{limit.rate:.4g}"),
        ("condition number κ", f"{described.kappa:.4g}"),
        ("measured negative", f"{described.fraction_negative:.2%} of the eigenvalues{negative}"),
        ("extra term", f"{described.extra_term:.2f}"),
        ("power-law exponent", law),
    ]


def _figures(subject: Subject, described: SpectrumDescription) -> list[Markup]:
    shares = described.octaves
    text = (
        f"Bar chart on logarithmic axes: the share of eigenvalues in each of {len(shares)} octaves, from "
        f"{shares.share[0]:.3g} at {shares.lower[0]:.3g} to {shares.share[-1]:.3g} at {shares.lower[-1]:.3g}."
    )
    shown = [figure(inline_svg(octave_panel(subject), "octaves", text), _caption(subject))]
    if subject.fraction_negative > 0:
        share = f"{subject.fraction_negative:.2%}"
        text = f"Bar chart on logarithmic axes: the negative eigenvalues, {share} of all, by octave of their size."
        picture = inline_svg(negative_panel(subject), "negative", text)
        shown.append(figure(picture, f"Negative eigenvalues, {share} of all, by absolute value.{NEGATIVE}"))
    return shown


def _caption(subject: Subject) -> str:
    caption = "Share of the eigenvalues per octave" + (", including the weight decay." if subject.weight_decay else ".")
    if subject.octaves is not None:
        caption += " Error bars: one standard error, combined from the random probes and the Lanczos steps."
    if isinstance(subject.prepared, PowerLaw) or subject.prepared.kappa == 1:
        return caption
    law = fitted_law(subject.prepared)
    return caption + (
        f" The line is the maximum-likelihood power law, exponent {law.alpha:.2f}; its cumulative distribution differs"
        f" from the measured one by at most {law.distance or 0.0:.1%}."
    )


def _table(subject: Subject, described: SpectrumDescription) -> Markup:
    octaves, measured = described.octaves, subject.octaves
    errors = {} if measured is None else dict(zip(measured.index.tolist(), measured.error.tolist(), strict=True))
    rows = [
        [str(i), f"{low:.3g}", f"{2 * low:.3g}", f"{share:.3e}", *([f"{errors[i]:.1e}"] if i in errors else [])]
        for i, low, share in zip(octaves.index.tolist(), octaves.lower.tolist(), octaves.share.tolist(), strict=True)
    ]
    columns = ["octave", "from", "to", "share", *(["standard error"] if errors else [])]
    return table("Octaves that contain eigenvalues", columns, rows)


def _origin(subject: Subject) -> str:
    if isinstance(subject.raw, PowerLaw):
        return "This spectrum is a power law on [μ, L], assumed and not measured."
    known = subject.measurement
    if known is None:
        return "The file of this spectrum does not record how it was measured, so there are no error bars."
    metric = f" in the metric of {known.preconditioner}, P^(-1/2) H P^(-1/2)," if known.preconditioner else ""
    nodes = f"{known.num_products} Hessian products, {known.num_distinct} distinct nodes"
    text = f"Measured{metric} with {nodes}; {known.why}."
    if subject.octaves is None:
        text += f" Its error bars are not shown, because they belong to another weight decay ({known.weight_decay:g})."
    return text
