"""One warm process per core, which takes a round as bytes and returns an answer as bytes.

A process that does not answer in time is killed with its children and replaced. Threads only wait.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from ronda.horizon.solve import solve_valid
from ronda.horizon.warm_up import warm_up
from ronda.hosts.serving.hosts import begin, follow
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError, RondaError
from ronda.instances.files.canonical import encode
from ronda.instances.files.json import decode
from ronda.instances.round import Round
from ronda.solvers.process.host import Process, ProcessDiedError, with_grace

LOG = logging.getLogger("ronda.serving")

AGAIN_S = 1.0
"""Seconds until another process is started if one died while starting."""


class Response(NamedTuple):
    """An HTTP status with its body, and the state of a followed host."""

    status: int
    body: bytes
    state: bytes = b""


class LateError(Exception):
    """The error that a process did not answer in time."""


def answering(_asked: bytes, _tell: Callable[[bytes], None]) -> Callable[[bytes], bytes]:
    """Import everything in a lane's process, and return the function that answers requests."""
    warm_up()
    return lambda asked: msgspec.msgpack.encode(done(*msgspec.msgpack.decode(asked)))


def done(work: str, *given: Any) -> Response:
    """Do some work and return its answer, or the error if the input is wrong."""
    try:
        return Response(200, *WORK[work](*given))
    except RondaError as error:
        return Response(400 if isinstance(error, InputError) else 422, str(error).encode())
    except Exception as error:
        return failed(error)


def failed(error: Exception) -> Response:
    """Return the answer to a request that met an error in ronda, which is logged."""
    LOG.error("request failed", exc_info=error)
    return Response(500, f"{type(error).__name__}: a mistake of ronda's, told in its log".encode())


def plan(body: bytes, policy: str, seed: int, limit_s: float) -> tuple[bytes]:
    """Return the plan of a round."""
    deadline, round_ = Deadline(limit_s), decode(body, "round")
    if not isinstance(round_, Round):
        raise InputError("round", f"a {type(round_).__name__.lower()}", "a round")
    return (encode(solve_valid(round_, policy, deadline=deadline, seed=seed)),)


WORK: dict[str, Callable[..., tuple[bytes, ...]]] = {"plan": plan, "begin": begin, "follow": follow}
"""The kinds of work of a process, as functions of the input and the seconds left."""


class Lanes:
    """The processes, each of which decides one round at a time."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._free: asyncio.Queue[Process] = asyncio.Queue()
        self._all: set[Process] = set()
        self._threads = ThreadPoolExecutor(workers)  # each thread waits for one process
        self._starting: set[asyncio.Task[None]] = set()
        self.waiting = 0

    async def start(self) -> None:
        """Start the processes, and wait until they are warm."""
        await asyncio.gather(*(self._start() for _ in range(self._workers)))

    def stop(self) -> None:
        """End all processes and wait until they have ended."""
        for task in self._starting:
            task.cancel()
        for lane in self._all:
            lane.kill()
        self._threads.shutdown()

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [lane.pid for lane in self._all]

    async def do(self, work: str, *given: Any, end_s: float) -> Response:
        """Do some work in the first free process; raise LateError without an answer by `end_s`.

        `end_s` is a time on the clock of the running loop.
        """
        loop = asyncio.get_running_loop()
        async with self._taken(end_s) as lane:
            left_s = max(end_s - loop.time(), 1e-3)
            asked = msgspec.msgpack.encode((work, *given, left_s))
            said = await loop.run_in_executor(self._threads, lane.ask, asked, with_grace(left_s))
            return msgspec.msgpack.decode(said, type=Response)

    @asynccontextmanager
    async def _taken(self, end_s: float) -> AsyncIterator[Process]:
        """Take a process and give it back; replace it if it is no longer usable."""
        self.waiting += 1
        try:
            left_s = max(end_s - asyncio.get_running_loop().time(), 0.0)
            lane = await asyncio.wait_for(self._free.get(), left_s)
        except TimeoutError:
            raise LateError from None
        finally:
            self.waiting -= 1
        try:
            yield lane
        except BaseException as error:  # its next output would belong to this request
            self._replace(lane)
            if isinstance(error, ProcessDiedError):
                raise LateError from None
            raise
        self._free.put_nowait(lane)

    async def _start(self) -> None:
        """Start a process, which is free once it is warm."""
        lane = Process("ronda.hosts.serving.lanes:answering")
        self._all.add(lane)
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, lane.ready, Deadline())
        except ProcessDiedError:
            self._all.discard(lane)
            raise
        self._free.put_nowait(lane)

    def _replace(self, lane: Process) -> None:
        self._all.discard(lane)
        lane.kill()
        task = asyncio.create_task(self._start_again())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start_again(self) -> None:
        while True:
            try:
                return await self._start()
            except ProcessDiedError:  # perhaps memory was short, which may pass
                await asyncio.sleep(AGAIN_S)
