"""Load on `ronda serve` from another process: rounds per second, waits, memory."""

import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ronda.bench.speed.cases import tell
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.files.canonical import encode

TOKEN = "only for this measurement"
START_S = 120.0
ROUNDS = 20
"""Different rounds that are asked about in turns."""


def measure_serve(
    jobs: int, requests: int, clients: int, workers: int, policy: str, seed: int
) -> dict[str, Any]:
    """Ask about generated rounds, each client as fast as it is answered.

    `total_s` is the whole time, `p50_s` and `p99_s` are of one request, `rss_mib` the memory of
    server and processes after a tenth of the requests, `rss_end_mib` after all. `refused` are the
    statuses of requests without a token, and of no round, that were sent in between.
    """
    bodies = [encode(generate.round(jobs, seed=seed + k)) for k in range(ROUNDS)]
    with TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text(TOKEN, encoding="utf-8")
        port = _free_port()
        words = [sys.executable, "-m", "ronda", "serve", "--port", f"{port}"]
        words += ["--token-file", str(token), "--workers", f"{workers}", "--policy", policy]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as server:
            try:
                _until_there(port, server)
                found = _Load(port, bodies, requests, clients).carry_out()
            finally:
                server.terminate()
    asked = {"requests": requests, "clients": clients, "workers": workers}
    return found | asked | {"policy": policy, "seed": seed}


class _Load:
    """Clients that post rounds at the same time, each on a connection of its own."""

    def __init__(self, port: int, bodies: list[bytes], requests: int, clients: int) -> None:
        self.port, self.bodies, self.clients = port, bodies, clients
        self.share = requests // clients
        self.waits: list[float] = []
        self.refused: set[int] = set()
        self.early_mib = 0.0
        self._lock = threading.Lock()

    def carry_out(self) -> dict[str, Any]:
        """Post all of them; return the figures."""
        threads = [threading.Thread(target=self._client, args=(n,)) for n in range(self.clients)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        total_s = time.perf_counter() - began
        return {
            "total_s": total_s,
            "rounds_per_s": len(self.waits) / total_s,
            "answered": len(self.waits),
            "p50_s": float(np.quantile(self.waits, 0.5)),
            "p99_s": float(np.quantile(self.waits, 0.99)),
            "rss_mib": self.early_mib,
            "rss_end_mib": _rss_mib(self.port),
            "refused": sorted(self.refused),
        }

    def _client(self, number: int) -> None:
        line = HTTPConnection("127.0.0.1", self.port, timeout=60)
        for k in range(self.share):
            began = time.perf_counter()
            if _post(line, self.bodies[(number + k) % len(self.bodies)], TOKEN) != 200:
                continue  # it shows in what was answered
            with self._lock:
                self.waits.append(time.perf_counter() - began)
                answered = len(self.waits)
            if answered == self.share * self.clients // 10:
                self.early_mib = _rss_mib(self.port)
            if k % 100 == 50:
                self._nonsense(token="" if k % 200 == 50 else TOKEN)
            if answered % 1000 == 0:
                tell(f"{answered} of {self.share * self.clients}")
        line.close()

    def _nonsense(self, token: str) -> None:
        line = HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.refused.add(_post(line, b"{}", token))
        line.close()


def _post(line: HTTPConnection, body: bytes, token: str) -> int:
    line.request("POST", "/plan", body, {"Authorization": f"Bearer {token}"})
    answer = line.getresponse()
    answer.read()
    return answer.status


def _rss_mib(port: int) -> float:
    line = HTTPConnection("127.0.0.1", port, timeout=60)
    line.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    text = line.getresponse().read().decode()
    line.close()
    found = next(x for x in text.splitlines() if x.startswith("ronda_rss_bytes"))
    return float(found.split()[1]) / 2**20


def _free_port() -> int:
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _until_there(port: int, server: "subprocess.Popen[bytes]") -> None:
    began = time.perf_counter()
    while time.perf_counter() - began < START_S and server.poll() is None:
        line = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            line.request("GET", "/healthz")
            line.getresponse().read()
        except OSError:
            time.sleep(0.1)
        else:
            return
        finally:
            line.close()
    raise InputError("ronda serve", "no answer", f"one within {START_S:g} s")
