"""The lines of results of `ronda.bench.study.one_round`."""

from pathlib import Path

from ronda.bench.runs.results import read_records
from ronda.instances.base import Record


class Line(Record, frozen=True, kw_only=True):
    """One round at one budget.

    Attributes
    ----------
    seed, share
        Of the generated round; the budget over the reference's energy.
    jobs, gpus, options
        Size of the round; options that the optimum had to choose from.
    status
        "proven" to the gap, "limit" if time was up before, or "infeasible": the budget does not
        serve all jobs at once.
    budget_j, reference_j
        The budget, and what the full-speed greedy uses.
    optimum_s, bound_s
        Mean JCT of the best plan found, and what none can be below.
    relative_s, prices_s
        Mean JCT by the two rules; None if not even the smallest options are within the budget.
    solve_s
        Seconds for the optimum.
    greedy_s
        Seconds for both rules together.
    """

    seed: int
    share: float
    jobs: int
    gpus: int
    options: int
    status: str
    budget_j: float
    reference_j: float
    optimum_s: float | None = None
    bound_s: float | None = None
    relative_s: float | None = None
    prices_s: float | None = None
    solve_s: float = 0.0
    greedy_s: float = 0.0

    def excess(self, rule: str) -> float | None:
        """Return by how much a rule's mean JCT exceeds the optimum, relative to it."""
        found: float | None = getattr(self, f"{rule}_s")
        if found is None or self.optimum_s is None:
            return None
        return found / self.optimum_s - 1.0


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a file (`ronda.bench.runs.results.read_records`)."""
    return read_records(path, Line, "a line of one_round")
