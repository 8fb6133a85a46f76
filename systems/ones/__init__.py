"""ONES: online evolutionary orchestration of batch sizes (Bian, Li, Wang, You, SC 2021).

A genetic search gives GPUs to jobs, with one generation per second. A job's batch grows with its
GPUs. According to the result files of the authors' artifact (kurisusnowdeng/ones_sc21), the mean
job completion time is 57 % below that of Tiresias and 53 % below that of Optimus (read in the
authors' data).

==================  ==========================================================================
`policy`            one tick, from round to plan, and when the best schedule is carried out
`genome`            a schedule and the operators on it: refresh, crossover, mutation, pad
`scoring`           the score, and one generation: 16 of 48 genomes survive
`reorder`          the packing of a schedule with few moves
`limits`            limits of batch sizes, which double, and halve while a job waits
`progress`          the Beta distribution of a job's progress, and the network that predicts it
`learn`             the online training of this network
`subproblem`        the GPUs and jobs of a pool
`memory`            the data carried from tick to tick
`trace`             the workload, read or generated; speeds, convergence and losses of its jobs,
                    which the artifact measures on real trainings, are models (ours)
==================  ==========================================================================

All rules of a tick follow the authors' code faithfully, except for three errors in it
(docs/ones.md). The jobs' models, rigid jobs, several pools and power are rebuilt.

The core has learning curves and logs (`ronda.instances.models.learning`) and the efficiency of
large batches (`ronda.instances.models.efficiency`). See docs/systems/ones.md, docs/ones.md,
docs/sruf.md and docs/progress.md.
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
