from eigencurve.commands.output import show_table


def test_a_table_is_cut_to_no_width_in_a_pipe(capsys):
    show_table(("name", "number"), [("x" * 300, "1"), ("y", "22")], right=(1,))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "x" * 300 + "       1"
    assert lines[2].endswith("22")
