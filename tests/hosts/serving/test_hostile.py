"""A server whose clients name files, code and huge numbers: it reads, writes and runs none.

It runs as a command, in a folder of its own. Each of its processes notes when Python opens, imports
or runs anything in the folder outside (to compile a text is to look whether it is a literal); what
native code wrote is seen by looking at both folders.
"""

import json
import os
import socket
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import quote

import msgspec
import numpy as np
import pytest

from ronda.instances import generate
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.files.canonical import encode
from ronda.solvers.registry import POLICIES, parameters_of

ROUND = encode(generate.round(4, seed=1))
CLUSTER = uniform_cluster(GpuType(name="A100", memory_gib=40), 2, 4)
SECRET = "canary-4711"

WATCH = """
import os, sys
outside, log = os.environ["OUTSIDE"], os.environ["WATCH_LOG"]
def watch(event, args):
    texts = [os.fsdecode(each) for each in args if isinstance(each, str | bytes)]
    if event != "compile" and any(outside in text for text in texts):
        line = f"{event} {args[0]}".encode() + b"\\n"
        os.write(noted, line)
noted = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
sys.addaudithook(watch)
"""

ALWAYS = ("extra", "history", "code", "options", "parameters", "policy", "name", "file")
ODD = (
    "{path}/canary.json",
    "'{path}/canary.json'",
    "{path}/none.json",
    "/etc/passwd",
    "../outside/canary.json",
    "{path}/mine.py",
    "{path}/mine.py:Mine",
    "os.system",
    "os",
    "ronda.solvers.own",
    "prices(extra={path}/mine.py)",
    str(2**70),
    "1e300",
    "1e999",
    "nan",
    "-1e12",
    "[1, 2]",
    "9" * 4000,
)
OPTIONS = (
    "highs.solution_file={path}/canary.json,highs.write_solution_to_file=true",
    "highs.write_model_file={path}/written.mps",
    "highs.log_file=written.log",
    "highs.read_solution_file={path}/canary.json",
    "cp-sat.log_search_progress=true",
    "cbc.solu={path}/written.sol",
)
NAMES = ("{path}/mine.py:Mine", "{path}/mine.py:Mine+zeus", "{path}/mine.py:Mine()")
SETTINGS = (
    {"seed": 2**70},
    {"length_s": 1e999},
    {"profiles": "{path}/canary.json"},
    {"cluster": "{path}/canary.json"},
    {"extra": "{path}/mine.py"},
    {"history": "{path}/canary.json"},
    {"node_names": "{path}/canary.json"},
    {"costs": {"restart_s": 10**400}},
    {"speeds": "{path}/mine.py"},
)


@pytest.fixture
def served(tmp_path):
    """Start a server that is watched; returns its port, the folder outside and what was noted."""
    inside, outside, watch = (tmp_path / name for name in ("inside", "outside", "watch"))
    for folder in (inside, outside, watch):
        folder.mkdir()
    (outside / "canary.json").write_text(json.dumps({"secret": SECRET}))
    (outside / "mine.py").write_text(f"open({str(outside / 'run')!r}, 'w')\nclass Mine:\n    1\n")
    (watch / "sitecustomize.py").write_text(WATCH)
    env = {"PYTHONPATH": str(watch), "OUTSIDE": str(outside), "WATCH_LOG": str(watch / "log")}
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    words = ["serve", "--port", str(port), "--workers", "1", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ronda", *words],
        stdout=subprocess.PIPE,
        cwd=inside,
        env=os.environ | env,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["workers"] == 1
    yield port, inside, outside, watch / "log"
    process.terminate()
    process.communicate()


def ask(port, method, path, body):
    """Return status and words of an answer."""
    client = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        client.request(method, path, body)
        answer = client.getresponse()
        return answer.status, answer.read().decode()
    finally:
        client.close()


def odd_policy(rng, path):
    """Return a policy with a parameter, option or name that nobody may ask for."""
    name = str(rng.choice([*POLICIES]))
    kind = rng.random()
    if kind < 0.1:
        return str(rng.choice(NAMES)).format(path=path)
    if kind < 0.3:
        return f"{name}({str(rng.choice(OPTIONS)).format(path=path)})"
    key = rng.choice([*parameters_of(name), *ALWAYS])
    return f"{name}({key}={str(rng.choice(ODD)).format(path=path)})"


def snapshot(*folders):
    """Return what folders hold, byte by byte."""
    return {p: p.read_bytes() for folder in folders for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("requests", [15, pytest.param(500, marks=pytest.mark.soak)])
def test_a_hostile_client_reads_writes_and_runs_nothing(served, requests):
    """All of it is refused, in words without a byte of a file, and a round gets its plan."""
    port, inside, outside, log = served
    rng, before, counts = np.random.default_rng(1), snapshot(inside, outside), {}
    for k in range(2 * requests):
        asked = odd_policy(rng, outside)
        if k < requests:
            seed = f"&seed={2**70}" if rng.random() < 0.1 else ""
            method, path = "POST", f"/plan?policy={quote(asked)}{seed}"
            body = ROUND
        else:
            method, path, given = "PUT", "/hosts/h", {"cluster": CLUSTER, "policy": asked}
            if rng.random() < 0.4:
                given |= {"policy": "fifo"} | SETTINGS[rng.integers(len(SETTINGS))]
            body = msgspec.json.encode(json.loads(msgspec.json.encode(given)))
            body = body.replace(b"{path}", str(outside).encode())
        status, said = ask(port, method, path, body)
        assert status == 400, (asked, status, said)
        assert SECRET not in said
        assert "root:" not in said
        counts[method, status] = counts.get((method, status), 0) + 1
    print(counts)
    assert ask(port, "POST", "/plan?policy=milp", ROUND)[0] == 200
    assert ask(port, "PUT", "/hosts/h", msgspec.json.encode({"cluster": CLUSTER}))[0] == 200
    assert snapshot(inside, outside) == before
    assert log.read_text() == ""
