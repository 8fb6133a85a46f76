"""The probes: packaged instances with a best schedule on paper."""

import json

import pytest

from ronda.bench.study.__main__ import main
from ronda.bench.study.probes import measure, probes

EXACT = ("probe-cap", "probe-cap-falls", "probe-cap-rises", "probe-wake", "probe-window")


@pytest.mark.parametrize("policy", ["milp-energy", "prices", "powerflow", "evolve"])
@pytest.mark.parametrize("probe", EXACT)
def test_policies_that_see_power_find_the_best_schedule(probe, policy):
    """To the second and to the joule, and no rule is broken."""
    found = measure(probe, policy)
    assert found["distance"] == pytest.approx(0.0, abs=1e-9)
    assert found["energy"] == pytest.approx(0.0, abs=1e-9)
    assert found["broken"] == 0


@pytest.mark.parametrize(
    "policy",
    ["fifo", "srtf(teardown_s=0)", "tiresias", "race-to-idle", "pollux-like+zeus", "optimus"],
)
def test_rigid_and_blind_policies_spend_what_is_saved(policy):
    """Nobody refuses a job that the bank bears until it ends."""
    found = measure("probe-window", policy)
    assert (found["distance"], found["broken"]) == (pytest.approx(0.0, abs=1e-9), 0)


def test_a_policy_that_never_wakes_a_node_never_ends(tmp_path):
    """The table says so, and who knows sizes; FIFO lets the long job in first."""
    assert main(["probes", "--policies", "fifo,ones", "--out", str(tmp_path)]) == 0
    found = {(each["policy"], each["probe"]): each for each in _lines(tmp_path)}
    assert set(found) == {(policy, probe) for policy in ("fifo", "ones") for probe in probes()}
    assert found["ones", "probe-wake"]["distance"] is None
    assert found["ones", "probe-wake"]["knowledge"] == "history"
    assert found["fifo", "probe-racks"]["distance"] == pytest.approx(145 / 80 - 1)
    table = (tmp_path / "table.md").read_text().splitlines()
    assert len(table) == 2 + 2
    assert "never ends" in table[3]


def _lines(folder):
    return [json.loads(line) for line in (folder / "lines.jsonl").read_text().splitlines()]
