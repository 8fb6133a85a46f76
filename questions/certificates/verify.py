"""Prove from three JSON files, without trust in any solver, how far a plan is from the best.

``python verify.py ROUND PLAN CERTIFICATE [--json]`` needs this file and Python alone. Numbers count
as the decimals that are written, in exact fractions. Option k of job j has the value v_jk and uses
a_rjk of row r, whose limit is c_r. At prices λ_r >= 0, no choice that keeps the rows is worth above

    Σ_r λ_r c_r + Σ_j max(0, max_k (v_jk - Σ_r λ_r a_rjk)) + Σ_n max(awake_n, asleep_n)

as each term is at least that of the choice (H. Everett, Operations Research 11, 1963). A job that
may not be stopped has no 0; nodes that are awake have GPUs and draw idle watts; a soft row's price
is at most what its excess costs.
"""

import hashlib
import json
import re
import sys
from collections import Counter
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, TypeVar, cast

FORMAT, CAP, WINDOW = "ronda/round-certificate/1", "power_cap", "energy_window"
ZERO, ONE, SLACK = Fraction(0), Fraction(1), Fraction(1, 10**6)  # SLACK: that of ronda's checker
MOST_BYTES, MOST_NODES = 1 << 28, 10**6
UNCOVERED = (
    *("nodes", "slices", "exclusive", "neighbourhoods", "one_node", "needs", "licences", "part"),
    *("share", "asked", "fusible", "array", "parts", "width", "mode", "cut", "leaving"),
)
Json = dict[str, Any]
T = TypeVar("T")


class NotProvenError(Exception):
    """A number or an allocation is wrong. A ValueError is about a file that cannot be used."""


def need(holds: bool, words: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise NotProvenError(words)


def number(digits: str) -> Fraction:
    """Return a number of JSON, exactly as it is written."""
    if len(digits) > 40 or abs(int(digits.lower().partition("e")[2] or 0)) > 400:
        raise ValueError(f"found the number {digits[:40]}; expected a shorter one")
    return Fraction(digits)


def plain(data: bytes, read: Any = number) -> Json:
    """Return the object in a JSON text; refuse doubled fields and words for numbers."""

    def once(fields: list[tuple[str, Any]]) -> Json:
        if len(found := dict(fields)) < len(fields):
            raise ValueError(f"found a field twice in {[*found]!a:.80}; expected each once")
        return found

    kinds: Any = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), read)
    return get([json.loads(data.decode(), object_pairs_hook=once, **kinds)], 0, dict)


def digest(data: bytes, *names: str, **changed: str) -> str:
    """Return the SHA-256 of a JSON text, or of some fields, in ronda's form with sorted keys."""
    read = plain(data, lambda digits: f"\0{digits}\0") | changed
    found = {name: read.get(name) for name in names or read}
    text = json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(re.sub(r'"\\u0000(.*?)\\u0000"', r"\1", text).encode()).hexdigest()


def get(of: Any, name: str | int, kind: type[T], usual: T | None = None) -> T:
    """Return a field of an object or an item of a list; refuse one of another kind."""
    known = of if isinstance(of, dict) else dict(enumerate(of)) if isinstance(of, list) else {}
    value: Any = usual if known.get(name) is None else known[name]
    if kind is int and isinstance(value, Fraction) and value.denominator == 1:
        value = int(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        words = {Fraction: "a number", int: "a whole number", list: "a list", str: "a text"}
        expected = words.get(kind, "an object")
        raise ValueError(f"{name}: found {ascii(value)[:40]}; expected {expected}")
    return value


def each(of: Any, name: str | int, kind: type[T], *more: str) -> list[T]:
    """Return a list of items of one kind; refuse fields that no certificate covers."""
    items = [get([item], 0, kind) for item in get(of, name, list, [])]
    for item in (item for item in items if isinstance(item, dict)):
        for field in (field for field in (*UNCOVERED, *more) if item.get(field)):
            raise ValueError(f"found {field}: {ascii(item[field])[:40]}; no certificate covers it")
    return items


def gpus_on(of: Any, name: str) -> dict[int, int]:
    """Return numbers of GPUs by node, from pairs that name no node twice."""
    found = [(get(pair, 0, int), get(pair, 1, int)) for pair in each(of, name, list)]
    once = len(dict(found)) == len(found) and all(count > 0 for _, count in found)
    need(once, f"{name}: a node stands twice, or without a GPU")
    return dict(found)


def way_of(given: Json) -> tuple[int, int, str, Fraction, Fraction]:
    """Return how an allocation's option runs its job: pool, GPUs, span, clock and batch."""
    (of,) = each([[get(given, "option", dict)]], 0, dict)
    clock, batch = get(of, "clock", Fraction, ONE), get(of, "batch", Fraction, ONE)
    return get(of, "pool", int), get(of, "gpus", int), get(of, "span", str, "cluster"), clock, batch


class Proof:
    """The exact worth of a plan, and the bound on the worth of all plans of its round."""

    def __init__(self, round: Json, plan: Json, certificate: Json) -> None:
        (self.round,), self.worth, self.bound = each([[round]], 0, dict), ZERO, ZERO
        prices, given = get(certificate, "prices", dict), get(plan, "allocations", dict, {})
        self.prices = {name: get(prices, name, Fraction) for name in prices}
        self.window_s = get(round, "window_s", Fraction, Fraction(3600))
        self.banked_j = get(round, "banked_j", Fraction, get(round, "energy_j", Fraction, ZERO))
        self.total, self.used = cast(Any, Counter()), Counter[int]()  # of rows, and GPUs of nodes
        self.loads = [(self.window_s, ZERO)]  # the seconds and watts of the plan's jobs
        self.read_nodes(get(round, "cluster", dict))
        states = each(round, "running", dict) + each(round, "waiting", dict)
        own = each([[get(state, "job", dict) for state in states]], 0, dict, "features")
        ids, jobs = [get(job, "id", str) for job in own], each(certificate, "jobs", dict)
        same = ids == [get(job, "id", str) for job in jobs] and given.keys() <= {*ids}
        need(same, "the certificate has other jobs than the round, or the plan has more")
        for state, job in zip(states, jobs, strict=True):
            self.add_job(state, job, given.get(job["id"]))
        self.add_nodes({*each(plan if plan.get("asleep") is not None else round, "asleep", int)})
        self.add_rows({get(row, "name", str): row for row in each(certificate, "rows", dict)})

    def read_nodes(self, cluster: Json) -> None:
        """Read the nodes: pool, GPUs in service, rack, watts awake and asleep."""
        self.pools, self.nodes = list[tuple[str, str, Fraction]](), list[tuple[Any, ...]]()
        types = {get(kind, "name", str): kind for kind in each(cluster, "gpu_types", dict)}
        slow = ["wake_s"] * bool(self.round.get("asleep") or self.round.get("waking"))
        out, _ = gpus_on(cluster, "out"), each(cluster, "racks", dict, "power_cap_w")
        for group in each(cluster, "node_groups", dict, *slow):
            gpus, count = get(group, "gpus_per_node", int), get(group, "count", int)
            kind, first = get(group, "gpu_type", str), len(self.nodes)
            idle_w = get(get(types, kind, dict), "idle_w", Fraction, ZERO)
            pool = get(group, "partition", str, "default"), kind, idle_w
            self.pools += [pool] * (pool not in self.pools)
            watts = get(group, "host_idle_w", Fraction, ZERO) + gpus * idle_w
            sleep_w, rack = get(group, "sleep_w", Fraction, ZERO), get(group, "rack", str, "")
            need(0 < count <= MOST_NODES - first, f"a group has {count} nodes")
            for left in (max(0, gpus - out.get(n, 0)) for n in range(first, first + count)):
                on = left > 0
                self.nodes.append((self.pools.index(pool), left, rack, watts * on, sleep_w * on))

    def uses(self, pool: int, gpus: int, watts: Fraction, lasts_s: Fraction) -> dict[str, Fraction]:
        """Return what GPUs and watts use of rows; where nothing is banked, no end saves joules."""
        seconds = self.window_s if not self.banked_j and lasts_s else lasts_s
        partition, kind, _ = self.pools[pool]
        return {f"gpus[{partition}/{kind}]": Fraction(gpus), CAP: watts, WINDOW: watts * seconds}

    def cost(self, uses: dict[str, Fraction]) -> Fraction:
        """Return what uses cost at the prices."""
        return sum((self.prices[name] * uses[name] for name in uses if name in self.prices), ZERO)

    def add_job(self, state: Json, job: Json, given: Any) -> None:
        """Add the best of a job's options at the prices to the bound, and its own to the plan."""
        name, held = f"job {job['id']!a}", state.get("allocation")
        firm = held is not None and state["job"].get("preemptible") is False
        way, was = (None if a is None else way_of(a) for a in (given, held))
        options = {way_of(option): option for option in each(job, "options", dict)}
        need(way is None or way in options, f"{name} runs in a way that is none of its options")
        need(not firm or way is not None, f"{name} may not be stopped, and the plan stops it")
        values = [] if firm else [ZERO]
        for own, option in options.items():
            need(0 <= own[0] < len(self.pools), f"{name} has an option in pool {own[0]}")
            watts = (
                get(option["option"], "power_w", Fraction, ZERO) - own[1] * self.pools[own[0]][2]
            )
            lasts_s = min(get(option, "lasts_s", Fraction, self.window_s), self.window_s)
            site, value = get(option, "uses", dict, {}), get(option, "value", Fraction)
            uses = {row: get(site, row, Fraction) for row in site}
            uses |= self.uses(*own[:2], watts, lasts_s)
            values.append(max(value, get(option, "moved", Fraction, value)) - self.cost(uses))
            if own == way:
                self.total.update(uses)
                self.loads.append((lasts_s, watts))
        self.bound += max(values)
        if way is not None:
            (pool, gpus, span, *_), nodes = way, gpus_on(given, "placement")
            self.used.update(nodes)
            there = [self.nodes[n] for n in nodes if 0 <= n < len(self.nodes)]
            near = {"node": len(there), "rack": len({node[2] for node in there})}.get(span, 1) == 1
            right = [n[0] for n in there] == [pool] * len(nodes) and sum(nodes.values()) == gpus
            need(right and near, f"{name} is not on {gpus} GPUs of pool {pool} within one {span}")
            moves = held is not None and gpus_on(held, "placement") != nodes
            need(not firm or (way == was and not moves), f"{name} may not be changed, and it is")
            self.worth += get(options[way], "moved" if moves and way == was else "value", Fraction)

    def add_nodes(self, asleep: set[int]) -> None:
        """Add the better state of each node at the prices to the bound, and its own to the plan."""
        for n, (pool, gpus, _, awake_w, sleep_w) in enumerate(self.nodes):
            awake = self.uses(pool, -gpus, awake_w, self.window_s)
            rests = self.uses(pool, 0, sleep_w, self.window_s)
            self.bound -= min(self.cost(awake), self.cost(rests))
            self.total.update(rests if n in asleep else awake)
            most = 0 if n in asleep else gpus
            need(self.used[n] <= most, f"node {n} has {most} GPUs; the plan uses {self.used[n]}")

    def add_rows(self, site: Json) -> None:
        """Add limits at their prices to the bound; hold the plan to them, and take off excess."""
        limits = {f"gpus[{partition}/{kind}]": ZERO for partition, kind, _ in self.pools}
        for name, field in ((CAP, "power_cap_w"), (WINDOW, "energy_j")):
            if self.round.get(field) is not None:
                limits[name] = get(self.round, field, Fraction)
        need(not site.keys() & {*limits, CAP, WINDOW}, "a row of the site has the name of another")
        limits |= {name: get(row, "limit", Fraction) for name, row in site.items()}
        need(self.prices.keys() <= limits.keys(), "there is a price of no row")
        excess, dear = dict[str, Fraction](), dict[str, Fraction]()
        for name, limit in limits.items():
            price, row, slack = self.prices.get(name, ZERO), site.get(name, {}), SLACK * abs(limit)
            need(price >= 0, f"the price of {name!a} is {float(price)}, below 0")
            self.bound += price * (limit + slack)
            over, counts = self.total[name] - limit, get(row, "counts", dict, {})
            for other in counts:
                over += get(counts, other, Fraction) * get(excess, other, Fraction)
                dear[other] = dear.get(other, ZERO) + price * get(counts, other, Fraction)
            if row.get("penalty") is None:
                need(over <= slack, f"{name!a}: the plan is {float(over)} above {float(limit)}")
            else:
                excess[name] = max(ZERO, over)
                self.worth -= get(row, "penalty", Fraction) * excess[name]
        for name in excess:
            most = get(site[name], "penalty", Fraction) + dear.get(name, ZERO)
            need(self.prices.get(name, ZERO) <= most, f"{name!a}: a price above {float(most)}")
        drawn_w, ended_j, energy_j = self.total[CAP], ZERO, limits.get(WINDOW, ZERO)
        for seconds, watts in sorted(self.loads) if WINDOW in limits else ():
            allowed_j = self.banked_j + (energy_j - self.banked_j) * seconds / self.window_s
            over = drawn_w * seconds + ended_j - allowed_j - SLACK * abs(allowed_j)
            need(over <= 0, f"the plan draws {float(over)} J too much by {float(seconds)} s")
            drawn_w, ended_j = drawn_w - watts, ended_j + watts * seconds


def verify(round: bytes, plan: bytes, certificate: bytes) -> Proof:
    """Return what three texts prove, if the certificate claims no more than that."""
    said, model = plain(certificate), digest(certificate, "jobs", "rows")
    real = {"format": FORMAT, "round": digest(round, format="ronda/round/1"), "model": model}
    for name in real:
        need(said.get(name) == real[name], f"{name}: {said.get(name)!a:.70}, not {real[name]}")
    proof = Proof(plain(round), plain(plan), said)
    worth, bound = get(said, "worth", Fraction), get(said, "bound", Fraction)
    need(worth <= proof.worth, f"worth: {float(worth)!r} is above {float(proof.worth)!r}")
    need(bound >= proof.bound, f"bound: {float(bound)!r} is below {float(proof.bound)!r}")
    return proof


def main(arguments: list[str]) -> int:
    """Verify three files, and print the result; return 1 if refused, 2 if one cannot be used."""
    code, found, texts = 0, Json(), list[bytes]()
    try:
        for path in (path for path in arguments if path != "--json"):
            with open(path, "rb") as file:
                texts.append(file.read(MOST_BYTES))
        proof = verify(*texts)
        gap = (proof.bound - proof.worth) / (max(abs(proof.bound), abs(proof.worth)) or ONE)
        for name, exact in (("worth", proof.worth), ("bound", proof.bound), ("gap", gap)):
            way = Context(10, ROUND_FLOOR if name == "worth" else ROUND_CEILING)
            rounded = way.divide(Decimal(exact.numerator), Decimal(exact.denominator))
            found |= {name: float(rounded), f"exact {name}": str(exact)}
    except NotProvenError as error:
        code, found = 1, {"refused": str(error)}
    except (OSError, ValueError, ArithmeticError, RecursionError) as error:
        code, found = 2, {"error": str(error)}
    lines = (f"{name}: {value}" for name, value in found.items())
    print(json.dumps(found) if "--json" in arguments else "\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
