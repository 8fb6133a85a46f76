"""Boosts that give queues of Kueue an order: Kueue's own sort, few changes, within a band."""

import json
import random
from collections import defaultdict
from copy import deepcopy
from itertools import product

import pytest

from kube_objects import admitted, listed, node, queue, workload
from ronda.hosts.clusters.kubernetes.boosts import boosts, boosts_report
from ronda.hosts.clusters.kubernetes.kueue import BOOST
from ronda.hosts.clusters.read import Text, read_texts
from ronda.instances.errors import InputError


def waits(name, minute, *, boost=None, priority=0, queue="q", namespace="a", **more):
    """Return a workload that came in a minute."""
    made = workload(name, queue=queue, priority=priority, **more)
    time = f"2026-01-31T12:{minute:02}:00Z"
    made["metadata"] |= {"creationTimestamp": time, "namespace": namespace}
    if boost is not None:
        made["metadata"]["annotations"] = {BOOST: str(boost)}
    return made


def boosted(tiers, works, low=-100, high=0):
    """Return the boosts, and what the snapshot counts; tiers are short names of workloads."""
    queues = [*queue("q"), *queue("r")]
    whole = listed(node("n", gpus="8"), *queues, *works)
    files = [Text("kueue.json", json.dumps(whole).encode())]
    seen = read_texts("kueue", files, 1.8e9)
    ids = [[f"a/{name}" for name in tier] for tier in tiers]
    return boosts(files, seen, ids, low, high), "\n".join(seen.noted.lines())


def then(tiers, works, *band):
    """Return the boosts that change, by short name."""
    return {b.workload[2:]: b.then for b in boosted(tiers, works, *band)[0] if b.now != b.then}


def applied(works, found):
    """Return the workloads with the boosts of some of them."""
    made = deepcopy(works)
    boost = {each.workload: each.then for each in found}
    for one in made:
        name = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
        if name in boost:
            one["metadata"]["annotations"] = {BOOST: str(boost[name])} if boost[name] else {}
    return made


def in_kueue(works):
    """Return the short names of each queue's waiting workloads as Kueue sorts them."""
    queues = defaultdict(list)
    for one in works:
        meta, spec = one["metadata"], one["spec"]
        boost = int(meta.get("annotations", {}).get(BOOST, 0))
        key = (-spec["priority"] - boost, meta["creationTimestamp"])
        queues[spec["queueName"]].append((*key, meta["name"]))
    return {name: [each[-1] for each in sorted(own)] for name, own in queues.items()}


ABC = [waits("a", 1), waits("b", 2), waits("c", 3)]


def test_by_hand():
    """What is later and older is lowered; with room above, what is earlier and newer is raised."""
    assert then([["a"], ["b"], ["c"]], ABC) == {}
    assert then([["c"], ["a", "b"]], ABC) == {"a": -1, "b": -1}
    assert then([["c"], ["a", "b"]], ABC, -100, 100) == {"c": 1}
    assert then([["c"], ["b"], ["a"]], ABC) == {"b": -1, "a": -2}
    assert then([["b"], ["a"], ["c"]], ABC) == {"a": -1, "c": -1}
    assert then([["b"], ["a"], ["c"]], ABC, -100, 100) == {"b": 1}
    assert then([[], ["a", "b", "c"]], ABC) == {}


def test_what_is_right_stays():
    """A boost that gives the order stays, however large; one that is not needed is removed."""
    lowered = [waits("a", 1, boost=-7), waits("b", 2), waits("c", 3)]
    assert then([["b", "c"], ["a"]], lowered) == {}
    assert then([["a"], ["b", "c"]], lowered) == {"a": 0}
    assert then([["c"], ["a"], ["b"]], lowered) == {"b": -7}
    both = [waits("a", 1, boost=-1), waits("b", 2, boost=-1), waits("c", 3)]
    assert then([["c"], ["a", "b"]], both, -100, 100) == {}
    far = [waits("a", 1, boost=-5), waits("b", 2, boost=-1), waits("c", 3, boost=-1), waits("d", 4)]
    assert then([["d"], ["a"], ["b", "c"]], far) == {"a": -1}
    far = [waits("d", 1), waits("b", 2, boost=1), waits("c", 3, boost=1), waits("a", 4, boost=5)]
    assert then([["b", "c"], ["a"], ["d"]], far, 0, 100) == {"a": 1}
    found, _ = boosted([["a"], ["b", "c"]], lowered)
    line = "kubectl annotate workloads.kueue.x-k8s.io -n a a kueue.x-k8s.io/priority-boost"
    assert [each.command for each in found if each.now != each.then] == [f"{line}-"]
    found, _ = boosted([["b"], ["a", "c"]], ABC)
    assert boosts_report("x", [], found).fields["commands"][0] == f"{line}=-1 --overwrite"


def test_same_second():
    """Kueue orders workloads of one second by their uids, so tiers of one second differ by one."""
    assert then([["b"], ["a"]], [waits("a", 1), waits("b", 1)]) == {"a": -1}
    assert then([["a"], ["b"]], [waits("a", 1), waits("b", 1)]) == {"b": -1}


def test_classes_do_not_meet():
    """Two classes share the gap between them; where it is too small, the report says so."""
    works = [waits(f"{name}{p}", k, priority=p) for p in (0, 3) for k, name in enumerate("abcd")]
    tiers = [[f"{name}{p}" for p in (0, 3)] for name in "dcba"]
    for band, number in (((-100, 0), 2), ((-100, 100), 0)):  # 3 may go to 2, 0 to 1
        found, _ = boosted(tiers, works, *band)
        after = applied(works, found)
        effective = {
            one["metadata"]["name"]: one["spec"]["priority"]
            + int(one["metadata"].get("annotations", {}).get(BOOST, 0))
            for one in after
        }
        assert max(effective[f"{n}0"] for n in "abcd") < min(effective[f"{n}3"] for n in "abcd")
        short = [b for b in found if "too small" in b.reason]
        assert [b.workload for b in short] == ["a/b3", "a/a3"][:number]
        assert f"{number} do not get" in boosts_report("x", tiers, found).parts[0]
        assert not {b.workload for b in boosted(tiers, after, *band)[0] if b.now != b.then}


def test_two_classes_from_both_sides():
    """One class raised and the class above it lowered never come to the same number."""
    works = [waits(f"{name}{p}", k, priority=p) for p in (0, 2) for k, name in enumerate("abc")]
    tiers = [["c0", "b2", "c2"], ["a0", "b0", "a2"]]
    assert then(tiers, works, -100, 100) == {"a0": -1, "b0": -1, "a2": -1}


def test_who_is_left_alone():
    """Boosts outside the band, and workloads that may not start; a quota ends a boost."""
    works = [
        waits("foreign", 1, boost=-100000),
        waits("mine", 2, boost=-100),
        waits("off", 3, boost=-5, active=False),
        waits("cpu", 4, gpus=0),
        waits("nowhere", 5, queue="none"),
        waits("runs", 6, boost=-2, status=admitted()),
        waits("still", 6, status=admitted()),
        waits("over", 7, boost=-2, status={"conditions": [{"type": "Finished", "status": "True"}]}),
    ]
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"p{name}",
                "namespace": "a",
                "annotations": {"kueue.x-k8s.io/workload": name},
            },
            "spec": works[5]["spec"]["podSets"][0]["template"]["spec"] | {"nodeName": "n"},
            "status": {"phase": "Running"},
        }
        for name in ("runs", "still")
    ]
    tiers = [["foreign"], ["mine"], ["off", "nowhere"]]
    found, noted = boosted(tiers, works + pods)
    assert {b.workload: b.then for b in found if b.now != b.then} == {"a/mine": 0, "a/runs": 0}
    assert "1 × workload with a boost outside the band, which it keeps, such as a/foreign" in noted
    assert "3 × workload that may not start or has no GPUs, not ordered" in noted
    assert {b.workload: b.tier for b in found} == {"a/mine": 2, "a/runs": None, "a/still": None}


def test_workload_of_two_shapes():
    """A workload starts with the last of its shapes."""
    both = waits("both", 1)
    shape = deepcopy(both["spec"]["podSets"][0])
    requests = shape["template"]["spec"]["containers"][0]["resources"]["requests"]
    requests["nvidia.com/gpu"] = "2"
    both["spec"]["podSets"].append(shape | {"name": "other"})
    assert then([["both", "b"], ["both#1"]], [both, waits("b", 2)]) == {"both": -1}


@pytest.mark.parametrize("seed", range(60))
def test_kueue_sorts_as_the_tiers(seed):
    """In Kueue's own order tiers follow each other, the band holds, and a second run is quiet."""
    random.seed(seed)
    band = random.choice([(-100, 0), (-100, 100), (0, 100), (-3, 3)])
    works = []
    for k in range(random.randint(1, 12)):
        boost = random.choice([None, None, None, *range(max(-4, band[0]), min(4, band[1]) + 1)])
        more = {"queue": random.choice("qr"), "priority": random.choice([0, 1000])}
        works.append(waits(f"w{k}", random.randint(0, 9), boost=boost, **more))
    tier = {one["metadata"]["name"]: random.randint(0, 3) for one in works}
    tiers = [[name for name, k in tier.items() if k == t] for t in range(4)]
    found, _ = boosted(tiers, works, *band)
    assert len(found) == len(works)
    assert all(band[0] <= b.then <= band[1] for b in found)
    after = applied(works, found)
    assert not [b for b in boosted(tiers, after, *band)[0] if b.now != b.then]
    by_class = {one["metadata"]["name"]: one["spec"]["priority"] for one in works}
    for names in in_kueue(after).values():
        assert [by_class[name] for name in names] == sorted(map(by_class.get, names))[::-1]
        for priority in (0, 1000):
            own = [tier[name] for name in names if by_class[name] == priority]
            assert own == sorted(own)


def test_no_order_takes_fewer_boosts():
    """Of all boosts from -2 to 0 that give the order, none leaves more workloads without one."""
    for minutes in product(range(3), repeat=3):
        works = [waits(f"w{k}", minute) for k, minute in enumerate(minutes)]
        for tier in product(range(3), repeat=3):
            tiers = [[f"w{k}" for k in range(3) if tier[k] == t] for t in range(3)]
            found, _ = boosted(tiers, works)
            fewest = min(
                sum(map(bool, tried))
                for tried in product((0, -1, -2), repeat=3)
                if all(
                    (-tried[j], minutes[j]) > (-tried[i], minutes[i])
                    for i, j in product(range(3), repeat=2)
                    if tier[i] < tier[j]
                )
            )
            assert sum(b.now != b.then for b in found) == fewest


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("a", "x; rm -rf ~"),
        ("a", "$(id)"),
        ("a", "--all"),
        ("a", "x\ny"),
        ("a", "x\n"),
        ("a", "X"),
        ("a", "x#1"),
        ("a", "x/y"),
        ("a", "é"),
        ("a", "x."),
        ("a", "x" * 254),
        ("a" * 64, "x"),
        ("a.b", "x"),
        ("-a", "x"),
        ("", "x"),
        ("a", "x" + "-" * 200 + "'"),
    ],
)
def test_hostile_names(namespace, name):
    """Whatever is no name of Kubernetes is refused, and never quoted."""
    with pytest.raises(InputError, match="RFC 1123"):
        boosted([], [*ABC, waits(name, 1, namespace=namespace)])
    longest = [waits("x" * 253, 1, namespace="a" * 63)]
    assert boosted([], longest)[0] == []


@pytest.mark.parametrize("text", ["one", "2147483648", "٣", "1.5"])
def test_odd_boosts(text):
    """A boost that Kueue would refuse is refused."""
    with pytest.raises(InputError, match="whole priority-boost of 32 bits"):
        boosted([], [waits("a", 1, boost=text)])
