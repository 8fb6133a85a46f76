"""What makes files of this repository: packaged data, and pages of the docs; not in the wheel.

``python -m tools.recipes`` makes the packaged instances and ``python -m tools.profiles`` the
packaged profiles, both from public data; ``python -m tools.schema`` the JSON Schemas and the page
on formats.
"""
