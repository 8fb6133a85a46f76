"""A folder of results as one HTML page that works without a network.

Here is what the page shows and how it is packed. Its templates, styles and script stand in
``bench/data/report``; Plotly draws, DataTables sorts. The room's modules load Jinja2 and are
imported by their path.
"""
