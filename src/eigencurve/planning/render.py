"""A Plan as text, Markdown and HTML; it computes nothing that decides."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eigencurve import _check
from eigencurve._files import write_atomically
from eigencurve._html import Markup, Section, code_block, facts, figure, page, paragraph, table, tag
from eigencurve.runs.origin import origin_here
from eigencurve.schedules.base import Schedule
from eigencurve.spectrum.describe import SpectrumDescription, describe_spectrum

if TYPE_CHECKING:
    from eigencurve.planning.result import Plan
    from eigencurve.spectrum.source import SpectrumSource

WIDTH = 100
TABLE = "Expected loss relative to the recommended schedule, each at the peak rate shown; a minus means lower"
BASIS = "What the answer is based on"
# A schedule with more numbers than fit into this many characters is better loaded from a file.
MOST_CODE = 1500
FROM_FILE = (
    "The recommended schedule has many steps of its own. Write it to a file with `eigencurve plan … -o schedule.json`, "
    "and print code for your framework with `eigencurve schedule --load schedule.json --code torch`."
)
SPECTRUM = (
    "An eigenvalue of the Hessian measures how strongly the loss curves along one direction in parameter space. Most "
    "directions of a network are nearly flat and a few are steep, and one learning rate has to suit them all. The "
    "condition number κ = L/μ measures how unequal they are. The extra term, (Σ √s)² over the shares s of the octaves, "
    "is the factor between the theory's guarantee for Eigencurve and the best convergence rate of any method; 1 is "
    "ideal."
)
# Curves in a chart, the points of each, and the size of the chart.
MOST_CURVES, NUM_POINTS = 5, 240
CHART_WIDTH, CHART_HEIGHT, MARGIN = 680, 300, 56
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
LABEL_STYLE = "font:12px sans-serif;fill:currentColor"
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 5")


def text(plan: Plan) -> str:
    """The plan for a terminal."""
    width = max(len(entry.name) for entry in plan.inputs)
    inputs = [
        f"  {entry.name:<{width}}  {entry.source:<8}  {entry.value}" + (f" ({entry.effect})" if entry.effect else "")
        for entry in plan.inputs
    ]
    parts = [_wrapped(plan.verdict), "", str(plan.table), "", "Based on:", *inputs]
    return "\n".join([*parts, *(_wrapped(f"Warning: {sentence}") for sentence in plan.warnings)])


def _wrapped(sentences: str) -> str:
    """Lines that break at spaces only, so that commands can be copied."""
    return textwrap.fill(sentences, WIDTH, break_on_hyphens=False)


def markdown(plan: Plan) -> str:
    """The plan as Markdown."""
    columns, rows = table_cells(plan)
    basis_columns, basis = input_cells(plan)
    parts = [
        f"**{plan.verdict}**",
        _markdown_table(columns, rows),
        f"{BASIS}: {plan.evidence.sentence}",
        _markdown_table(basis_columns, basis),
        "\n".join(f"- {sentence}" for sentence in plan.warnings),
        f"```python\n{plan.code()}```" if has_short_code(plan) else FROM_FILE,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def notebook(plan: Plan) -> str:
    """The plan as a fragment of HTML: the verdict, the table, the curves and the warnings."""
    warnings = [paragraph(f"⚠ {sentence}") for sentence in plan.warnings]
    return tag("div", paragraph(plan.verdict), _table(plan), _chart(plan), *warnings)


def html_page(plan: Plan, command: str = "") -> str:
    """The plan as one self-contained HTML page; see :meth:`Plan.to_html`."""
    sections = [
        Section("Which schedule to use", [paragraph(plan.verdict, class_="verdict"), _table(plan), *_warnings(plan)]),
        Section("The schedule", [_chart(plan)]),
        *([] if plan.spectrum is None else [_spectrum_section(plan.spectrum)]),
        Section("What it is based on", [paragraph(plan.evidence.sentence), _basis(plan)]),
        Section("Code", _code(plan)),
        Section("Settings and versions", _settings(plan, command)),
    ]
    about = "" if plan.spectrum is None else f" of {plan.spectrum.name}"
    return page(f"A schedule for {plan.schedule.total_steps:,} steps{about}", sections)


def save(plan: Plan, path: Path) -> None:
    """Write the plan to a file in the format of its ending; see :meth:`Plan.save`."""
    writers: dict[str, Callable[[], str]] = {
        ".html": plan.to_html,
        ".md": plan.to_markdown,
        ".json": lambda: json.dumps(plan.to_dict(), indent=1) + "\n",
        ".py": plan.code,
    }
    suffix = _check.choice("save", "path", path.suffix.lower(), tuple(writers))
    write_atomically(path, writers[suffix]().encode())


def table_cells(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Names of the columns and cells of the rows of the table."""
    columns = plan.table.columns()
    return list(columns), [list(cells) for cells in zip(*columns.values(), strict=True)]


def input_cells(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Names of the columns and cells of the rows of the inputs."""
    rows = [[e.name, e.source, e.value + (f"; {e.effect}" if e.effect else "")] for e in plan.inputs]
    return ["input", "source", "value"], rows


def has_short_code(plan: Plan) -> bool:
    """Whether the numbers of the schedule fit into code that people read."""
    return len(repr(plan.schedule.to_dict())) <= MOST_CODE


def _markdown_table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |" for cells in lines)


def _table(plan: Plan) -> Markup:
    columns, rows = table_cells(plan)
    return table(TABLE, columns, rows, marked=[row.name for row in plan.table.rows].index(plan.name))


def _basis(plan: Plan) -> Markup:
    columns, rows = input_cells(plan)
    return table(BASIS, columns, rows, text_columns=3)


def _warnings(plan: Plan) -> list[Markup]:
    return [paragraph(sentence, class_="note") for sentence in plan.warnings]


def _code(plan: Plan) -> list[Markup]:
    if not has_short_code(plan):
        return [paragraph(FROM_FILE)]
    own = ", with your optimizer" if plan.optimizer is None else ""
    return [paragraph(f"Code that trains with this schedule{own}:"), code_block(plan.code())]


def _settings(plan: Plan, command: str) -> list[Markup]:
    origin = origin_here()
    versions = {**origin.versions, **({"revision": origin.revision} if origin.revision else {})}
    source = plan.spectrum
    settings = {
        "command": command,
        "schedule": plan.schedule.kind,
        "steps": f"{plan.schedule.total_steps:,}",
        "spectrum": "" if source is None else source.heading,
        "measured on": "" if source is None else source.about,
        "measured by": "" if source is None or source.measurement is None else source.measurement.made_by,
    }
    return [
        table(name, columns, [list(pair) for pair in pairs.items() if pair[1]], text_columns=2)
        for name, columns, pairs in (
            ("Settings", ("setting", "value"), settings),
            ("Versions", ("package", "version"), versions),
        )
    ]


def _spectrum_section(source: SpectrumSource) -> Section:
    described = describe_spectrum(source.spectrum, source.fraction_negative, source.octaves)
    law = "none" if described.exponent is None else f"{described.exponent:.3f} ± {described.exponent_error:.1g}"
    pairs = [
        ("parameters d", "unknown" if described.dim is None else f"{described.dim:,}"),
        ("smallest eigenvalue μ", f"{described.mu:.4g}"),
        ("largest eigenvalue L", f"{described.L:.4g}"),
        ("condition number κ", f"{described.kappa:.4g}"),
        ("measured negative", f"{described.fraction_negative:.2%} of the eigenvalues{source.negative_text}"),
        ("extra term", f"{described.extra_term:.2f}"),
        ("power-law exponent", law),
    ]
    blocks = [paragraph(SPECTRUM), facts(pairs), _octaves(described), paragraph(_origin(source))]
    return Section("Curvature of the loss", blocks)


def _octaves(described: SpectrumDescription) -> Markup:
    octaves, errors = described.octaves, described.errors
    rows = [
        [str(i), f"{low:.3g}", f"{2 * low:.3g}", f"{share:.3e}"]
        for i, low, share in zip(octaves.index.tolist(), octaves.lower.tolist(), octaves.share.tolist(), strict=True)
    ]
    columns = ["octave", "from", "to", "share"]
    if errors is not None:
        columns.append("standard error")
        rows = [[*row, f"{error:.1e}"] for row, error in zip(rows, errors.tolist(), strict=True)]
    return table("Octaves that contain eigenvalues", columns, rows)


def _origin(source: SpectrumSource) -> str:
    record = source.measurement
    if source.is_law:
        return "This spectrum is a power law on [μ, L], assumed and not measured."
    if record is None:
        return "The file of this spectrum does not record how it was measured, so there are no standard errors."
    metric = f" in the metric of {source.metric}, P^(-1/2) H P^(-1/2)," if source.metric else ""
    sentence = f"Measured{metric} with {record.num_products} Hessian products, {record.num_distinct} distinct nodes; "
    if source.octaves is None:
        decay = f"they belong to another weight decay ({record.weight_decay:g})"
        return f"{sentence}{record.why}. Its standard errors are not shown, because {decay}."
    return f"{sentence}{record.why}."


def _chart(plan: Plan) -> Markup:
    others = [row for row in plan.table.rows if row.name != plan.name][: MOST_CURVES - 1]
    shown = {plan.label: plan.schedule, **{row.label: row.schedule for row in others}}
    caption = f"Learning rates over {plan.schedule.total_steps:,} steps: {', '.join(shown)}."
    return figure(curves_svg(shown, caption), caption)


def curves_svg(schedules: Mapping[str, Schedule], description: str) -> Markup:
    """Learning rates along the run as an inline SVG of polylines, in the colours of the page.

    Args:
        schedules: Schedules of one length by label; the first is drawn on top.
        description: Text for screen readers.
    """
    total = max(schedule.total_steps for schedule in schedules.values())
    top = max(float(schedule.values().max()) for schedule in schedules.values())
    right, bottom = CHART_WIDTH - 10, CHART_HEIGHT - 30
    lines, legend = [], []
    for place, (label, schedule) in enumerate(schedules.items()):
        colour = f"stroke:var(--c{place}, {COLOURS[place]});stroke-dasharray:{DASHES[place] or 'none'}"
        steps = np.unique(np.linspace(0, schedule.total_steps - 1, NUM_POINTS).round().astype(np.int64))
        x = MARGIN + (right - MARGIN) * steps / max(total - 1, 1)
        y = bottom - (bottom - 10) * schedule(steps) / top
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        style = f"fill:none;stroke-width:{2.5 if place == 0 else 1.5};{colour}"
        lines.append(tag("polyline", points=points, style=style))
        height = bottom + 24 + 18 * (place + 1)
        legend.append(tag("line", x1=MARGIN, x2=MARGIN + 28, y1=height - 4, y2=height - 4, style=style))
        legend.append(_label(label, MARGIN + 36, height, "start"))
    ticks = [
        _label(f"{top:.3g}", MARGIN - 6, 14, "end"), _label("0", MARGIN - 6, bottom + 4, "end"),
        _label("0", MARGIN, bottom + 18, "middle"), _label(f"{total:,} steps", right, bottom + 18, "end"),
    ]  # fmt: skip
    frame = f"M{MARGIN},10 V{bottom} H{right}"
    axes = tag("path", d=frame, style="fill:none;stroke:var(--grid, #b0b0b0)")
    size = f"0 0 {CHART_WIDTH} {CHART_HEIGHT + 18 * len(schedules)}"
    return tag(
        "svg", tag("title", description), axes, *reversed(lines), *ticks, *legend, viewBox=size, role="img",
        aria_label=description, style=f"max-width:{CHART_WIDTH}px",
    )  # fmt: skip


def _label(words: str, x: float, y: float, anchor: str) -> Markup:
    return tag(
        "text", words, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, style="font:12px sans-serif;fill:currentColor"
    )
