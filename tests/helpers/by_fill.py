"""The greedy fill at the dual's prices as a choice, and its prices by GPU and watt."""

from collections.abc import Mapping

from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import separable, shortages
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import may_sleep, node_classes
from ronda.instances.base import Floats
from ronda.instances.plan import StopReason
from ronda.instances.round import Round
from ronda.solvers.decision.plan import Choice, filled, nobody
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import first_answer


def allocate_by_fill(round: Round, table: OptionTable, values: Floats) -> Choice:
    """Choose by the greedy fill at the dual's prices, without a search; the bound is proven."""
    search, case = Search(), make_case(round, table, values)
    conflicts = shortages(case)
    if conflicts:
        return nobody(table, StopReason.INFEASIBLE, search, conflicts)
    problem = separable(case)
    return filled(case, problem, first_answer(problem, search), search)


def unit_prices(round: Round, prices: Mapping[str, float]) -> dict[str, float]:
    """Return the price of a GPU of each pool (``gpus[POOL]``), and of a watt.

    That of a watt at once is ``watts``, throughout the energy window ``energy``. The GPU's share of
    a whole node, or of a block, counts with it; the watts that keep its node awake do not.
    """
    found = {
        "watts": prices.get("power_cap", 0.0),
        "energy": prices.get("energy_window", 0.0) * round.window_s,
    }
    watt, classes = sum(found.values()), node_classes(round)
    for p, pool in enumerate(round.cluster.topology.pools):
        own = [c for c in classes if c.pool == p]
        node = sum(v for n, v in prices.items() if n.startswith(f"whole_nodes[{pool.name},"))
        price = prices.get(f"gpus[{pool.name}]", 0.0) + node / max(c.gpus_per_node for c in own)
        blocks = f"buddy[{pool.name},"
        price += sum(v / int(n[len(blocks) : -1]) for n, v in prices.items() if blocks in n)
        if may_sleep(round):
            price -= watt * min(max(0.0, c.more_w) / c.gpus_per_node for c in own)
        found[f"gpus[{pool.name}]"] = max(0.0, price)
    return found
