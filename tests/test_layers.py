"""The architecture as a test: which package may import which, no import cycles, no private names across packages.

``paper`` is outside: it uses the public names of the library, and the library does not import it.
"""

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import eigencurve

SOURCE = Path(eigencurve.__file__).parent
# Single modules at the top that every package may use.
BASE = {"_archives", "_arrays", "_check", "_files", "_html", "_moved", "_process"}
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
    "planning": CORE | {"forecast", "runs"},
    "figures": CORE | {"forecast", "planning"},
    "studio": CORE | {"forecast", "planning", "figures"},
    "demo": CORE | {"", "hessian", "adapters"},
    "cli": CORE | {"", "forecast", "hessian", "adapters", "runs", "planning", "figures", "studio", "demo"},
}
# The plan that measures a model first, imported only then.
DOORS = {("planning.spectrum", "hessian")}
PAPER = Path(__file__).parent.parent / "paper"
# What CONTRIBUTING.md lists as public: packages with their ``__all__``, and packages whose modules are public.
PUBLIC = {"eigencurve", "eigencurve.forecast", "eigencurve.hessian", "eigencurve.runs", "eigencurve.schedules",
          "eigencurve.spectrum"}  # fmt: skip
PUBLIC_MODULES = {"eigencurve.adapters", "eigencurve.figures", "eigencurve.schedules", "eigencurve.spectrum",
                  "eigencurve.theory"}  # fmt: skip


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
        ("planning.render", "from eigencurve.demo.run import run_demo"),
        ("planning.render", "def f():\n    import eigencurve.demo"),
        ("spectrum.groups", "from eigencurve.schedules.base import Schedule"),
        ("schedules.base", "import eigencurve as ec"),
        ("planning.result", "from eigencurve.hessian.estimate import SpectrumEstimate"),
    ],
)
def test_a_wrong_import_is_found(module, line):
    """The check itself: planning must not import the demo, nor the core an outer package."""
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


EVERY_MODULE = {f"eigencurve.{module}" for module in MODULES}


def defined_in(module: str) -> set[str]:
    """The names without underscore that a module defines, which does not include what it imports."""
    path = MODULES.get(module.removeprefix("eigencurve."))
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body if path else []:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def uses_of_the_library(source: str) -> Iterator[tuple[str, str]]:
    """The modules of the library that a module of ``paper`` imports, each with a name from it or an empty one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "eigencurve")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "eigencurve":
            yield from ((node.module or "", alias.name) for alias in node.names)


def is_public(module: str, name: str) -> bool:
    if module in PUBLIC and (not name or name in importlib.import_module(module).__all__):
        return True
    if module in PUBLIC_MODULES:
        return f"{module}.{name}" in EVERY_MODULE or name in getattr(importlib.import_module(module), "__all__", ())
    return module.rpartition(".")[0] in PUBLIC_MODULES and name in defined_in(module)


def test_the_paper_uses_public_names_only():
    uses = {(path, use) for path in PAPER.rglob("*.py") for use in uses_of_the_library(path.read_text())}
    assert len(uses) > 100
    wrong = [f"{path.relative_to(PAPER)}: {'.'.join(use)}" for path, use in sorted(uses) if not is_public(*use)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("from eigencurve import cosine", True),
        ("from eigencurve.theory import bounds", True),
        ("from eigencurve.theory.bounds import theorem_1", True),
        ("import eigencurve as ec", True),
        ("from eigencurve import _check", False),
        ("from eigencurve._files import write_atomically", False),
        ("from eigencurve.hessian.operator import HessianOperator", False),
        ("from eigencurve.schedules.base import Array", False),
        ("from eigencurve.planning.plan import plan", False),
    ],
)
def test_what_is_public(line, expected):
    (use,) = uses_of_the_library(line)
    assert is_public(*use) == expected


def test_the_library_does_not_import_the_paper():
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "paper" for name in names), path


def test_the_guide_names_files_that_exist():
    guide = PAPER.parent / "CONTRIBUTING.md"
    paths = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", guide.read_text()))
    assert len(paths) > 40
    assert not {path for path in paths if not any((root / path).exists() for root in (SOURCE, PAPER.parent))}
