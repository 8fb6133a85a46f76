"""Whether moving running jobs together pays: watts of emptied nodes against lost progress.

Both count in the unit of the round's objective: a watt at its price, a move as a pause
(`ronda.formulations.objectives.outlook`).
"""

from collections.abc import Collection

from ronda.formulations.objectives.outlook import horizon_s
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts.nodes import node_w
from ronda.instances.arrays import Floats, Rows
from ronda.instances.round import Round


def idle_w(round: Round, asleep: tuple[int, ...] | None) -> float:
    """Return the watts of the cluster without any progressing job, waking nodes included.

    `asleep` are the nodes that sleep under the plan; None: those that sleep now.
    """
    sleeping = round.asleep if asleep is None else asleep
    woken = sorted(set(round.asleep).difference(sleeping))
    return float(node_w(round.cluster.topology, sleeping, woken).sum())


def loss_of_moves(
    round: Round, table: OptionTable, values: Floats, rows: Rows, moved: Collection[str]
) -> float:
    """Return the value lost if `moved` jobs restart on other nodes with the options of `rows`.

    The value v (`values`, (K,)) of an option that lasts for H seconds drops to ``v (1 - c/H)`` by a
    pause of c seconds, with ``H = min(c + R/rate, horizon)`` for remaining work R.
    """
    longest, lost = horizon_s(round), 0.0
    for k in rows.tolist():
        state = table.jobs[int(table.job[k])]
        if state.job.id not in moved:
            continue
        pause = (state.job.costs or round.costs).restart(int(table.gpus[k]))
        work = state.remaining_at(round.now_s)
        run_s = longest if work is None else work / float(table.rate[k])
        lasts = max(min(pause + run_s, longest), pause)
        lost += float(values[k]) * (pause / lasts if lasts > 0 else 1.0)
    return lost
