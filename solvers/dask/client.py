"""Connections to Dask clusters that last as long as the process: one for each address."""

import atexit
from contextlib import ExitStack

from dask.distributed import Client

from ronda.solvers.dask.cluster import connect

LOCAL = "local"
"""In place of an address: worker processes that are started on this machine, and end with it."""

_open: dict[str, tuple[Client, ExitStack]] = {}


def client(address: str) -> Client:
    """Return a client of a cluster, connected at the first call and again if it was lost.

    Parameters
    ----------
    address
        Of a scheduler with workers, or `LOCAL`.

    Raises
    ------
    InputError
        As `ronda.solvers.dask.cluster.connect`, within 5 s.
    """
    if address in _open:
        known, stack = _open[address]
        if known.status == "running":
            return known
        del _open[address]
        stack.close()
    stack = ExitStack()
    made = stack.enter_context(connect(None if address == LOCAL else address))
    if not _open:
        atexit.register(close)
    _open[address] = (made, stack)
    return made


def close() -> None:
    """Leave all clusters, and end those that were started here."""
    while _open:
        _, (_, stack) = _open.popitem()
        stack.close()
