"""PowerFlow: GPUs and clocks for each job under an energy budget.

`powerflow` has the marginal rule, and the same question answered by prices. What its paper models
of speed and power is in `ronda.instances.models`, its buddy allocation and network packing in
`ronda.formulations.placement`.
"""

POLICIES = {
    "powerflow": "ronda.systems.powerflow.powerflow:Powerflow",
    "powerflow-prices": "ronda.systems.powerflow.powerflow:PowerflowPrices",
}
