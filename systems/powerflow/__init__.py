"""PowerFlow: GPUs and clocks for each job under an energy budget (Gu et al. 2023).

Gu, Xie, Huang, Jin, Liu, arXiv 2304.06381, claim a mean job completion time up to 1.57 to 3.39
times shorter at equal energy (published, abstract). The body of the paper was not available.

=================  ===========================================================================
`powerflow`        `powerflow`: the best step has the largest (dJCT / JCT) / (dE / E) (a third
                   party's port: probable, not established); `powerflow-prices`: the same steps
                   at two prices (ours)
`marginal`         the steps (twice the GPUs, or the next clock) and the climb along them
=================  ===========================================================================

These parts are faithful: GPUs and clocks are chosen by predicted speed and energy under a budget,
nodes are filled by packing and buddy allocation, and the climb ends when GPUs or budget are used
up. The rest is rebuilt: steps to the next clock, the start at the clock of least energy, the second
climb from the running options, the spread of the budget over time, the order of admission, and
every model and constant, which are fitted to public measurements.

The core has models of speed and power (`ronda.instances.models`), buddy allocation and network
packing (`ronda.formulations.placement`), the charges to the energy window
(`ronda.formulations.watts`), climbs that count GPUs and watts (`ronda.solvers.greedy.counted`) and
the sleep of nodes without a job (`ronda.formulations.sleeping`). See docs/systems/powerflow.md,
docs/powerflow.md and docs/frontier.md.
"""

POLICIES = {
    "powerflow": "ronda.systems.powerflow.powerflow:Powerflow",
    "powerflow-prices": "ronda.systems.powerflow.powerflow:PowerflowPrices",
}
