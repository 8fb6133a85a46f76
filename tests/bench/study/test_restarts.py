"""Restart costs in place of an instance's own."""

import json

from ronda.bench.study.__main__ import main


def test_costs_are_replaced_and_told(tmp_path):
    """At no cost the mean JCT is the least; runs that are there are not made again."""
    words = ["restarts", "--instances", "one-gpu", "--policies", "srtf", "--out", str(tmp_path)]
    assert main([*words, "--restarts", "0"]) == 0
    assert main([*words, "--restarts", "0,600"]) == 0
    found = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert [line["restart_s"] for line in found] == [0.0, 600.0]
    assert found[0]["mean_jct_s"] < found[1]["mean_jct_s"]


def test_of_several_seeds_the_mean_is_told(tmp_path):
    """Each seed is a run of its own; the table has one number for them."""
    words = ["restarts", "--instances", "one-gpu", "--policies", "srtf", "--out", str(tmp_path)]
    assert main([*words, "--restarts", "0", "--seeds", "1,2"]) == 0
    found = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert [line["seed"] for line in found] == [1, 2]
    (row,) = [r for r in (tmp_path / "table.md").read_text().splitlines() if "| srtf |" in r]
    assert row.startswith(f"| one-gpu | srtf | {found[0]['mean_jct_s']:,.0f} (")
