"""A controller of a real Slurm, which Slurm can do without at any moment.

`controller` reads the cluster, decides and acts; `scope` says what it may touch, `commands` has all
that it can do, and `guard` looks at each command again; `sizes` is what is believed of jobs.
Readers of what Slurm shows are in `ronda.hosts.clusters.slurm`.
"""
