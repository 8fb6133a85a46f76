"""Readers of what Slurm and Kubernetes show of a cluster as it is now."""
