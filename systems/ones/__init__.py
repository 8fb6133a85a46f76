"""ONES: online evolutionary orchestration of batch sizes (Bian, Li, Wang, You, SC 2021).

Its parts as the paper has them: `genome`, a schedule and the operators on it; `reorder`, which
packs a schedule with few moves; `limits`, the rules of batch-size limits; `progress`, the Beta
posterior of training progress, and `learn`, its training online; `tick`, scores and one generation;
`deploy`, when the best schedule is carried out; `policy`, one tick from round to plan. `subproblem`
has the GPUs and jobs of a pool and `memory` what is carried between ticks. All rules were read from
the authors' prototype (kurisusnowdeng/ones_sc21). See docs/ones.md.
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
