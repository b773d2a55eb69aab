import xml.etree.ElementTree as ET

from eigencurve.report.page import Markup, Section, code_block, facts, figure, note, page, paragraph, table, tag

NASTY = "<script>alert('x')</script> & \"quotes\""


def nasty_page():
    blocks = [
        paragraph(NASTY), note(NASTY), facts([(NASTY, NASTY)]), code_block(NASTY),
        table(NASTY, [NASTY, "n"], [[NASTY, NASTY]]), figure(Markup("<svg></svg>"), NASTY),
    ]  # fmt: skip
    return page(NASTY, [paragraph(NASTY)], [Section(NASTY, blocks), Section(NASTY, [])])


def tree(text):
    """The page as XML: our HTML closes what it opens, but for the elements that never do."""
    body = text.removeprefix("<!doctype html>\n")
    head, rest = body.split("<title>", 1)
    return ET.fromstring(head.replace('">', '"/>').replace('lang="en"/>', 'lang="en">') + "<title>" + rest)


def test_all_text_is_escaped():
    text = nasty_page()
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 10
    found = [element.text for element in tree(text).iter() if element.text and "alert" in element.text]
    assert set(found) == {NASTY}


def test_a_page_is_one_tree_with_headings_captions_and_links_that_lead_somewhere():
    root = tree(nasty_page())
    assert [e.tag for e in root.iter() if e.tag in ("h1", "h2", "main", "nav")] == ["h1", "main", "nav", "h2", "h2"]
    names = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(names) == len(set(names)) == 2
    assert [e.get("href") for e in root.iter("a")] == [f"#{name}" for name in names]
    (only,) = root.iter("table")
    assert only[0].tag == "caption"
    assert {e.get("scope") for e in only.iter("th")} == {"col", "row"}
    assert root.get("lang") == "en"


def test_one_section_needs_no_list_of_contents():
    assert "<nav" not in page("t", [], [Section("one", [])])


def test_a_page_is_made_for_light_dark_print_and_phone():
    text = page("t", [], [])
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert "http" not in text


def test_attributes_lose_their_underscores():
    assert tag("td", "1", class_="number", aria_label='a"b') == '<td class="number" aria-label="a&quot;b">1</td>'


def test_a_lead_is_above_the_contents():
    root = tree(page("t", [], [Section("one", []), Section("two", [])], lead=Section("first", [paragraph("answer")])))
    assert [e.text for e in root.iter() if e.tag in ("h1", "h2", "a")] == ["t", "first", "one", "two", "one", "two"]


def test_a_marked_row():
    found = table("c", ["a", "n"], [["x", "1"], ["y", "2"]], marked=1)
    assert found.count("<tr>") == 2
    assert '<tr class="marked"><th scope="row">y</th>' in found
