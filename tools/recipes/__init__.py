"""How the packaged instances are made from public data: ``python -m tools.recipes``.

One file a source. Nothing else uses this room: an instance is loaded by name
(`ronda.instances.files`), and generators of random ones are in `ronda.instances.generate`.
"""
