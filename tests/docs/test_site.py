"""The site builds without warnings, loads no external resources, and documents every public name."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import eigencurve
import eigencurve.adapters
from eigencurve.cli.shell import COMMANDS, load

pytestmark = pytest.mark.slow


ROOT = Path(__file__).parents[2]


def test_builds_without_warnings(site):
    """Broken links, anchors and cross-references, and pages missing from the navigation, are all warnings."""
    assert site.warnings == []
    assert "index.html" in site.pages


def test_loads_no_external_resources(site):
    """The site works offline: it contains all scripts, styles, fonts and images."""
    loads = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)="?(https?:)?//[^">]*""")
    for name, text in site.pages.items():
        found = [match[0] for match in loads.finditer(text) if 'rel="canonical"' not in match[0]]
        assert not found, (name, found)
    for path in site.folder.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?https?:|@import", path.read_text()), path


def documented(site):
    return set().union(*(ids for name, ids in site.anchors.items() if name.startswith("reference/")))


@pytest.mark.parametrize("module", ["eigencurve", "eigencurve.hessian"])
def test_every_public_name_is_in_the_reference(site, module):
    public = importlib.import_module(module)
    names = {f"{module}.{name}" for name in public.__all__ if not inspect.ismodule(getattr(public, name))}
    assert names <= documented(site), sorted(names - documented(site))


def test_every_adapter_is_in_the_reference(site):
    """Reads the names from the source, so that no framework has to be installed."""
    for module in pkgutil.iter_modules(eigencurve.adapters.__path__):
        source = Path(module.module_finder.path, f"{module.name}.py").read_text()
        defined = re.findall(r"^(?:class|def) ([A-Za-z]\w*)", source, re.MULTILINE)
        defined = [name for name in defined if name not in eigencurve.__all__]  # documented under their short name
        names = {f"eigencurve.adapters.{module.name}.{name}" for name in defined}
        assert names <= documented(site), sorted(names - documented(site))


def test_every_command_and_option_is_in_the_reference(site):
    text = site.pages["reference/cli/index.html"]
    for name in COMMANDS:
        assert f'id="eigencurve-{name}"' in text
        for parameter in load(name).params:
            assert all(option in text for option in parameter.opts if option.startswith("--")), (name, parameter.opts)


def test_docstring_markup_is_converted(site):
    """No reStructuredText, LaTeX or unresolved cross-reference is left on the reference pages."""
    for name, text in site.pages.items():
        if name.startswith("reference/"):
            shown = re.sub(r'alttext="[^"]*"', "", text)
            left = re.findall(
                r":(?:func|class|meth|mod|math):|\.\. math::|\\(?:frac|sum|eta|lambda|text)\b|<autoref", shown
            )
            assert not left, (name, left)
            assert "&gt;&gt;&gt; " not in re.sub(r"<pre.*?</pre>", "", shown, flags=re.DOTALL), name
    assert site.pages["reference/schedules/index.html"].count("<math") > 10


def test_every_result_is_a_page(site):
    for path in (ROOT / "results").rglob("*.md"):
        page = path.relative_to(ROOT).with_suffix("").as_posix()
        assert f"{page}/index.html" in site.pages
        assert f'href="{page.removeprefix("results/")}/"' in site.pages["results/index.html"]


def test_images_have_alt_texts_and_exist(site):
    """Screen readers need the alternative text."""
    for name, text in site.pages.items():
        for tag in re.findall(r"<img [^>]*>", text):
            assert re.search(r'alt="[^"]+"', tag), (name, tag)
            target = re.search(r'src="([^"]+)"', tag)[1]
            assert (site.folder / name).parent.joinpath(target).is_file(), (name, target)
