"""``solve --alternatives``: a table, a file for each plan, and what differs."""

import json

from ronda.instances.check.checker import check
from ronda.instances.files import json as files


def test_plans_are_told_written_and_different(folder, ronda):
    """Each has a file that passes the checker; JSON says in which jobs it is another one."""
    words = ["solve", "round.json", "--policy", "milp(gap=0)", "--alternatives", 3, "--within", 1]
    done = ronda(*words, "--out", "plan.json", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.splitlines()[-1])["alternatives"]
    round_ = files.read(folder / "round.json")
    plans = [files.read(folder / name) for name in ("plan.json", "plan-2.json", "plan-3.json")]
    assert [plan.objective for plan in plans] == [each["objective"] for each in told]
    assert [check(round_, plan) for plan in plans] == [[], [], []]
    best, second = (plan.allocations for plan in plans[:2])
    ways = [{job: a.option for job, a in each.items()} for each in (best, second)]
    assert told[1]["differs"].keys() == {
        job for job in ways[0] | ways[1] if ways[0].get(job) != ways[1].get(job)
    }
    assert told[0]["differs"] == {}
    assert told[2]["below_best"] >= told[1]["below_best"] >= 0
    shown = ronda(*words).stdout
    assert "what differs" in shown
    assert next(iter(told[1]["differs"])) in shown


def test_what_cannot_be_meant_is_refused_before_any_work(folder, ronda):
    """A file that exists, numbers out of range, other policies, and explanations."""
    words = ["solve", "round.json", "--alternatives"]
    (folder / "plan-2.json").write_text("mine")
    for more, said in (
        (["2", "--out", "plan.json"], "plan-2.json: found a file that exists"),
        (["0"], "expected a whole number from 1 to 1000"),
        (["2", "--within", "2"], "expected a share from 0 to 1"),
        (["2", "--policy", "prices"], "expected milp or cp-sat or sia-like"),
        (["2", "--explain", "j00"], "alternatives have no prices"),
    ):
        done = ronda(*words, *more)
        assert done.exit_code == 2, more
        assert said in done.stderr
    assert (folder / "plan-2.json").read_text() == "mine"
    assert ronda(*words, 2, "--out", "plan.json", "--force").exit_code == 0
