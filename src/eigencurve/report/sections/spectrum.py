"""The part about the spectrum: facts, octaves with error bars, the negative part, the table."""

from __future__ import annotations

from eigencurve.figures.spectra import negative_panel, octave_panel
from eigencurve.planning.subject import Subject
from eigencurve.report.page import Markup, Section, facts, figure, paragraph, side_by_side, table
from eigencurve.report.svg import inline_svg
from eigencurve.spectrum.describe import SpectrumDescription, describe_spectrum
from eigencurve.spectrum.power_law import PowerLaw, fit_power_law

INTRODUCTION = (
    "An eigenvalue of the Hessian says how strongly the loss curves in one direction of the parameters. Most directions"
    " of a network are nearly flat and a few are steep, and one learning rate has to suit them all: large enough to"
    " move along the flat ones, small enough in the end not to shake in the steep ones. Each bar is the share of the"
    " directions whose eigenvalue lies within a factor of two, an octave."
)
LETTERS = (
    "κ = L/μ is how unequal the directions are. The extra term, (Σ √s)² over the shares s of the octaves, is how far"
    " the guarantee for this schedule stays above the best rate that any method can have; 1 would be perfect."
)
NEGATIVE = (
    " A few are to be expected where training stops near a minimum and not at it; their absolute value is used. Many,"
    " or large ones, mean that this was measured far from a minimum and may not speak for the end of training."
)


def spectrum_section(subject: Subject) -> Section:
    """The eigenvalues by octaves."""
    described = describe_spectrum(subject.spectrum, subject.fraction_negative)
    blocks = [
        paragraph(INTRODUCTION),
        facts(_facts(described)),
        paragraph(LETTERS),
        side_by_side(*_figures(subject, described)),
        _table(subject, described),
        paragraph(_origin(subject)),
    ]
    return Section("How the loss curves", blocks)


def _facts(described: SpectrumDescription) -> list[tuple[str, str]]:
    law = "none" if described.exponent is None else f"{described.exponent:.3f} ± {described.exponent_error:.1g}"
    return [
        ("parameters d", "unknown" if described.dim is None else f"{described.dim:,}"),
        ("smallest eigenvalue μ", f"{described.mu:.4g}"),
        ("largest eigenvalue L", f"{described.L:.4g}"),
        ("condition number κ", f"{described.kappa:.4g}"),
        ("negative as measured", f"{described.fraction_negative:.2%}"),
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
        shown.append(figure(picture, f"The negative part alone, {share} of all eigenvalues, by size.{NEGATIVE}"))
    return shown


def _caption(subject: Subject) -> str:
    caption = "Share of the eigenvalues per octave" + (", the weight decay added." if subject.weight_decay else ".")
    if subject.octaves is not None:
        caption += " Error bars: one standard error, from the probes and from the steps together."
    if isinstance(subject.prepared, PowerLaw) or subject.prepared.kappa == 1:
        return caption
    law = fit_power_law(subject.prepared)
    return caption + (
        f" The line is the likeliest power law, exponent {law.alpha:.2f}; the shares of eigenvalues below any value"
        f" differ from its by at most {law.distance or 0.0:.1%} of all."
    )


def _table(subject: Subject, described: SpectrumDescription) -> Markup:
    octaves, measured = described.octaves, subject.octaves
    errors = {} if measured is None else dict(zip(measured.index.tolist(), measured.error.tolist(), strict=True))
    rows = [
        [str(i), f"{low:.3g}", f"{2 * low:.3g}", f"{share:.3e}", *([f"{errors[i]:.1e}"] if i in errors else [])]
        for i, low, share in zip(octaves.index.tolist(), octaves.lower.tolist(), octaves.share.tolist(), strict=True)
    ]
    columns = ["octave", "from", "to", "share", *(["standard error"] if errors else [])]
    return table("The octaves that have eigenvalues", columns, rows)


def _origin(subject: Subject) -> str:
    if isinstance(subject.shape, PowerLaw):
        return "This spectrum is assumed, not measured: a power law on [μ, L]."
    known = subject.measurement
    if known is None:
        return "Its file does not say how this spectrum was measured, so there are no error bars."
    text = f"Measured with {known.num_products} Hessian products, {known.num_distinct} distinct nodes; {known.why}."
    if subject.octaves is None:
        text += f" Its error bars are for another weight decay, {known.weight_decay:g}, and not shown."
    return text
