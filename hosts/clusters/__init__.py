"""Readers of what Slurm and Kubernetes show of a cluster as it is now.

Each dialect has a file; all return a `ronda.instances.snapshots.snapshot.Snapshot`.
"""
