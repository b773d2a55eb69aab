from paper.engine.protocol import Trials
from paper.engine.winners import Winner
from paper.images.report import ResultTable, image_page

CURVES = {"loss": ([1.0], [2.0]), "accuracy": ([1.0], [50.0])}


def table(published, **accuracies):
    winners = [
        Winner(name, {"lr": 1.0}, None, 1, {"accuracy": Trials({"lr": 1.0}, values, diverged)}, CURVES)
        for name, (values, diverged) in accuracies.items()
    ]
    return ResultTable("A net", winners, published, ("accuracy",))


def test_the_best_and_how_the_paper_compares():
    claims = table({"a": ["70.00"], "b": ["80.00"]}, a=((50.0, 52.0), 0), b=((50.5, 51.0), 0)).claims()
    assert claims[0] == "Best test accuracy (%): a (51.00 ± 1.41). Within two standard errors: b."
    assert claims[1].endswith("b is best there but number 2 here, 0.2 standard errors behind a.")


def test_diverged_trials_have_a_star():
    lines = table({}, a=((50.0,), 1), b=((), 2)).markdown().splitlines()
    assert lines[2].startswith("| a | *50.00 ± 0.00 | – | lr 1 |")
    assert lines[3].startswith("| b | * all diverged |")
    assert table({}, b=((), 2)).claims() == ["Best test accuracy (%): none, every trial diverged."]


def test_a_page_has_its_tables_notes_and_curves():
    page = image_page("x", "X", ["About."], [table({}, a=((50.0,), 0))], ["A note."])
    assert page.body.startswith("About.\n\n## A net\n\n| schedule |")
    assert "\n\nA note.\n\n## Curves\n" in page.body
    assert list(page.figures) == ["x_loss.png", "x_accuracy.png"]
    assert page.values["sections"]["A net"][0]["trials"] == {"accuracy": [50.0]}
