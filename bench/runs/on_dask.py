"""Runs on a Dask cluster: a task is a whole run, in a process that a worker starts for it.

A worker needs the same version of ronda only: an instance that is not packaged is sent along,
the answer comes back with the result. A run whose worker is lost is given to another worker; one
from which nothing is heard any more is carried out by this process.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from dask.distributed import CancelledError, Future, KilledWorker, get_worker
from distributed.client import ClosedClientError
from msgspec.structs import replace

from ronda.bench.runs.pulse import Pulse
from ronda.bench.runs.results import Result
from ronda.bench.runs.specs import RunCase
from ronda.bench.runs.worker import Ending, RunLimits, Stop, StoppedError, carry_out, result_of
from ronda.instances.errors import RondaError
from ronda.instances.files.catalogue import entries
from ronda.instances.files.storage import store

POLL_S = 0.5
"""Seconds between two looks at the cluster."""

SILENCE_S = 30.0
"""Seconds without a sign of life of what a run needs, after which it is carried out here."""


class ClusterError(RondaError):
    """The cluster can no longer be used."""

    exit_code = 2


Sent = tuple[Result, bytes | None, bytes | None]
"""What comes back from a worker: the result, the answer's file and the log, if there are."""


def run_on_worker(case: RunCase, document: bytes | None, answer: str, limits: RunLimits) -> Sent:
    """Carry out a case; called on a worker.

    `document` is the file of its instance (None: it is a packaged one), `answer` the name of the
    file that gets the answer.
    """
    worker = get_worker()
    tasks, key = worker.state.tasks, worker.get_current_task()

    def cancelled() -> bool:
        """Tell whether nobody waits for the task any more."""
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
    pulse: Pulse, case: RunCase, answer: Path, limits: RunLimits, log: Path, stop: Stop
) -> Result | str:
    """Run a case on a cluster, as `ronda.bench.runs.worker.carry_out` does here.

    Returns its result, or of whom nothing was heard for `SILENCE_S`. ClusterError tells that the
    scheduler is lost.
    """
    packaged = case.source in {entry.name for entry in entries()}
    document = None if packaged else Path(case.source).read_bytes()
    answer.parent.mkdir(parents=True, exist_ok=True)
    try:
        words = (case, document, answer.name, limits)
        task = pulse.client.submit(run_on_worker, *words, pure=False)
        found = _await(task, pulse, stop)
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
            store(path, data)
    return result


def _await(task: "Future[Sent]", pulse: Pulse, stop: Stop) -> Sent | str:
    """Return what comes of a task, or why it is not waited for any longer."""
    while True:
        if stop():
            task.release()  # nobody wants it: the worker ends it
            raise StoppedError("stopped")
        try:
            return task.result(timeout=POLL_S)
        except TimeoutError:
            silent_s, who = pulse.silence(task.key)
            if silent_s > SILENCE_S:
                task.release()
                return f"nothing was heard of {who} for {silent_s:.0f} s"
