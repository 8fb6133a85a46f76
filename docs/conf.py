"""How Sphinx makes the pages: ``make docs``. Nothing here opens a connection.

The pages are plain Markdown, so that they read as well in a clone. The sections of the sidebar are
the headings of ``index.md``, in the order of the links below each.
"""

import re
from pathlib import Path
from typing import Any

from pygments.lexers import TextLexer
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

import ronda

DOCS = Path(__file__).parent

project = "ronda"
author = "The ronda contributors"
copyright = author
release = version = ronda.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"ronda {release}"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["ref.python"]  # `jobs` in a docstring may be that of several classes

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True

for _name in ronda.__all__:  # so that types in signatures lead to what is described
    getattr(ronda, _name).__module__ = "ronda"

for _language in ("csv", "mermaid"):  # Pygments colours neither
    lexers[_language] = TextLexer()


def sections(index: str, pages: set[str]) -> dict[str, list[str]]:
    """Return the pages of each section of the index.

    A page that no section links to is listed under its folder, or at the end.
    """
    found: dict[str, list[str]] = {}
    left = pages - {"index"}
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        links = re.findall(r"\]\(([\w/]+)\.md", part)
        found[part.partition("\n")[0]] = listed = [p for p in dict.fromkeys(links) if p in left]
        left = left - set(listed)
    for page in sorted(left):
        folder = page.rpartition("/")[0].replace("_", " ").capitalize()
        found.setdefault(folder or "Further pages", []).append(page)
    return found


def toctrees(index: str, pages: set[str]) -> str:
    """Return a hidden table of contents for each section."""
    blocks = (
        "\n".join([f":::{{toctree}}\n:hidden:\n:caption: {name}\n", *listed, ":::\n"])
        for name, listed in sections(index, pages).items()
        if listed
    )
    return "\n".join(blocks)


def prepare(app: Sphinx, page: str, source: list[str]) -> None:
    """Give the index its tables of contents; name files outside of this folder by their path."""
    here = (DOCS / page).parent

    def outside(link: re.Match[str]) -> str:
        path = (here / link[2]).resolve()
        if path.is_relative_to(DOCS):
            return link[0]
        return f"{link[1]} (`{path.relative_to(DOCS.parent)}`)"

    text = re.sub(r"(?<!!)\[([^\]]*)\]\((\.\./[^)#]*)[^)]*\)", outside, source[0])
    if page == "index":
        text += "\n" + toctrees(text, set(app.env.found_docs))
    source[0] = text


def read_docstring(
    app: Sphinx, what: str, name: str, of: Any, options: Any, lines: list[str]
) -> None:
    """Let napoleon read what it would take for something else.

    It takes what stands before a colon in a property's docstring for a type, and does not know
    attributes that share a description, ``first, second``.
    """
    if what == "property" and lines:
        lines[0] = ":" + lines[0]
    if what == "class":
        shared = [i for i, line in enumerate(lines) if re.fullmatch(r"\w+(, \w+)+", line)]
        for i in reversed(shared):
            end = next((k for k in range(i + 1, len(lines)) if lines[k][:1] != " "), len(lines))
            names, text = lines[i].split(", "), lines[i + 1 : end]
            lines[i:end] = [line for each in names for line in (each, *text)]


def shorten(
    app: Sphinx, what: str, name: str, of: Any, options: Any, signature: str | None, returns: str
) -> tuple[str | None, str]:
    """Leave out what the records hold that are defaults in a class's signature."""
    if what == "class" and signature:
        signature = re.sub(r"(?<=\w)\((?:[^()]|\(\))*\)", "()", signature)
    return signature, returns


def setup(app: Sphinx) -> dict[str, Any]:
    """Let Sphinx ask for what is above."""
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", read_docstring, priority=400)  # napoleon has 500
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True}
