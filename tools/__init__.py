"""Makers of packaged data and pages of the docs, and keepers of records; not in the wheel.

``python -m tools.recipes`` makes the packaged instances and ``python -m tools.profiles`` the
packaged profiles, both from public data; ``python -m tools.schema`` the JSON Schemas and the page
on formats. ``python -m tools.registry`` keeps the best results known, and ``python -m
tools.versions`` those of each version.
"""
