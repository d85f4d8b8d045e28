"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import formulas  # noqa: E402
import make_api  # noqa: E402
import make_llms  # noqa: E402
from docutils import nodes  # noqa: E402
from sphinx import addnodes  # noqa: E402
from sphinx.domains.python import PyXRefRole  # noqa: E402

from howsure._version import __version__  # noqa: E402
from howsure.engine.catalogue import catalogue  # noqa: E402

project, author, release, version = "howsure", "The howsure developers", __version__, __version__
html_title = f"howsure {__version__}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "tutorials", "gallery", "sg_execution_times.rst"]
root_doc = "index"
default_role = "named"
nitpicky = True
nitpick_ignore = [("py:exc", "PluginError")]
suppress_warnings = ["config.cache"]

# Words

myst_enable_extensions = ["colon_fence"]
html_math_renderer = "mathml"
myst_heading_anchors = 4
autodoc_typehints = "none"  # docstrings say types, with shapes
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# The page

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style, pygments_dark_style = "default", "github-dark"

# Scripts that become pages: folder of the source, and of the pages made of it

SCRIPTS = {"tutorials": "learn", "gallery": "figures"}
sphinx_gallery_conf = {
    "examples_dirs": [*SCRIPTS],
    "gallery_dirs": [*SCRIPTS.values()],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("__repr__",),
    "ignore_repr_types": r"matplotlib",
    "download_all_examples": False,
    "default_thumb_file": str(HERE / "assets" / "report.png"),
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "parallel": 2,
    "min_reported_time": 1e9,
    "plot_gallery": os.environ.get("HOWSURE_DOCS") != "quick",
    "abort_on_example_error": True,
}


FOLDERS = ("case-studies", "findings", "measures")
"""Folders whose README stands above all their other pages."""


def _links(app: Any, name: str, source: list[str]) -> None:
    """Links to a script lead to the page made of it; a folder's README lists its pages."""
    text = source[0]
    for folder, made in SCRIPTS.items():
        text = re.sub(
            rf"\]\(((?:\.\./)*){folder}/(?:(\w+)\.py|GALLERY_HEADER\.\w+)\)",
            lambda found, made=made: f"]({found[1]}{made}/{found[2] or 'index'}.rst)",
            text,
        )
    if name in {f"{folder}/README" for folder in FOLDERS}:
        text += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    text = re.sub(r"\]\((?:\.\./)+CONTRIBUTING\.md(#[\w-]+)?\)", r"](/contributing.md\1)", text)
    if name.startswith("measures/"):
        if metric := catalogue().get(name.removeprefix("measures/")):
            cell = f"| formula | {{math}}`{formulas.to_latex(metric.formula)}` |"
            text = re.sub(r"^\| formula \|.*$", lambda _: cell, text, flags=re.MULTILINE)
        text = re.sub(r"`(howsure\.metrics\.\w+)`", r"{py:obj}`\1`", text)
    source[0] = text


def _bars(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Bars of an absolute value are no substitutions; those of tables and code stay."""
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "+-", "| ")):
            parts = re.split(r"(``.*?``)", line)
            parts[::2] = [re.sub(r"(?<!\\)\|", r"\\|", part) for part in parts[::2]]
            lines[place] = "".join(parts)
    if what in {"attribute", "property"}:
        lines[:0] = ["..", ""]  # else what stands before a colon is taken for a type


def _skipped(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """What scikit-learn adds to its estimators is described there."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def _named(
    role: str, raw: str, text: str, line: int, inliner: Any, options: Any = None, content: Any = ()
) -> Any:
    """What stands in single backticks: a link if the reference holds it, else code."""
    module = inliner.document.settings.env.ref_context.get("py:module", "howsure")
    homes = make_api.homes()
    for name in (text, f"{module}.{text}", f"howsure.{text}"):
        owner = name.rpartition(".")[0]
        if ".report." in homes.get(owner, ""):  # a verb, which has no members
            owner = ""
        head = next((each for each in (name, owner) if each in homes), None)
        if head is not None:
            target = homes[head] + name.removeprefix(head)
            return PyXRefRole()("py:obj", raw, f"{text} <{target}>", line, inliner, {}, [])
    return [nodes.literal(raw, text)], []


def _errors(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Sections of errors raised name them without their module."""
    name = f"howsure.core.errors.{node['reftarget']}"
    target = make_api.homes().get(name)
    if node.get("reftype") != "exc" or target is None:
        return None
    return env.domains.python_domain.resolve_xref(
        env, node["refdoc"], app.builder, "exc", target, node, content
    )


def _list_pages(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """List pages beside a page without their headings.

    The theme drops these, but Sphinx copies them first: half of a build.
    """
    if "toctree" not in context:  # of a page that is made of none
        return
    of_pages_and_headings = context["toctree"]

    def of_pages(**options: Any) -> Any:
        tocs, app.env.tocs = app.env.tocs, _drop_headings(app.env)
        try:
            return of_pages_and_headings(**options)
        finally:
            app.env.tocs = tocs

    context["toctree"] = of_pages


@functools.cache
def _drop_headings(env: Any) -> dict[str, nodes.bullet_list]:
    """The contents of each page: its title, and the lists of pages below it."""
    tocs = {}
    for page, toc in env.tocs.items():
        tocs[page] = toc.deepcopy()
        for title in tocs[page].children:
            lists = list(title.findall(addnodes.toctree))
            if len(title) > 1:
                del title[1:]
                title += [nodes.bullet_list("", *lists)] if lists else []
    return tocs


SPOKEN = {
    r'<p class="caption" role="heading">': r'<p class="caption" role="heading" aria-level="2">',
    r'<div class="highlight"><pre>': r'<div class="highlight"><pre tabindex="0">',
    r'<aside class="(sidebar-drawer[^"]*)">': r'<aside class="\1" aria-label="All pages">',
    r'<aside class="(toc-drawer[^"]*)">': r'<aside class="\1" aria-label="This page">',
}
"""What the theme leaves out of its pages for screen readers."""


def spoken(page: str) -> str:
    """A page whose headings have levels, whose sides have names, whose code scrolls by keys."""
    for pattern, text in SPOKEN.items():
        page = re.sub(pattern, text, page)
    return page


def _speak(app: Any, error: Exception | None) -> None:
    """Complete every page that was built."""
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        if error is None and (told := spoken(page)) != page:
            path.write_text(told, encoding="utf-8")


def _list(app: Any, error: Exception | None) -> None:
    """Write llms.txt beside the start page."""
    if error is None and app.builder.name == "html":
        Path(app.outdir, "llms.txt").write_text(make_llms.text(app), encoding="utf-8")


def setup(app: Any) -> None:
    """Make the API's pages anew, and tend sources on their way."""
    make_api.write()
    app.add_role("named", _named)
    visits = (formulas.visit_math, None)
    app.add_html_math_renderer("mathml", visits, visits)
    made = [f"{folder}/README" for folder in FOLDERS]
    app.connect("env-get-outdated", lambda *_: made)  # what they list may have changed
    app.connect("source-read", _links)
    app.connect("doctree-read", make_llms.note_lead)
    app.connect("html-page-context", _list_pages, priority=100)
    app.connect("autodoc-process-docstring", _bars, priority=100)
    app.connect("missing-reference", _errors)
    app.connect("autodoc-skip-member", _skipped)
    app.connect("build-finished", _speak)
    app.connect("build-finished", _list)
