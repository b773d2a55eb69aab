"""The first section of every report: which schedule to use, compared with which, and what the answer is based on."""

from __future__ import annotations

from eigencurve.planning.answer import Plan
from eigencurve.planning.plan_view import BASIS, TABLE, basis_rows, code_line, recommended_place, table_rows
from eigencurve.planning.snippets import snippet
from eigencurve.report.page import Markup, Section, code_block, note, paragraph, table, tag, with_commands

# A schedule with more numbers than fit into this many characters is better loaded from a file.
MOST_CODE = 1500
FROM_FILE = (
    "The recommended schedule has many steps of its own. Write it to a file with `eigencurve plan … -o schedule.json`, "
    "and print code for your framework with `eigencurve schedule --load schedule.json --code torch`."
)


def plan_section(plan: Plan) -> Section:
    """Build the section with the verdict of a plan, its table, its inputs and its notes."""
    return Section(
        "Which schedule to use",
        [
            tag("p", *with_commands(plan.verdict), class_="verdict"),
            _table(plan),
            *(note(*with_commands(sentence)) for sentence in plan.notes),
            _basis(plan),
            *_code(plan),
        ],
    )


def _table(plan: Plan) -> Markup:
    rows = table_rows(plan)
    return table(TABLE, list(rows[0]), [list(row.values()) for row in rows], marked=recommended_place(plan))


def _basis(plan: Plan) -> Markup:
    rows = basis_rows(plan)
    return table(BASIS, list(rows[0]), [list(row.values()) for row in rows], text_columns=3)


def _code(plan: Plan) -> list[Markup]:
    if sum(map(len, plan.statements())) > MOST_CODE:
        return [paragraph(*with_commands(FROM_FILE))]
    return [paragraph(code_line(plan)), code_block(snippet("torch", plan))]
