"""Every code block of the README and of docs/ runs and prints what its page shows."""

import ast
import multiprocessing
import shlex
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from docs._make.blocks import Block, blocks_of, check_page, differs, updated

from eigencurve.cli.shell import load

pytestmark = pytest.mark.slow


ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Packages that a page needs besides NumPy. If one is missing, the test of the page is skipped.
NEEDS = {
    "lightning": ["lightning"], "transformers": ["transformers"], "keras": ["keras"], "jax": ["jax", "optax"],
    "hessian": ["jax"], "adapters": ["lightning", "transformers", "accelerate", "keras", "jax", "optax"],
}  # fmt: skip
MOST_NOT_RUN = 8


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def runs_something(page):
    return any(block.language in {"python", "sh"} and block.reason is None for block in blocks_of(page.read_text()))


@pytest.fixture(scope="module")
def processes():
    """Multiprocessing context that forks a fresh process for each page from one that has imported PyTorch."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["eigencurve.adapters.torch", "eigencurve.theory.quadratic"])
    return context


@pytest.mark.parametrize("page", [page for page in PAGES if runs_something(page)], ids=name_of)
def test_page_prints_what_it_shows(page, processes):
    if missing := [package for package in NEEDS.get(page.stem, []) if find_spec(package) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if "torch" in page.read_text() and find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    with ProcessPoolExecutor(1, mp_context=processes) as pool:
        assert pool.submit(check_page, page).result() == []


def test_few_blocks_are_not_run_and_each_gives_a_reason():
    blocks = [(name_of(page), block) for page in PAGES for block in blocks_of(page.read_text())]
    left_out = [(page, block.reason) for page, block in blocks if block.reason is not None]
    assert all(len(reason) > 5 for _, reason in left_out)
    assert len(left_out) <= MOST_NOT_RUN, left_out


def left_out(language):
    pages = [(name_of(page), block) for page in PAGES for block in blocks_of(page.read_text())]
    return [(page, block) for page, block in pages if block.reason is not None and block.language == language]


@pytest.mark.parametrize(("page", "block"), left_out("python"), ids=str)
def test_imports_of_a_block_that_is_not_run_exist(page, block):
    """A block that is not run must still parse, and the names that it imports from this package must exist."""
    for node in ast.walk(ast.parse(block.code)):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("eigencurve"):
            module = pytest.importorskip(node.module, exc_type=ImportError)
            assert all(hasattr(module, name.name) for name in node.names), (page, block.line, ast.unparse(node))


@pytest.mark.parametrize("line", [line for _, block in left_out("sh") for line in block.code.splitlines()])
def test_command_that_is_not_run_parses(line):
    """The real parser accepts the command, so a removed option is detected."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["eigencurve"] and len(words) > 1:
        parse(load(words[1]), words[2:])


@pytest.mark.parametrize("line", ["schedule --no-such", "spectrum compare --no-such", "spectrum no-such"])
def test_unknown_option_or_command_is_detected(line):
    name, *words = line.split()
    with pytest.raises(Exception, match=r"(?i)no such"):
        parse(load(name), words)


def parse(command, words):
    context = command.make_context(command.name, list(words))
    if hasattr(command, "resolve_command") and context._protected_args:
        _, below, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        parse(below, rest)


def test_commands_are_in_blocks_that_are_run():
    """Commands must not be in plain blocks, where no test would detect that they no longer work."""
    for page in PAGES:
        for block in blocks_of(page.read_text()):
            if block.language not in {"sh", "python"} and page.name != "first_use.md":
                lines = [line for line in block.code.splitlines() if line.startswith(("eigencurve ", "python -m "))]
                assert not lines, f"{name_of(page)}:{block.line}: {lines[0]}"


PAGE = """
```python
print("a", 1.000)
```

```text
a 1.0
```

Words.

```text
not an output
```

```python title="train.py"
print("written, not run")
```

```sh title="not run: it needs a cluster"
torchrun train.py
```
"""


def test_setup_block_runs_before_the_visible_ones(tmp_path):
    page = tmp_path / "page.md"
    shown = "```python\nprint(7 * x)\n```\n\n```text\n42\n```\n"
    page.write_text(f"<!-- setup\nx = 6\n-->\n\n{shown}\n<!-- setup\n1 / 0\n-->\n")
    with pytest.raises(Exception, match=r"page\.md:14: this block fails(.|\n)*ZeroDivisionError"):
        check_in_a_process(page)
    page.write_text(page.read_text().replace("1 / 0", "assert x == 6"))
    assert check_in_a_process(page) == []


def test_blocks_have_outputs_and_reasons():
    one, plain, file, left_out = blocks_of(PAGE)
    assert (one.language, one.line, one.shown.code) == ("python", 3, "a 1.0\n")
    assert (plain.language, plain.is_run) == ("text", False)
    assert file.is_file
    assert file.title == "train.py"
    assert left_out.reason == "it needs a cluster"


def test_outdated_output_is_detected_and_updated(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(6 * 7)\n```\n\n```text\n41 and a half\n```\n")
    (message,) = check_in_a_process(page)
    assert "shows '41 and a half', but the output is '42'" in message
    page.write_text(updated(page.read_text(), [(blocks_of(page.read_text())[0], "42\n")]))
    assert check_in_a_process(page) == []


def test_failing_block_names_its_page_and_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("words\n\n```python\nx = 1\nx.nothing\n```\n")
    with pytest.raises(Exception, match=r"page\.md:4: this block fails(.|\n)*line 5(.|\n)*no attribute 'nothing'"):
        check_in_a_process(page)
    page.write_text("```sh\necho one\nfalse\n```\n")
    with pytest.raises(Exception, match=r"page\.md:2: this block ends with 1\none"):
        check_in_a_process(page)


def check_in_a_process(page):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
        return pool.submit(check_page, page).result()


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("loss 0.100", "loss 0.104", True),
        ("loss 0.100", "loss 0.106", False),
        ("loss 0.100", "gain 0.100", False),
        ("46 products in 0.6 s", "46 products in 12.3 s", True),
        ("0.30 +- 0.08", "0.37 +- 0.07", True),
        ("0.30 +- 0.08", "0.39 +- 0.08", False),
        ("1\n...\n4", "1\n2\n3\n4", True),
        ("1\n...\n4", "1\n2\n3\n5", False),
        ("1\n2", "1\n2\n3", False),
        ("1\n2\n3", "1\n2", False),
        ("0.1 |███▇▆ ", "0.1 |██▇▆▅▁", True),
        ("a  1", "a 1", True),
    ],
)
def test_output_comparison(shown, printed, same):
    assert (differs(shown, printed) is None) == same


def test_blocks_compare_by_value():
    assert blocks_of("```\nx\n```\n") == [Block("", "", "x\n", 2, (4, 6))]
