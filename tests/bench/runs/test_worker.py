"""A run's process: its limits, its answer, and its end."""

import time

import msgspec
import pytest

from ronda.bench.runs import runner
from ronda.bench.runs.results import Status
from ronda.bench.runs.specs import Request, RunCase
from ronda.bench.runs.worker import Ending, RunLimits, StoppedError, serve
from tests.helpers.ends import is_gone, wait_until

REQUEST = Request(
    case=RunCase(source="x", instance="x", fingerprint="f", label="fifo", policy="fifo"),
    answer="none",
)


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Serve the request by a process that runs `code`, which has what is asked, and `tell`."""
    monkeypatch.syspath_prepend(tmp_path)
    head = "import json, os, subprocess, sys, time\ndef make(_, tell):\n    def answer(asked):\n"

    def call(code, limits=None, **options):
        lines = "".join(f"        {line}\n" for line in code.splitlines())
        (tmp_path / "told_to.py").write_text(f"{head}{lines}    return answer\n")
        log = tmp_path / "log.txt"
        return serve(REQUEST, limits or RunLimits(), log, runner="told_to:make", **options)

    return call


def test_answer_progress_and_request(ask, tmp_path):
    """The process reads the request, tells its progress and gives its metrics."""
    told = []
    answer = ask(
        "policy = json.loads(asked)['case']['policy']\n"
        "tell(b'[1, 2]')\n"
        "metrics = {'policy': policy, 'peak_rss_mib': 7.0}\n"
        "return json.dumps({'status': 'OK', 'metrics': metrics}).encode()",
        progress=lambda done, jobs: told.append((done, jobs)),
    )
    assert answer.status is Status.OK
    assert answer.metrics == {"policy": "fifo"}
    assert answer.peak_rss_mib == 7.0
    assert told == [(1, 2)]
    assert not (tmp_path / "log.txt").exists()


def test_an_error_keeps_its_message_and_log(ask, tmp_path):
    """What the process says is the message; what it prints is kept, in whichever way."""
    answer = ask("os.write(2, b'trace')\nprint('more')\nreturn b'{\"message\": \"too bad\"}'")
    assert (answer.status, answer.message) == (Status.ERROR, "too bad")
    assert (tmp_path / "log.txt").read_text() == "tracemore\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os._exit(3)", "died with exit code 3"),
        ("os.kill(os.getpid(), 11)", "died of SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "died of SIGKILL (killed for want of memory?)"),
    ],
)
def test_a_process_that_dies_without_an_answer(ask, code, words):
    """A crash is an error that says how the process ended."""
    answer = ask(code)
    assert answer.status is Status.ERROR
    assert words in answer.message


def test_time_out(ask):
    """A process that takes too long is killed."""
    began = time.perf_counter()
    answer = ask("time.sleep(60)", RunLimits(timeout_s=0.5))
    assert answer.status is Status.TIME
    assert answer.message == "still running after 0.5 s"
    assert time.perf_counter() - began < 30


def test_too_much_memory(ask):
    """A process that holds more than it may is killed, and what it held is recorded."""
    answer = ask("x = bytearray(300 << 20)\ntime.sleep(60)", RunLimits(30, memory_mib=150))
    assert answer.status is Status.OOM
    assert answer.peak_rss_mib > 150


def test_too_much_memory_that_the_process_itself_tells(ask):
    """It held more for a moment in which nobody looked."""
    code = 'return b\'{"status": "OK", "metrics": {"peak_rss_mib": 151.0, "jobs": 1}}\''
    answer = ask(code, RunLimits(memory_mib=150))
    assert (answer.status, answer.metrics) == (Status.OOM, {})


def test_memory_error_of_the_process_itself(monkeypatch):
    """A process that reports its own lack of memory counts the same."""

    def execute(request, progress):
        raise MemoryError

    monkeypatch.setattr(runner, "execute", execute)
    said = runner.answering(b"", print)(msgspec.json.encode(REQUEST))
    assert msgspec.json.decode(said, type=Ending).status is Status.OOM


STARTS = (
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    "open('pids', 'w').write(f'{os.getpid()} {child.pid} ')\n"
    "time.sleep(60)"
)


def test_stop_kills_the_process_and_its_children(ask, tmp_path, monkeypatch):
    """Nothing is left running after an interrupt."""
    monkeypatch.chdir(tmp_path)
    pids = tmp_path / "pids"
    with pytest.raises(StoppedError):
        ask(STARTS, stop=lambda: pids.exists() and pids.read_text().endswith(" "))
    gone = [int(pid) for pid in pids.read_text().split()]
    assert len(gone) == 2
    wait_until(lambda: all(map(is_gone, gone)))


def test_runs_use_one_thread(ask):
    """Numerical libraries are told not to spread over cores that other runs need."""
    code = "found = {'metrics': {'n': os.environ['OMP_NUM_THREADS']}}\n"
    code += "return json.dumps({'status': 'OK'} | found).encode()"
    assert ask(code).metrics == {"n": "1"}
