"""Dask clusters that are started here or by hand, and addresses where there is none."""

import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from threading import Thread

import pytest
from distributed import Client

from ronda.bench.runs import on_dask
from ronda.bench.runs.on_dask import connect, sign_of_life
from ronda.instances.errors import InputError


def test_workers_below_one_are_refused():
    """A cluster of nobody answers nothing."""
    with pytest.raises(InputError, match="workers"), connect(workers=0):
        pass


@contextmanager
def listener():
    """Listen at a free port of the loopback device and never say a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def refused(address):
    """Return the error of connecting to an address, and the seconds it took."""
    begin = time.monotonic()
    with pytest.raises(InputError) as caught, connect(address):
        pass
    return str(caught.value), time.monotonic() - begin


@pytest.fixture
def impatient(monkeypatch):
    """Give a scheduler a fraction of a second to answer."""
    monkeypatch.setattr(on_dask, "CONNECT_S", 0.3)


def test_unreachable_address_is_an_error_in_time(impatient):
    """Nobody listens at a port that was just given back: the error names it."""
    with listener() as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    message, seconds = refused(address)
    assert address in message
    assert "\n" not in message
    assert seconds < 5


def test_silent_listener_is_an_error_in_time(impatient):
    """Something that accepts connections but is no scheduler must not hang the program."""
    with listener() as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        message, seconds = refused(address)
    assert address in message
    assert seconds < 5


def test_listener_of_another_protocol_is_an_error_in_time(impatient):
    """A web server's answer read as a message would be of exabytes."""
    with listener() as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def speak():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:  # closed: the test is over
                    return
                with peer:
                    peer.sendall(b"HTTP/1.0 400 Bad request\r\n\r\n")

        thread = Thread(target=speak, daemon=True)
        thread.start()
        message, seconds = refused(address)
    assert address in message
    assert seconds < 5


@pytest.mark.parametrize("address", ["", "here", "http://127.0.0.1:80", "tcp://127.0.0.1:99999"])
def test_what_is_no_address_is_refused_at_once(address):
    """No time is spent on waiting for an answer."""
    message, seconds = refused(address)
    assert address in message
    assert seconds < 2


@contextmanager
def started(*arguments):
    """Run a `dask` command in a process of its own."""
    command = [sys.executable, "-m", "dask", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


HOST = ("--host", "127.0.0.1")


@contextmanager
def scheduler():
    """Run a scheduler as a user starts it; give its address and process."""
    with listener() as server:
        port = server.getsockname()[1]
    quiet = ("--dashboard-address", "127.0.0.1:0", "--no-dashboard")
    address = f"tcp://127.0.0.1:{port}"
    with started("scheduler", *HOST, "--port", str(port), *quiet) as process:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        with Client(address, timeout=60, set_as_default=False):  # it has begun to answer
            yield address, process


@pytest.fixture(scope="module")
def outside():
    """Return the address and the process of a scheduler that somebody else started."""
    with scheduler() as found:
        yield found


def test_outside_cluster_without_workers_is_an_error(outside, monkeypatch):
    """The error says how to start one; that none comes is clear sooner here."""
    wait = Client.wait_for_workers
    monkeypatch.setattr(
        Client, "wait_for_workers", lambda client, n, timeout: wait(client, n, timeout / 50)
    )
    address, _ = outside
    message, _ = refused(address)
    assert message == (
        f"Dask scheduler {address}: found no worker; expected at least one, "
        f"started by: dask worker {address} --nthreads 1"
    )


def test_silence_of_a_frozen_scheduler_is_noticed(outside, monkeypatch):
    """It keeps its connections; and where it answers again, it is heard again."""
    monkeypatch.setattr(on_dask, "ASK_S", 0.5)
    address, process = outside
    with Client(address, set_as_default=False) as client:
        process.send_signal(signal.SIGSTOP)
        assert sign_of_life(client, "a task") == ("its Dask scheduler", None)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        assert sign_of_life(client, "a task") == ("any Dask worker", None)


def test_outside_cluster_works_and_is_left_running(outside):
    """A scheduler and a worker started by hand; leaving the cluster does not end it."""
    address, _ = outside
    with started("worker", address, *HOST, "--nthreads", "1"):
        with Client(address, set_as_default=False) as probe:
            probe.wait_for_workers(1, timeout=60)
        for _ in range(2):
            with connect(address) as client:
                assert client.gather(client.map(abs, [-1, -2, -3])) == [1, 2, 3]


QUIET = """
import os, signal
from ronda.bench.runs.on_dask import connect

if __name__ == "__main__":
    with connect(workers=2) as client:
        for i in range(20):
            assert client.gather(client.map(abs, range(-i, 0), pure=False)) == list(range(i, 0, -1))
            if i == 5:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        addresses = [str(c.laddr.ip) for c in CONNECTIONS()]
    print(sorted(set(addresses)), len(LEFT()))
"""


def test_nothing_is_said_nobody_else_can_connect_and_no_process_is_left(tmp_path):
    """A program that loses a worker on the way prints nothing but its own line."""
    script = tmp_path / "program.py"
    head = """
import psutil

def LEFT():
    below = psutil.Process().children(recursive=True)
    return [p for p in below if "spawn_main" in str(p.cmdline())]

def CONNECTIONS():
    return [
        c for p in (psutil.Process(), *LEFT()) for c in p.net_connections() if c.status == "LISTEN"
    ]
"""
    script.write_text(head + QUIET, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "['127.0.0.1'] 0\n"
