"""``ronda room``: what to move or stop so that a waiting job starts now."""

import json

from ronda.instances.files.json import write
from tests.helpers.tenant_rounds import quota, tenant_round, tree

ORG = tree(org=(), batch=("org", quota(0)), owner=("org", quota(4)))


def test_the_command(folder, ronda):
    """A table, sentences and JSON with the same numbers; the exit code says if room is made."""
    write(tenant_round(8, ORG, [("owner", 4)], [("batch", 6)]), folder / "org.json")
    done = ronda("room", "org.json", "owner1", "--only-below", "quota")
    text = " ".join(done.stdout.split())
    assert done.exit_code == 0, text
    assert "Job owner1 starts now" in text
    assert "if you stop 1 job" in text
    assert "Proof: no plan loses less work; of those as good, none disturbs fewer jobs" in text
    fields = json.loads(ronda("room", "org.json", "owner1", "--json").stdout.splitlines()[-1])
    assert [action["verb"] for action in fields["actions"]] == ["stop", "start"]
    assert fields["least"] == fields["bounds"]
    none = ronda("room", "org.json", "owner1", "--most-jobs", "0")
    assert none.exit_code == 1
    assert "The terms forbid it." in none.stdout
    for wrong in (
        ["batch0"],
        ["nobody"],
        ["owner1", "--most-jobs", "-1"],
        ["owner1", "--only-below", "all"],
    ):
        assert ronda("room", "org.json", *wrong).exit_code == 2
