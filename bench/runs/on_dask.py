"""Runs on a Dask cluster: a task is a whole run, in a process that a worker starts for it.

A worker needs only the same version of ronda: an instance that is not packaged is sent along, and
the answer comes back with the result. If a run's worker is lost, another worker takes the run. If
the run's worker, or the scheduler, falls silent, this process carries out the run.

`connect` reaches a running cluster, or starts local worker processes for as long as they are used.
"""

import asyncio
import logging
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask.config
from dask.distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, get_worker
from distributed.client import ClosedClientError
from distributed.comm.core import connect as dial
from distributed.utils import silence_logging_cmgr
from distributed.versions import VersionMismatchWarning
from msgspec.structs import replace

from ronda.bench.runs.results import Result
from ronda.bench.runs.specs import RunCase
from ronda.bench.runs.worker import Ending, RunLimits, Stop, StoppedError, carry_out, result_of
from ronda.instances.errors import InputError, RondaError
from ronda.instances.files.packaged import entries
from ronda.instances.files.storage import write_bytes

POLL_S, ASK_S = 0.5, 2.0
"""Seconds between two checks of a run, and for the scheduler to answer a question."""

SILENCE_S = 30.0
"""Seconds of silence of a run's worker, or of the scheduler, after which the run is carried out on
this machine; this process asks ten times in between."""


class ClusterError(RondaError):
    """An error for a cluster that can no longer be used."""

    exit_code = 2


Sent = tuple[Result, bytes | None, bytes | None]
"""The return value of a worker: the result, the answer's file and the log, if they exist."""


def run_on_worker(case: RunCase, document: bytes | None, answer: str, limits: RunLimits) -> Sent:
    """Carry out a case on a worker.

    `document` is the content of the instance's file (None if the instance is packaged), and
    `answer` is the name of the answer's file.
    """
    worker = get_worker()
    tasks, key = worker.state.tasks, worker.get_current_task()

    def cancelled() -> bool:
        """Return whether the task was cancelled."""
        task = tasks.get(key)
        return task is None or task.state == "cancelled"

    with TemporaryDirectory(prefix="ronda-") as name:
        folder = Path(name)
        if document is not None:
            source = folder / Path(case.source).name
            source.write_bytes(document)
            case = replace(case, source=str(source))
        log = folder / "log.txt"
        result = carry_out(case, folder / answer, limits, log, stop=cancelled)
        said, errors = (p.read_bytes() if p.exists() else None for p in (folder / answer, log))
        return result, said, errors


def carry_out_on(
    client: Client, case: RunCase, answer: Path, limits: RunLimits, log: Path, stop: Stop
) -> Result | str:
    """Run a case on a cluster, as `ronda.bench.runs.worker.carry_out` does on this machine.

    Return the result, or the reason if a needed process was silent for `SILENCE_S`. Raise
    ClusterError if the scheduler is lost.
    """
    packaged = case.source in {entry.name for entry in entries()}
    document = None if packaged else Path(case.source).read_bytes()
    answer.parent.mkdir(parents=True, exist_ok=True)
    try:
        words = (case, document, answer.name, limits)
        task = client.submit(run_on_worker, *words, pure=False)
        found = _await(task, client, stop)
    except KilledWorker:
        died = Ending(message="its Dask workers died of it, one after another")
        return result_of(case, limits, died)
    except (CancelledError, ClosedClientError, OSError) as error:
        raise ClusterError(
            "Dask cluster: found no scheduler any more; expected it to last"
        ) from error
    except (ImportError, RuntimeError) as error:
        raise ClusterError(
            f"Dask cluster: found {type(error).__name__}: {error}; expected the same version of "
            "ronda for its scheduler, its workers and this process"
        ) from error
    if isinstance(found, str):
        return found
    result, said, errors = found
    for path, data in ((log, errors), (answer, said)):
        if data is not None:
            write_bytes(path, data)
    return result


def _await(task: "Future[Sent]", client: Client, stop: Stop) -> Sent | str:
    """Return the result of a task, or the reason why the wait for it ended.

    A process that is frozen or cut off keeps its connections, so a client that waits for it waits
    forever. Only silence reveals it.
    """
    heard_s = asked_s = time.monotonic()
    sign = None
    while True:
        if stop():
            task.release()  # without a client for it, the worker ends the task
            raise StoppedError("stopped")
        try:
            return task.result(timeout=POLL_S)
        except TimeoutError:
            if time.monotonic() - asked_s < SILENCE_S / 10:
                continue
        who, news = sign_of_life(client, task.key)
        asked_s = time.monotonic()
        if news not in (None, sign):
            sign, heard_s = news, asked_s
        elif (silent_s := asked_s - heard_s) > SILENCE_S:
            task.release()
            return f"nothing was heard of {who} for {silent_s:.0f} s"


def sign_of_life(client: Client, key: object) -> tuple[str, Any]:
    """Return the process that a task needs, and a value that changes whenever it is heard of.

    That is the task's worker, or any worker that might take it; without a sign the value is None.
    """
    try:
        workers, tasks = client.sync(_ask, client, callback_timeout=ASK_S)
    except (OSError, TimeoutError):
        return "its Dask scheduler", None
    own = [seen for address, seen in workers.items() if key in tasks.get(address, ())]
    return "its Dask worker" if workers else "any Dask worker", max(
        own or workers.values(), default=None
    )


async def _ask(client: Client) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Return the time at which the scheduler last heard of each worker, and each worker's tasks."""
    if client.scheduler is None:
        raise OSError("the client is closed")
    known = await client.scheduler.identity(n_workers=-1)
    seen = {address: worker["last_seen"] for address, worker in known["workers"].items()}
    return seen, await client.scheduler.processing(workers=None)


CONNECT_S = 10.0
"""Seconds for a scheduler to answer; with the start of the program, an error comes within 5."""

LOCAL = "local"
"""The word for an address that starts worker processes on this machine and ends them again."""

SETTINGS = {
    # Workers that return all memory immediately spend half their time on getting it back.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
    # A worker's nanny restarts it when it dies. The cluster would give up a worker that is not back
    # after 15 s, or one that dies again and is missing at that moment.
    "distributed.deploy.lost-worker-timeout": "1000 days",
}
"""The settings of a local cluster that differ from Dask's defaults."""

ADDRESS, LAST_PORT = re.compile(r"(tcp://)?[^/\s]+:(?P<port>\d{1,5})"), 65535


@contextmanager
def connect(address: str = LOCAL, workers: int = 2) -> Iterator[Client]:
    """Connect to a Dask cluster and leave it, or start one and end it.

    `address` is the address of a scheduler with workers, such as ``tcp://127.0.0.1:8786``. With
    `LOCAL`, `workers` processes of one thread each are started, which are reachable only from this
    machine. The yielded client is not the default for other uses of Dask. Raise InputError if no
    scheduler answers at the address or it has no worker.
    """
    if workers < 1:
        raise InputError("workers", f"{workers}", "at least 1")
    # Silence Dask's messages about lost workers: the comparison continues or raises.
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
        asyncio.run(_greet(address))
        with warnings.catch_warnings():  # about pandas, say, which a worker has not loaded
            warnings.simplefilter("ignore", VersionMismatchWarning)
            client = Client(address, timeout=max(0.1, end - time.monotonic()), set_as_default=False)
    except Exception as error:  # a server that is no scheduler may answer anything
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
    """Check that a scheduler answers, because the client would wait forever for a silent one."""
    comm = await asyncio.wait_for(dial(address, timeout=CONNECT_S), CONNECT_S)
    comm.abort()
