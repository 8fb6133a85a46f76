"""Options and the nodes that they take, in one model: exact where counting GPUs is not.

Here the rows of `ronda.formulations.allocation` meet the nodes of the cluster: which running jobs
stay where they are, and how the room that is left is cut into pieces for the others. What a choice
of options needs of nodes without a look at where jobs run is in
`ronda.formulations.allocation.rows`; how a given choice is placed quickly, in
`ronda.formulations.placement`. Not exported, as it loads Pyomo: the model,
`ronda.formulations.positions.model`.
"""
