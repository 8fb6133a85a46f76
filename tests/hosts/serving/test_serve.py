"""A server on loopback: plans, refusals with a reason, and good requests that go on meanwhile."""

import asyncio
import gzip
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection

import msgspec
import psutil
import pytest

from ronda.hosts.embedding.embedded import Embedded
from ronda.hosts.embedding.records import StepTime
from ronda.hosts.embedding.unmeasured import unmeasured_profile
from ronda.hosts.serving.app import kept
from ronda.hosts.serving.lanes import Lanes, done
from ronda.hosts.serving.limits import ServerLimits
from ronda.hosts.serving.serve import serve
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.errors import InputError
from ronda.instances.files.canonical import encode
from ronda.instances.files.json import decode
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.profile import NoiseScale
from tests.helpers.ends import is_gone, wait_until
from tests.helpers.moved import plain_elsewhere

TOKEN = "a token of twenty-four"
ROUND = generate.round(8, seed=1)


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def server():
    """Run a server of one process in a thread of its own; returns its port."""
    port, ready, ends = free_port(), threading.Event(), []
    limits = ServerLimits(
        port=port, token=TOKEN, body_mib=1, body_s=0.3, header_s=0.3, policy="fifo", hosts=2
    )

    async def run():
        stop = asyncio.Event()
        ends.append((asyncio.get_running_loop(), stop))
        await serve(limits, ready=ready.set, stop=stop)

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert ready.wait(120)
    ask_until_there(port)
    yield port
    loop, stop = ends[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(20)
    assert not thread.is_alive()


def ask_until_there(port):
    """Wait until it listens."""
    for _ in range(100):
        try:
            assert ask(port, "GET", "/healthz", token=None)[0] == 200
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return


def ask(port, method, path, body=None, token=TOKEN):
    """Return status and body of a request."""
    client = HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        client.request(method, path, body, headers)
        answer = client.getresponse()
        return answer.status, answer.read()
    finally:
        client.close()


def raw(port, *parts):
    """Send bytes as they are, with pauses; return what comes back until it hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        for data, pause_s in parts:
            line.sendall(data)
            time.sleep(pause_s)
        found = b""
        while piece := line.recv(4096):
            found += piece
        return found


@pytest.mark.parametrize("query", ["", "?policy=prices(gap=1e-3)&time_limit=9&seed=3"])
def test_a_round_gets_its_plan(server, query):
    """The same as in this process, and in order."""
    status, body = ask(server, "POST", f"/plan{query}", encode(ROUND))
    assert status == 200
    plan = decode(body, "plan")
    assert plan.policy == ("prices" if query else "fifo")
    assert check(ROUND, plan) == []


def head(length, token=TOKEN):
    """Return the header of a post of `length` bytes."""
    shown = f"Authorization: Bearer {token}\r\n"
    return f"POST /plan HTTP/1.1\r\nHost: x\r\n{shown}Content-Length: {length}\r\n\r\n".encode()


CHUNKED = b"Transfer-Encoding: chunked"

BAD = {
    "no JSON": ("/plan", b"{", 400, "round"),
    "no round": ("/plan", encode(Plan()), 400, "round"),
    "a wrong type": (
        "/plan",
        b'{"format":"ronda/round/1","cluster":7,"profiles":{}}',
        400,
        "cluster",
    ),
    "code": ("/plan?policy=./mine.py:Mine", b"{}", 400, "ronda's own"),
    "a policy": ("/plan?policy=best", b"{}", 400, "best"),
    "a parameter": ("/plan?policy=milp(gp=1)", encode(ROUND), 400, "gp"),
    "a query": ("/plan?limit=1", b"{}", 400, "limit"),
    "too long": ("/plan?time_limit=1e9", b"{}", 400, "time_limit"),
    "a huge seed": (f"/plan?seed={2**70}", encode(ROUND), 400, "at most 2147483647"),
    "no number": ("/plan?time_limit=nan", encode(ROUND), 400, "time_limit"),
    "rules of others": (f"/plan?policy=milp(extra={__file__})", encode(ROUND), 400, "'extra'"),
    "a log": ("/plan?policy=milp(highs.log_file=here.log)", encode(ROUND), 400, "highs.log_file"),
    "a history": ("/plan?policy=ces-queue(history=/etc/passwd)", encode(ROUND), 400, "'history'"),
    "too large": ("/plan", b" " * (2**20 + 1), 413, "MiB"),
    "nowhere": ("/", b"", 404, "/plan"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_nonsense_gets_a_reason(server, case):
    """A 4xx, as JSON."""
    path, body, status, said = BAD[case]
    found, answer = ask(server, "POST", path, body)
    assert found == status
    assert said in json.loads(answer)["error"]


def test_a_token_is_asked_for_but_for_health(server):
    """None, and another one."""
    for token in (None, "a token of twenty-fous"):
        for method, path in (("POST", "/plan"), ("GET", "/metrics"), ("GET", "/openapi.json")):
            assert ask(server, method, path, b"{}", token)[0] == 401
        assert ask(server, "GET", "/healthz", token=token)[0] == 200
    assert ask(server, "GET", "/plan")[0] == 405


def test_slow_and_broken_requests_end_while_good_ones_go_on(server):
    """Each gets a 4xx with a reason, and is hung up on."""
    first = b"POST /plan HTTP/1.1\r\n"
    lines = {
        "body": [(head(50), 0.0), (b"{", 0.2), (b" ", 0.0)],
        "silent": [(b"", 0.0)],
        "header": [(first, 0.1), *5 * [(b"A: b\r\n", 0.1)]],
        "second": [(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 0.1), (first, 0.0)],
        "garbage": [(b"\x00\x01\r\n\r\n", 0.0)],
        "chunk": [(head(0).replace(b"Content-Length: 0", CHUNKED) + b"-1\r\n", 0.0)],
        "long": [(b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 1_000_000 + b"\r\n\r\n", 0.0)],
        "claimed": [(head(2**40), 0.0)],
        "unknown": [(head(900_000, token="x") + b" " * 900_000, 0.0)],
    }
    found = {}

    def send(name, parts):
        found[name] = raw(server, *parts)

    threads = [threading.Thread(target=send, args=item) for item in lines.items()]
    for thread in threads:
        thread.start()
    assert ask(server, "POST", "/plan", encode(ROUND))[0] == 200
    for thread in threads:
        thread.join(30)
    answers = {name: answer.rpartition(b"HTTP/1.1 ")[2] for name, answer in found.items()}
    assert {name: int(answer[:3]) for name, answer in answers.items()} == {
        **dict.fromkeys(("body", "silent", "header", "second"), 408),
        **dict.fromkeys(("garbage", "chunk"), 400),
        "long": 431,
        "claimed": 413,
        "unknown": 401,
    }
    assert found["second"].startswith(b"HTTP/1.1 200")
    for answer in answers.values():
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert ask(server, "POST", "/plan", encode(ROUND))[0] == 200


def test_only_headers_have_the_time_of_a_header(server):
    """A connection that is kept may rest between requests, and outlive that time."""
    client = HTTPConnection("127.0.0.1", server, timeout=20)
    for _ in range(3):
        client.request("GET", "/healthz")
        answer = client.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        time.sleep(0.2)
    client.close()


def test_an_answer_is_sent_at_once(server):
    """None of its pieces waits for 40 ms until the client has acknowledged the one before."""
    client, waits_s = HTTPConnection("127.0.0.1", server, timeout=20), []
    for _ in range(10):
        began = time.perf_counter()
        client.request("GET", "/healthz")
        client.getresponse().read()
        waits_s.append(time.perf_counter() - began)
    client.close()
    assert min(waits_s[5:]) < 0.03  # the first ones are acknowledged at once


def test_a_round_that_nobody_decides_in_time_keeps_what_runs(server):
    """The answer is a plan all the same."""
    status, body = ask(server, "POST", "/plan?policy=milp&time_limit=1e-6", encode(ROUND))
    plan = decode(body, "plan")
    assert status == 200
    assert plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE)
    assert ROUND.held.items() <= plan.allocations.items()
    for sent in (encode(ROUND), gzip.compress(encode(ROUND))):
        answer = kept(sent, "fifo", "late")
        assert decode(answer.body, "plan").allocations == ROUND.held


def test_a_compressed_round_that_is_late_is_one(server):
    """It is no malformed one."""
    sent = gzip.compress(encode(ROUND))
    status, body = ask(server, "POST", "/plan?time_limit=1e-6", sent)
    assert (status, decode(body, "plan").allocations) == (200, ROUND.held)


def test_a_mistake_is_an_answer_without_its_words(caplog):
    """They stand in the log: they may be about a file."""
    answer = done("plan", {"a text": 7}, "fifo", 0, 1.0)
    assert answer.status == 500
    assert b"text" not in answer.body
    assert caplog.records[-1].exc_info


def test_a_process_is_free_again_whatever_happens():
    """The only one: what can't be sent to it costs the next request nothing."""

    async def run():
        lanes = Lanes(1)
        await lanes.start()
        try:
            end_s = asyncio.get_running_loop().time() + 120.0
            with pytest.raises(OverflowError):
                await lanes.do("plan", encode(ROUND), "fifo", 2**70, end_s=end_s)
            return await lanes.do("plan", encode(ROUND), "fifo", 1, end_s=end_s)
        finally:
            lanes.stop()

    assert asyncio.run(run()).status == 200


def test_what_it_counts_and_what_it_offers(server):
    """Prometheus' text, and a document with the types of rounds and plans."""
    ask(server, "POST", "/plan", encode(ROUND))
    text = ask(server, "GET", "/metrics")[1].decode()
    assert 'ronda_requests_total{route="/plan",status="200"}' in text
    assert "ronda_plan_seconds_bucket" in text
    memory = next(x for x in text.splitlines() if x.startswith("ronda_rss_bytes"))
    assert float(memory.split()[1]) > 2e7
    offered = json.loads(ask(server, "GET", "/openapi.json")[1])
    assert {"Round", "Plan"} <= set(offered["components"]["schemas"])
    assert {"HostSettings", "HostNews", "HostAnswer"} <= set(offered["components"]["schemas"])
    assert set(offered["paths"]) == {"/plan", "/hosts/{name}", "/healthz", "/metrics"}


CLUSTER = uniform_cluster(GpuType(name="A100", memory_gib=40), 3, 8)
RATES = {"gpus": [1, 2, 4, 8, 16], "rate": [1.0, 1.9, 3.6, 6.5, 9.0]}
MESSAGES = (
    {
        "now_s": 0.0,
        "added": [
            {"id": "a", "work": 5e4, "gpus": 2, "max_gpus": 16, "rates": RATES},
            {"id": "b", "gpus": 4, "rates": RATES},
            {"id": "c", "profile": "net", "gpus": 2, "max_gpus": 8},
        ],
        "power_cap_w": 1e6,
    },
    {
        "now_s": 60.0,
        "nodes": {"nodes-0": "lost", "nodes-9": "lost"},
        "nodes_added": {"new": "nodes"},
        "progress": {"a": 300.0, "b": -1.0},
        "changed": [{"id": "b", "gpus": 8, "deadline_s": 9000.0}],
        "power_cap_w": "none",
    },
    {
        "now_s": 120.0,
        "nodes": {"nodes-0": "back"},
        "measured": {"c": {"compute_s": 0.3, "local_batch": 16.0}, "b": {"gpus": 8}},
        "noise": {"c": {"batches": [32.0], "scale": [900.0]}},
        "removed": ["a"],
    },
)
REFUSED = ([], [("nodes", "nodes-9"), ("progress", "b")], [("measured", "b")])


def tell(port, name, message, method="POST", query="", token=TOKEN):
    """Send a message of a host; return status and answer."""
    body = msgspec.json.encode(message)
    status, said = ask(port, method, f"/hosts/{name}{query}", body, token)
    return status, json.loads(said)


@plain_elsewhere
def test_a_host_is_followed_as_in_a_process_of_its_own(server):
    """The same messages, refusals and changes as with `Embedded`, and no other host's."""
    net = unmeasured_profile("net", CLUSTER, base_batch=32, max_batch=256)
    settings = {"policy": "prices", "profiles": {"net": net}, "speeds": "learnt"}
    assert tell(server, "one", settings | {"cluster": CLUSTER}, "PUT")[0] == 200
    assert tell(server, "other", {"cluster": CLUSTER}, "PUT")[0] == 200
    here = Embedded("prices", CLUSTER, profiles={"net": net}, speeds="learnt")
    for message, refused in zip(MESSAGES, REFUSED, strict=True):
        status, said = tell(server, "one", message, query="?time_limit=5")
        assert status == 200
        assert [(each["argument"], each["item"]) for each in said["refused"]] == refused
        told = dict(message)
        if told.get("power_cap_w") == "none":
            told["power_cap_w"] = math.inf
        if "noise" in told:
            told["noise"] = {"c": NoiseScale(batches=(32.0,), scale=(900.0,))}
            step = StepTime(compute_s=0.3, local_batch=16.0)
            told["measured"] = told["measured"] | {"c": step}
        here.update(**told, errors="return")
        changes = here.decide(5.0)
        for word in ("start", "stop", "resize", "retune"):
            here_said = json.loads(msgspec.json.encode(getattr(changes, word)))
            assert said["changes"].get(word, type(here_said)()) == here_said, word
    assert tell(server, "other", {"removed": ["b"]})[1]["refused"]
    assert tell(server, "third", {"cluster": CLUSTER}, "PUT")[0] == 429
    assert ask(server, "DELETE", "/hosts/one")[0] == 200
    assert tell(server, "one", {})[0] == 404
    assert tell(server, "third", {"cluster": CLUSTER}, "PUT")[0] == 200
    for name in ("other", "third"):
        ask(server, "DELETE", f"/hosts/{name}")


@pytest.mark.parametrize(
    ("method", "body", "status", "said"),
    [
        ("PUT", {"cluster": 3}, 400, "cluster"),
        ("PUT", {"cluster": CLUSTER, "policy": "./mine.py:Mine"}, 400, "ronda's own"),
        ("PUT", {"cluster": CLUSTER, "policy": f"prices(extra={__file__})"}, 400, "'extra'"),
        ("PUT", {"cluster": CLUSTER, "seed": 2**70}, 400, "seed"),
        ("PUT", {"cluster": CLUSTER, "odd": 3}, 400, "odd"),
        ("POST", {"added": msgspec.Raw(b"[" * 5000 + b"]" * 5000)}, 400, "nested"),
        ("POST", {"now_s": -1.0}, 400, "now_s"),
        ("POST", {"ad": []}, 400, "ad"),
        ("GET", {}, 405, "PUT or POST or DELETE"),
    ],
)
def test_a_message_that_cannot_be_taken_gets_a_reason(server, method, body, status, said):
    """And changes nothing."""
    assert tell(server, "host", {"cluster": CLUSTER}, "PUT")[0] == 200
    found, answer = tell(server, "host", body, method)
    assert (found, said in answer["error"]) == (status, True)
    assert tell(server, "host", {"added": [{"id": "a", "gpus": 8}]})[1]["changes"]["start"]
    ask(server, "DELETE", "/hosts/host")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"host": "0.0.0.0"}, "token"),
        ({"host": "example.org"}, "token"),
        ({"token": "short"}, "16"),
        ({"policy": "best"}, "best"),
    ],
)
def test_an_open_door_is_refused(given, said):
    """Before it listens."""
    with pytest.raises(InputError, match=said):
        ServerLimits(**given)


def test_an_address_that_is_taken_is_refused():
    """In one line, before any process starts."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        limits = ServerLimits(port=taken.getsockname()[1])
        with pytest.raises(InputError, match="free"):
            asyncio.run(serve(limits))


@pytest.fixture
def command():
    """Start ``ronda serve`` as a command; returns its process and its port."""
    port = free_port()
    words = ["serve", "--port", str(port), "--workers", "1", "--policy", "fifo", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ronda", *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["workers"] == 1
    ask_until_there(port)
    yield process, port
    process.kill()
    process.communicate()


def test_a_process_that_crashes_costs_one_answer(command):
    """That round keeps what runs, and another process decides the next ones."""
    process, port = command
    (worker,) = psutil.Process(process.pid).children()
    worker.send_signal(signal.SIGSEGV)
    status, body = ask(port, "POST", "/plan", encode(ROUND), token=None)
    assert (status, decode(body, "plan").status) == (200, SolutionStatus.FALLBACK)
    wait_until(
        lambda: (
            decode(ask(port, "POST", "/plan", encode(ROUND), token=None)[1], "plan").status
            is not SolutionStatus.FALLBACK
        )
    )
    (other,) = psutil.Process(process.pid).children()
    assert other.pid != worker.pid


def test_a_process_that_crashes_costs_no_history(command):
    """The message that it had counts for nothing, and may be sent again."""
    process, port = command
    assert tell(port, "one", {"cluster": CLUSTER}, "PUT", token=None)[0] == 200
    first = {"added": [{"id": "a", "gpus": 8, "rates": RATES}]}
    assert tell(port, "one", first, token=None)[1]["changes"]["start"]
    (worker,) = psutil.Process(process.pid).children()
    worker.send_signal(signal.SIGSEGV)
    more = {"now_s": 60.0, "added": [{"id": "b", "gpus": 8, "rates": RATES}]}
    assert tell(port, "one", more, token=None)[0] == 503
    wait_until(lambda: (said := tell(port, "one", more, token=None))[0] == 200 and said[1])
    (told,) = tell(port, "one", more, token=None)[1]["refused"]  # it has been taken, once
    assert "a live job" in told["message"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_the_server(command, how):
    """However the server ends."""
    process, _ = command
    pids = [each.pid for each in psutil.Process(process.pid).children(recursive=True)]
    assert len(pids) == 2  # what decides, and what waits for the end of the server
    os.kill(process.pid, how)
    process.wait()
    wait_until(lambda: all(map(is_gone, pids)))
