"""Prove from three JSON files, without trust in any solver, how far a plan is from the best.

``python verify.py ROUND PLAN CERTIFICATE [--json]`` needs this file and Python alone. Numbers count
as the decimals that are written, in exact fractions. Option k of job j has the value v_jk and uses
a_rjk of row r, whose limit is c_r. At prices λ_r >= 0, no choice that keeps the rows is worth above

    Σ_r λ_r c_r + Σ_j max(0, max_k (v_jk - Σ_r λ_r a_rjk)) + Σ_n max(awake_n, asleep_n)

as each term is at least that of the choice (H. Everett, Operations Research 11, 1963). A job that
must run has no 0; nodes awake have GPUs and draw idle watts; excess over a soft row never pays.
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
MODEL = "jobs", "limits", "penalties", "counts"
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


def digest(data: bytes, *names: str) -> str:
    """Return the SHA-256 of a round, or of some fields, in ronda's form with sorted keys."""
    read = plain(data, lambda digits: f"\0{digits}\0") | {"format": "ronda/round/1"}
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
        words = {Fraction: "number", int: "whole number", list: "list", str: "text", dict: "object"}
        raise ValueError(f"{name}: found {ascii(value)[:40]}; expected one {words[kind]}")
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
    need(len(dict(found)) == len(found), f"{name}: a node stands twice")
    return dict(found)


def way_of(given: Json) -> tuple[int, int, str, Fraction, Fraction]:
    """Return how an allocation's option runs its job: pool, GPUs, span, clock and batch."""
    (of,) = each([[get(given, "option", dict)]], 0, dict)
    clock, batch = get(of, "clock", Fraction, ONE), get(of, "batch", Fraction, ONE)
    return get(of, "pool", int), get(of, "gpus", int), get(of, "span", str, "cluster"), clock, batch


class Proof:
    """The exact worth of a plan, and the bound on all plans, if the certificate claims no more."""

    def __init__(self, texts: list[bytes]) -> None:
        round, plan, certificate = map(plain, texts)
        real = FORMAT, digest(texts[0]), digest(texts[2], *MODEL)
        for name, right in zip(("format", "round", "model"), real, strict=True):
            need(certificate.get(name) == right, f"{name}: it is {right}, and another is certified")
        (self.round,), self.worth, self.bound = each([[round]], 0, dict), ZERO, ZERO
        prices, given = get(certificate, "prices", dict), get(plan, "allocations", dict, {})
        self.prices = {name: get(prices, name, Fraction) for name in prices}
        self.window_s = get(round, "window_s", Fraction, Fraction(3600))
        self.banked_j = get(round, "banked_j", Fraction, get(round, "energy_j", Fraction, ZERO))
        self.total, self.used = cast(Any, Counter()), Counter[int]()  # of rows, and GPUs of nodes
        self.loads = [(self.window_s, ZERO)]  # the seconds and watts of the plan's jobs
        sleep = plan if plan.get("asleep") is not None else round
        self.add_nodes(get(round, "cluster", dict), {*each(sleep, "asleep", int)})
        states = each(round, "running", dict) + each(round, "waiting", dict)
        own = each([[get(state, "job", dict) for state in states]], 0, dict, "features")
        ids, jobs = [get(job, "id", str) for job in own], get(certificate, "jobs", dict)
        need(ids == [*jobs] and given.keys() <= jobs.keys(), "there are other jobs than certified")
        for name, state in zip(ids, states, strict=True):
            self.add_job(state, each(jobs, name, dict), given.get(name))
        self.add_rows(*(get(certificate, name, dict, {}) for name in MODEL[1:]))
        worth, bound = (get(certificate, name, Fraction) for name in ("worth", "bound"))
        need(worth <= self.worth, f"worth: {float(worth)!r} is above {float(self.worth)!r}")
        need(bound >= self.bound, f"bound: {float(bound)!r} is below {float(self.bound)!r}")

    def add_nodes(self, cluster: Json, asleep: set[int]) -> None:
        """Add the better state of each node at the prices to the bound, and its own to the plan."""
        self.pools, self.nodes = list[tuple[str, str, Fraction]](), list[tuple[int, int, str]]()
        types = {get(kind, "name", str): kind for kind in each(cluster, "gpu_types", dict)}
        slow = ["wake_s"] * bool(self.round.get("asleep") or self.round.get("waking"))
        out, _ = gpus_on(cluster, "out"), each(cluster, "racks", dict, "power_cap_w")
        for group in each(cluster, "node_groups", dict, *slow):
            gpus, count = get(group, "gpus_per_node", int), get(group, "count", int)
            kind, host_w = get(group, "gpu_type", str), get(group, "host_idle_w", Fraction, ZERO)
            idle_w = get(get(types, kind, dict), "idle_w", Fraction, ZERO)
            pool = get(group, "partition", str, "default"), kind, idle_w
            self.pools += [pool] * (pool not in self.pools)
            own, rack = self.pools.index(pool), get(group, "rack", str, "")
            need(0 < count <= 10**6 - len(self.nodes), f"a group has {count} nodes")
            for n in range(len(self.nodes), len(self.nodes) + count):
                left, sleep_w = max(0, gpus - out.get(n, 0)), get(group, "sleep_w", Fraction, ZERO)
                awake = self.uses(own, -left, (host_w + gpus * idle_w) * (left > 0), self.window_s)
                rests = self.uses(own, 0, sleep_w * (left > 0), self.window_s)
                self.bound -= min(self.cost(awake), self.cost(rests))
                self.total.update(rests if n in asleep else awake)
                self.nodes.append((own, 0 if n in asleep else left, rack))

    def uses(self, pool: int, gpus: int, watts: Fraction, lasts_s: Fraction) -> dict[str, Fraction]:
        """Return what GPUs and watts use of rows; where nothing is banked, no end saves joules."""
        seconds = self.window_s if not self.banked_j and lasts_s else lasts_s
        row = "gpus[{}/{}]".format(*self.pools[pool])
        return {row: Fraction(gpus), CAP: watts, WINDOW: watts * seconds}

    def cost(self, uses: dict[str, Fraction]) -> Fraction:
        """Return what uses cost at the prices."""
        return sum((self.prices[name] * uses[name] for name in uses if name in self.prices), ZERO)

    def add_job(self, state: Json, ways: list[Json], given: Any) -> None:
        """Add the best of a job's options at the prices to the bound, and its own to the plan."""
        name, held = f"job {state['job']['id']!a}", state.get("allocation")
        firm = held is not None and state["job"].get("preemptible") is False
        way, was = (None if a is None else way_of(a) for a in (given, held))
        options, values = {way_of(option): option for option in ways}, [] if firm else [ZERO]
        need(way in options if way else not firm, f"{name} may not stop, or has no such option")
        for (pool, gpus, *_), option in options.items():
            need(0 <= pool < len(self.pools), f"{name} has an option in pool {pool}")
            watts = get(option["option"], "power_w", Fraction, ZERO) - gpus * self.pools[pool][2]
            end = min(get(option, "lasts_s", Fraction, self.window_s), self.window_s)
            site, value = get(option, "uses", dict, {}), get(option, "value", Fraction)
            uses = {r: get(site, r, Fraction) for r in site} | self.uses(pool, gpus, watts, end)
            values.append(max(value, get(option, "moved", Fraction, value)) - self.cost(uses))
            if way is not None and option is options[way]:
                self.total.update(uses)
                self.loads.append((end, watts))
        self.bound += max(values)
        if way is not None:
            (pool, gpus, span, *_), nodes = way, gpus_on(given, "placement")
            there = [self.nodes[n] for n in nodes if 0 <= n < len(self.nodes)]
            right = [n[0] for n in there] == [pool] * len(nodes) and sum(nodes.values()) == gpus
            near = {"node": len(there), "rack": len({node[2] for node in there})}.get(span, 1) == 1
            need(right and near, f"{name} is not on {gpus} GPUs of pool {pool} within one {span}")
            self.used.update(nodes)
            fits = all(0 < nodes[n] <= self.used[n] <= self.nodes[n][1] for n in nodes)
            need(fits, f"{name} is on nodes that sleep or lack GPUs: {[*nodes]}")
            moves = held is not None and gpus_on(held, "placement") != nodes
            need(not firm or (way == was and not moves), f"{name} may not be changed, and it is")
            self.worth += get(options[way], "moved" if moves and way == was else "value", Fraction)

    def add_rows(self, site: Json, penalties: Json, counts: Json) -> None:
        """Add limits at their prices to the bound; hold the plan to them, and take off excess."""
        own = {CAP: self.round.get("power_cap_w"), WINDOW: self.round.get("energy_j")}
        limits = {f"gpus[{partition}/{kind}]": ZERO for partition, kind, _ in self.pools}
        need(not site.keys() & {*limits, *own}, "a row of the site has the name of another")
        limits |= {name: get(own, name, Fraction) for name in own if own[name] is not None}
        limits |= {name: get(site, name, Fraction) for name in site}
        need(self.prices.keys() <= limits.keys(), "there is a price of no row")
        excess, dear = dict[str, Fraction](), dict[str, Fraction]()
        for name, limit in limits.items():
            price, slack = self.prices.get(name, ZERO), SLACK * abs(limit)
            need(price >= 0, f"the price of {name!a} is {float(price)}, below 0")
            self.bound += price * (limit + slack)
            over, counted = self.total[name] - limit, get(counts, name, dict, {})
            for other in counted:
                over += get(counted, other, Fraction) * get(excess, other, Fraction)
                dear[other] = dear.get(other, ZERO) + price * get(counted, other, Fraction)
            if name not in penalties:
                need(over <= slack, f"{name!a}: the plan is {float(over)} above {float(limit)}")
            else:
                excess[name] = max(ZERO, over)
                self.worth -= get(penalties, name, Fraction) * excess[name]
        for name in excess:
            most = get(penalties, name, Fraction) + dear.get(name, ZERO)
            need(self.prices.get(name, ZERO) <= most, f"{name!a}: a price above {float(most)}")
        for t, _ in self.loads if WINDOW in limits else ():
            most_j = self.banked_j + (limits[WINDOW] - self.banked_j) * t / self.window_s
            used_j = self.total[CAP] * t - sum(w * (t - s) for s, w in self.loads if s < t)
            need(used_j <= most_j + SLACK * abs(most_j), f"energy: {float(used_j)} J by {float(t)}")


def main(arguments: list[str]) -> int:
    """Verify three files, and print the result; return 1 if refused, 2 if one cannot be used."""
    code, found, texts, place = 0, Json(), list[bytes](), ""
    try:
        for place in (path for path in arguments if path != "--json"):
            with open(place, "rb") as file:
                texts.append(file.read(1 << 28))
            plain(texts[-1])
        place = "files"
        proof = Proof(texts)
        gap = (proof.bound - proof.worth) / (max(abs(proof.bound), abs(proof.worth)) or ONE)
        for name, exact in (("worth", proof.worth), ("bound", proof.bound), ("gap", gap)):
            way = Context(10, ROUND_FLOOR if name == "worth" else ROUND_CEILING)
            rounded = way.divide(Decimal(exact.numerator), Decimal(exact.denominator))
            found |= {name: float(rounded), f"exact {name}": str(exact)}
    except (NotProvenError, OSError, ValueError, ArithmeticError, RecursionError) as error:
        code, found = 2 - isinstance(error, NotProvenError), {"refused": f"{place}: {error}"}
    lines = (f"{name}: {value}" for name, value in found.items())
    print(json.dumps(found) if "--json" in arguments else "\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
