"""The part about what theory expects: losses, the certificate, the best rates."""

from __future__ import annotations

from eigencurve.figures.losses import losses_figure
from eigencurve.figures.rates import rates_figure
from eigencurve.planning.expectation import BEST
from eigencurve.planning.subject import Subject
from eigencurve.report.page import Markup, Section, figure, note, paragraph, table
from eigencurve.report.svg import inline_svg
from eigencurve.theory.comparison import Comparison, ComparisonRow

MOST_CURVES = 6


def expectation_section(subject: Subject, compared: Comparison, noise: float, lr: float) -> Section:
    """Expected losses beside the certificate, and the rates at which the best schedules do best."""
    limit = 2 / subject.spectrum.L
    blocks = [
        paragraph(
            f"On the quadratic loss that has this spectrum, with gradient noise of the same shape (σ² = {noise:g}), the"
            " loss that SGD is expected to end at can be computed exactly for any schedule. Each schedule is taken at"
            f" the peak rate, up to {compared.max_lr:.4g}, at which it does best. The certificate is a loss that no"
            " schedule with such rates can be expected to beat: what is above it is all that is left to gain."
        )
    ]
    if lr > limit:
        blocks.append(
            note(
                f"The peak rate {lr:g} of the schedule above is higher than 2/L = {limit:.4g}, beyond which plain SGD"
                " diverges on this quadratic. Networks often train at such rates, for their curvature adapts to the"
                " rate; that part of training is not described here."
            )
        )
    return Section("What to expect", [*blocks, _figure(compared), _table(compared), _best_rates(compared)])


def _finite(compared: Comparison) -> list[ComparisonRow]:
    return [row for row in compared.rows if row.loss is not None]


def _figure(compared: Comparison) -> Markup:
    losses = ", ".join(f"{row.name} {row.loss:.4g}" for row in _finite(compared))
    bound = "" if compared.lower_bound is None else f" Certificate: {compared.lower_bound:.4g}."
    picture = inline_svg(losses_figure(compared), "losses", f"Bar chart of expected losses: {losses}.{bound}")
    return figure(picture, "Expected losses, the lowest on top. No bar can end left of the dashed line.")


def _table(compared: Comparison) -> Markup:
    rows = [_cells(row) for row in compared.rows]
    if compared.lower_bound is not None:
        rows.append(["certificate", f"{compared.max_lr:.4g}", f"{compared.lower_bound:.5g}", "", "", ""])
    columns = ["schedule", "peak rate", "expected loss", "bias", "variance", "above the certificate"]
    return table(f"Expected loss per parameter after {compared.total_steps:,} steps", columns, rows)


def _cells(row: ComparisonRow) -> list[str]:
    if row.loss is None:
        return [row.name, f"{row.peak:.4g}", row.status, "", "", ""]
    gap = "" if row.gap is None else f"{row.gap:.2%}"
    return [row.name, f"{row.peak:.4g}", f"{row.loss:.5g}", f"{row.bias:.4g}", f"{row.variance:.4g}", gap]


def _best_rates(compared: Comparison) -> Markup:
    best = _finite(compared)[:MOST_CURVES]
    shown = {row.name: row.schedule for row in sorted(best, key=lambda row: row.name != BEST)}
    text = f"Line chart of learning rates, logarithmic axis, each schedule at its best rate: {', '.join(shown)}."
    picture = inline_svg(rates_figure(shown, "log"), "tuned", text)
    return figure(picture, f"The {len(shown)} best of them, each at the rate at which it does best.")
