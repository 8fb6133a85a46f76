"""Islands on Dask workers."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ronda.solvers.genetic.engine import Spread
from ronda.solvers.genetic.island import Island

if TYPE_CHECKING:
    from dask.distributed import Client


def over(client: "Client") -> Spread:
    """Return a `map` over the workers of a cluster that keeps the order.

    Islands carry their random state with them, so that the number of workers, and a worker that
    is lost on the way, make no difference.
    """

    def spread(
        function: Callable[[Island], Island], islands: Iterable[Island], /
    ) -> Iterable[Island]:
        done: list[Island] = client.gather(client.map(function, list(islands), pure=False))
        return done

    return spread


@contextmanager
def islands_on(workers: int, scheduler: str) -> Iterator[Spread]:
    """Yield where islands evolve: this process, new worker processes, or those of a scheduler.

    Parameters
    ----------
    workers
        Processes to start if no scheduler is named; 0: none.
    scheduler
        Address of a running Dask scheduler, or "".
    """
    if not workers and not scheduler:
        yield map
        return
    from ronda.solvers.dask.cluster import connect

    with connect(scheduler or None, max(1, workers)) as client:
        yield over(client)
