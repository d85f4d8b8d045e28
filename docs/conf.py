"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import make_api  # noqa: E402

from howsure._version import __version__  # noqa: E402

project, author, release, version = "howsure", "The howsure developers", __version__, __version__
html_title = f"howsure {__version__}"
project_copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "**/GALLERY_HEADER.*", "pages/*", "assets/*"]
root_doc = "index"
nitpicky = True
nitpick_ignore_regex = [("py:.*", r".*")]  # docstrings name parts that the reference leaves out
default_role = "py:obj"

# Words

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
autodoc_typehints = "none"  # docstrings say types, with shapes
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# The page

html_theme = "furo"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}
