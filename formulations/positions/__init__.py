"""A joint model of options and nodes, which is exact where a count of GPUs is not.

The model adds the nodes of the cluster to the rows of `ronda.formulations.allocation`. It decides
which running jobs stay in place, and how the remaining room is cut into pieces for other jobs.
`ronda.formulations.allocation.rows` has the rows for nodes that hold for any jobs on them, and
`ronda.formulations.placement` quickly places a given choice. The package does not export the model,
`ronda.formulations.positions.model`, as it loads Pyomo.
"""
