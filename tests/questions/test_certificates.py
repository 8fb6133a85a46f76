"""Round certificates: what is proven is accepted, what is spoilt refused, and no bound too low."""

import json
import os
import random
import subprocess
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner

import ronda
from every_choice import rows_by_job
from ronda.cli.app import cli
from ronda.formulations.allocation.model_data import case_of_all
from ronda.formulations.allocation.rows import within
from ronda.instances.files.canonical import encode
from ronda.instances.files.json import fingerprint
from ronda.instances.generate.tiny import tiny_round
from ronda.instances.job import Need
from ronda.instances.rules.validate import exact
from ronda.questions.certificates import verify as module
from ronda.questions.certificates.verify import MODEL, NotProvenError, Proof, digest
from ronda.solvers.decision.plan import Question
from tenant_rounds import quota, tenant_round, tree

NUMBER = int(os.environ.get("SOAK", 60))
ROUND, PLAN, CERTIFICATE = range(3)


def texts(round_, plan):
    """Return a round, a plan and their certificate as they are written."""
    return [encode(exact(round_)), encode(exact(plan)), ronda.certificate(round_, plan).text()]


def sealed(files):
    """Return the texts of plain JSON, with hashes as a forger would set them."""
    found = [json.dumps(file).encode() for file in files]
    files[CERTIFICATE]["round"] = digest(found[ROUND])
    files[CERTIFICATE]["model"] = digest(found[CERTIFICATE], *MODEL)
    return [found[ROUND], found[PLAN], json.dumps(files[CERTIFICATE]).encode()]


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
    found = Proof(given)
    assert float(found.worth) == pytest.approx(plan.objective)
    assert found.worth <= found.bound
    rng = random.Random(seed)
    for spoil in (claims, prices, model, facts, places_of_jobs):
        files = [json.loads(text) for text in given]
        if spoil(files, rng):
            with pytest.raises(NotProvenError):
                Proof([json.dumps(file).encode() for file in files])


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
    some = [(p, x) for p, x in places(files[CERTIFICATE]) if p[0] in MODEL]
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
    Proof(sealed(clean))
    for forge in (fewer_gpus, lower_worth, no_job, lower_limit):
        files = [json.loads(text) for text in given]
        if forge(files):
            with pytest.raises(NotProvenError):
                Proof(sealed(files))


def fewer_gpus(files):
    """Say that an option in use takes fewer GPUs."""
    jobs = files[CERTIFICATE]["jobs"]
    for name, given in files[PLAN].get("allocations", {}).items():
        for option in jobs[name]:
            if option["option"]["gpus"] == given["option"]["gpus"] and given["option"]["gpus"] > 1:
                option["option"]["gpus"] -= 1
                given["option"]["gpus"] -= 1
                return True
    return False


def lower_worth(files):
    """Say that all that runs is worth less than the plan is claimed to be."""
    for ways in files[CERTIFICATE]["jobs"].values():
        for option in ways:
            option["value"] *= 1 - 1e-6
    return bool(files[PLAN].get("allocations")) and files[CERTIFICATE]["worth"] > 0


def no_job(files):
    """Leave a job out."""
    return bool(files[CERTIFICATE]["jobs"] and files[CERTIFICATE]["jobs"].popitem())


def lower_limit(files):
    """Lower the limit of power that the plan needs."""
    if "power_cap_w" in files[ROUND] and files[PLAN].get("allocations"):
        files[ROUND]["power_cap_w"] = 1e-3
        return True
    return False


@pytest.mark.parametrize("seed", range(100, 100 + NUMBER // 3))
def test_no_bound_is_below_the_best_of_all_choices(seed):
    """Every choice of options that keeps the rows of pools, power and energy is tried."""
    round_ = tiny_round(seed)
    found = Proof(texts(round_, ronda.solve(round_, ("prices", "milp")[seed % 2])))
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
    found = Proof(given)
    assert float(found.worth) == pytest.approx(plan.objective)
    assert found.worth <= found.bound
    files = [json.loads(text) for text in given]
    soft = [*files[CERTIFICATE].get("penalties", {})]
    if soft:
        files[CERTIFICATE]["prices"][soft[-1]] = 1e6
        with pytest.raises(NotProvenError, match="a price above"):
            Proof(sealed(files))
    files[CERTIFICATE] |= {"limits": dict.fromkeys(files[CERTIFICATE]["limits"], -100.0)}
    files[CERTIFICATE]["penalties"] = {}
    with pytest.raises(NotProvenError):
        Proof(sealed(files))


def done(*words):
    """Return what a command prints that ends well."""
    ended = CliRunner().invoke(cli, [str(word) for word in words], prog_name="ronda")
    assert ended.exit_code == 0, ended.output
    return ended.output


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return files of a round, a plan and a certificate that the command writes."""
    folder = tmp_path_factory.mktemp("certificate")
    paths = [folder / name for name in ("round.json", "plan.json", "certificate.json")]
    ronda.write(tiny_round(1), paths[ROUND])
    run = ["solve", str(paths[ROUND]), "--out", str(paths[PLAN])]
    done(*run, "--certificate", paths[CERTIFICATE])
    return paths


def test_the_file_alone_proves_what_the_command_wrote(written):
    """In a Python without any package; with the digits of ronda's fingerprint."""
    run = [sys.executable, "-I", "-S", module.__file__, *map(str, written), "--json"]
    ended = subprocess.run(run, capture_output=True, text=True, check=True)
    found = json.loads(ended.stdout)
    certified = json.loads(written[CERTIFICATE].read_text())
    assert certified["round"][:16] == fingerprint(tiny_round(1))
    assert certified["worth"] <= float(Fraction(found["exact worth"])) <= found["bound"]
    assert "exact gap" in done("verify", *written)


def test_a_round_in_other_words_is_written_as_it_is_meant(written, tmp_path):
    """The certificate is of the round as ronda writes it, so that round is put beside it."""
    other = tmp_path / "other.json"
    other.write_text(json.dumps(json.loads(written[ROUND].read_text()) | {"costs": {}}))
    run = ["solve", str(other), "--out", str(tmp_path / "plan.json")]
    run += ["--certificate", str(tmp_path / "c.json")]
    assert "c.round.json" in done(*run)
    paths = [str(tmp_path / name) for name in ("c.round.json", "plan.json", "c.json")]
    assert module.main(paths) == 0


HOSTILE = {
    "half": "{",
    "deep": "[" * 100_000,
    "no number": '{"bound": NaN}',
    "a field twice": '{"bound": 1, "bound": 2}',
    "a huge number": '{"bound": 1e999999999}',
    "a long number": '{"bound": ' + "9" * 5000 + "}",
    "no object": "[1]",
    "no UTF-8": "\udcff",
}


@pytest.mark.parametrize("which", [ROUND, PLAN, CERTIFICATE])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_file_that_is_none_is_one_line_and_code_2(written, tmp_path, capsys, which, text):
    """It names the file."""
    paths = [*written]
    paths[which] = tmp_path / "hostile.json"
    paths[which].write_bytes(text.encode("utf-8", "surrogateescape"))
    assert module.main([str(path) for path in paths]) == 2
    out = capsys.readouterr().out
    assert "hostile.json" in out
    assert out.count("\n") == 1


@pytest.mark.parametrize("other", [True, "1", None, [], {}, -1, 0.5, 1e300])
def test_whatever_stands_in_a_field_is_an_answer_and_no_accident(written, other):
    """Each value in turn is replaced by another kind, and hashes are set anew."""
    clean = [json.loads(path.read_text()) for path in written]
    for which in (ROUND, PLAN, CERTIFICATE):
        for path in [*inner(clean[which])][:: 1 + len([*inner(clean[which])]) // 12]:
            files = [json.loads(json.dumps(file)) for file in clean]
            set_at(files[which], path, other)
            try:
                found = Proof(sealed(files))
            except (NotProvenError, ValueError, ArithmeticError):
                continue
            assert found.worth <= found.bound


def inner(value, path=()):
    """Yield the path of every part of plain JSON."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield (*path, key)
        if isinstance(value[key], dict | list):
            yield from inner(value[key], (*path, key))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"needs": {"cpu": Need(per_gpu=1.0)}}, "needs"),
        ({"one_node": True}, "one_node"),
        ({"share": 0.5}, "share"),
    ],
)
def test_what_no_certificate_covers_is_refused_in_one_line(fields, words):
    """The certificate is not made, and the verifier would not take it."""
    round_ = tenant_round(4, tree(a=()), (("a", 1),), fields={"a0": fields}, shared=True)
    with pytest.raises(ronda.InputError, match=words):
        ronda.certificate(round_, ronda.Plan())


def job_by_hand(name, option, value, *, placement=None, **more):
    """Return a state of a round, the certified options, and an allocation of the plan."""
    held = {"allocation": {"option": option, "placement": placement}} if placement else {}
    fields = {key: more.pop(key) for key in ("preemptible",) if key in more}
    state = {"job": {"id": name, **fields}, **held}
    return state, {name: [{"option": option, "value": value, **more}]}


def by_hand(prices, **fields):
    """Return four jobs on three nodes of 4 A and one of 4 B, one A out, that are worth 8."""
    small = {"pool": 0, "gpus": 2, "span": "node", "power_w": 50}
    wide = {"pool": 0, "gpus": 4, "span": "rack", "power_w": 100}
    other = {"pool": 1, "gpus": 1, "power_w": 20}
    firm, own = job_by_hand("firm", small, 1, placement=[[0, 2]], moved=0.5, preemptible=False)
    free, more = job_by_hand("free", small, 2, placement=[[0, 2]], moved=1)
    wait, most = job_by_hand("wait", wide, 4)
    ends, last = job_by_hand("ends", other, 1, lasts_s=100)
    node = {"gpus_per_node": 4, "gpu_type": "A", "host_idle_w": 20, "sleep_w": 5}
    groups = [node | {"count": 2, "rack": "r1"}, node | {"count": 1, "rack": "r2"}]
    groups.append({"count": 1, "gpus_per_node": 4, "gpu_type": "B"})
    types = [{"name": "A", "idle_w": 10}, {"name": "B"}]
    cluster = {"gpu_types": types, "node_groups": groups, "out": [[1, 1]]}
    round_ = {"cluster": cluster, "running": [firm, free], "waiting": [wait, ends], **fields}
    options = {"firm": small, "free": small, "wait": wide, "ends": other}
    placements = {"firm": [[0, 2]], "free": [[0, 2]], "wait": [[2, 4]], "ends": [[3, 1]]}
    given = {n: {"option": options[n], "placement": placements[n]} for n in options}
    plan = {"allocations": given, "asleep": [1]}
    certified = {"format": module.FORMAT, "worth": 8, "bound": 100, "prices": prices}
    return [round_, plan, certified | {"jobs": own | more | most | last}]


TIGHT = {"power_cap_w": 265, "energy_j": 884_000, "banked_j": 2_000}
"""Just enough: 125 W idle and 140 W of jobs, 20 W of which end after 100 s (26,500 J by then)."""


@pytest.mark.parametrize(
    ("prices", "fields", "bound"),
    [
        ({"gpus[default/A]": 0.5, "power_cap": 0.01}, TIGHT, "8.95000265"),
        ({"power_cap": 0.1}, TIGHT, "23.0000265"),  # at this price nodes sleep
        ({"energy_window": 1e-5}, {"energy_j": 954_000, "banked_j": 0}, "11.96000954"),
        ({"energy_window": 1e-5}, TIGHT, "11.96000884"),  # both sides have 70,000 J less
    ],
)
def test_worth_and_bound_are_those_of_a_sum_by_hand(prices, fields, bound):
    """To the last digit."""
    found = Proof(sealed(by_hand(prices, **fields)))
    assert (found.worth, found.bound) == (8, Fraction(bound))


def test_a_move_costs_what_the_certificate_says():
    """The job keeps its option on the other node, which is awake."""
    files = by_hand({})
    files[PLAN] |= {"asleep": []}
    files[PLAN]["allocations"]["free"] |= {"placement": [[1, 2]]}
    files[CERTIFICATE]["worth"] = 7
    assert Proof(sealed(files)).worth == 7


@pytest.mark.parametrize(
    ("job", "placement", "words"),
    [
        ("firm", [[1, 2]], "may not be changed"),
        ("firm", None, "may not stop"),
        ("free", [[2, 2]], "sleep or lack"),
        ("wait", [[1, 4]], "sleep or lack"),  # one GPU is out
        ("free", [[0, 1], [1, 1]], "within one node"),
        ("wait", [[1, 2], [2, 2]], "within one rack"),
        ("ends", [[1, 1]], "of pool 1"),
        ("ends", [[3, 2]], "not on 1 GPU"),
        ("ends", [[9, 1]], "not on 1 GPU"),
    ],
)
def test_a_placement_that_cannot_be_is_refused(job, placement, words):
    """Nodes, GPUs, pools and racks follow from the round."""
    files = by_hand({})
    files[PLAN] |= {"asleep": []}
    files[PLAN]["allocations"][job] |= {"placement": placement}
    if placement is None:
        del files[PLAN]["allocations"][job]
    with pytest.raises(NotProvenError, match=words):
        Proof(sealed(files))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"power_cap_w": 264.9}, "power_cap"),
        ({"energy_j": 883_000}, "energy_window"),
        ({"banked_j": 1_000}, "by 100"),
    ],
)
def test_a_limit_that_the_plan_breaks_is_named(fields, words):
    """Also one by a time within the window."""
    with pytest.raises(NotProvenError, match=words):
        Proof(sealed(by_hand({}, **TIGHT | fields)))


def test_no_job_runs_on_a_node_that_sleeps_and_no_row_replaces_a_limit():
    """Whatever the certificate says."""
    files = by_hand({})
    files[PLAN]["asleep"] = [1, 2]
    with pytest.raises(NotProvenError, match="sleep or lack"):
        Proof(sealed(files))
    files = by_hand({}, **TIGHT | {"power_cap_w": 1})
    files[CERTIFICATE]["limits"] = {"power_cap": 1e9}
    with pytest.raises(NotProvenError, match="the name of another"):
        Proof(sealed(files))
