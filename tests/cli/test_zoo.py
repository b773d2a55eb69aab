import json

from tests.cli.running import invoke, run

from eigencurve.spectrum.zoo import ZOO, zoo_summary


def test_the_zoo_lists_all_it_has():
    listed = json.loads(run("zoo", "--json").stdout)
    assert [entry["name"] for entry in listed] == list(ZOO)
    known = vars(zoo_summary("resnet20_cifar10"))
    known["along"], known["across"] = known.pop("error_along_probe"), known.pop("error_between_probes")
    assert listed[0] == known
    table, about = run("zoo").stdout.split("\n\n")
    head, *rows = table.splitlines()
    assert head.split("  ")[0] == "name"
    assert "error along one probe  across probes" in head
    assert [line.split()[0] for line in rows] == list(ZOO)
    for (name, entry), line in zip(ZOO.items(), about.splitlines(), strict=True):
        assert line == f"{name}: {entry.network}; {entry.data}; weight decay {entry.weight_decay:g}"


def test_rows_have_the_errors_and_the_noise_or_say_that_they_are_not_measured():
    rows = {line.split()[0]: line for line in run("zoo").stdout.split("\n\n")[0].splitlines()}
    known = zoo_summary("resnet20_cifar10")
    numbers = (
        "272,474",
        f"{known.error_along_probe:.1%}",
        f"{known.error_between_probes:.1%}",
        f"{known.sigma2:.3g}  ",
        f"{known.gamma:.2f}",
    )
    assert all(number in rows["resnet20_cifar10"] for number in numbers)
    assert "not measured" not in rows["resnet20_cifar10"]
    assert rows["resnet18_cifar10"].split() == [
        "resnet18_cifar10", "11,173,962", "60", "8.7%", *["not", "measured"] * 4,
    ]  # fmt: skip


def test_a_misspelled_name_gets_a_suggestion():
    refused = invoke("zoo", "show", "vgg16")
    assert refused.exit_code == 2
    assert "Did you mean 'vgg16_cifar10_narrow8'?" in refused.stderr
