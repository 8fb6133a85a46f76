"""Load on `ronda serve` from another process: rounds per second, waits, memory."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from lab.speed.cases import case
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.files.canonical import encode

TOKEN = "only for this measurement"
START_S = 120.0
ROUNDS = 20
"""Different rounds that are asked about in turns."""


@case("16")
def measure_serve(
    jobs: int,
    requests: int = 10_000,
    clients: int = 4,
    workers: int = 2,
    policy: str = "prices",
    seed: int = 0,
) -> dict[str, Any]:
    """Load ronda serve from another process, each client as fast as it is answered.

    total_s is the whole time, p50_s and p99_s are of one request, rss_mib the memory of server and
    processes after a tenth of the requests, rss_end_mib after all. refused are the statuses of
    requests without a token, and of no round, that are sent in between.
    """
    bodies = [encode(generate.round(jobs, seed=seed + k)) for k in range(ROUNDS)]
    waits, refused, early_mib = list[float](), set[int](), list[float]()
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])

    def client(number: int) -> None:
        line = HTTPConnection("127.0.0.1", port, timeout=60)
        for k in range(requests // clients):
            began = time.perf_counter()
            body = bodies[(number + k) % len(bodies)]
            if _ask(line, "POST", "/plan", body)[0] == 200:  # it shows in what was answered
                waits.append(time.perf_counter() - began)
            if number == 0 and k == requests // clients // 10:
                early_mib.append(_rss_mib(port))
            if k % 100 == 50:
                other = HTTPConnection("127.0.0.1", port, timeout=60)
                token = "" if k % 200 == 50 else TOKEN
                refused.add(_ask(other, "POST", "/plan", b"{}", token)[0])
                other.close()
        line.close()

    with TemporaryDirectory() as folder:
        token_file = Path(folder) / "token"
        token_file.write_text(TOKEN, encoding="utf-8")
        words = [sys.executable, "-m", "ronda", "serve", "--port", f"{port}", "--policy", policy]
        words += ["--token-file", str(token_file), "--workers", f"{workers}"]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as server:
            try:
                _until_there(port, server)
                began = time.perf_counter()
                with ThreadPoolExecutor(clients) as threads:
                    list(threads.map(client, range(clients)))
                total_s = time.perf_counter() - began
                return {
                    "total_s": total_s,
                    "rounds_per_s": len(waits) / total_s,
                    "answered": len(waits),
                    "p50_s": float(np.quantile(waits, 0.5)),
                    "p99_s": float(np.quantile(waits, 0.99)),
                    "rss_mib": early_mib[0],
                    "rss_end_mib": _rss_mib(port),
                    "refused": sorted(refused),
                }
            finally:
                server.terminate()


def _ask(
    line: HTTPConnection, verb: str, path: str, body: bytes | None = None, token: str = TOKEN
) -> tuple[int, str]:
    line.request(verb, path, body, {"Authorization": f"Bearer {token}"})
    answer = line.getresponse()
    return answer.status, answer.read().decode()


def _rss_mib(port: int) -> float:
    text = _ask(HTTPConnection("127.0.0.1", port, timeout=60), "GET", "/metrics")[1]
    found = next(x for x in text.splitlines() if x.startswith("ronda_rss_bytes"))
    return float(found.split()[1]) / 2**20


def _until_there(port: int, server: "subprocess.Popen[bytes]") -> None:
    began = time.perf_counter()
    while time.perf_counter() - began < START_S and server.poll() is None:
        try:
            _ask(HTTPConnection("127.0.0.1", port, timeout=5), "GET", "/healthz")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise InputError("ronda serve", "no answer", f"one within {START_S:g} s")
