"""The architecture as a test: which package may import which, no import cycles, no private names across packages."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import eigencurve

SOURCE = Path(eigencurve.__file__).parent
# Single modules at the top that every package may use.
BASE = {"_archives", "_arrays", "_check", "_children", "_files", "_heap", "_threads"}
# What each package may import, apart from BASE and itself; "" is the public names of the top-level package.
# CONTRIBUTING.md shows the same as a diagram.
CORE = {"spectrum", "schedules", "theory"}
LAYERS = {
    "spectrum": set(),
    "schedules": {"spectrum"},
    "theory": {"spectrum", "schedules"},
    "forecast": CORE,
    "hessian": {"spectrum", "schedules"},
    "adapters": {"spectrum", "schedules", "hessian"},
    "rates": {"adapters"},
    "runs": set(),
    "planning": CORE | {"forecast"},
    "figures": CORE | {"forecast", "planning"},
    "report": CORE | {"forecast", "runs", "planning", "figures"},
    "studio": CORE | {"forecast", "planning", "figures"},
    "experiments": CORE | {"", "forecast", "hessian", "adapters", "runs", "planning", "figures", "report"},
    "commands": CORE | {"", "forecast", "hessian", "adapters", "runs", "planning", "figures", "report", "studio"},
    "cli": {"", "commands"},
}
# The one command that runs experiments, and the plan that measures a model first, imported only then.
DOORS = {("commands.reproduce", "experiments"), ("planning.from_operator", "hessian")}


class Import(NamedTuple):
    """One imported name: ``from eigencurve.<target> import <name>``."""

    module: str
    target: str
    name: str


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node except those under ``if TYPE_CHECKING:``; imports inside functions count."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from runtime_nodes(child)


def imports_in(module: str, source: str) -> list[Import]:
    """The names of this package that a module imports when it runs."""
    found = []
    for node in runtime_nodes(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [
                Import(module, alias.name.removeprefix("eigencurve").removeprefix("."), "")
                for alias in node.names
                if alias.name.split(".")[0] == "eigencurve"
            ]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "eigencurve":
            target = (node.module or "").removeprefix("eigencurve").removeprefix(".")
            for alias in node.names:
                submodule = f"{target}.{alias.name}".removeprefix(".")
                is_module = submodule in MODULES
                found.append(Import(module, submodule if is_module else target, "" if is_module else alias.name))
    return found


def all_imports() -> list[Import]:
    return [found for module, path in MODULES.items() for found in imports_in(module, path.read_text())]


def package_of(module: str) -> str:
    return module.split(".")[0]


def violation(found: Import) -> str | None:
    """Why an import is not allowed, or None."""
    importer, imported = package_of(found.module), package_of(found.target)
    if importer in BASE:
        return None if imported in BASE else f"{found.module} is below every package, but imports {found.target}"
    if imported in BASE or imported == importer or (found.module, imported) in DOORS:
        return None
    if imported not in LAYERS.get(importer, ()):
        return f"{found.module} imports {found.target or 'the public names of eigencurve'}"
    return None


def test_every_package_is_in_the_list():
    packages = {package_of(module) for module in MODULES} - {"", *BASE}
    assert packages == set(LAYERS)


def test_layers():
    wrong = [text for found in all_imports() if (text := violation(found))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("report.report", "from eigencurve.experiments.registry import entry"),
        ("report.report", "def f():\n    import eigencurve.experiments"),
        ("spectrum.groups", "from eigencurve.schedules.base import Schedule"),
        ("schedules.base", "import eigencurve as ec"),
        ("commands.compare", "from eigencurve.experiments import registry"),
        ("planning.subject", "from eigencurve.hessian.estimate import SpectrumEstimate"),
    ],
)
def test_a_wrong_import_is_found(module, line):
    """The check itself: report must not import experiments, nor the core an outer package."""
    assert any(violation(found) for found in imports_in(module, line))


def test_type_checking_imports_are_not_runtime_imports():
    assert not imports_in("spectrum.groups", "if TYPE_CHECKING:\n    from eigencurve.schedules.base import Schedule")


def test_no_import_cycles():
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in all_imports():
        if found.target and found.target != found.module:
            graph[found.module].add(found.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " -> ".join(error.args[1]))


def test_no_private_names_across_packages():
    wrong = [
        f"{found.module} imports {found.target}.{found.name}"
        for found in all_imports()
        if package_of(found.module) != package_of(found.target)
        and any(part.startswith("_") and part != "__version__" for part in [found.name, *found.target.split(".")[1:]])
    ]
    assert not wrong, "\n".join(wrong)
