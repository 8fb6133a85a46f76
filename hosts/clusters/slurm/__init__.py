"""Readers of Slurm: what its commands print of jobs, nodes, limits and reservations.

`documents` reads JSON and `text` reads text, both to the same records; `jobs`, `nodes` and `limits`
make them parts of a snapshot, which `snapshots` puts together.
"""
