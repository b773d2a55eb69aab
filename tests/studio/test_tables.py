from eigencurve.studio.tables import STYLE, html_table


def test_every_row_is_under_its_header():
    found = html_table([{"name": "a", "loss": "1"}, {"name": "b", "loss": "2"}])
    assert found.startswith(STYLE)
    rows = "<tr><th>name</th><th>loss</th></tr><tr><td>a</td><td>1</td></tr><tr><td>b</td><td>2</td></tr>"
    assert f"<table>{rows}</table>" in found


def test_text_is_never_markup():
    found = html_table([{"<b>": "<script>alert(1)</script> & more"}])
    assert "<th>&lt;b&gt;</th>" in found
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt; &amp; more</td>" in found
