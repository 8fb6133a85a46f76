"""The earliest start of a waiting job, by every placement of its pieces at every event.

Written from what `Snapshot` says, with nothing of what answers the question; and tiny clusters.
"""

import random
from itertools import combinations, product
from math import inf

from msgspec.structs import replace

from ronda.instances.job import After, Slices
from ronda.instances.site import LimitGroup
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot

HOUR = 3600.0


def ends(job, now_s=0.0):
    """Return when a running job ends."""
    end = (
        job.ends_s
        if job.ends_s is not None
        else (job.start_s + job.limit_s if job.limit_s else inf)
    )
    return max(end, now_s)


def brute_start(seen, job):
    """Return the earliest start of a job."""
    running = [other for other in seen.jobs if other.start_s is not None]
    times = {seen.now_s, job.eligible_s or seen.now_s}
    times |= {ends(other) for other in running}
    times |= {node.back_s for node in seen.nodes if node.back_s is not None}
    times |= {ends(other) + each.delay_s for other in running for each in job.after}
    times |= {time for group in seen.groups for time in _crossings(seen, running, job, group)}
    for at_s in sorted(time for time in times if seen.now_s <= time < inf):
        if _may_start(seen, running, job, at_s):
            return at_s
    return inf


def _crossings(seen, running, job, group):
    """Return when the GPU time that running jobs still hold is low enough, if it is limited."""
    if group.max_gpu_s is None or job.limit_s is None:
        return []
    inside = [other for other in running if _shares(group, other, job)]
    asks = {job.count * job.per.get("gpus", 0.0)}
    if job.exclusive:
        asks = {sum(whole) for whole in _sums([node.has["gpus"] for node in seen.nodes])}
    last, found = seen.now_s, []
    for end in sorted({ends(other) for other in inside if ends(other) < inf}):
        rate = sum(_held(seen, other, "gpus") for other in inside if ends(other) > last)
        here = sum(_held(seen, o, "gpus") * (ends(o) - last) for o in inside if ends(o) > last)
        above = [here + each * job.limit_s - group.max_gpu_s for each in asks]
        found += [last + more / rate for more in above if 0 < more <= (end - last) * rate]
        last = end
    return found


def _sums(amounts):
    return (pick for k in range(1, len(amounts) + 1) for pick in combinations(amounts, k))


def _held(seen, job, of):
    return sum(_held_on(seen, job, node).get(of, 0.0) for node in job.on)


def _held_on(seen, job, name):
    node = next(node for node in seen.nodes if node.name == name)
    if job.exclusive:
        return node.has
    if name in job.held:
        return job.held[name]
    return {of: amount * job.on[name] for of, amount in job.per.items()}


def _shares(group, other, job):
    """Return whether a running job counts in the limit of a group that a job meets."""
    inside = (not group.users or other.user in group.users) and (
        not group.partitions or bool(set(other.partitions[:1]) & set(group.partitions))
    )
    return (
        inside
        and {
            "group": True,
            "user": other.user == job.user,
            "job": False,
            "tenant": other.tenant == job.tenant,
        }[group.per]
    )


def _may_start(seen, running, job, at_s):
    if job.blocked is not None or (job.eligible_s or 0.0) > at_s:
        return False
    by_id = {other.id: other for other in running}
    done = [ends(by_id[each.job]) + each.delay_s <= at_s for each in job.after]
    if done and not (all(done) if job.after_all else any(done)):
        return False
    for partition in job.partitions or (None,):
        for on in placements(seen, running, job, at_s, partition):
            if all(
                _within(seen, running, job, at_s, partition, on, group) for group in seen.groups
            ) and _licensed(seen, running, job, at_s):
                return True
    return False


def _licensed(seen, running, job, at_s):
    for name, amount in job.licences.items():
        held = sum(other.licences.get(name, 0.0) for other in running if ends(other) > at_s)
        if held + amount > seen.licences.get(name, 0.0) - seen.licences_taken.get(name, 0.0):
            return False
    return True


def _within(seen, running, job, at_s, partition, on, group):
    """Return whether a job that starts on some nodes keeps the limits of a group."""
    if group.users and job.user not in group.users:
        return True
    if group.partitions and partition not in group.partitions:
        return True
    if group.max_limit_s is not None and (job.limit_s or 0.0) > group.max_limit_s:
        return False
    going = [o for o in running if ends(o) > at_s and _shares(group, o, job)]
    if group.max_jobs is not None and len(going) + 1 > group.max_jobs:
        return False
    charged = {of: amount * job.count for of, amount in job.per.items()}
    if job.exclusive:
        whole = [node.has for node in seen.nodes if node.name in on]
        charged = {of: sum(has.get(of, 0.0) for has in whole) for of in whole[0]}
    for of, most in group.most.items():
        asks, held = charged.get(of, 0.0), sum(_held(seen, other, of) for other in going)
        if asks and held + asks > most + 1e-9:
            return False
    if group.max_gpu_s is not None and charged.get("gpus"):
        limit_s = inf if job.limit_s is None else job.limit_s
        held = sum(_held(seen, other, "gpus") * (ends(other) - at_s) for other in going)
        return held + charged["gpus"] * limit_s <= group.max_gpu_s + 1e-3
    return True


def placements(seen, running, job, at_s, partition):
    """Yield the numbers of a job's pieces by node, for every way to place them at a time."""
    room = [_room(seen, running, job, at_s, partition, node) for node in seen.nodes]
    for counts in product(*(range(most + 1) for most in room)):
        if sum(counts) != job.count:
            continue
        on = {node.name: n for node, n in zip(seen.nodes, counts, strict=True) if n}
        if job.one_node and len(on) > 1:
            continue
        if job.slices is None or _sliced(seen, job, on):
            yield on


def _room(seen, running, job, at_s, partition, node):
    end_s = inf if job.limit_s is None else at_s + job.limit_s
    shut = partition is not None and node.partitions and partition not in node.partitions
    shut = shut or (job.gpu_types and node.gpu_type not in job.gpu_types)
    shut = shut or (job.nodes and node.name not in job.nodes) or node.name in job.not_nodes
    shut = shut or not set(job.features) <= set(node.features)
    shut = shut or (node.out is not None and at_s < (inf if node.back_s is None else node.back_s))
    if node.out is None and node.leaves_s is not None:
        back_s = inf if node.back_s is None else node.back_s
        shut = shut or (node.leaves_s < end_s and at_s < back_s)
    here = [other for other in running if ends(other) > at_s and node.name in other.on]
    if shut or (job.exclusive and here):
        return 0
    most = 1 if job.own_nodes or job.slices is not None else job.count
    for of, amount in job.per.items():
        used = sum(_held_on(seen, other, node.name).get(of, 0.0) for other in here)
        if node.has.get(of) == inf:
            continue
        most = min(most, int((node.has.get(of, 0.0) - used + 1e-9) // amount))
    return max(0, most)


def _sliced(seen, job, on):
    """Return whether nodes fall into a job's slices, each within a rack."""
    racks = {}
    for node in seen.nodes:
        if node.name in on:
            rack = dict(node.racks).get(job.slices.within)
            if rack is None:
                return False
            racks[rack] = racks.get(rack, 0) + 1
    whole, rest = divmod(job.count, job.slices.nodes)
    sizes = [job.slices.nodes] * whole + [rest] * bool(rest)
    return _filled(sizes, list(racks.values()), job.slices.spread)


def _filled(sizes, racks, spread):
    if not sizes:
        return not any(racks)
    for k, room in enumerate(racks):
        if room >= sizes[0]:
            left = room - sizes[0]
            if spread and left:
                continue
            if _filled(sizes[1:], [*racks[:k], left, *racks[k + 1 :]], spread):
                return True
    return False


def tiny_cluster(seed):
    """Return a tiny cluster with one waiting job, and the job."""
    chance = random.Random(seed)
    some = chance.random
    whole = {"gpus": 4.0, "cpu": float(chance.choice([4, 8])), "memory_gib": 16.0}
    nodes = []
    for n in range(chance.randint(2, 4)):
        node = SeenNode(
            name=f"n{n}",
            has=whole | {"gpus": chance.choice([2.0, 4.0, 4.0])},
            gpu_type=chance.choice(["A", "A", "A", "B"]),
            partitions=chance.choice([(), ("p",), ("p", "q")]),
            racks=(("rack", f"r{n % 2}"),),
            features=chance.choice([(), ("fast",)]),
        )
        turn = some()
        if turn < 0.15:
            node = replace(node, out="drained", back_s=chance.choice([None, 5 * HOUR]))
        elif turn < 0.35:
            leaves = chance.randint(1, 4) * HOUR
            node = replace(node, leaves_s=leaves, back_s=chance.choice([None, leaves + 2 * HOUR]))
        nodes.append(node)
    running = list(_running(chance, nodes))
    job = _job(chance, running)
    groups = []
    if some() < 0.5:
        per = chance.choice(["group", "user", "job"])
        of = chance.choice(["gpus", "cpu"])
        groups.append(LimitGroup(name="g", per=per, most={of: float(chance.randint(2, 12))}))
    if some() < 0.2:
        groups.append(LimitGroup(name="h", users=("u", "v"), max_jobs=chance.randint(1, 3)))
    if some() < 0.2:
        groups.append(LimitGroup(name="t", partitions=("p",), max_limit_s=3 * HOUR))
    if some() < 0.2 and job.limit_s is not None:
        groups.append(LimitGroup(name="m", max_gpu_s=float(chance.randint(4, 30)) * HOUR))
    return Snapshot(
        source="tiny",
        system="slurm",
        now_s=0.0,
        nodes=tuple(nodes),
        jobs=(*running, job),
        groups=tuple(groups),
        licences={"x": 2.0},
        licences_taken={"x": float(chance.randint(0, 1))},
    ), job


def _running(chance, nodes):
    free = {node.name: dict(node.has) for node in nodes}
    for k in range(chance.randint(1, 6)):
        per = {"gpus": float(chance.randint(1, 4)), "cpu": float(chance.randint(1, 4))}
        per["memory_gib"] = float(chance.choice([1, 4, 8]))
        node = chance.choice(nodes)
        if any(free[node.name][of] < amount for of, amount in per.items()):
            continue
        limit_s = chance.choice([1, 2, 2, 3, 5, 7]) * HOUR
        if node.leaves_s is not None and limit_s > node.leaves_s:
            continue
        for of, amount in per.items():
            free[node.name][of] -= amount
        yield SeenJob(
            id=f"k{k}",
            user=chance.choice("uvw"),
            partitions=chance.choice([(), ("p",)]),
            start_s=0.0,
            limit_s=None if chance.random() < 0.1 and node.leaves_s is None else limit_s,
            per=per,
            on={node.name: 1},
            licences=chance.choice([{}, {}, {"x": 1.0}]),
        )


def _job(chance, running):
    some = chance.random
    per = {
        "gpus": float(chance.choice([1, 1, 2, 3, 4])),
        "cpu": float(chance.choice([1, 1, 2, 3, 5])),
    }
    if some() < 0.5:
        per["memory_gib"] = float(chance.choice([1, 4, 9, 16]))
    job = SeenJob(
        id="J",
        user=chance.choice("uv"),
        partitions=chance.choice([(), (), ("p",), ("p", "q")]),
        limit_s=chance.choice([None, HOUR, HOUR, 2 * HOUR, 2 * HOUR, 4 * HOUR]),
        count=chance.choice([1, 1, 2, 2, 3, 4]),
        per=per,
        own_nodes=some() < 0.3,
        exclusive=some() < 0.2,
        one_node=some() < 0.1,
        gpu_types=chance.choice([(), (), (), ("A",), ("B",)]),
        features=chance.choice([(), (), (), (), ("fast",)]),
        not_nodes=chance.choice([(), (), (), ("n1",)]),
        licences=chance.choice([{}, {}, {"x": 1.0}]),
        eligible_s=chance.choice([None, None, None, HOUR / 2]),
        after=(After(job=running[0].id, delay_s=60.0),) if running and some() < 0.1 else (),
    )
    if some() < 0.25:
        size, spread = chance.choice([1, 2, 2, 3]), some() < 0.3
        slices = Slices(nodes=size, within="rack", spread=spread)
        job = replace(job, slices=slices, own_nodes=True, one_node=False)
    return job
