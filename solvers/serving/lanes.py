"""One warm process a core: a round goes in as bytes, an answer comes out as bytes.

A process that does not answer in time is killed and replaced; threads never solve.
"""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from typing import NamedTuple

from ronda.instances.errors import InputError, RondaError
from ronda.instances.round import Round

GRACE_S, GRACE = 1.0, 0.5
"""Seconds, and share of the limit, that a process may be late before it is replaced."""


class Answer(NamedTuple):
    """An HTTP status with its body."""

    status: int
    body: bytes


class LateError(Exception):
    """A process did not answer in time."""


def warm() -> None:
    """Pay for imports before the first round."""
    from ronda.solvers.warm_up import warm_up

    warm_up()


def decide(body: bytes, policy: str, seed: int, limit_s: float) -> Answer:
    """Decide a round; what is wrong with it is the answer."""
    from ronda.formulations.clock import Deadline
    from ronda.instances.files.canonical import encode
    from ronda.instances.files.json import decode
    from ronda.solvers.solve import solve

    deadline = Deadline(limit_s)
    try:
        round_ = decode(body, "round")
        if not isinstance(round_, Round):
            raise InputError("round", f"a {type(round_).__name__.lower()}", "a round")
        return Answer(200, encode(solve(round_, policy, deadline=deadline, seed=seed)))
    except RondaError as error:
        return Answer(400 if isinstance(error, InputError) else 422, str(error).encode())


class Lanes:
    """The processes, each of which decides one round at a time."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._free: asyncio.Queue[ProcessPoolExecutor] = asyncio.Queue()
        self._all: set[ProcessPoolExecutor] = set()
        self.waiting = 0

    async def start(self) -> None:
        """Start the processes, and wait until they are warm."""
        lanes = [self._lane() for _ in range(self._workers)]
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(lane, warm) for lane in lanes))
        for lane in lanes:
            self._free.put_nowait(lane)

    def stop(self) -> None:
        """End all processes, and wait for that."""
        for lane in list(self._all):
            self._end(lane)
            lane.shutdown(wait=True)

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [pid for lane in self._all for pid in (lane._processes or {})]

    async def decide(self, body: bytes, policy: str, seed: int, end_s: float) -> Answer:
        """Decide in the first process that is free; LateError if there is no answer by then.

        `end_s` is on the clock of the running loop.
        """
        loop = asyncio.get_running_loop()
        async with self._taken(end_s) as lane:
            left_s = end_s - loop.time()
            call = loop.run_in_executor(lane, decide, body, policy, seed, max(left_s, 1e-3))
            try:
                answer = await asyncio.wait_for(call, left_s + max(GRACE_S, GRACE * left_s))
            except (TimeoutError, BrokenProcessPool):
                self._replace(lane)
                raise LateError from None
            except asyncio.CancelledError:  # the server ends; the process goes on with it
                self._replace(lane)
                raise
            self._free.put_nowait(lane)
            return answer

    @asynccontextmanager
    async def _taken(self, end_s: float) -> AsyncIterator[ProcessPoolExecutor]:
        self.waiting += 1
        try:
            left_s = max(end_s - asyncio.get_running_loop().time(), 0.0)
            lane = await asyncio.wait_for(self._free.get(), left_s)
        except TimeoutError:
            raise LateError from None
        finally:
            self.waiting -= 1
        yield lane

    def _lane(self) -> ProcessPoolExecutor:
        spawn = multiprocessing.get_context("spawn")
        lane = ProcessPoolExecutor(1, mp_context=spawn)
        self._all.add(lane)
        return lane

    def _end(self, lane: ProcessPoolExecutor) -> None:
        self._all.discard(lane)
        for process in list((lane._processes or {}).values()):
            process.kill()
        lane.shutdown(wait=False, cancel_futures=True)

    def _replace(self, lane: ProcessPoolExecutor) -> None:
        """Take a new process in a lane's place; the first round in it finds it cold."""
        self._end(lane)
        self._free.put_nowait(self._lane())
