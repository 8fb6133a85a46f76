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
import numpy as np
from dask.distributed import CancelledError, Client, Future, KilledWorker, wait

from ronda.formulations.separable import Floats, Separable
from ronda.instances.errors import InputError, RondaError
from ronda.solvers.shards import Block, Losses, Reply, add_replies, cut_blocks, join_losses

WITHOUT_WORKERS_S = 30.0
"""Seconds without any worker after which none is expected any more: a lost one that is restarted
comes back within a few."""

POLL_S = 2.0
"""Seconds between two looks whether there are workers at all."""

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


def make_shard(blocks: list[Block]) -> Shard:
    """Return a shard of blocks that came over the network.

    Arrays are put at addresses that suit their numbers: numpy adds other ones in pieces, which
    rounds differently.
    """
    return Shard(tuple(_aligned(block) for block in blocks))


def _aligned(block: Block) -> Block:
    start, value, use, must = (
        np.require(array, requirements=["A", "C"])
        for array in (block.start, block.value, block.use, block.must)
    )
    return Block(block.first_job, block.first_row, start, value, use, must)


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
        self._answered: list[Future] = []
        # The inputs belong into the task: data sent beforehand would be lost with its worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
            self._shards = [
                client.submit(make_shard, blocks[begin:end], pure=False)
                for begin, end in pairwise(ends)
            ]

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
        message, and what was answered is let go only with the shards: it is small.
        """
        try:
            asked = self._client.map(question, self._shards, pure=False, **options)
            self._wait(asked)
            answers: list[T] = self._client.gather(asked)
            self._answered += asked
        except KilledWorker as error:
            raise ClusterError(
                f"Dask cluster: found workers that died one after another ({error}); expected "
                "memory enough for a shard"
            ) from error
        except (CancelledError, OSError) as error:
            raise ClusterError(
                f"Dask cluster: found no scheduler any more ({error}); expected it to last"
            ) from error
        return answers

    def _wait(self, asked: list[Future]) -> None:
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
