"""Speed of ronda itself, over size: ``python -m ronda.bench.speed CASE``."""
