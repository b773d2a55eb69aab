"""What the commands print for people: checked for what it must contain; the numbers are in the golden files."""

import pytest
from tests.cli.running import LAW, run

COMPARED = ("schedule ", "cosine to 0", "Eigencurve, optimal lengths", "settings ", "lower bound")
SHORT = ("--steps", "100")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "phrases"),
    [
        (("compare", *LAW, "--steps", "300", "--noise", "100"), ("Noise: given, σ² = 100", "2/L = 0.4", *COMPARED)),
        (("compare", "noisy.npz", *SHORT, "--batch-size", "16"), ("Noise: measured, σ² = 0.225 (B = 16", *COMPARED)),
        (("compare", *LAW, "--steps", "3000", "--lr", "1"), ("1 is 2.5 times the stability limit", "diverged")),
        (("compare", *LAW, "--steps", "300", "--load", "saved300.json"), ("saved300", *COMPARED)),
        (("compare", *LAW, *SHORT, "--momentum", "0.9", "--best"), ("momentum 0.9, heavy ball", "numerical optimum")),
        (("compare", *LAW, *SHORT, "--momentum", "0.9", "--nesterov"), ("momentum 0.9, Nesterov",)),
        (("compare", "adam.npz", *SHORT), ("warning: The spectrum has not settled", "metric of AdamW")),
        (("optimal", *LAW, "--steps", "60"), ("Noise: assumed", "lower bound for every schedule", "gap  ")),
        (("optimal", *LAW, "--steps", "60", "--momentum", "0.9"), ("no certificate with momentum", "heavy ball")),
        (("optimal", "positive.txt", "--steps", "40", "-o", "b.json", "-o", "b.csv"), ("wrote b.json", "wrote b.csv")),
        (("spectrum", "show", "small.txt", "--weight-decay", "5e-4"), ("condition kappa     2000", "No power law")),
        (("spectrum", "show", *LAW), ("power law, exponent 1.5", "largest stable rate 2/L = 0.4")),
        (("spectrum", "show", "noisy.npz"), ("measured by: a test", "gradient noise: 180", "start: 60 products")),
        (("spectrum", "compare", "small.txt", "noisy.npz", "--weight-decay", "1e-3"), ("kappa", "at most a factor of")),
        (("spectrum", "convert", "positive.txt", "converted.npz"), ("wrote converted.npz",)),
        (("spectrum", "convert", "noisy.npz", "n.txt"), ("text format does not record", "wrote n.txt")),
        (("zoo", "list"), ("resnet20_cifar10", "not measured")),
        (("zoo", "show", "resnet20_cifar10"), ("trained to 92 % test accuracy", "gradient noise: 300 products")),
        (("zoo", "export", "resnet20_cifar10", "zoo.npz"), ("wrote zoo.npz",)),
        (("fit", "constant.csv", "cosine.csv"), ("cosine: 100 losses", "WSD, last 10 %", "unsure about", "short run")),
        (("fit", "constant.csv", "--best", "-o", "b.json"), ("Best schedule", "no schedule with this", "wrote b.json")),
        (("fit", "constant.csv", "late.csv"), ("warning: late.csv: no learning rate is logged", "--warmup")),
        (("fit", "constant.csv", "late.csv", "--warmup", "100", "--loss", "VAL_LOSS"), ("late: 90 losses",)),
        (("plan", "--steps", "50000", "--optimizer", "adamw"), ("Decay to zero, late", "Based on:", "cosine to 0")),
        (("plan", "noisy.npz", "--steps", "60"), ("(B = 4", "numerical optimum", "weight decay", "excess loss 5")),
        (("plan", "positive.txt", *SHORT, "--lr", "50"), ("Your peak rate 50 is above", "18 times the stability")),
        (("plan", "adam.npz", *SHORT), ("adamw", "has not settled")),
        (("plan", "constant.csv", "cosine.csv", "--steps", "3000"), ("forecast loss", "2 logged runs (val_loss)")),
        (("plan", "positive.txt", *SHORT, "-o", "p.json", "-o", "p.csv"), ("wrote p.json", "wrote p.csv")),
    ],
)  # fmt: skip
def test_it_prints_what_matters(words, phrases):
    result = run(*words)
    text = " ".join((result.stdout + result.stderr).split())
    for phrase in phrases:
        assert " ".join(phrase.split()) in text


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "phrases"),
    [
        (
            ("estimate", "measured:problem", "--num-products", "3", "--checkpoint", "run.npz", *SHORT, "--lr", "0.1"),
            ("0.1 is 1.6 times", "160 % of the limit", "--num-products 6 --force (resumes", "has not settled"),
        ),
        (("estimate", "measured:problem", *SHORT), ("4 parameters, 4 examples", "L = 32,", "T/kappa = 1.56")),
        (("estimate", "measured:problem", "--num-steps", "4"), ("use --num-products", "wrote spectrum.npz")),
        (("plan", "measured:problem", *SHORT, "--batch-size", "2"), ("(B = 2, γ unknown)", "wrote spectrum.npz")),
    ],
)
def test_it_prints_what_matters_about_a_model(words, phrases, monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setattr("sys.argv", ["eigencurve", *words])
    test_it_prints_what_matters(words, phrases)
