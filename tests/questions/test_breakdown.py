"""The parts of a plan's objective add up to it."""

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.files.packaged import document, entries
from ronda.instances.round import Round
from ronda.questions.breakdown import breakdown
from ronda.solvers.as_one import AsOne
from ronda.solvers.rules import with_rules
from tests.helpers.site_rounds import RULES, drawn_rules, tiny


def broken(round_, policy, seed=0):
    """Return the plan of a round and its parts."""
    made = ronda.policy(policy) if isinstance(policy, str) else policy
    plan, seen = ronda.solve(round_, made, seed=seed), AsOne(round_)
    return plan, breakdown(made.question(seen.round, Deadline(), seed), seen.shown(plan))


def adds_up(plan, found):
    """Check that all parts add up to the objective, with an addition of its own."""
    scale = max(1.0, abs(plan.objective), *(abs(each.worth) for each in found.jobs))
    jobs = 0.0
    for each in found.jobs:
        parts = each.progress + each.stop_spared + each.reserved + sum(each.terms.values())
        assert parts == pytest.approx(each.worth, abs=1e-9 * scale)
        jobs += parts
    whole = jobs - sum(found.penalties.values()) - found.moves
    assert whole == pytest.approx(plan.objective, abs=1e-9 * scale)
    assert abs(found.rest) <= 1e-9 * scale
    promised = {n: x for n, x in found.terms.items() if n.startswith(("owed", "fair"))}
    net = sum(x - found.penalties.get(n, 0.0) for n, x in promised.items())
    assert net == pytest.approx(plan.details.owed_worth, abs=1e-9 * scale)
    assert {n for n in found.penalties if n.startswith(("owed", "fair"))} <= {*promised}


PACKAGED = [e.name for e in entries() if e.name.startswith("round-")]


@pytest.mark.parametrize("name", PACKAGED)
@pytest.mark.parametrize("policy", ["milp", "prices"])
def test_packaged_rounds(name, policy):
    """The rounds that come with ronda, as far as they are small."""
    round_ = document(name)
    slow = name == "round-racks-capped" or (policy, name) == ("milp", "round-arrays")
    if not isinstance(round_, Round) or len(round_.jobs) > 100 or slow:
        pytest.skip("takes long")
    adds_up(*broken(round_, f"{policy}(gap=1e-2)"))


@pytest.mark.parametrize("policy", ["milp", "prices"])
@pytest.mark.parametrize("seed", range(24))
def test_rounds_under_rules_of_a_site(policy, seed):
    """Two or three rules, and stops that are spared."""
    round_ = tiny(seed, drawn_rules(seed, tuple(RULES)))
    plan, found = broken(round_, f"{policy}(objective=weighted-goodput, power=1)")
    assert plan.status in ("optimal", "feasible")
    adds_up(plan, found)


@pytest.mark.parametrize("seed", [0, 1])
def test_ties_between_nodes_are_all_that_is_left(seed):
    """Where options and nodes are chosen together, a node in use costs a little."""
    round_ = tiny(seed, drawn_rules(seed, tuple(RULES)))
    words = "milp(placement=exact, objective=weighted-goodput, power=1)"
    plan, found = broken(round_, words)
    adds_up(replace(plan, objective=plan.objective - found.rest), replace(found, rest=0.0))
    assert -1e-4 * plan.objective < found.rest <= 0


@pytest.mark.parametrize("objective", ["rank", "deadlines", "energy", "makespan", "snapshot"])
def test_objectives_and_rules_of_the_user(objective):
    """A soft limit costs its penalty, and a term stands apart."""

    def soft(round, table):
        return ronda.Limit(table.gpus, "<=", 3, name="few", penalty=1e-3)

    def term(round, table):
        return ronda.Term(np.where(table.gpus > 1, 1e-3, 0.0))

    made = with_rules(ronda.policy(f"prices(objective={objective})"), [soft, term], "extra")
    plan, found = broken(generate.round(12, None, "tight", 1), made)
    adds_up(plan, found)
    gpus = sum(given.option.gpus for given in plan.allocations.values())
    assert found.penalties["rule[few]"] == pytest.approx(1e-3 * (gpus - 3))
    several = sum(given.option.gpus > 1 for given in plan.allocations.values())
    assert found.terms.get("terms", 0.0) == pytest.approx(1e-3 * several)


def test_a_stop_that_is_spared():
    """What goes on is worth the loss of its stop more than what it does, and what starts is not."""
    round_ = generate.round(24, None, "tight", 1)
    _, found = broken(round_, "prices")
    running = {state.job.id for state in round_.running}
    spared = {each.job for each in found.jobs if each.stop_spared > 0}
    assert spared
    assert spared <= running
    free = replace(round_, costs=replace(round_.costs, restart_s=0.0))
    _, without = broken(free, "prices")
    assert not any(each.stop_spared for each in without.jobs)
