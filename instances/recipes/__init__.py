"""How the packaged instances are made from public data: ``python -m ronda.instances.recipes``."""
