"""Section with the expected losses, the certificate, and the best rates."""

from __future__ import annotations

from eigencurve.figures.losses import losses_figure
from eigencurve.figures.schedules import rates_figure
from eigencurve.planning.comparison import NUMERICALLY_BEST
from eigencurve.planning.inputs import Inputs
from eigencurve.planning.limits import RateLimit
from eigencurve.report.page import Markup, Section, figure, note, paragraph, table, with_commands
from eigencurve.report.svg import inline_svg
from eigencurve.schedules.comparison import ComparisonRow, ComparisonTable

MOST_CURVES = 6


def comparison_section(
    compared: ComparisonTable,
    inputs: Inputs,
    limit: RateLimit,
    lr: float,
    momentum: float = 0.0,
    nesterov: bool = False,
) -> Section:
    """Build the section that compares schedules.

    Args:
        compared: Expected losses of the schedules.
        inputs: Gradient noise and start of the comparison.
        limit: Largest stable rate.
        lr: Peak learning rate of the schedule that the report is about.
        momentum: Momentum of SGD in the comparison.
        nesterov: Whether it is Nesterov momentum.
    """
    kind = f" with {'Nesterov' if nesterov else 'heavy-ball'} momentum {momentum:g}" if momentum else ""
    certificate = (
        "The certificate is a lower bound: no schedule with rates up to that limit can have a lower expected loss. The"
        " distance to it is the most that a better schedule could gain."
        if compared.lower_bound is not None
        else "There is no certificate with momentum: how much a better schedule could gain is not known."
    )
    own = "" if inputs.measured_noise is None else " The measured noise has its own σ² in every octave."
    blocks = [
        paragraph(
            "On a quadratic loss with this spectrum and gradient noise of covariance σ²H, the expected final loss of"
            f" SGD{kind} can be computed exactly for any schedule. Each schedule runs at its best peak rate up to"
            f" {compared.max_lr:.4g} ({limit}). {certificate}{own}"
        ),
        *(paragraph(*with_commands(line)) for line in inputs.lines),
    ]
    if not limit.allows(lr):
        blocks.append(note(f"The rates of the schedule above are not those of this comparison: {limit.about(lr)}."))
    return Section(
        "Comparison with other schedules", [*blocks, _figure(compared), _table(compared), _best_rates(compared)]
    )


def _finite(compared: ComparisonTable) -> list[ComparisonRow]:
    return [row for row in compared.rows if row.loss is not None]


def _figure(compared: ComparisonTable) -> Markup:
    losses = ", ".join(f"{row.name} {row.loss:.4g}" for row in _finite(compared))
    bound = "" if compared.lower_bound is None else f" Certificate: {compared.lower_bound:.4g}."
    picture = inline_svg(losses_figure(compared), "losses", f"Bar chart of expected losses: {losses}.{bound}")
    line = "" if compared.lower_bound is None else " No schedule can end to the left of the dashed line."
    return figure(picture, f"Expected losses, each schedule at its best peak rate, the lowest on top.{line}")


def _table(compared: ComparisonTable) -> Markup:
    rows = [_cells(row) for row in compared.rows]
    if compared.lower_bound is not None:
        rows.append(["certificate", f"{compared.max_lr:.4g}", f"{compared.lower_bound:.5g}", "", "", ""])
    columns = ["schedule", "peak rate", "expected loss", "bias", "variance", "above the certificate"]
    used = slice(None) if compared.lower_bound is not None else slice(-1)
    title = f"Expected loss per parameter after {compared.total_steps:,} steps"
    return table(title, columns[used], [row[used] for row in rows])


def _cells(row: ComparisonRow) -> list[str]:
    if row.loss is None:
        return [row.name, f"{row.peak_lr:.4g}", "diverged", "", "", ""]
    gap = "" if row.gap is None else f"{row.gap:.2%}"
    return [row.name, f"{row.peak_lr:.4g}", f"{row.loss:.5g}", f"{row.bias:.4g}", f"{row.variance:.4g}", gap]


def _best_rates(compared: ComparisonTable) -> Markup:
    best = _finite(compared)[:MOST_CURVES]
    shown = {row.name: row.schedule for row in sorted(best, key=lambda row: row.name != NUMERICALLY_BEST)}
    text = f"Line chart of learning rates on a logarithmic axis, each schedule at its best rate: {', '.join(shown)}."
    picture = inline_svg(rates_figure(shown, "log"), "tuned", text)
    peaks = sorted({f"{row.peak_lr:.3g}" for row in best}, key=float)
    span = peaks[0] if len(peaks) == 1 else f"{peaks[0]} to {peaks[-1]}"
    return figure(picture, f"Learning rates of the {len(shown)} best schedules, each at its best peak rate ({span}).")
