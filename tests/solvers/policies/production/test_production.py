"""What all rules of production schedulers have in common, in random rounds under a site's rules."""

import pytest

from ronda.instances.check.checker import check
from ronda.solvers.registry import policy
from ronda.testing import alike
from site_rounds import RULES, drawn_rules, tiny

SPECS = (
    "drf",
    "kai-like",
    "kueue-like",
    "kueue-like(strategy=strict, tas=false, within=lower)",
    "kueue-like(reclaim=any, within=lower-or-newer, borrow_within=lower)",
    "kueue-like(fair=true, reclaim=any, within=lower-or-newer)",
    "slurm-like",
    "slurm-like(preempt=qos, backfill=easy)",
)


@pytest.mark.parametrize("spec", SPECS)
def test_plans_keep_every_rule_of_a_site(spec):
    """Tiny rounds under two or three rules: plans are valid, and the same again."""
    made = policy(spec)
    for seed in range(25):
        round_ = tiny(seed, drawn_rules(seed, tuple(RULES)))
        plan = made.plan(round_)
        assert check(round_, plan) == [], seed
        assert alike(plan, made.plan(round_)), seed
