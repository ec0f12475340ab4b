"""What the site shows beside the files of this folder: the documents at the root of the repository,
where links to them lead, and the API reference. MkDocs calls the functions that begin with `on_`.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import serve_app
from runtime.cli.export_api_reference import anchor, reference
from runtime.cli.export_openapi import exported

ROOT = Path(__file__).resolve().parents[1]
# path in the repository -> page of the site
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "DATA.md": "data-format.md",
    "GLOSSARY.md": "glossary.md",
    "OPERATIONS.md": "operations.md",
    "PLUGINS.md": "plugins.md",
    "SECURITY.md": "security.md",
    "clients/python/README.md": "python-client.md",
    "clients/typescript/README.md": "typescript.md",
    "loadtests/RESULTS.md": "measurements.md",
    "tests/PROMISES.md": "promises.md",
}
API = "api.md"
LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
OPERATION = re.compile(r"`((?:GET|POST|PUT|PATCH|DELETE) (/v1/[^`\s?]*)[^`\s]*)`")
TEXT = re.compile(r"(?<=>)[^<]+(?=<)")
JOINT = re.compile(r"(?<=[a-zA-Z}])([._/@:;=]+)(?=[a-zA-Z0-9{])")
CELL = re.compile(r"<td.*?</td>", re.DOTALL)
ID = re.compile(r'\bid="([^"]+)"')
OWN_LINK = re.compile(r'<a\b[^>]*\bhref="(?!https?:|mailto:|javascript:)([^"]+)"')
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)

_described = json.loads(exported(serve_app.registry(), serve_app.Settings()))
_operations = {
    f"{method.upper()} {path}"
    for path, methods in _described["paths"].items()
    for method in methods
}


def on_files(files, config):
    """Add the documents that lie elsewhere, the files that they link to, and the reference."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    files.append(File.generated(config, API, content=reference(_described)))
    sources = [*PAGES, *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    for source in sources:
        if (ROOT / source).exists():
            for _, target, _ in LINK.findall((ROOT / source).read_text()):
                path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
                shown = path in PAGES or path.startswith("docs/") or not (ROOT / path).is_file()
                if not shown and files.get_file_from_path(f"files/{path}.txt") is None:
                    content = (ROOT / path).read_bytes()
                    files.append(File.generated(config, f"files/{path}.txt", content=content))
    return files


def on_page_markdown(markdown, page, **_):
    """Let links lead to pages of the site, and operations to the reference; not inside code."""
    uri = page.file.src_uri
    source = next((name for name, made in PAGES.items() if made == uri), f"docs/{uri}")
    here = posixpath.dirname(uri)

    def linked(match):
        text, target, fragment = match[1], match[2], match[3] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if (ROOT / path).is_dir():
            return text
        to = PAGES.get(path) or (path[5:] if path.startswith("docs/") else f"files/{path}.txt")
        return f"[{text}]({posixpath.relpath(to, here or '.')}{fragment})"

    def referred(match):
        operation = match[1].split("?")[0]
        if uri == API or operation not in _operations:
            return match[0]
        return f"[{match[0]}]({posixpath.relpath(API, here or '.')}#{anchor(operation)})"

    parts, at = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [OPERATION.sub(referred, LINK.sub(linked, markdown[at : fence.start()])), fence[0]]
        at = fence.end()
    parts.append(OPERATION.sub(referred, LINK.sub(linked, markdown[at:])))
    return "".join(parts)


def on_page_content(html, **_):
    """Let long names in tables break behind their punctuation."""

    def breaking(cell):
        return TEXT.sub(lambda text: JOINT.sub(r"\1<wbr>", text[0]), cell[0])

    return CELL.sub(breaking, html)


def on_post_build(config, **_):
    """Refuse a site with a link of its own that leads nowhere, to a page or inside one."""
    site = Path(config.site_dir)
    text = {path: path.read_text() for path in site.rglob("*.html") if path.name != "404.html"}
    anchors = {path: set(ID.findall(html)) for path, html in text.items()}
    nowhere = []
    for path, html in text.items():
        for target, _, fragment in (link.partition("#") for link in OWN_LINK.findall(html)):
            to = (path.parent / target).resolve() if target else path
            if not to.exists() or (fragment and fragment not in anchors.get(to, {fragment})):
                nowhere.append(f"{path.relative_to(site)}: {target}#{fragment}")
    if nowhere:
        raise PluginError("links that lead nowhere: " + ", ".join(sorted(set(nowhere))))
