"""A run's process: its limits, its answer, and its end."""

import sys
import threading
import time

import psutil
import pytest

from ronda.bench.runs.results import Status
from ronda.bench.runs.specs import Request, RunCase
from ronda.bench.runs.worker import RunLimits, StoppedError, serve

REQUEST = Request(
    case=RunCase(source="x", instance="x", fingerprint="f", label="fifo", policy="fifo"),
    answer="none",
)


def ask(code, tmp_path, limits=None, **options):
    """Serve the request by a process that runs `code`."""
    log = tmp_path / "log.txt"
    return serve(
        REQUEST, limits or RunLimits(), log, command=(sys.executable, "-c", code), **options
    )


def test_answer_progress_and_request(tmp_path):
    """The process reads the request, tells its progress and gives its metrics."""
    code = (
        "import json, sys\n"
        "seed = json.load(sys.stdin)['case']['policy']\n"
        "print(json.dumps({'progress': [1, 2]}), flush=True)\n"
        "print(json.dumps({'metrics': {'policy': seed, 'peak_rss_mib': 7.0}}))\n"
    )
    told = []
    answer = ask(code, tmp_path, progress=lambda done, jobs: told.append((done, jobs)))
    assert answer.status is Status.OK
    assert answer.metrics == {"policy": "fifo"}
    assert answer.peak_rss_mib == 7.0
    assert told == [(1, 2)]
    assert not (tmp_path / "log.txt").exists()


def test_an_error_keeps_its_message_and_log(tmp_path):
    """What the process says is the message; what it writes on stderr is kept."""
    code = "import sys; sys.stderr.write('trace'); print('{\"error\": \"too bad\"}'); sys.exit(2)"
    answer = ask(code, tmp_path)
    assert (answer.status, answer.message) == (Status.ERROR, "too bad")
    assert (tmp_path / "log.txt").read_text() == "trace"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("import os; os.kill(os.getpid(), 9)", "killed from outside"),
    ],
)
def test_a_process_that_dies_without_an_answer(code, words, tmp_path):
    """A crash is an error that says how the process ended."""
    answer = ask(code, tmp_path)
    assert answer.status is Status.ERROR
    assert words in answer.message


def test_time_out(tmp_path):
    """A process that takes too long is killed."""
    began = time.perf_counter()
    answer = ask("import time; time.sleep(60)", tmp_path, RunLimits(timeout_s=0.5))
    assert answer.status is Status.TIME
    assert time.perf_counter() - began < 30


def test_too_much_memory(tmp_path):
    """A process that holds more than it may is killed, and what it held is recorded."""
    code = "x = bytearray(300 << 20); import time; time.sleep(60)"
    answer = ask(code, tmp_path, RunLimits(timeout_s=30, memory_mib=150))
    assert answer.status is Status.OOM
    assert answer.peak_rss_mib > 150


def test_memory_error_of_the_process_itself(tmp_path):
    """A process that reports its own lack of memory counts the same."""
    answer = ask('print(\'{"error": "MemoryError", "oom": true}\')', tmp_path)
    assert answer.status is Status.OOM


def test_stop_kills_the_process_and_its_children(tmp_path):
    """Nothing is left running after an interrupt."""
    note = tmp_path / "pids"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(note)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(60)\n"
    )
    stop = threading.Event()
    timer = threading.Timer(1.0, stop.set)
    timer.start()
    with pytest.raises(StoppedError):
        ask(code, tmp_path, stop=stop.is_set)
    gone = [int(pid) for pid in note.read_text().split()]
    deadline = time.perf_counter() + 5
    while any(map(alive, gone)) and time.perf_counter() < deadline:
        time.sleep(0.05)
    assert len(gone) == 2
    assert not any(map(alive, gone))


def alive(pid):
    """Tell whether a process still runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_runs_use_one_thread(tmp_path):
    """Numerical libraries are told not to spread over cores that other runs need."""
    code = "import os, json; print(json.dumps({'metrics': {'n': os.environ['OMP_NUM_THREADS']}}))"
    assert ask(code, tmp_path).metrics == {"n": "1"}
