"""Moves that empty nodes: equal to trying all of them, within their limits, and in an order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import ronda
from arrays import array, instance, standing
from every_move import best_moves, crowd, scattered
from lab.consolidation import scattered as openb
from ronda.horizon.state import ClusterState
from ronda.instances.job import Costs, Need, used_nodes
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.rules.validate import validate
from ronda.instances.violation import Violation
from ronda.questions.consolidate import answer as module
from ronda.questions.consolidate.answer import consolidate, most_saved
from ronda.questions.consolidate.by_patterns import PatternProgram
from ronda.questions.consolidate.holdings import holdings
from ronda.questions.consolidate.one_by_one import one_by_one
from ronda.questions.consolidate.pool_prices import PoolPrices
from ronda.solvers.exact.from_pyomo import linear_form
from ronda.solvers.exact.linear_form import Effort, too_late
from site_rounds import leaving, min_run, needs

LIMITS = ({}, {"moves": 2}, {"lost_gpu_s": 80.0}, {"moves": 1})


@pytest.mark.parametrize(
    "first",
    [0, 100, *(pytest.param(n, marks=pytest.mark.soak) for n in range(25, 200, 25) if n != 100)],
)
def test_equal_to_trying_all_moves(first):
    """What is saved, its bound, the number of moves, and what these lose; 200 rounds in a soak."""
    saved = 0
    for seed in range(first, first + 25):
        round_, limits = scattered(seed), LIMITS[seed // 2 % len(LIMITS)]
        save = ("nodes", "watts")[seed % 2]
        found, best = (
            consolidate(round_, save=save, gap=0.0, **limits),
            best_moves(round_, save, **limits),
        )
        assert found.plan.status is SolutionStatus.OPTIMAL
        assert found.plan.bound == pytest.approx(best.saved, abs=1e-5)
        assert (found.plan.objective, len(found.moves), found.lost_gpu_s) == pytest.approx(best)
        assert ronda.check(round_, found.plan) == []
        assert most_saved(round_, save) >= best.saved - 1e-6
        saved += best.saved > 0
    assert saved >= 5


@given(
    seed=st.integers(200, 100_000),
    moves=st.none() | st.integers(0, 4),
    lost_gpu_s=st.none() | st.floats(0.0, 300.0),
    save=st.sampled_from(["nodes", "watts"]),
)
def test_no_limit_is_passed_and_nothing_is_worse_than_no_move(seed, moves, lost_gpu_s, save):
    """Nobody changes how it runs, whoever must stay does, and the order of moves can be kept."""
    round_ = scattered(seed)
    found = consolidate(round_, save=save, moves=moves, lost_gpu_s=lost_gpu_s)
    assert ronda.check(round_, found.plan) == []
    assert 0 <= found.plan.objective <= found.plan.bound
    assert len(found.moves) <= (6 if moves is None else moves)
    assert found.lost_gpu_s <= (float("inf") if lost_gpu_s is None else lost_gpu_s + 1e-6)
    held = round_.held
    assert held.keys() == found.plan.allocations.keys()
    moved = {job for job, given in found.plan.allocations.items() if given is not held[job]}
    assert moved == {job for move in found.moves for job in move.jobs}
    assert all(held[job].option == found.plan.allocations[job].option for job in moved)
    assert_in_turn(round_, found.moves)


def assert_in_turn(round_, moves):
    """Carry moves out one by one: each finds its GPUs free."""
    free = round_.cluster.topology.node_gpus.tolist()
    for held in round_.held.values():
        for node, gpus in held.placement:
            free[node] -= gpus
    for move in sorted(moves, key=lambda move: not move.first):
        for node, gpus in move.source if move.first else ():
            free[node] += gpus
    for move in moves:
        for node, gpus in () if move.first else move.source:
            free[node] += gpus
        for node, gpus in move.target:
            free[node] -= gpus
        assert min(free) >= 0


def test_one_stops_first_where_jobs_change_places():
    """Nodes of 5, 5 and 2: {2, 2}, {1 that stays, 3}, {2} fit on two as {3, 2}, {1, 2, 2}.

    One GPU is free on each of the first two: neither the 3 nor a 2 can go before another has left.
    """
    round_ = crowd((5, 5, 2), [(0, 2), (0, 2), (1, 1), (1, 3), (2, 2)], pinned=(2,))
    found = consolidate(round_)
    assert (found.plan.objective, found.emptied, len(found.moves)) == (1.0, (2,), 3)
    assert sum(move.first for move in found.moves) == 1
    assert_in_turn(round_, found.moves)


def test_what_a_move_costs():
    """A restart of 30 s on 2 GPUs that idle at 5 W each; the node saves 100 W and its idle GPUs."""
    round_ = crowd((4, 4), [(0, 2), (1, 2)], costs=Costs(restart_s=30.0))
    found = consolidate(round_)
    assert (found.lost_gpu_s, found.lost_j, found.saved_w) == (60.0, 300.0, 120.0)
    assert found.plan.asleep is None
    assert consolidate(round_, save="watts").plan.asleep == found.emptied
    assert consolidate(round_, lost_gpu_s=59.0).moves == ()


def test_of_equal_blocks_on_a_node_the_cheapest_moves():
    """One of two 1s makes room for the 2: the one of 5 s, with 60 GPU-seconds for the 2."""
    held = [(0, 1), (0, 1), (0, 2), (1, 2), (2, 2)]
    round_ = crowd((5, 3, 2), held, pinned=(2, 3), costs=Costs(restart_s=30.0))
    own = {"j0": Costs(restart_s=100.0), "j1": Costs(restart_s=5.0)}
    states = (replace(s, job=replace(s.job, costs=own.get(s.job.id))) for s in round_.running)
    found = consolidate(replace(round_, running=tuple(states)), lost_gpu_s=66.0)
    assert {move.jobs for move in found.moves} == {("j1",), ("j4",)}
    assert (found.emptied, found.lost_gpu_s) == ((2,), 65.0)


def test_an_array_moves_as_one():
    """Two jobs that share a GPU are one move, of both, to the node of the third."""
    state = ClusterState(instance([20.0, 30.0, 40.0], nodes=2))
    state.advance(0.0)
    round_ = state.snapshot(60.0)
    held = array(round_, ["j0", "j1"], "packed", 0, "a") | array(round_, ["j2"], "", 1, "")
    round_ = standing(round_, held, firm=["j2"])
    found = consolidate(round_, moves=1)
    assert [move.jobs for move in found.moves] == [("j0", "j1")]
    assert found.emptied == (0,)
    assert ronda.check(round_, found.plan) == []


def test_nodes_and_jobs_that_are_alike_are_counted_together():
    """Three times the nodes and jobs make the same model, and thrice the answer."""
    once = [(0, 2), (1, 1), (1, 1), (2, 3)]
    thrice = [(node + 3 * k, gpus) for k in range(3) for node, gpus in once]
    few, many = (consolidate(crowd((4,) * n, held)) for n, held in ((3, once), (9, thrice)))
    assert many.plan.record.variables == few.plan.record.variables
    assert many.plan.objective == 3 * few.plan.objective == 3.0


def test_a_hundred_nodes_are_proven():
    """A tenth of a cluster of Alibaba's shapes: more moves never save less."""
    round_ = openb(100, 0.7, 1)
    found = [consolidate(round_, moves=most) for most in (0, 10, 40, None)]
    saved = [each.plan.objective for each in found]
    assert saved == sorted(saved)
    assert saved[0] == 0 < saved[1]
    assert all(each.plan.bound == each.plan.objective for each in found)
    assert all(ronda.check(round_, each.plan) == [] for each in found)


def test_without_time_nothing_moves_and_the_bound_holds():
    """It counts GPUs: 6 of them need two nodes of 4."""
    found = consolidate(crowd((4, 4, 4), [(0, 2), (1, 2), (2, 2)]), deadline=1e-9)
    assert (found.moves, found.plan.bound, found.plan.stop) == ((), 1.0, StopReason.TIME_LIMIT)
    assert found.plan.status is SolutionStatus.FEASIBLE


@pytest.mark.parametrize("seed", range(200, 260))
def test_emptying_one_by_one_is_an_answer_where_the_search_is_cut(seed, monkeypatch):
    """Without a solution of the model: within the limits, racks' caps too, and below the best."""
    monkeypatch.setattr(module, "solve", lambda model, effort: too_late(linear_form(model)))
    round_, limits = scattered(seed), LIMITS[seed % len(LIMITS)]
    found, best = consolidate(round_, **limits), best_moves(round_, "nodes", **limits)
    assert ronda.check(round_, found.plan) == []
    assert found.plan.status is not SolutionStatus.FALLBACK
    assert found.plan.objective <= best.saved <= found.plan.bound
    assert len(found.moves) <= limits.get("moves", 6)
    assert found.lost_gpu_s <= limits.get("lost_gpu_s", float("inf"))


@pytest.mark.parametrize("seed", range(300, 360))
def test_hosts_and_run_times_are_known(seed):
    """No plan fails the check or passes a limit; the best of all moves is below the bound.

    Only where a job on several nodes could move, the best may be missed.
    """
    rng, limits = np.random.default_rng(seed), LIMITS[seed % len(LIMITS)]
    save = ("nodes", "watts")[seed // 4 % 2]
    round_ = validate(needs(rng, min_run(rng, scattered(seed))))
    found, best = consolidate(round_, save=save, **limits), best_moves(round_, save, **limits)
    assert ronda.check(round_, found.plan) == []
    assert found.plan.status is not SolutionStatus.FALLBACK
    assert found.plan.objective <= best.saved + 1e-6 <= found.plan.bound + 2e-6
    assert len(found.moves) <= limits.get("moves", 6)
    assert found.lost_gpu_s <= limits.get("lost_gpu_s", float("inf"))
    if not holdings(round_).wide:
        assert (found.plan.objective, len(found.moves)) == pytest.approx((best.saved, best.moves))


@pytest.mark.parametrize("seed", range(30))
def test_nobody_comes_to_a_node_that_leaves(seed):
    """Hosts bind in some of the rounds, and nodes leave in all."""
    rng = np.random.default_rng(seed)
    round_ = validate(needs(rng, leaving(rng, scattered(seed))))
    found = consolidate(round_)
    leaves = {node for node, _ in round_.leaving}
    assert leaves
    assert not any(leaves & {node for node, _ in move.target} for move in found.moves)
    assert found.plan.status is not SolutionStatus.FALLBACK


def test_hosts_bind_on_many_nodes():
    """Jobs of 3, 5 and 6 of 8 GPUs with CPUs of their own: all nodes that can be emptied are.

    GPUs alone would need fewer nodes, so the best moves without hosts break the check.
    """
    round_ = openb(60, 0.6, 1, "blocks")
    found, quick = consolidate(round_), one_by_one(holdings(round_))
    assert ronda.check(round_, found.plan) == []
    assert found.plan.bound - found.plan.objective <= 1
    placed = {job: replace(round_.held[job], placement=on) for job, on in quick.items()}
    left = [len(used_nodes((round_.held | each).values())) for each in ({}, placed)]
    assert left[0] - left[1] <= found.plan.objective < most_saved(round_, "nodes")
    assert consolidate(round_, moves=len(found.moves)).plan.objective == found.plan.objective


def test_no_column_takes_slots_away():
    """Amounts of a tenth fill a node up to rounding; what is free is then a little below 0."""
    round_ = crowd((8,) * 4, [(0, 2), (0, 1), (1, 1), (1, 1), (2, 3), (3, 1)])
    group = replace(round_.cluster.node_groups[0], has={"cpu": 0.1 + 0.2})
    cluster = replace(round_.cluster, node_groups=(group,) * 4)
    each = {name: {"cpu": Need(per_gpu=0.1)} for name in ("j0", "j1", "j2", "j3", "j4", "j5")}
    states = (replace(s, job=replace(s.job, needs=each[s.job.id])) for s in round_.running)
    pool = PoolPrices(holdings(replace(round_, cluster=cluster, running=tuple(states))), 0)
    pool.improve()
    program = PatternProgram(pool)
    assert program.solve(Effort()) is not None
    assert all((column.slots >= 0).all() for column in program.columns)


def test_nodes_of_few_jobs_are_emptied_first():
    """The 1 goes beside {2, 1} or 3, which leaves no room for the 2; a node that got it stays."""
    round_ = crowd((4,) * 4, [(0, 1), (1, 2), (2, 2), (2, 1), (3, 3)])
    assert one_by_one(holdings(round_)) == {"j0": ((2, 1),)}
    assert one_by_one(holdings(round_), moves=0) == {}


def test_what_runs_must_be_in_order():
    """A cap that is exceeded already is for `solve`."""
    round_ = crowd((4, 4), [(0, 2), (1, 2)], power_cap_w=1.0)
    with pytest.raises(ronda.InputError, match=r"what runs: .*power.* ronda solve"):
        consolidate(round_)


def test_a_plan_that_breaks_a_rule_is_not_given(monkeypatch):
    """Should the model ever be wrong, what runs stays where it is, and the record says why."""
    round_ = crowd((4, 4), [(0, 2), (1, 2)])
    check = module.check

    def strict(subject, plan: Plan):
        moved = plan.allocations != subject.held
        return [Violation("span", "job j0", "…")] if moved else check(subject, plan)

    monkeypatch.setattr(module, "check", strict)
    found = consolidate(round_)
    assert (found.moves, found.plan.status) == ((), SolutionStatus.FALLBACK)
    assert "span" in found.plan.record.message


@pytest.mark.parametrize(
    "given", [{"moves": -1}, {"save": "gpus"}, {"gap": 2.0}, {"lost_gpu_s": -1.0}]
)
def test_what_cannot_be_meant_is_refused(given):
    """By the name of the argument."""
    with pytest.raises(ronda.InputError, match=next(iter(given))):
        consolidate(crowd((4,), [(0, 2)]), **given)
