"""The SRUF snapshot solved by mixed-integer programming."""

from ronda.bench.study.sruf_model import build, counts
from ronda.bench.study.sruf_snapshot import Counts, SrufSnapshot
from ronda.solvers.contract import Deadline
from ronda.solvers.exact import model as exact
from ronda.solvers.exact.highs import Outcome


def by_milp(
    problem: SrufSnapshot,
    *,
    deadline: Deadline | None = None,
    gap: float = 1e-9,
    seed: int = 0,
) -> tuple[Counts | None, Outcome]:
    """Return (J,) GPUs of a schedule of least score, None if none was found, and HiGHS's account.

    `ronda.bench.study.sruf_snapshot.optimum` finds the same by dynamic programming, much faster;
    this is its independent check, and takes further constraints where the other cannot.

    Parameters
    ----------
    problem
        What is to be solved.
    deadline
        By when to return; None: no limit.
    gap
        Relative gap at which to stop.
    seed
        Of the solver.
    """
    model = build(problem)
    outcome = exact.solve(model, deadline=deadline, gap=gap, seed=seed)
    return (None if outcome.x is None else counts(model, problem.jobs)), outcome
