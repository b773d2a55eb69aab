"""What a shell expects of every command."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.running import invoke, run

import eigencurve as ec
from eigencurve._check import Arg, ArgumentValueError, ArgumentWarning
from eigencurve.cli.shell import COMMANDS, in_options, load, options_of, print_error

ROOT = Path(__file__).parents[2]
MAIN = [sys.executable, "-m", "eigencurve.cli"]


def commands():
    """Every command with its words: also those of groups."""
    for name in COMMANDS:
        command = load(name)
        yield (name,), command
        for inner, sub in getattr(command, "commands", {}).items():
            yield (name, inner), sub


def test_the_list_of_commands_says_what_each_says_itself():
    for name, line in COMMANDS.items():
        assert load(name).help.splitlines()[0] == line
    listed = invoke("--help").stdout
    for name, line in COMMANDS.items():
        assert line in listed, name


def test_every_command_has_help_with_examples_that_parse():
    for words, command in commands():
        result = invoke(*words, "--help")
        assert result.exit_code == 0
        assert "Example" in result.stdout, words
        assert "Usage: eigencurve " + " ".join(words) in result.stdout
        for example in examples(command.help):
            parse(example)


def examples(text):
    return [line.strip() for line in text.splitlines() if line.strip().startswith(("eigencurve ", "cat "))]


def parse(line):
    """Parse an example without running it: a wrong option or a missing argument raises."""
    words = shlex.split(line.partition("#")[0])
    words = words[words.index("eigencurve") + 1 :]
    if words[0].startswith("-"):
        return
    command = load(words[0])
    rest = words[1:]
    while getattr(command, "commands", None) and rest and rest[0] in command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
    command.make_context(words[0], rest)


def test_the_examples_of_the_page_parse():
    blocks = (ROOT / "docs" / "cli.md").read_text().split("```")[1::2]
    lines = [line for block in blocks for line in block.splitlines() if line.strip().startswith("eigencurve ")]
    assert {shlex.split(line)[1] for line in lines} >= set(COMMANDS)
    for line in lines:
        parse(line)
    for example in examples(invoke("--help").stdout):
        parse(example)
    with pytest.raises(Exception, match="--stepz"):
        parse("eigencurve schedule --stepz 5")


@pytest.mark.parametrize("words", [("--debug", "zoo", "show", "x"), ("zoo", "show", "x", "--debug")])
def test_debug_shows_where_an_error_comes_from(words):
    with pytest.raises(ArgumentValueError):
        invoke(*words, catch_exceptions=False)
    assert invoke("zoo", "show", "x").exit_code == 2
    assert invoke("schedule", "--stepz", "--debug").exit_code == 2


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ValueError("a\nb"), 2, "error: a b"),
        (TypeError("no"), 2, "error: no"),
        (ImportError("needs x: pip install x"), 1, "error: needs x: pip install x"),
        (OSError(28, "No space left on device"), 1, "error: [Errno 28] No space left on device"),
        (FileNotFoundError(2, "No such file", "a.npz"), 1, "error: a.npz: no such file or folder"),
        (KeyError("k"), 1, "error: KeyError: 'k' (pass --debug for the traceback)"),
        (RuntimeError(), 1, "error: RuntimeError: (pass --debug for the traceback)"),
    ],
)
def test_errors_and_their_codes(error, code, text, capsys):
    assert print_error(error, {}) == code
    assert capsys.readouterr().err == text + "\n"


def test_ctrl_c_ends_with_one_line_and_130(tmp_path):
    script = (
        "import os, signal, sys\nimport eigencurve.cli.zoo as zoo\n"
        "zoo.zoo_source = lambda name: os.kill(os.getpid(), signal.SIGINT)\n"
        "from eigencurve.cli import app\napp(['zoo', 'show', 'x'])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 130
    assert result.stderr == "Interrupted.\n"


def test_a_closed_pipe_is_no_error():
    shell = f"{shlex.join(MAIN)} schedule --kind linear --steps 200000 --lr 0.1 --csv | head -n 2"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert result.stdout == "step,lr\n0,0.1\n"
    assert "Traceback" not in result.stderr


def test_no_colour_in_a_pipe_nor_where_it_is_not_wanted():
    environment = {**os.environ, "TERM": "xterm-256color"}
    for more in ({}, {"NO_COLOR": "1"}):
        result = subprocess.run([*MAIN, "zoo"], capture_output=True, text=True, env={**environment, **more})
        assert result.returncode == 0
        assert "\x1b" not in result.stdout + result.stderr


ERROR = ArgumentValueError("wsd", "decay_steps", ("<= ", Arg("total_steps"), " = 5"), None, ("Or ", Arg("lr"), "."))


@pytest.mark.parametrize(
    ("error", "options", "text"),
    [
        (ERROR, {"decay_steps": "--d", "steps": "--steps"}, "--d must be <= --steps = 5. Or 'lr'."),
        (ERROR, {"steps": "--steps"}, "wsd: 'decay_steps' must be <= --steps = 5. Or 'lr'."),
        (ArgumentWarning(("Pass ", Arg("shape"), ".")), {"warmup_shape": "--warmup-shape"}, "Pass --warmup-shape."),
        (
            ArgumentValueError("load_run", "lr", "a\nb", 1),
            {"lr": "--lr", "lr_column": "--c"},
            "--c must be a b, got 1.",
        ),
        (UserWarning("as it\nis"), {}, "as it is"),
    ],
)
def test_messages_name_options_in_place_of_arguments(error, options, text):
    assert in_options(error, options) == text


def test_the_options_of_a_command_are_known_by_their_argument():
    options = options_of(load("schedule"))
    assert (options["steps"], options["spectrum"]) == ("--steps", "SPECTRUM")
    assert (options["min_lr"], options["power"]) == ("--min-lr", "--set power")
    assert options_of(load("zoo"))["name"] == "NAME"


HEAVY = {"torch", "matplotlib", "streamlit", "numba", "scipy", "jax", "keras", "transformers", "lightning"}


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("shcedule",), ()])
def test_starting_loads_nothing_heavy(words):
    code = (
        "import json, sys\nfrom eigencurve.cli import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert not HEAVY & set(json.loads(result.stderr.splitlines()[-1]))


def test_without_a_command_it_prints_its_help():
    assert run().stdout == run("--help").stdout
    assert run().stdout.startswith("Usage: eigencurve [OPTIONS] COMMAND [ARGS]...")


def test_the_version_is_that_of_the_package():
    assert run("--version").stdout == f"{ec.__version__}\n"


def test_the_module_is_the_command():
    result = subprocess.run([sys.executable, "-m", "eigencurve.cli", "--version"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, f"{ec.__version__}\n")


CORE_ONLY = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from eigencurve.cli import app
from eigencurve.cli.shell import COMMANDS, load
words = [[name, *inner] for name in COMMANDS for inner in ([], *([i] for i in getattr(load(name), "commands", [])))]
assert len(words) > len(COMMANDS)
for command in [[], *words]:
    try:
        app([*command, "--help"])
    except SystemExit as end:
        assert end.code == 0, (command, end.code)
for command in (["spectrum", "plot", "resnet20_cifar10", "-o", "not_written.png"], ["estimate", "module:problem"]):
    try:
        app(command)
    except SystemExit as end:
        assert end.code == 1, (command, end.code)
"""
OPTIONAL = {
    "torch", "jax", "keras", "optax", "matplotlib", "plotly", "streamlit", "joblib", "ray", "sklearn", "PIL",
    "lightning", "pytorch_lightning", "transformers", "accelerate", "tensorboard", "pandas",
}  # fmt: skip


def test_the_help_of_every_command_needs_only_the_core():
    code = CORE_ONLY.format(missing=sorted(OPTIONAL))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines() == [
        "error: eigencurve.figures needs matplotlib: pip install eigencurve[plot]",
        "error: eigencurve.hessian needs PyTorch: pip install eigencurve[torch]",
    ]
