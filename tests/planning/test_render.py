import xml.etree.ElementTree as ET

import pytest
from tests.planning.logged import runs
from tests.planning.measured import NAME, measured_source

import eigencurve as ec
from eigencurve.planning.render import curves_svg


@pytest.fixture(scope="module")
def plan():
    return ec.plan(measured_source(), total_steps=60, noise=2.0)


@pytest.fixture(scope="module", params=["nothing", "spectrum", "logs"])
def any_plan(request, plan):
    if request.param == "nothing":
        return ec.plan(total_steps=100, optimizer="adamw")
    return plan if request.param == "spectrum" else ec.plan(*runs(), total_steps=500)


def tree_of(page):
    """The body of a page, which is well-formed XML."""
    return ET.fromstring(page[page.index("<body") : page.rindex("</html>")])


def words(element):
    return " ".join("".join(element.itertext()).split())


def test_the_text_begins_with_the_verdict_and_ends_with_the_warnings(any_plan):
    text = " ".join(str(any_plan).split())
    assert text.startswith(any_plan.verdict)
    assert all(row.label in text for row in any_plan.table.rows)
    assert all(f"{entry.source} {entry.value}" in text for entry in any_plan.inputs)
    assert text.endswith(f"Warning: {any_plan.warnings[-1]}")


def test_the_page_shows_the_whole_plan(any_plan):
    page = any_plan.to_html(command="eigencurve plan <secret>")
    shown = words(tree_of(page))
    assert any_plan.verdict in shown
    assert all(row.label in shown for row in any_plan.table.rows)
    assert all(entry.value in shown for entry in any_plan.inputs)
    assert all(sentence.replace("`", "") in shown for sentence in any_plan.warnings)
    assert any_plan.evidence.sentence in shown
    assert "eigencurve plan <secret>" in shown
    assert "numpy" in shown


def test_the_page_is_self_contained_and_escapes_names(plan):
    page = plan.to_html()
    assert plan.to_html() == page
    assert all(word not in page for word in ("<script", "http://", "https://", "<b>", "<i>", "url("))
    assert NAME in words(tree_of(page))
    assert "prefers-color-scheme: dark" in page
    ids = [element.get("id") for element in tree_of(page).iter() if element.get("id")]
    assert len(set(ids)) == len(ids)
    links = [element.get("href") for element in tree_of(page).iter("a")]
    assert set(links) == {f"#{name}" for name in ids}


def test_the_octaves_of_a_measured_spectrum_have_their_errors(plan):
    tables = {table[0].text: table for table in tree_of(plan.to_html()).iter("table")}
    header, *rows = tables["Octaves that contain eigenvalues"].iter("tr")
    octaves = measured_source().octaves
    assert "standard error" in words(header)
    assert [float(row[3].text) for row in rows] == pytest.approx(octaves.share.tolist(), rel=1e-3)
    assert [float(row[4].text) for row in rows] == pytest.approx(octaves.error.tolist(), rel=0.1)
    other = ec.plan(measured_source(decay=1e-3), total_steps=60, noise=2.0).to_html()
    assert "standard error</th>" not in other
    assert "they belong to another weight decay (0.01)" in other


def test_the_recommended_row_is_marked(plan):
    (marked,) = (row for row in tree_of(plan.to_html()).iter("tr") if row.get("class") == "marked")
    assert words(marked).startswith(plan.label)


def test_the_chart_draws_the_rates():
    first, second = ec.linear(10, 0.2), ec.cosine(10, 0.1)
    svg = ET.fromstring(curves_svg({"first": first, "second": second}, "two < three"))
    assert svg.get("aria-label") == svg[0].text == "two < three"
    *_, line = svg.iter("polyline")  # the first schedule is on top
    heights = [float(point.split(",")[1]) for point in line.get("points").split()]
    assert len(heights) == 10
    assert min(heights) == heights[0]
    assert (heights[0] - heights[5]) / (heights[0] - heights[9]) == pytest.approx(5 / 9, rel=0.01)  # drawn to 0.1 px
    assert {"first", "second", "10 steps", "0.2"} <= {text.text for text in svg.iter("text")}


def test_a_notebook_shows_the_verdict_and_the_table(any_plan):
    fragment = any_plan._repr_html_()
    assert any_plan.verdict in words(ET.fromstring(fragment))
    assert "<svg" in fragment
    assert "<html" not in fragment


def test_markdown_has_tables_and_code(any_plan):
    lines = any_plan.to_markdown().splitlines()
    assert lines[0] == f"**{any_plan.verdict}**"
    header = next(line for line in lines if line.startswith("| schedule"))
    rows = [line for line in lines if line.count("|") == header.count("|")]
    assert len(rows) >= len(any_plan.table.rows)
    assert all(f"- {sentence}" in lines for sentence in any_plan.warnings)


@pytest.mark.parametrize("name", ["plan.html", "plan.md", "plan.json", "plan.py"])
def test_a_plan_is_saved_by_the_ending_of_the_file(plan, name, tmp_path):
    plan.save(tmp_path / name)
    written = {
        "plan.html": plan.to_html(), "plan.md": plan.to_markdown(), "plan.py": plan.code(),
        "plan.json": (tmp_path / "plan.json").read_text() if name == "plan.json" else "",
    }  # fmt: skip
    assert (tmp_path / name).read_text() == written[name]


def test_another_ending_is_refused(plan, tmp_path):
    with pytest.raises(ValueError, match=r"save: 'path' must be one of '\.html'"):
        plan.save(tmp_path / "plan.pdf")
