"""Makers of packaged data and pages of the docs, and keepers of records; not in the wheel.

``python -m tools.recipes`` makes the packaged instances, ``python -m tools.profiles`` the packaged
profiles and ``python -m tools.task_sites`` the sites of generated tasks, all from public data;
``python -m tools.schema`` the JSON Schemas and the page on formats. ``python -m tools.registry``
keeps the best results known, and ``python -m tools.versions`` those of each version.
"""
