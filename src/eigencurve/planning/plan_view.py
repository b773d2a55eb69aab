"""A plan as text to show: the cells of its table and of its inputs, shared by the report and the studio."""

from __future__ import annotations

from eigencurve.planning.answer import Plan, PlanInput, PlanRow
from eigencurve.planning.limits import RateLimit
from eigencurve.schedules.sampling import peak_rate

TABLE = "Expected loss relative to the recommended schedule, each at the peak rate shown; a minus means lower"
BASIS = "What the answer is based on"


def table_rows(plan: Plan) -> list[dict[str, str]]:
    """The table of a plan, best first: schedule, peak rate, forecast loss if it is known, loss behind, and interval."""
    known = any(row.loss is not None for row in plan.table)
    return [_table_row(row, row.name == plan.name, known) for row in plan.table]


def basis_rows(plan: Plan) -> list[dict[str, str]]:
    """The inputs of a plan: name, source, value, and what changes if an assumed one is off by a factor of ten."""
    return [_basis_row(known) for known in plan.inputs]


def recommended_place(plan: Plan) -> int:
    """The place of the recommended schedule in the table."""
    return [row.name for row in plan.table].index(plan.name)


def code_line(plan: Plan) -> str:
    """A line above the code of a plan. Logs do not tell the optimizer, so the code leaves it to the reader."""
    own = ", with your optimizer" if plan.optimizer is None else ""
    return f"Code that trains with this schedule{own}:"


def percent(fraction: float) -> str:
    r"""A relative difference in percent, with three digits and a space that does not break.

    >>> percent(0.0121), percent(-0.1816), percent(1.3831), percent(0.0)
    ('+1.21\xa0%', '-18.2\xa0%', '+138\xa0%', '0\xa0%')
    """
    return f"{_number(fraction)}\u00a0%"


def rate_line(rate: float, limit: RateLimit) -> str:
    """A sentence about a peak rate: the limit of stability, and how far the rate is above it if it is.

    >>> rate_line(0.05, RateLimit(0.2, "2/L"))
    'Peak rate 0.05; largest stable rate 2/L = 0.2.'
    >>> print(rate_line(1.0, RateLimit(0.2, "2/L")).split(";")[0])
    Peak rate 1 is 5.0 times the stability limit 2/L = 0.2 of this spectrum
    """
    return f"Peak rate {rate:.4g}; {limit}." if limit.allows(rate) else f"Peak rate {limit.about(rate)}."


def _number(fraction: float) -> str:
    value = 100 * fraction
    if abs(value) < 0.005:
        return "0"
    return f"{value:+.{2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0}f}"


def _table_row(row: PlanRow, recommended: bool, losses: bool) -> dict[str, str]:
    ends = (_number(row.behind_low), _number(row.behind_high))
    span = "–" if recommended or ends[0] == ends[1] else f"{ends[0]} to {ends[1]}\u00a0%"
    loss = {} if not losses else {"loss": "–" if row.loss is None else f"{row.loss:.4g}"}
    return {
        "schedule": row.name,
        "peak rate": f"{peak_rate(row.schedule):.3g}",
        **loss,
        "loss behind": "–" if recommended else percent(row.behind),
        "interval": span,
    }


def _basis_row(known: PlanInput) -> dict[str, str]:
    effect = f"; {known.effect}" if known.effect else ""
    return {"input": known.name, "source": known.source, "value": f"{known.value}{effect}"}
