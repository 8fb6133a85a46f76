"""Round certificates: what is proven is accepted, what is spoilt refused, and no bound too low."""

import json
import os
import random
from itertools import product

import numpy as np
import pytest

import ronda
from every_choice import rows_by_job
from ronda.formulations.allocation.model_data import case_of_all
from ronda.formulations.allocation.rows import within
from ronda.instances.files.canonical import encode
from ronda.instances.generate.tiny import tiny_round
from ronda.instances.rules.validate import exact
from ronda.questions.certificates.verify import NotProvenError, digest, verify
from ronda.solvers.decision.plan import Question
from tenant_rounds import quota, tenant_round, tree

NUMBER = int(os.environ.get("SOAK", 60))
ROUND, PLAN, CERTIFICATE = range(3)


def texts(round_, plan):
    """Return a round, a plan and their certificate as they are written."""
    return encode(exact(round_)), encode(exact(plan)), ronda.certificate(round_, plan).text()


def sealed(files):
    """Return the texts of plain JSON, with hashes as a forger would set them."""
    found = [json.dumps(file).encode() for file in files]
    files[CERTIFICATE]["round"] = digest(found[ROUND], format="ronda/round/1")
    files[CERTIFICATE]["model"] = digest(found[CERTIFICATE], "jobs", "rows")
    return found[ROUND], found[PLAN], json.dumps(files[CERTIFICATE]).encode()


def places(value, path=()):
    """Yield the path of every number of plain JSON, and the number."""
    if isinstance(value, bool | str | None):
        return
    if not isinstance(value, dict | list):
        yield path, value
        return
    for key in value if isinstance(value, dict) else range(len(value)):
        yield from places(value[key], (*path, key))


def set_at(value, path, number):
    """Change one number of plain JSON."""
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = number


@pytest.mark.parametrize("seed", range(NUMBER))
def test_what_is_proven_is_accepted_and_what_is_spoilt_is_refused(seed):
    """Every number of round, plan and certificate is changed, one by one."""
    round_ = tiny_round(seed)
    plan = ronda.solve(round_, ("prices", "milp")[seed % 2])
    given = texts(round_, plan)
    found = verify(*given)
    assert float(found.worth) == pytest.approx(plan.objective)
    assert found.worth <= found.bound
    rng = random.Random(seed)
    for spoil in (claims, prices, model, facts, places_of_jobs):
        files = [json.loads(text) for text in given]
        if spoil(files, rng):
            with pytest.raises(NotProvenError):
                verify(*(json.dumps(file).encode() for file in files))


def claims(files, rng):
    """Claim more worth, or a lower bound."""
    name, up = rng.choice([("worth", 1), ("bound", -1)])
    claimed = files[CERTIFICATE][name]
    files[CERTIFICATE][name] += up * 1e-6 * (abs(claimed) or 1.0)
    return True


def prices(files, rng):
    """Turn a price below 0."""
    names = [*files[CERTIFICATE]["prices"]] or ["power_cap"]
    files[CERTIFICATE]["prices"][rng.choice(names)] = -1e-6
    return True


def model(files, rng):
    """Change a number of an option or a row."""
    some = [(p, x) for p, x in places(files[CERTIFICATE]) if p[0] in ("jobs", "rows")]
    if some:
        path, number = rng.choice(some)
        set_at(files[CERTIFICATE], path, number * (1 + 1e-6) or 1e-6)
    return bool(some)


def facts(files, rng):
    """Change a number of the round."""
    path, number = rng.choice([*places(files[ROUND])])
    set_at(files[ROUND], path, number * (1 + 1e-6) or 1e-6)
    return True


def places_of_jobs(files, rng):
    """Put a GPU more of a job on a node, or the job on a node that is not there."""
    jobs = [*files[PLAN].get("allocations", {}).values()]
    if jobs:
        pair = rng.choice(rng.choice(jobs)["placement"])
        pair[rng.choice([0, 1])] += 100
    return bool(jobs)


@pytest.mark.parametrize("seed", range(20))
def test_a_forger_who_sets_all_hashes_anew_is_refused(seed):
    """GPUs, limits and jobs follow from the round itself, and claims from all of it."""
    round_ = tiny_round(seed)
    given = texts(round_, ronda.solve(round_, "milp"))
    clean = [json.loads(text) for text in given]
    verify(*sealed(clean))
    for forge in (fewer_gpus, lower_worth, no_job, lower_limit):
        files = [json.loads(text) for text in given]
        if forge(files):
            with pytest.raises(NotProvenError):
                verify(*sealed(files))


def fewer_gpus(files):
    """Say that an option in use takes fewer GPUs."""
    jobs = {job["id"]: job for job in files[CERTIFICATE]["jobs"]}
    for name, given in files[PLAN].get("allocations", {}).items():
        for option in jobs[name]["options"]:
            if option["option"]["gpus"] == given["option"]["gpus"] and given["option"]["gpus"] > 1:
                option["option"]["gpus"] -= 1
                given["option"]["gpus"] -= 1
                return True
    return False


def lower_worth(files):
    """Say that all that runs is worth less than the plan is claimed to be."""
    for job in files[CERTIFICATE]["jobs"]:
        for option in job["options"]:
            option["value"] *= 1 - 1e-6
    return bool(files[PLAN].get("allocations")) and files[CERTIFICATE]["worth"] > 0


def no_job(files):
    """Leave a job out."""
    return bool(files[CERTIFICATE]["jobs"] and files[CERTIFICATE]["jobs"].pop())


def lower_limit(files):
    """Lower the limit of power that the plan needs."""
    if "power_cap_w" in files[ROUND] and files[PLAN].get("allocations"):
        files[ROUND]["power_cap_w"] = 1e-3
        return True
    return False


@pytest.mark.parametrize("seed", range(100, 100 + NUMBER))
def test_no_bound_is_below_the_best_of_all_choices(seed):
    """Every choice of options that keeps the rows of pools, power and energy is tried."""
    round_ = tiny_round(seed)
    found = verify(*texts(round_, ronda.solve(round_, ("prices", "milp")[seed % 2])))
    question = Question.of(round_, "rank")
    table, values = question.table, question.values
    case = case_of_all(question.round, table, np.arange(len(table)))
    best = max(
        (float(values[rows[rows >= 0]].sum()), *picks)[0]
        for picks in product(*rows_by_job(table))
        for rows in [np.array(picks, dtype=np.int64)]
        if within(case, rows)
    )
    assert float(found.bound) >= best * (1 - 1e-12)


TENANTS = (
    tree(a=quota(2.0, borrow=1.0), b=quota(2.0)),
    tree(a=quota(3.0, lend=1.0), b=quota(1.0, limit=2.0)),
    tree(d=quota(1.0), b=quota(), a=("d", quota(1.0))),
)


@pytest.mark.parametrize("tenants", TENANTS)
@pytest.mark.parametrize("running", [(), (("b", 2), ("b", 1))])
def test_rows_of_the_site_count_with_soft_limits_and_lent_gpus(tenants, running):
    """The worth is the objective; more of a limit, or a price above the penalty, is refused."""
    waiting = (("a", 2), ("a", 1), ("b", 2), ("b", 1))
    round_ = tenant_round(4, tenants, waiting, running)
    plan = ronda.solve(round_, "milp")
    given = texts(round_, plan)
    found = verify(*given)
    assert float(found.worth) == pytest.approx(plan.objective)
    assert found.worth <= found.bound
    files = [json.loads(text) for text in given]
    soft = [row for row in files[CERTIFICATE]["rows"] if "penalty" in row]
    if soft:
        files[CERTIFICATE]["prices"][soft[-1]["name"]] = 1e6
        with pytest.raises(NotProvenError, match="a price above"):
            verify(*sealed(files))
    for row in files[CERTIFICATE]["rows"]:
        row["limit"] = -100.0
        row.pop("penalty", None)
    with pytest.raises(NotProvenError):
        verify(*sealed(files))
