import json

from tests.commands.running import run

from eigencurve.spectrum.zoo import ZOO


def test_the_zoo_lists_all_it_has():
    listed = json.loads(run("zoo", "--json").stdout)
    assert [entry["name"] for entry in listed] == list(ZOO)
    lines = run("zoo").stdout.splitlines()
    assert lines[0].split() == ["name", "network", "measured", "on", "weight", "decay"]
    assert [line.split()[0] for line in lines[1:]] == list(ZOO)
    assert all(
        entry.network in line and entry.data in line for entry, line in zip(ZOO.values(), lines[1:], strict=True)
    )
