"""MkDocs hooks that build the site from the Markdown files of the repository.

README.md becomes the home page. CHANGELOG.md, CONTRIBUTING.md and all tables in results/ become pages as well, so a new
table appears without a change to mkdocs.yml. Pages link to each other by their paths in the repository; these hooks
translate the links to the paths of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

RENAMED = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
FOLDERS = {"results": "results.md", "docs": "index.md"}
LINK = re.compile(r"(?P<head>\]\(|<img src=\")(?P<target>[^)\s\"#]+)(?P<tail>[^)\"]*[)\"])")
FENCED = re.compile(r"^(```.*?^```\s*$)", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
NO_PAGE = "LICENSE"
LAST_SECTION = "Project"


def repository(config: MkDocsConfig) -> Path:
    """The folder that contains mkdocs.yml."""
    return Path(config.config_file_path).parent


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Expand ``results/`` in the navigation, and append pages that the navigation does not list."""
    root, nav = repository(config), config.nav or []
    for section in nav:
        for name, pages in section.items():
            if isinstance(pages, list):
                section[name] = [entry for page in pages for entry in _expanded(page, root)]
    named = set(re.findall(r"[\w/-]+\.md", str(nav)))
    pages = sorted(path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md"))
    nav[-1][LAST_SECTION] += [page for page in pages if page not in named]
    return config


def _expanded(page: Any, root: Path) -> list[Any]:
    return result_pages(root) if page == "results/" else [page]


def result_pages(root: Path) -> list[str]:
    """All pages of results/; those at the top level come first."""
    found = [path.relative_to(root).as_posix() for path in (root / "results").rglob("*.md")]
    return sorted(found, key=lambda path: (path.count("/"), path))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and images from outside docs/."""
    root = repository(config)
    for source, target in {**RENAMED, NO_PAGE: NO_PAGE}.items():
        files.append(File.generated(config, target, abs_src_path=str(root / source)))
    for path in sorted((root / "results").rglob("*")):
        if path.suffix in {".md", ".png", ".svg", ".html"}:
            files.append(File.generated(config, path.relative_to(root).as_posix(), abs_src_path=str(path)))
    return files


def results_list(root: Path) -> str:
    """A list of links to the result pages, with their titles."""
    return "\n".join(f"- [{title(root / page)}](../{page})" for page in result_pages(root))


def title(path: Path) -> str:
    """The first heading of a page, or its file name if it has none."""
    found = TITLE.search(path.read_text())
    return found[1] if found else path.stem


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Insert the list of results, and translate the links outside code blocks."""
    markdown = markdown.replace("<!-- results -->", results_list(repository(config)))
    return "".join(
        part if part.startswith("```") else translated(part, page.file.src_uri) for part in FENCED.split(markdown)
    )


def repository_path(src_uri: str) -> str:
    """The path in the repository of a page of the site."""
    back = {site: source for source, site in RENAMED.items()}
    return back.get(src_uri, src_uri if src_uri.startswith("results/") else f"docs/{src_uri}")


def translated(text: str, src_uri: str) -> str:
    """Translate the relative links of a page from repository paths to site paths."""
    home = posixpath.dirname(repository_path(src_uri))

    def exchange(link: re.Match[str]) -> str:
        if ":" in link["target"] or link["target"].startswith("/"):
            return link[0]
        path = posixpath.normpath(posixpath.join(home, link["target"]))
        target = posixpath.relpath(site_path(path), posixpath.dirname(src_uri) or ".")
        return link["head"] + target + link["tail"]

    return LINK.sub(exchange, text)


def site_path(path: str) -> str:
    """The path on the site of a file of the repository."""
    return {**RENAMED, **FOLDERS}.get(path, path.removeprefix("docs/"))
