"""Solvers run apart from the host's threads: what a host does with HiGHS says nothing to ours."""

import os
import signal
from threading import Event, Thread

import highspy
import pytest

import ronda
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.exact.backends import logged
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort
from ronda.solvers.exact.threads import SolverError, apart, left_alone
from tests.helpers import knapsacks

OPTIMAL = highspy.HighsModelStatus.kOptimal


def of_host(threads):
    """Return a host's HiGHS with one variable to make small; its threads, 0: its default."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", threads)
    highs.addVar(0.0, 1.0)
    return highs


def in_a_thread(host):
    """Let a host do something in a thread whose scheduler ends with it."""
    thread = Thread(target=host)
    thread.start()
    thread.join()


@pytest.mark.parametrize("threads", [None, 0, 1, 2, 4])
def test_a_host_that_uses_highs_gets_proofs_and_goes_on(threads):
    """Whatever number of threads a host's thread has had, models and rounds are solved in it."""
    seen = []

    def host():
        highs = None if threads is None else of_host(threads)
        for _ in range(2):
            if highs is not None:
                seen.append((highs.run() == highspy.HighsStatus.kOk, highs.getModelStatus()))
            seen.append((True, solve(knapsacks.knapsack(9, 2, seed=0), Effort(gap=0)).message))
            plan = ronda.solve(ronda.load("round-gangs"), "milp")
            seen.append((True, plan.status))

    in_a_thread(host)
    assert set(seen) <= {(True, OPTIMAL), (True, "Optimal"), (True, SolutionStatus.OPTIMAL)}
    assert len(seen) == (4 if threads is None else 6)


def test_an_error_of_highs_is_none_of_its_answers():
    """A HiGHS that refuses to run, as with two numbers of threads in one thread, is an error."""
    apart(of_host(2).run, helpers=3)
    with pytest.raises(SolverError, match=r"HiGHS \d.* failed"):
        solve(knapsacks.knapsack(9, 2, seed=0), Effort(options={"threads": 3}))


def test_what_a_call_raises_is_raised_and_the_next_goes_on():
    """An exception crosses the thread, which is free again."""
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 / 0)
    assert apart(lambda: 1) == 1


def test_what_is_out_of_time_is_told_to_stop_and_left_alone():
    """A call that does not end in time goes on by itself, and what it says then is not heard."""
    told, go_on = Event(), Event()
    with pytest.raises(TimeoutError):
        apart(go_on.wait, told.set, seconds=0.01)
    assert told.is_set()
    (left,) = left_alone()
    assert apart(lambda: 1) == 1
    go_on.set()
    left.wait()
    assert left_alone() == []


def test_a_search_that_does_not_look_at_its_clock_is_not_waited_for(monkeypatch):
    """Waited for half a second, HiGHS is left alone with what it has found until then."""
    monkeypatch.setattr(Effort, "patience_s", 0.5)
    outcome = solve(knapsacks.knapsack(150, 12, seed=0), Effort(gap=0))
    assert outcome.stop is StopReason.TIME_LIMIT
    assert outcome.message == "HiGHS did not look at its clock in time"
    assert outcome.bound is None
    assert (outcome.objective is None) == (outcome.incumbents == ())
    if outcome.incumbents:
        assert outcome.objective == pytest.approx(outcome.incumbents[-1][1])
    for left in left_alone():  # it is told to stop, and does
        left.wait()


def test_an_interrupt_ends_a_search():
    """Ctrl-C stops a search that would take minutes, and is told when it has stopped."""

    class Interrupts:
        done = Event()

        def write(self, _text):
            if not self.done.is_set():
                self.done.set()
                os.kill(os.getpid(), signal.SIGINT)

        def flush(self):
            pass

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    try:
        with pytest.raises(KeyboardInterrupt), logged(Interrupts()):
            solve(knapsacks.knapsack(150, 12, seed=0), Effort(gap=0))
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_forked_process_solves():
    """Where the host's HiGHS had helpers, a child of the process has none and needs none."""
    codes = []

    def host():
        of_host(2).run()
        solve(knapsacks.knapsack(9, 2, seed=0))
        child = os.fork()
        if not child:
            signal.alarm(30)
            os._exit(solve(knapsacks.knapsack(9, 2, seed=0)).message != "Optimal")
        codes.append(os.waitpid(child, 0)[1])

    in_a_thread(host)
    assert codes == [0]
