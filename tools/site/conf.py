"""The configuration of the documentation site (Sphinx). `tools/site/build.py` copies it beside the pages."""

from plait.version import __version__

project = "plait"
author = "The plait authors"
copyright = "the plait authors"  # noqa: A001 - the name that Sphinx reads
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 6
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]  # console sessions are no shell scripts
autodoc_member_order = "bysource"
autodoc_typehints = "description"
smartquotes = False  # it would make a dash of --option
napoleon_google_docstring = True

html_theme = "furo"
html_title = "plait"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"
