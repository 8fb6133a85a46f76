"""Options and their nodes in one model, which is exact where counting GPUs is not.

Here the rows of `ronda.formulations.allocation` meet the nodes of the cluster: the model says which
running jobs stay in place, and how the remaining room is cut into pieces for the others. Rows for
nodes whichever jobs they hold are in `ronda.formulations.allocation.rows`; the quick placement of a
given choice is `ronda.formulations.placement`. The model, `ronda.formulations.positions.model`, is
not exported, as it loads Pyomo.
"""
