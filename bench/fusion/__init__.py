"""Studies of models that share a GPU: ``python -m ronda.bench.study hfht`` and ``fusion``.

Their curves are packaged fits (`ronda.instances.files.fits`). Nothing is exported: studies are
started by name.
"""

__all__: list[str] = []
