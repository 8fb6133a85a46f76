"""Rules about single nodes and racks: host resources, shapes, slices, parts of GPUs, outages.

Each rule says its rows over options, its account of jobs that are added one by one, and the nodes
that it closes. Which nodes a job gets is decided in `ronda.formulations.placement`.
"""
