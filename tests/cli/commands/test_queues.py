"""``ronda queues``: who holds, borrows and waits for GPUs."""

import json

from ronda.instances.files.json import write
from tests.helpers.tenant_rounds import quota, tenant_round, tree

ORG = tree(org=(), batch=("org", quota(0)), owner=("org", quota(4)))


def test_the_command(folder, ronda):
    """A table, sentences, and JSON with the same numbers."""
    write(tenant_round(8, ORG, [("owner", 2)], [("batch", 4)]), folder / "org.json")
    text = " ".join(ronda("queues", "org.json").stdout.split())
    assert "owner is starved: it has 0 of the 2 GPUs that are owed to it" in text
    assert "Others borrow: batch 4." in text
    done = ronda("queues", "org.json", "--json")
    fields = json.loads(done.stdout.splitlines()[-1])
    (batch,) = (queue for queue in fields["queues"] if queue["name"] == "batch")
    assert batch["lenders"] == {"owner": 4.0}
    assert ronda("queues", "org.json", "--policy", "fifo").exit_code == 2
    text = " ".join(ronda("queues", "round.json").stdout.split())
    assert "wait for a GPU of default/A100, which costs" in text
