"""What a client may name: nothing that is opened, imported or run, whatever the policy."""

import pytest

from ronda.hosts.serving.allowed import TAKES, VALUES, served
from ronda.instances.errors import InputError
from ronda.solvers.registry import OF_OBJECTIVE, OF_SOLVER, POLICIES, parameters_of, policy

ODD = ("2**70", "1" + "0" * 400, "1e999", "nan", "-inf", "1e12", "[1]", "{'a': 1}", "none", "''")
"""Numbers beyond all bounds, and values of other kinds."""

OPTIONS = (
    "highs.solution_file=FILE,highs.write_solution_to_file=true",
    "highs.write_model_file=FILE",
    "highs.log_file=FILE",
    "highs.threads=1",
    "cp-sat.log_search_progress=true",
    "cbc.solu=FILE",
)
ALWAYS = ("extra", "history", "code", "name", "policy", "module", OF_OBJECTIVE, OF_SOLVER)


def refused(spec):
    """Return the words of a refusal."""
    with pytest.raises(InputError) as error:
        served(spec)
    return str(error.value)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of code, and the name of one that is not there."""
    there = tmp_path_factory.mktemp("served") / "mine.py"
    there.write_text("raise SystemExit('SECRET')\n")
    return str(there), str(there.with_name("none.py"))


@pytest.mark.parametrize("name", POLICIES)
def test_no_parameter_takes_a_file_code_or_a_huge_number(name, files):
    """Each of them, and options of solvers; a file that is there gets the words of any other."""
    for key in {*parameters_of(name), *ALWAYS}:
        for odd in (*ODD, "os", "os.system", "fifo(history=x)", "ronda.solvers.own"):
            refused(f"{name}({key}={odd})")
        asked = [f"{name}({key}={file})" for file in files]
        asked += [f"{name}({key}='{file}:Mine')" for file in files]
        words = [refused(each).replace("none.py", "mine.py") for each in asked]
        assert words[0] == words[1]
        assert words[2] == words[3]
        assert "SECRET" not in "".join(words)
    for option in OPTIONS:
        refused(f"{name}({option.replace('FILE', files[0])})")


def test_a_parameter_of_another_policy_is_refused():
    """The list is by policy: one that it does not name takes none."""
    assert "none, over HTTP" in refused("las(gap=0.1)")
    assert '"gap"' in refused("prices(gp=0.1)")


@pytest.mark.parametrize("wrap", ["{}", "{}+zeus", "{}+fused", "prices({})", " {} "])
def test_no_code_is_a_policy(wrap, files):
    """Nor does a name that is very long, or blank, take long."""
    for name in (f"{files[0]}:Mine", "os.path:join", "ronda.solvers.own:find", " " * 60_000):
        refused(wrap.format(name))


@pytest.mark.parametrize("name", TAKES)
def test_what_is_listed_is_there_and_taken_as_it_is_by_default(name):
    """So the list has no parameter that was renamed, and no value that its policy has not."""
    known = parameters_of(name)
    assert name in POLICIES
    given = {key: known[key] for key in TAKES[name] if known.get(key) is not None}
    text = ", ".join(f"{key}={value!r}" for key, value in given.items())
    made = policy(served(f"{name}({text})"))
    assert made.name == name
    others = known.keys() - set(TAKES[name])
    assert others <= {"extra", "history"}


def test_every_objective_and_its_parameters_may_be_asked_for():
    """By the policies that have one."""
    for objective in VALUES["objective"].__args__:
        known = parameters_of("milp", objective)
        given = {key: known[key] for key in TAKES["milp"] if known.get(key) is not None}
        text = ", ".join(
            f"{k}={value!r}" for k, value in (given | {"objective": objective}).items()
        )
        assert policy(served(f"milp({text})")).objective == objective
        assert known.keys() - set(TAKES["milp"]) == {"extra"}
