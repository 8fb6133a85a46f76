"""Readers of what Slurm and Kubernetes show of a cluster as it is now.

`read` knows the reader of each dialect. All return a `ronda.instances.snapshots.snapshot.Snapshot`.
"""
