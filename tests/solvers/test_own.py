"""Policies of others: from a file, from an installed package, as an object."""

import sys
from pathlib import Path

import pytest

import ronda
from ronda.instances.errors import InputError
from ronda.solvers.policies.rigid.queues import Fifo
from ronda.solvers.registry import config_of, policy, seed_may_matter
from ronda.testing import Contract, check_policy

WIDEST = '''
import ronda
from ronda.formulations.sleeping import rest
from ronda.solvers.greedy import Room, start_in_order

class Widest:
    """The jobs that ask for most GPUs go first; whatever fits starts."""
    def __init__(self, most: int = 1000) -> None:
        self.most = most

    def plan(self, round, *, deadline, seed, initial=None):
        order = sorted(round.waiting, key=lambda state: -state.job.gpus)
        started = start_in_order(Room(round, round.running), order[: self.most])
        plan = ronda.Plan(policy=self.name, allocations=round.held | started)
        return rest(round, plan, initial)
'''


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file with a policy, in the folder where we are."""
    monkeypatch.chdir(tmp_path)
    path = Path("mine.py")
    path.write_text(WIDEST)
    return path


def test_the_deadline_of_a_class_in_a_file_may_be_given_in_seconds(file):
    """Or left out, as of policies that have a name: `plan` is given a `Deadline`."""
    round_ = ronda.load("round-tight-64")
    made = policy("mine.py:Widest")
    assert made.plan(round_, deadline=60.0) == made.plan(round_) == made.plan(round_, seed=0)
    with pytest.raises(InputError, match="limit_s"):
        made.plan(round_, deadline=-1.0)


def test_a_class_in_a_file_is_a_policy(file):
    """It passes the contract suite, by its word and as an object, and takes parameters."""
    made = policy("./mine.py:Widest(most=3)")
    assert (made.name, made.most) == ("./mine.py:Widest", 3)
    assert policy(made.name, **config_of(made)).most == 3
    check_policy(made)
    check_policy("mine.py:Widest")


def test_an_object_is_a_policy():
    """With nothing but `plan`: it goes by the name of its class."""

    class Nobody:
        def plan(self, round, *, deadline, seed, initial=None):
            return ronda.Plan(policy=self.name, allocations=round.held)

    round_ = ronda.load("two-jobs")
    with pytest.raises(ronda.instances.errors.RondaError, match="Nobody leaves 2 jobs"):
        ronda.run(round_, Nobody())
    with pytest.raises(InputError, match="an object"):
        ronda.run(round_, Nobody)
    with pytest.raises(InputError, match="plan"):
        ronda.run(round_, object())


SEEDED = """

class Seeded(Widest):
    def plan(self, round, *, deadline, seed, initial=None):
        self.most = seed % 2
        return super().plan(round, deadline=deadline, seed=seed, initial=initial)
"""


def test_a_seed_that_matters_should_be_declared(file):
    """Plans of one job and of none differ: a warning says so, and runs are made with all seeds."""
    file.write_text(WIDEST + SEEDED)
    made = policy("./mine.py:Seeded")
    contract = Contract(made)
    with pytest.warns(UserWarning, match="Seeded: plans of round .* differ by seed; declare"):
        contract.a_seed_that_matters_is_declared()
    assert seed_may_matter(made)


def test_who_goes_by_a_name_of_ours_is_not_ours():
    """An object may call itself fifo, and use its seed all the same."""

    class Other(Fifo):
        name = "fifo"

    assert seed_may_matter(Other())
    assert not seed_may_matter(policy("fifo"))
    assert not seed_may_matter(policy("srtf+zeus"))


def test_a_file_that_changed_is_another_policy(file):
    """Its records say which code decided; a run asked for that code refuses another."""
    before = config_of(policy("mine.py:Widest"))
    file.write_text(WIDEST.replace("-state", "state"))
    assert config_of(policy("mine.py:Widest")) != before
    with pytest.raises(InputError, match="changed"):
        policy("mine.py:Widest", **before)


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("1 / 0", "Mine", "division by zero"),
        ("def f(:", "Mine", "SyntaxError"),
        ("raise SystemExit(3)", "Mine", "SystemExit"),
        ("import nowhere_to_be_found", "Mine", "nowhere_to_be_found"),
        ("class Mine: pass", "Mine", "without a method plan"),
        ("Mine = 3", "Mine", "int"),
        (WIDEST, "Wide", "one of Widest"),
        (WIDEST, "Widest(least=3)", '"most"'),
        ("class Mine:\n def __init__(self, a): 1/0\n def plan(self): ...", "Mine", "TypeError"),
        ("class Mine:\n def __init__(self, a=1): 1\n def plan(self): ...", "Mine", "attribute 'a'"),
        ("class Mine:\n def __init__(self): 1/0\n def plan(self): ...", "Mine", "division"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_line(file, text, name, found):
    """The line names the file and what is wrong with it."""
    file.write_text(text)
    with pytest.raises(InputError, match=found) as caught:
        policy(f"./mine.py:{name}")
    assert "./mine.py" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    """As files of instances are."""
    with pytest.raises(InputError, match="No such file"):
        policy(f"{tmp_path}/none.py:Mine")


def test_an_installed_package_names_its_policies(tmp_path, monkeypatch):
    """By entry points of the group `ronda.policies`."""
    (tmp_path / "widest_policy.py").write_text(WIDEST)
    about = tmp_path / "widest_policy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: widest-policy\nVersion: 1.0\n")
    lines = "[ronda.policies]\nwidest = widest_policy:Widest\nlost = widest_policy:Lost\n"
    (about / "entry_points.txt").write_text(lines)
    monkeypatch.syspath_prepend(tmp_path)
    assert policy("widest(most=2)").name == "widest"
    with pytest.raises(InputError, match="Lost"):
        policy("lost")
    with pytest.raises(InputError, match="widest"):
        policy("widst")
    del sys.modules["widest_policy"]


class Wrong:
    """A policy that breaks the contract in some way."""

    def __init__(self, way):
        self.way, self.asked = way, 0

    def plan(self, round, *, deadline, seed, initial=None):
        """Answer as `prices`, but for what is wrong."""
        self.asked += 1
        plan = policy("prices").plan(round, deadline=deadline, seed=seed)
        if self.way == "raises":
            raise ValueError("no")
        if self.way == "name":
            return plan
        allocations = dict(plan.allocations)
        if self.way == "forgets" and self.asked <= 3:
            allocations = {}
        if self.way == "twice" and len(allocations) > 1:
            first, second = list(allocations)[:2]
            allocations[first] = allocations[second]
        return ronda.Plan(policy=self.name, allocations=allocations)


@pytest.mark.parametrize("way", ["raises", "name", "forgets", "twice"])
def test_a_policy_that_breaks_the_contract_is_noticed(way):
    """Whatever way it does."""
    with pytest.raises(AssertionError):
        check_policy(Wrong(way))
