"""The jobs of the price engine on Dask workers: prices go out, sums come back.

Blocks of jobs are dealt to shards, which live on `dask.distributed` workers. A shard is the result
of a task that the scheduler knows with its inputs: when a worker is lost, the scheduler makes the
shard anew on another one and repeats what was being asked of it. Shards answer block by block, and
the coordinator adds blocks exactly as `LocalJobs` does, so that the answer is the same to the last
bit wherever the blocks live.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import dask.config
from dask.distributed import CancelledError, Client, Future, KilledWorker, wait
from distributed.client import ClosedClientError

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError, RondaError
from ronda.solvers.prices.jobs import Block, Losses, Reply, add_replies, cut_blocks, join_losses

WITHOUT_WORKERS_S = 30.0
"""Seconds without any worker after which none is expected any more: a lost one that is restarted
comes back within a few."""

POLL_S = 2.0
"""Seconds between two looks whether there are workers at all."""

KEPT = 8
"""Questions after which their answers are let go; a lost worker's are worked out once more."""

T = TypeVar("T")


class ClusterError(RondaError):
    """The Dask cluster broke in a way from which it cannot recover by itself."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive blocks, which one worker answers for."""

    blocks: tuple[Block, ...]

    def __sizeof__(self) -> int:
        """Return the bytes of all arrays: Dask moves what is small and leaves what is large."""
        arrays = [a for b in self.blocks for a in (b.start, b.value, b.use, b.must)]
        return sum(array.nbytes for array in arrays)

    def replies(self, prices: Floats) -> list[Reply]:
        """Return what the jobs of each block take; to add them here would round once too often."""
        return [block.reply(prices) for block in self.blocks]

    def losses(self, prices: Floats, limit: float, most: int) -> Losses:
        """Return the `most` alternatives of least loss in the shard, none above `limit`."""
        return join_losses([b.losses(prices, limit, most) for b in self.blocks], most)


class DaskJobs:
    """The jobs of a separable problem on the workers of a Dask cluster.

    Parameters
    ----------
    problem
        The problem.
    client
        Connected to the cluster, which has a worker.
    shards
        In how many parts to cut the jobs; None: one for each worker. A block is never cut, so
        that few jobs may give fewer shards.

    Raises
    ------
    InputError
        For less than one shard, or a cluster without workers.
    """

    def __init__(self, problem: Separable, client: Client, shards: int | None = None) -> None:
        workers = len(client.nthreads())
        if not workers:
            raise InputError("Dask cluster", "no worker", "at least one")
        if shards is not None and shards < 1:
            raise InputError("shards", f"{shards}", "at least 1")
        blocks = cut_blocks(problem)
        count = min(shards or workers, len(blocks))
        ends = [len(blocks) * i // count for i in range(count + 1)]
        self._client = client
        self._answered: list[Future[Any]] = []
        # The inputs belong into the task: data sent beforehand would be lost with its worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
            parts = [tuple(blocks[begin:end]) for begin, end in pairwise(ends)]
            self._shards = client.map(Shard, parts, pure=False)

    def reply(self, prices: Floats) -> Reply:
        """Return what the jobs take at prices (R,)."""
        return add_replies([r for part in self._ask(Shard.replies, prices=prices) for r in part])

    def losses(self, prices: Floats, limit: float, most: int) -> Losses:
        """Return the `most` alternatives of least loss, none above `limit`."""
        parts = self._ask(Shard.losses, prices=prices, limit=limit, most=most)
        return join_losses(parts, most)

    def _ask(self, question: Callable[..., T], **options: Any) -> list[T]:
        """Ask all shards the same and return their answers, in the order of jobs.

        Dask sends nothing within 10 ms of the message before. So the question goes out as one
        message, and to let go of what was answered, which is a message too, waits for a few more.
        """
        try:
            asked = self._client.map(question, self._shards, pure=False, **options)
            self._wait(asked)
            answers: list[T] = self._client.gather(asked)
            self._answered += asked
            if len(self._answered) >= KEPT * len(asked):
                self._answered.clear()
        except KilledWorker as error:
            raise ClusterError(
                "Dask cluster: found workers that died of the same question one after another; "
                "expected memory enough for a shard"
            ) from error
        except (CancelledError, ClosedClientError, OSError) as error:
            raise ClusterError(
                "Dask cluster: found no scheduler any more; expected it to last"
            ) from error
        except (ImportError, RuntimeError) as error:
            raise ClusterError(
                "Dask cluster: found that it cannot load what it was sent; expected the same "
                "version of ronda for its scheduler, its workers and this process"
            ) from error
        return answers

    def _wait(self, asked: "list[Future[Any]]") -> None:
        """Wait for answers as long as there is a worker, or one may come back."""
        seen = time.monotonic()
        while True:
            try:
                with self._client.as_current():
                    wait(asked, timeout=POLL_S)
            except TimeoutError:
                if self._client.nthreads():
                    seen = time.monotonic()
                elif time.monotonic() - seen > WITHOUT_WORKERS_S:
                    raise ClusterError(
                        f"Dask cluster: found no worker for {WITHOUT_WORKERS_S:g} s; "
                        "expected at least one"
                    ) from None
            else:
                return
