"""Which running jobs move so that nodes become empty, and no job changes how it runs.

Here equal nodes and equal jobs are counted together: who runs where as classes (`holdings`), the
model of what stays and what moves (`model`, which loads Pyomo), and the nodes that a solved one
gives to each job (`read`). Free GPUs are cut into pieces as in `ronda.formulations.positions`;
what starts, stops or changes its size is decided elsewhere.
"""
