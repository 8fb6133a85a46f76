"""Arrays of a batch of repetitive jobs: MILP, rules and brute force."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.fusion.arrays import Arrangement, Batch, FusionCase, arrays_of, in_order
from lab.fusion.exact import solve
from lab.fusion.greedy import even, full
from ronda.instances.errors import InputError
from ronda.instances.plan import SolutionStatus
from ronda.instances.profile import AffineTime, MeasuredTime, Memory, Sharing

OBJECTIVES = ("makespan", "gpu-time", "mean-jct")


def batch(name="b", jobs=4, steps=1.0, alpha=2.0, beta=1.0, packed=None, gpus=("G",), own=1.0):
    """Return a class with T(k) = alpha + beta k fused and alpha + beta alone, b + p of 1 + own."""
    sharings = [
        Sharing(mode="exclusive", time=MeasuredTime(models=(1,), step_s=(alpha + beta,))),
        Sharing(mode="fused", time=AffineTime(alpha_s=alpha, beta_s=beta)),
    ]
    if packed is not None:
        sharings.append(Sharing(mode="packed", time=packed))
    memory = Memory(base_gib=1.0, model_gib=own)
    return Batch(
        name, jobs, steps, dict.fromkeys(gpus, tuple(sharings)), dict.fromkeys(gpus, memory)
    )


def case(*batches, gpus=None, gib=4.0):
    """Return a case of 4 GiB GPUs: three models fit, as 1 + 3 = 4."""
    gpus = gpus or {"G": 1}
    return FusionCase(batches, gpus, dict.fromkeys(gpus, gib))


def splits(number, most):
    """Yield all ways to write a number as a sum of parts up to `most`, the largest first."""
    if number == 0:
        yield ()
    for part in range(min(number, most), 0, -1):
        for rest in splits(number - part, part):
            yield (part, *rest)


def brute_force(asked, objective):
    """Return the least value over all splits of the batches, GPUs and (by Smith) orders."""
    ways = {}
    for array in arrays_of(asked):
        ways.setdefault((array.batch, array.models), []).append(array)
    gpus = [(gpu, n) for gpu, many in asked.gpus.items() for n in range(many)]
    best = float("inf")
    for sizes in product(*(splits(b.jobs, b.jobs) for b in asked.batches)):
        parts = [(c, k) for c, many in enumerate(sizes) for k in many]
        if any(part not in ways for part in parts):
            continue
        for where in product(gpus, repeat=len(parts)):
            own = {gpu: [] for gpu in gpus}
            for part, gpu in zip(parts, where, strict=True):
                fits = [a for a in ways[part] if a.gpu_type == gpu[0]]
                if not fits:
                    break
                own[gpu].append(fits[0])
            else:
                found = Arrangement(asked, tuple(in_order(a) for a in own.values()))
                best = min(best, found.value(objective))
    return best


@st.composite
def cases(draw):
    """Up to 6 jobs in 2 classes on up to 3 GPUs of 2 types."""
    seconds = st.sampled_from((0.5, 1.0, 2.0, 3.0))
    batches = [
        batch(
            f"b{index}",
            draw(st.integers(1, 3)),
            draw(seconds),
            draw(seconds),
            draw(seconds),
            draw(st.none() | st.just(MeasuredTime(models=(1, 3), step_s=(2.0, 3.0)))),
            draw(st.sampled_from((("G",), ("G", "H")))),
        )
        for index in range(draw(st.integers(1, 2)))
    ]
    gpus = draw(st.sampled_from(({"G": 1}, {"G": 2}, {"G": 1, "H": 1}, {"G": 1, "H": 2})))
    return case(*batches, gpus=gpus, gib=draw(st.sampled_from((2.0, 3.0, 4.0, 6.0))))


@settings(max_examples=15, deadline=None)
@given(cases(), st.sampled_from(OBJECTIVES))
def test_milp_is_brute_force(asked, objective):
    """And its arrangement serves every job once, within its own bound; no rule is better."""
    answer = solve(asked, objective, gap=0.0)
    best = brute_force(asked, objective)
    assert answer.status is SolutionStatus.OPTIMAL
    assert answer.value_s == pytest.approx(best)
    assert answer.bound_s == pytest.approx(best)
    for found in (answer.arrangement, full(asked, objective), even(asked, objective)):
        assert found.served() == tuple(b.jobs for b in asked.batches)
        assert found.value(objective) >= best * (1 - 1e-9)
    assert even(asked, "gpu-time").gpu_s <= full(asked, "gpu-time").gpu_s * (1 + 1e-9)


@settings(max_examples=10, deadline=None)
@given(cases(), st.sampled_from(OBJECTIVES))
def test_more_gpus_or_memory_never_hurt(asked, objective):
    """The optimum with one more GPU, or more GiB, is no worse; order of classes is nothing."""
    best = solve(asked, objective, gap=0.0).value_s * (1 + 1e-9)
    more = replace(asked, gpus=asked.gpus | {"G": asked.gpus["G"] + 1})
    larger = replace(asked, gpu_gib={gpu: gib + 2 for gpu, gib in asked.gpu_gib.items()})
    turned = replace(asked, batches=asked.batches[::-1])
    for other in (more, larger, turned):
        assert solve(other, objective, gap=0.0).value_s <= best


def test_memory_limits_arrays():
    """Three models on 4 GiB; on 3 GiB two; on 1.5 not one."""
    assert max(a.models for a in arrays_of(case(batch()))) == 3
    assert max(a.models for a in arrays_of(case(batch(), gib=3.0))) == 2
    with pytest.raises(InputError, match="batch b: found no array"):
        arrays_of(case(batch(), gib=1.5))


def test_by_hand():
    """Four jobs, T(k) = 2 + k, at most three: full 5 + 3 s, even 4 + 4 s, one after another 12.

    On two GPUs even arrays end at 4 s, full ones at 5 s.
    """
    two = case(batch(), gpus={"G": 2})
    assert full(two, "makespan").makespan_s == 5.0
    assert even(two, "makespan").makespan_s == 4.0
    assert solve(two, "makespan").value_s == pytest.approx(4.0)
    wide = case(batch(), gpus={"G": 2}, gib=6.0)  # all four fit one GPU, in 6 s
    assert [even(wide, o).value(o) for o in ("makespan", "gpu-time")] == [4.0, 6.0]
    assert solve(two, "gpu-time").value_s == pytest.approx(8.0)


def test_short_jobs_of_a_few_go_first_for_the_mean():
    """One GPU, a single job of 1 s and three that are fused in 10 s: (1 + 3 x 11) / 4."""
    quick = batch("quick", jobs=1, alpha=0.5, beta=0.5)
    slow = batch("slow", jobs=3, alpha=7.0, beta=1.0)
    answer = solve(case(quick, slow), "mean-jct")
    assert answer.value_s == pytest.approx(34 / 4)
    assert [a.models for a in answer.arrangement.gpus[0]] == [1, 3]


def test_numbers_that_no_arrays_make_are_refused():
    """Packed by 2 only, an odd job is left over."""
    only = batch(jobs=3, packed=MeasuredTime(models=(2,), step_s=(1.0,)))
    packed = tuple(s for s in only.sharings["G"] if s.mode == "packed")
    odd = case(replace(only, sharings={"G": packed}), gib=40.0)
    with pytest.raises(InputError, match="serve all jobs of b"):
        solve(odd, "gpu-time")
    with pytest.raises(InputError, match="no array of 1"):
        full(odd, "gpu-time")
