"""Rules of one's own: odd files are refused, thousands of limits kept, and firm jobs go on."""

import numpy as np
import pytest

import ronda
from odd_rules import best_beside_firm_jobs, firm_round
from ronda.instances import generate
from ronda.instances.plan import SolutionStatus, StopReason
from tests.solvers.test_rules import tiny

pytestmark = [pytest.mark.soak, pytest.mark.timeout(120)]

LIMIT_S = 3.0

HEAD = "import sys\nimport numpy as np\nimport ronda\nclass Odd(BaseException): pass\n"
COLUMNS = (
    *("table.gpus", "np.ones(len(table))", "1.0 * (table.gpus > 1)", "-1.0 * table.gpus"),
    *(
        "table.gpus * 1e-300",
        "table.gpus * 1e300",
        "table.power_w",
        "np.where(table.job == 0, 1, -1)",
    ),
    *(
        "table.gpus * 1j",
        "table.gpus + 0j",
        "[str(n) for n in table.gpus]",
        "table.gpus.astype('U')",
    ),
    *("table.gpus * np.nan", "table.gpus / 0.0", "table.gpus[:-1]", "table.gpus[:, None]", "1.0"),
    *(
        "None",
        "{}",
        "'x'",
        "np.array([object()] * len(table))",
        "table",
        "table.gpus.astype('M8[s]')",
    ),
    *("table.gpus.astype(object)", "table.gpus[None]", "[[1], [1, 2]]", "(x for x in table.gpus)"),
    *("np.full(len(table), np.nan)", "np.ma.masked_array(table.gpus, table.gpus > 1)"),
    *(
        "list(table.gpus)",
        "tuple(map(int, table.gpus))",
        "np.float32(table.gpus)",
        "table.gpus > 1",
    ),
)
SENSES = (
    ("'<='",) * 2 + ("'>='",) * 2 + ("'=='", "'<'", "''", "'é'", "'x' * 300", "None", "[]", "0")
)
SENSES += ("np.array(['<=', '=='])",)
LIMITS = ("0", "1", "2", "3.5", "-1", "1e9", "1e300", "-1e300", "5e-324")
ODD_LIMITS = (
    "None",
    "'2'",
    "float('nan')",
    "float('inf')",
    "2j",
    "[1]",
    "10**400",
    "True",
    "np.timedelta64(1)",
)
NAMES = ("''", "'few'", "'a[b]'", "'a,b'", "'é\\u202e'", "'x' * 9999", "7", "None", "'\\n'")
PENALTIES = ("None", "None", "None", "0.01", "1.0", "1e9", "0", "-1", "'1'", "float('nan')", "1j")
ACTS = (
    *("sys.exit(0)", "sys.exit('bye')", "raise SystemExit", "table.own = 1"),
    *("raise ValueError('two\\nlines')", "1 / 0", "raise Exception", "raise GeneratorExit"),
    *("table.gpus[:] = 1", "table.rate[0] = 9e9", "table.jobs = ()", "table.start += 1"),
    *(
        "round.waiting = ()",
        "round.profiles.clear()",
        "table.current[...] = True",
        "table.rate *= 2",
    ),
    *("np.random.seed(1)", "import nowhere_to_be_found", "assert False", "exec('x =')", "(" * 300),
    *("raise Odd('own')", "raise MemoryError", "raise RecursionError", "return round.nothing"),
    *("yield from ()\n    sys.exit(3)", "return {'a': 1}", "return [table[0], None]", "sys.exit()"),
    *("table.job[:] = 0", "table.must_run[:] = 0", "table.power_w[:] = 0", "table.pool[:] = 0"),
    "yield ronda.Limit(table.gpus, '<=', 4)\n    raise KeyError('late')",
    *("return", "return 3", "return [7]", "return ['x']", "yield None", "return iter(())"),
)


def limit(rng):
    """Return the text of a limit or a term."""
    column = str(rng.choice(COLUMNS[:8] if rng.random() < 0.6 else COLUMNS))
    if rng.random() < 0.15:
        return f"ronda.Term({column})"
    most = str(rng.choice(LIMITS if rng.random() < 0.8 else ODD_LIMITS))
    sense = str(rng.choice(SENSES[:5] if rng.random() < 0.8 else SENSES))
    name = str(rng.choice(NAMES[:2] if rng.random() < 0.8 else NAMES))
    penalty = str(rng.choice(PENALTIES[:6] if rng.random() < 0.8 else PENALTIES))
    return f"ronda.Limit({column}, {sense}, {most}, {name}, penalty={penalty})"


def text_of(rng):
    """Return a file of one to three rules."""
    made = [HEAD]
    for n in range(int(rng.integers(1, 4))):
        given = str(rng.choice(["round, table"] * 8 + ["round, table, rack", "round", "*args", ""]))
        made.append(f"def rule{n}({given}):")
        if rng.random() < 0.25:
            made.append(f"    {rng.choice(ACTS)}")
        many = int(rng.choice([1, 1, 1, 2, 3, 3000 if rng.random() < 0.1 else 5]))
        if many > 5:
            one = f"ronda.Limit(table.gpus * k, '<=', k + {rng.integers(1, 40)}, str(k))"
            made.append(f"    for k in range({many}):\n        yield {one}")
        else:
            made += [f"    yield {limit(rng)}" for _ in range(many)]
    return "\n".join(made) + "\n"


@pytest.mark.seeds(40)
@pytest.mark.filterwarnings("ignore")
def test_a_file_of_rules_is_refused_or_kept(seed, tmp_path):
    """Where a plan is made, it keeps them; the round is untouched, and still has its own plan."""
    rng = np.random.default_rng([seed, 14])
    round_, path = generate.tiny_round(int(rng.integers(40))), tmp_path / "mine.py"
    path.write_text(text_of(rng))
    policy = str(rng.choice(["milp", "prices"]))
    before = ronda.solve(round_, policy)
    plan, words = ruled(round_, policy, str(path))
    assert words.isprintable()
    assert len(words) < 3000
    assert not words or "mine.py: " in words or "which sees racks" in words
    if plan is not None and plan.status in (SolutionStatus.OPTIMAL, SolutionStatus.FEASIBLE):
        assert ronda.check(round_, plan) == []
        assert ronda.broken_rules(str(path), round_, plan) == []
    again = ronda.solve(round_, policy)
    assert again.allocations == before.allocations
    assert again.objective == before.objective


def ruled(round_, policy, path):
    """Return the plan that keeps a file of rules, or why the file is refused."""
    try:
        return ronda.solve(round_, policy, extra=path, deadline=LIMIT_S), ""
    except ronda.InputError as error:
        return None, str(error)


def many_limits(seed):
    """Return a rule of up to thousands of limits."""

    def many(round, table):
        rng = np.random.default_rng([seed, 72])
        for _ in range(int(rng.choice([60, 300, 3000]))):
            some = rng.random(len(table.jobs)) < rng.uniform(0.2, 0.9)
            use = table.gpus * some[table.job] * float(rng.choice([1.0, rng.uniform(0.1, 9.0)]))
            soft = None if rng.random() < 0.9 else float(rng.uniform(0.01, 1.0))
            yield ronda.Limit(use, "<=", float(rng.uniform(0.0, 9.0)), penalty=soft)

    return many


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
