"""ONES: online evolutionary orchestration of batch sizes (Bian, Li, Wang, You, SC 2021).

A genetic search gives GPUs to jobs, one generation a second; a job's batch grows with its GPUs. The
result files of the authors' artifact (kurisusnowdeng/ones_sc21) say that it cuts the mean job
completion time of Tiresias by 57 % and of Optimus by 53 % (read in the authors' data).

==================  ==========================================================================
`policy`            one tick, from round to plan
`genome`            a schedule and the operators on it: refresh, crossover, mutation, pad
`scoring`           the score, and one generation: 16 of 48 genomes survive
`reorder`           packs a schedule with few moves
`limits`            limits of batch sizes: they double, and halve while a job waits
`deploy`            when the best schedule is carried out
`progress`          the Beta belief of how far a job has come, and the network that predicts it
`learn`             its training online
`subproblem`        the GPUs and jobs of a pool
`memory`            what is carried from tick to tick
`trace`             the workload, read or generated; speeds, convergence and losses of its jobs,
                    which the artifact measures on real trainings, are models (ours)
==================  ==========================================================================

Faithful: all rules of a tick, read in the authors' code; three slips of it are not repeated
(docs/ones.md). Rebuilt: the jobs' models, rigid jobs, several pools, power.

In the core: learning curves and logs, `ronda.instances.models.learning`; what large batches are
worth, `ronda.instances.models.efficiency`. Pages: docs/systems/ones.md, docs/ones.md, docs/sruf.md,
docs/progress.md.
"""

POLICIES = {"ones": "ronda.systems.ones.policy:Ones"}
TRACES = {
    "ones": (
        "ronda.systems.ones.trace:read_ones",
        "Read a trace of the ONES artifact: elastic jobs whose batch may change.",
    )
}
MAKERS = {
    "ones": (
        "ronda.systems.ones.trace:ones_workload",
        "Generate an instance of the ONES workload (SC'21): short trainings, a minute apart.",
    )
}
