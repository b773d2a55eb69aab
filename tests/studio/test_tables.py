from eigencurve.studio.tables import STYLE, html_table


def test_every_row_is_under_its_header():
    found = html_table([{"name": "a b", "loss": "1"}, {"name": "c d", "loss": "2"}])
    assert found.startswith(STYLE)
    head = "<tr><th>name</th><th>loss</th></tr>"
    rows = '<tr><td>a b</td><td class="number">1</td></tr><tr><td>c d</td><td class="number">2</td></tr>'
    assert f"<table>{head}{rows}</table>" in found


def test_text_is_never_markup():
    found = html_table([{"<b>": "<script>alert(1)</script> & more"}])
    assert "<th>&lt;b&gt;</th>" in found
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt; &amp; more</td>" in found


def test_a_row_is_marked_and_a_phone_leaves_out_minor_columns():
    found = html_table([{"a": "x y", "b": "1"}, {"a": "z w", "b": "2e-06"}], marked=1, minor=("b",))
    assert '<tr class="marked"><td>z w</td><td class="number minor">2e-06</td></tr>' in found
    assert '<th class="minor">b</th>' in found
    assert found.count('class="marked"') == 1
    assert '<table class="wrap">' in html_table([{"a": "1"}], wrap=True)
