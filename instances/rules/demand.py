"""What must hold for a demand series: a date, equal columns, no more nodes than there are."""

from collections.abc import Iterator
from datetime import datetime

from ronda.instances.demand import Demand
from ronda.instances.rules.problem import Problem, show
from ronda.instances.rules.sizes import too_many


def demand_problems(series: Demand) -> Iterator[Problem]:
    """Yield what is inconsistent in a demand series."""
    try:
        datetime.fromisoformat(series.start)
    except ValueError:
        yield Problem("start", show(series.start), "a date and time such as 2020-09-01T00:00:00")
    steps = len(series.needed)
    if not steps:
        yield Problem("needed", "no step", "at least one")
    for name in ("total", "forecast", "active"):
        column = getattr(series, name)
        if len(column) != steps and (column or name == "total"):
            yield Problem(name, f"{len(column)} values for {steps} steps", "one for each step")
    for name in ("needed", "active"):
        pairs = zip(getattr(series, name), series.total, strict=False)
        for step, (nodes, total) in enumerate(pairs):
            if nodes > total:
                yield Problem(f"{name}[{step}]", f"{nodes} nodes", f"at most the {total} there are")
    yield from too_many("total", "nodes", max(series.total, default=0))
