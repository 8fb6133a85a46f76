"""A Dask cluster for as long as it is needed: one that runs already, or processes started here."""

import asyncio
import logging
import re
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dask.config
from dask.distributed import Client, LocalCluster
from distributed.comm.core import connect as dial
from distributed.utils import silence_logging_cmgr
from distributed.versions import VersionMismatchWarning

from ronda.instances.errors import InputError

CONNECT_S = 10.0
"""Seconds for a scheduler to answer; with the start of the program, an error comes within 5."""

LOCAL = "local"
"""In place of an address: worker processes that are started on this machine, and end with it."""

SETTINGS = {
    # Workers that hand back every piece of memory immediately spend half their time on getting it.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
    # A worker that dies is started again by its nanny. The cluster would give up the place of one
    # that is not back after 15 s, or that dies again and is just not there at that moment.
    "distributed.deploy.lost-worker-timeout": "1000 days",
}
"""What a cluster that is started here does differently from Dask's defaults."""

ADDRESS, LAST_PORT = re.compile(r"(tcp://)?[^/\s]+:(?P<port>\d{1,5})"), 65535


@contextmanager
def connect(address: str = LOCAL, workers: int = 2) -> Iterator[Client]:
    """Connect to a Dask cluster and leave it, or start one and end it.

    `address` is that of a scheduler with workers, such as ``tcp://127.0.0.1:8786``; with `LOCAL`,
    as many `workers` are started, of one thread each, which nobody else can reach. The client
    that is given is no default for other uses of Dask. InputError tells that nobody answers at
    the address, or it has no worker.
    """
    if workers < 1:
        raise InputError("workers", f"{workers}", "at least 1")
    # What Dask has to say about lost workers is for its own log: the comparison goes on or raises.
    with silence_logging_cmgr(level=logging.CRITICAL):
        if address == LOCAL:
            with (
                dask.config.set(SETTINGS),
                _local(workers) as cluster,
                Client(cluster, set_as_default=False) as client,
            ):
                yield client
        else:
            with _reach(address) as client:
                yield client


def _local(workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # for metrics: no dashboard
        silence_logs=logging.CRITICAL,
    )


def _reach(address: str) -> Client:
    end = time.monotonic() + CONNECT_S
    place = f"Dask scheduler {address}"
    parts = ADDRESS.fullmatch(address)
    if not parts or int(parts["port"]) > LAST_PORT:
        raise InputError(place, "no address", "one like tcp://127.0.0.1:8786")
    try:
        with ThreadPoolExecutor(1) as thread:  # there may be an event loop in this one already
            thread.submit(asyncio.run, _greet(address)).result()
        with warnings.catch_warnings():  # of pandas, say, which a worker has not loaded
            warnings.simplefilter("ignore", VersionMismatchWarning)
            client = Client(address, timeout=max(0.1, end - time.monotonic()), set_as_default=False)
    except Exception as error:  # what is no scheduler may answer anything
        found = f"no scheduler that answers within {CONNECT_S:g} s"
        raise InputError(place, found, "one, started by: dask scheduler") from error
    try:
        client.wait_for_workers(1, timeout=max(0.1, end - time.monotonic()))
    except TimeoutError as error:
        client.close()
        raise InputError(
            place, "no worker", f"at least one, started by: dask worker {address} --nthreads 1"
        ) from error
    return client


async def _greet(address: str) -> None:
    """See that a scheduler answers: the client would wait without end for a silent one."""
    comm = await asyncio.wait_for(dial(address, timeout=CONNECT_S), CONNECT_S)
    comm.abort()
