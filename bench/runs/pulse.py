"""Signs of life of a Dask cluster: for how long nothing has come from where a task is."""

import time
from threading import Lock
from typing import Any

from dask.distributed import Client

ASK_S = 2.0
"""Seconds for the scheduler to answer one question."""

REST_S = 0.5
"""Seconds between two questions."""


class Pulse:
    """Listens to the scheduler of a client, and through it to the workers; for several threads.

    A process that is frozen or cut off keeps its connections, and a client that waits for it
    waits for ever: only its silence tells.
    """

    def __init__(self, client: Client) -> None:
        self.client, self._lock = client, Lock()
        self._asked_s = self._answered_s = self._worker_s = time.monotonic()
        self._seen: dict[str, tuple[Any, float]] = {}  # what a worker's last sign was, and when
        self._where: dict[object, str] = {}  # the worker of each task that is under way

    def silence(self, key: object) -> tuple[float, str]:
        """Return for how many seconds nobody was heard whom a task needs, and who that is."""
        with self._lock:
            if time.monotonic() - self._asked_s >= REST_S:
                self._listen()
            heard = self._worker_s
            if self._seen:
                heard = max(when for _, when in self._seen.values())
            if key in self._where:
                heard = self._seen[self._where[key]][1]
            now_s = time.monotonic()
            if now_s - self._answered_s > REST_S + ASK_S:
                return now_s - self._answered_s, "its Dask scheduler"
            return now_s - heard, "its Dask worker" if self._seen else "any Dask worker"

    def _listen(self) -> None:
        """Ask the scheduler who works on what and when it heard of them."""
        try:
            workers, tasks = self.client.sync(self._ask, callback_timeout=ASK_S)
        except (OSError, TimeoutError):
            return
        finally:
            self._asked_s = time.monotonic()
        self._answered_s = self._asked_s
        if workers:
            self._worker_s = self._asked_s
        fresh = {address: (sign, self._asked_s) for address, sign in workers.items()}
        for address, (sign, _) in fresh.items():
            if address in self._seen and self._seen[address][0] == sign:
                fresh[address] = self._seen[address]
        self._seen = fresh
        self._where = {key: each for each, keys in tasks.items() for key in keys if each in fresh}

    async def _ask(self) -> tuple[dict[str, Any], dict[str, list[str]]]:
        scheduler = self.client.scheduler
        if scheduler is None:
            raise OSError("the client is closed")
        known = await scheduler.identity(n_workers=-1)
        signs = {address: worker["last_seen"] for address, worker in known["workers"].items()}
        return signs, await scheduler.processing(workers=None)
