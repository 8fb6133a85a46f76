"""A folder of results as one HTML page that works without a network.

This package collects the page's contents and packs them. The page's templates, styles and script
are in ``bench/data/report``; Plotly draws charts, and DataTables sorts tables. The modules load
Jinja2, so import them by their full paths.
"""
