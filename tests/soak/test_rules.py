"""Rules of one's own: odd files are refused, thousands of limits kept, and firm jobs go on."""

import pytest

import ronda
from odd_rules import best_beside_firm_jobs, firm_round, many_limits, odd_file
from ronda.instances.plan import SolutionStatus, StopReason
from tests.solvers.test_rules import tiny

pytestmark = pytest.mark.soak


@pytest.mark.seeds(60)
def test_an_odd_file_is_refused_in_one_line(seed, tmp_path, monkeypatch):
    """It names file and rule; nothing else comes out of it, whatever the rule raises."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text(odd_file(seed))
    for policy in ("milp", "prices"):
        with pytest.raises(ronda.InputError, match=r"odd\.py: odd") as refused:
            ronda.solve(tiny(4)[0], policy, extra="odd.py")
        assert "\n" not in str(refused.value)


@pytest.mark.seeds(10)
def test_many_limits_are_kept(seed):
    """In the plan of either policy, which agree; a plan that does not keep them is none."""
    round_, rule = tiny(seed)[0], many_limits(seed)
    plans = [ronda.solve(round_, policy, extra=[rule]) for policy in ("milp", "prices")]
    for plan in plans:
        assert ronda.check(round_, plan) == ronda.broken_rules([rule], round_, plan) == []
        assert plan.status is SolutionStatus.OPTIMAL
    assert plans[0].objective == pytest.approx(plans[1].objective, rel=2e-4, abs=1e-6)


@pytest.mark.seeds(60)
def test_firm_jobs_go_on_and_rules_give_way_no_further(seed):
    """The plan is the best of all that keep what can be kept beside them."""
    round_, extra = firm_round(seed)
    top = best_beside_firm_jobs(round_, extra)
    firm = {s.job.id for s in round_.running if not s.job.preemptible}
    for policy in ("milp(gap=0)", "prices(gap=1e-8)"):
        plan = ronda.solve(round_, policy, extra=extra)
        assert ronda.check(round_, plan) == []
        assert firm <= plan.allocations.keys()
        if top is None:
            assert plan.stop is StopReason.INFEASIBLE or plan.status is SolutionStatus.FALLBACK
            assert "no plan" in plan.record.message
            continue
        assert ronda.broken_rules(extra, round_, plan) == []
        assert plan.objective == pytest.approx(top, abs=1e-6)
        assert plan.bound >= top - 1e-6
