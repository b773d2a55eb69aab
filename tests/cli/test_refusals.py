"""Wrong use of every command: one line on standard error that names the option, and the right exit code."""

import pytest
from tests.cli.running import LAW, refused

STEPS = ("--steps", "60")
COSINE = ("schedule", "--kind", "cosine", *STEPS, "--lr", "0.1")
LINEAR = ("schedule", "--kind", "linear", "--steps", "10", "--lr", "0.1")
WSD = ("schedule", "--kind", "wsd", *STEPS, "--lr", "0.1")
MODEL = ("estimate", "measured:problem")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        # the command line itself
        (("shcedule",), "No such command 'shcedule'. Did you mean 'schedule'? See 'eigencurve --help'."),
        (("--nonsense",), "No such option: --nonsense"),
        (("schedule", "--stepz", "100"), "See 'eigencurve schedule --help'."),
        (("studio", "--port", "0"), "Invalid value for '--port'"),
        (("fit",), "Missing argument 'LOG...'."),
        (("zoo", "--json", "show", "resnet20_cifar10"), "--json must be left out before show. Pass it after"),
        # a missing, double or half source or length
        (("schedule", *STEPS), "The spectrum is missing: pass a file, a name from 'eigencurve zoo', or --power-law"),
        (("compare", *STEPS), "The spectrum is missing"),
        (("schedule", "--power-law", "1.5", *STEPS), "--power-law needs --kappa"),
        (("schedule", "small.txt", *LAW, *STEPS), "either a spectrum or --power-law, not both"),
        (("schedule", *LAW), "The length of the run is missing: pass --steps"),
        (("schedule", *LAW, "--steps", "5", "--epochs", "1"), "either --steps, or --epochs and --steps-per-epoch"),
        (("plan", "--optimizer", "adamw"), "pass --steps"),
        (("schedule", "resnet21", *STEPS), "'resnet21' is neither a file nor a spectrum of the zoo. Did you mean"),
        (("plan", "resnet20_cifar", *STEPS), "Did you mean 'resnet20_cifar10'?"),
        (("zoo", "show", "resnet21"), "NAME must be one of 'resnet20_cifar10'"),
        (("zoo", "show", "vgg16"), "Did you mean 'vgg16_cifar10_narrow8'?"),
        (("spectrum", "compare", "small.txt"), "Pass at least two different spectra."),
        (("spectrum", "show", "damaged.json"), "The file is damaged.json."),
        (("schedule", "small.txt", *STEPS), "--weight-decay must be given for this spectrum."),
        # files
        ((*LINEAR, "-o", "saved.json"), "saved.json already exists. Pass --force to overwrite it."),
        ((*LINEAR, "-o", "curve.gif"), "must end in one of .json, .csv, .png, .svg, .pdf, .py."),
        ((*LINEAR, "-o", "none/curve.csv"), "the folder none does not exist"),
        (("spectrum", "plot", "positive.txt", "-o", "figure.gif"), "must end in one of .png, .svg, .pdf."),
        (("spectrum", "convert", "positive.txt", "small.txt"), "small.txt already exists"),
        (("zoo", "export", "resnet20_cifar10", "small.txt"), "small.txt already exists"),
        (("fit", "constant.csv", "-o", "saved.json"), "saved.json already exists"),
        (("fit", "constant.csv", "--report", "page.pdf"), "must end in one of .html, .htm."),
        (("report", *LAW, *STEPS, "-o", "report.pdf"), "must end in one of .html, .htm."),
        (("demo", "-o", "demo.pdf"), "must end in one of .html."),
        # values, by the name of their option
        (("schedule", "--kind", "linear", "--steps", "0", "--lr", "0.1"), "--steps must be >= 1, got 0."),
        (("schedule", *LAW, "--steps", "many"), "'many' is not a whole number such as 39100 or 1e4."),
        ((*LINEAR, "--warmup", "10"), "--warmup must be < --steps = 10, got 10."),
        ((*LINEAR, "--warmup", "long"), "--warmup must be a number of steps such as 500 or 1e3, or a share"),
        ((*LINEAR, "--warmup", "5", "--warmup-shape", "round"), "--warmup-shape must be one of"),
        (("schedule", *LAW, *STEPS, "--lr", "-1"), "--lr must be > 0, got -1.0."),
        (("schedule", "--kind", "cosin", *STEPS, "--lr", "0.1"), "--kind must be one of 'eigencurve', 'constant'"),
        (("schedule", "--kind", "rex", *STEPS, "--min-lr", "1", "--lr", "0.1"), "swap the two, or lower --min-lr."),
        (("schedule", "--kind", "exponential", *STEPS, "--lr", "0.1"), "--min-lr must be given for kind 'exponential'"),
        (("schedule", "--kind", "cosine", *STEPS), "--lr is missing. Without a spectrum, no rate can be suggested"),
        ((*LINEAR, "--code", "caffe"), "--code must be one of 'torch', 'lightning'"),
        ((*LINEAR, "--json", "--csv"), "Pass only one of --json, --csv and --code."),
        (("plan", *STEPS, "--json", "--code", "torch"), "Pass only one of --json and --code."),
        (("plan", *STEPS, "--optimizer", "lion"), "--optimizer must be one of"),
        (("compare", *LAW, *STEPS, "--noise", "-1"), "--noise must be >= 0, got -1.0."),
        (("optimal", *LAW, *STEPS, "--noise", "-1"), "--noise must be >= 0, got -1.0."),
        (("compare", *LAW, *STEPS, "--lr", "0"), "--lr must be > 0, got 0.0."),
        (("compare", *LAW, *STEPS, "--load", "saved.json"), "[10, 60]"),
        (("fit", "constant.csv", "--steps", "1"), "--steps must be >= 2, got 1."),
        (("fit", "constant.csv", "--max-lr", "5"), "--max-lr must be from 0.0001 to 0.1"),
        # settings of a kind
        ((*WSD, "--set", "tail=1-sqr"), "Did you mean '1-sqrt'?"),
        ((*WSD, "--set", "decay_steps=120%"), "--set decay_steps must be a number of steps such as 500"),
        ((*WSD, "--set", "decay_steps=0"), "--set decay_steps must be >= 1, got 0."),
        ((*WSD, "--set", "decay_steps=90%", "--warmup", "20%"), "--set decay_steps must be <= --steps - --warmup = 48"),
        ((*WSD, "--set", "tail"), "--set must be NAME=VALUE such as power=2, got 'tail'."),
        ((*WSD, "--set", "tail=sqrt", "--set", "tail=sqrt"), "--set tail must be given once."),
        ((*COSINE, "--set", "alpha=2"), "--set alpha must be left out for kind 'cosine', got 2. Its settings: --min"),
        ((*COSINE, "--set", "lr=2"), "must be left out for kind 'cosine', got 2. Its settings: --min-lr."),
        (("schedule", "--kind", "multistep", *STEPS, "--lr", "1"), "--set milestones must be given for kind"),
        (("schedule", "--kind", "cosine-power", *STEPS, "--set", "alpha=0", "--lr", "1"), "--set alpha must be > 0"),
        # rates that nobody can mean
        (("plan", *STEPS, "--lr", "1e9"), "--lr must be <= 1000 for sgd, got 1000000000.0."),
        (("plan", *STEPS, "--max-lr", "1e9"), "--max-lr must be <= 1000 for sgd"),
        (("plan", "positive.txt", *STEPS, "--lr", "1e9"), "--lr must be <= 1,000 times the stability limit 2/L = 2.86"),
        (("plan", "positive.txt", *STEPS, "--lr", "1", "--max-lr", "0.5"), "--lr must be <= "),
        (("schedule", "--kind", "cosine", *STEPS, "--lr", "1e9"), "--lr must be <= 1000 for any optimizer"),
        (("schedule", "positive.txt", *STEPS, "--lr", "1e9"), "--lr must be <= 1,000 times the stability limit"),
        (("compare", *LAW, *STEPS, "--lr", "1e9"), "--lr must be <= 1,000 times the stability limit 2/L = 0.4"),
        (("optimal", *LAW, *STEPS, "--max-lr", "1e9"), "--max-lr must be <= 1,000 times the stability limit"),
        # options that would do nothing
        (("plan", *STEPS, "--noise", "5"), "--noise must be left out without a source"),
        (("plan", *STEPS, "--initial-error", "5"), "--initial-error must be left out without a source"),
        (("plan", *STEPS, "--loss", "x"), "--loss must be left out without a source. It only"),
        (("plan", "positive.txt", *STEPS, "--lr-column", "x"), "--lr-column must be left out with a spectrum"),
        (("plan", "positive.txt", *STEPS, "--num-products", "9"), "--num-products must be left out with a spectrum"),
        (("plan", "constant.csv", *STEPS, "--checkpoint", "x"), "--checkpoint must be left out with logged runs"),
        (("plan", "constant.csv", *STEPS, "--noise", "1"), "--noise must be left out with logged runs"),
        (("plan", "resnet20_cifar10", *STEPS, "--optimizer", "adamw"), "--optimizer must be"),
        (("plan", "adam.npz", *STEPS, "--optimizer", "sgd"), "--optimizer must be"),
        ((*COSINE, "--momentum", "0.9"), "--momentum must be left out without a spectrum and without code"),
        ((*COSINE, "--weight-decay", "0.1"), "--weight-decay must be left out without a spectrum and without code"),
        ((*COSINE, "--nesterov"), "--nesterov must be left out without a spectrum and without code"),
        ((*COSINE, "--warmup-shape", "cosine"), "--warmup-shape must be left out without --warmup"),
        (("schedule", "--load", "saved.json", "--kind", "cosine"), "--kind must be left out with --load"),
        (("schedule", "--load", "saved.json", "--steps", "10"), "--steps must be left out with --load"),
        (("schedule", "--load", "saved.json", "--set", "beta=1"), "--set must be left out with --load"),
        (("schedule", "--load", "saved.json", "--momentum", "0.9"), "--momentum must be left out"),
        (("compare", *LAW, *STEPS, "--batch-size", "16"), "--batch-size must be left out if the spectrum has no"),
        (("compare", *LAW, *STEPS, "--nesterov"), "--momentum must be > 0"),
        (("report", *LAW, *STEPS, "--nesterov"), "--nesterov must be left out without momentum"),
        (("fit", "constant.csv", "--json", "--report", "-"), "Pass only one of --json and --report -"),
        (("fit", "constant.csv", "--warmup", "6"), "--warmup must be left out: these logs show their own warmup."),
        # logs
        (("fit", "small.txt"), "small.txt: no column of steps"),
        (("fit", "constant.csv", "--loss", "train_loss", "-o", "best.json"), "--loss"),
        (("fit", "constant.csv", "--run", "first"), "--run"),
        (("plan", "constant.csv", "constant.csv", *STEPS), "different runs"),
        (("plan", "constant.csv", "noisy.npz", *STEPS), "one spectrum"),
        # models
        (("plan", "measured:problem", "constant.csv", *STEPS), "Pass one model, one spectrum, or the logs of runs"),
        (("plan", "measured:problem", *STEPS, "--optimizer", "adamw"), "--optimizer must be sgd for a model"),
        (("plan", "measured.py:problem", *STEPS), "Did you mean 'measured:problem'?"),
        (("estimate", "measured"), "MODULE:FUNCTION must look like my_project.training:problem, got 'measured'."),
        (("estimate", "my/train.py:problem"), "Did you mean 'my.train:problem'"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line_that_names_the_option(words, message):
    assert message in refused(*words)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", "measured:problem", *STEPS), "--batch-size is missing"),
        (("plan", "measured:problem", *STEPS, "--noise", "1", "--batch-size", "2"), "--batch-size must be left out"),
        ((*MODEL, "--lr", "1e9"), "--lr must be <= 1000 for any optimizer"),
        ((*MODEL, "--lr", "0"), "--lr must be > 0"),
        ((*MODEL, "-o", "small.txt"), "small.txt already exists"),
        ((*MODEL, "--noise"), "--noise and --batch-size must be given together"),
        ((*MODEL, "--batch-size", "8"), "--noise and --batch-size must be given together"),
        ((*MODEL, "--noise", "--batch-size", "0"), "--batch-size must be >= 1, got 0"),
        ((*MODEL, "--noise", "--batch-size", "8", "-o", "s.txt"), "a text file cannot hold them"),
        ((*MODEL, "--start-state", "x.pt", "-o", "s.txt"), "a text file cannot hold them"),
        ((*MODEL, "--memory-budget", "2XB"), "--memory-budget must be a size such as 2GB, got '2XB'."),
        ((*MODEL, "--memory-budget", "20B"), "--memory-budget must be >= 64, got 20."),
        ((*MODEL, "--optimizer", "adam"), "--optimizer needs --optimizer-state"),
        ((*MODEL, "--optimizer", "adam", "--optimizer-state", "d.npz"), "--optimizer must be left out with an .npz"),
        ((*MODEL, "--optimizer-state", "small.txt"), "a file that torch.save wrote"),
        ((*MODEL, "--start-state", "small.txt"), "a file that torch.save wrote"),
        (("estimate", "no_such_module:problem"), "no module named 'no_such_module' in the current folder"),
        (("estimate", "measured:nothing"), "module 'measured' has no function 'nothing'."),
        (("estimate", "measured:pair"), "must return (model, loss_fn, batches), got a tuple of 2."),
    ],
)
def test_wrong_use_of_a_model_is_one_line_that_names_the_option(words, message):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    assert message in refused(*words)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (("schedule", "none.npz", *STEPS), "error: none.npz: no such file or folder", 1),
        (("fit", "constant.csv", "none.csv"), "error: none.csv: no such file or folder", 1),
        (("plan", "missing.csv", *STEPS), "missing.csv", 1),
        ((*MODEL, "--optimizer-state", "none.pt"), "error: none.pt: no such file or folder", 1),
        (("estimate", "measured:broken"), "failed with KeyError: 'labels' (pass --debug for the traceback)", 1),
        (("estimate", "measured:endless"), "Interrupted.", 130),
    ],
)
def test_a_failure_is_one_line(words, message, code):
    if words[0] == "estimate":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    assert message in refused(*words, code=code)
