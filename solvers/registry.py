"""The policies by name and parameters, as in ``milp(objective=rank, gap=1e-4)``."""

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast, get_args, get_type_hints

import msgspec

from ronda.instances.arguments import checked
from ronda.instances.errors import InputError
from ronda.instances.rules.diagnose import mismatch
from ronda.instances.rules.problem import one_of
from ronda.solvers import own, plugins
from ronda.solvers.contract import Capability, MadePolicy, Policy
from ronda.solvers.rules import EXTRA, NO_RULES, rules

POLICIES: dict[str, str] = {
    "fifo": "ronda.solvers.policies.rigid.queues:Fifo",
    "sjf": "ronda.solvers.policies.rigid.queues:Sjf",
    "srtf": "ronda.solvers.policies.rigid.preemptive:Srtf",
    "gittins": "ronda.solvers.policies.rigid.preemptive:Gittins",
    "milp": "ronda.solvers.policies.optimising.milp:Milp",
    "cp-sat": "ronda.solvers.policies.optimising.milp:CpSat",
    "prices": "ronda.solvers.policies.optimising.prices:Prices",
    "genetic": "ronda.solvers.policies.optimising.genetic:Genetic",
    "evolve": "ronda.solvers.policies.optimising.genetic:Evolve",
    "milp-energy": "ronda.solvers.policies.energy.milp_energy:MilpEnergy",
    "tiresias": "ronda.solvers.policies.rigid.tiresias:Tiresias",
    "las": "ronda.solvers.policies.rigid.preemptive:Las",
    "gavel-like": "ronda.solvers.policies.fair.gavel_like:GavelLike",
    "gavel-ftf-like": "ronda.solvers.policies.fair.gavel_like:GavelFtfLike",
    "shockwave-like": "ronda.solvers.policies.fair.shockwave_like:ShockwaveLike",
    "sia-like": "ronda.solvers.policies.optimising.milp:SiaLike",
    "kueue-like": "ronda.solvers.policies.production.kueue_like:KueueLike",
    "kai-like": "ronda.solvers.policies.production.kai_like:KaiLike",
    "slurm-like": "ronda.solvers.policies.production.slurm_like:SlurmLike",
    "drf": "ronda.solvers.policies.production.drf:Drf",
    "optimus": "ronda.solvers.policies.elastic.optimus:Optimus",
    "pollux-like": "ronda.solvers.policies.elastic.pollux_like:PolluxLike",
    "elasticflow-like": "ronda.solvers.policies.elastic.elasticflow_like:ElasticFlowLike",
    "race-to-idle": "ronda.solvers.policies.energy.race_to_idle:RaceToIdle",
}
"""The place of the class of each of ronda's policies, keyed by name: the policies of the core, some
of them with Zeus's clocks, and those that ronda's other packages declare. A class is imported on
request."""

ZEUS_BASES = ("fifo", "sjf", "srtf", "tiresias", "optimus", "pollux-like", "elasticflow-like")
"""The policies that decide GPUs and leave clocks alone. Each one also exists as ``BASE+zeus``."""

POLICIES |= {f"{base}+zeus": f"ronda.solvers.policies.energy.zeus:{base}" for base in ZEUS_BASES}

POLICIES |= {name: found.target for name, found in plugins.declared("policies").items()}

OF_OBJECTIVE, OF_SOLVER = "parameters", "options"
"""The fields of policies with the parameters of their objective and the options of their solver.
`policy` takes both like other parameters. Options of a solver have a point in their names:
``highs.presolve``."""

_KEY = re.compile(r"[^\W\d]\w*|[\w-]+\.\S+")

_SPEC = re.compile(rf"\s*({own.IN_FILE}|[A-Za-z][\w+-]*)\s*(?:\((.*)\))?\s*", re.DOTALL)


@checked
def policy(spec: str, **parameters: Any) -> MadePolicy:
    """Make a policy from its name and its parameters, which may also be keywords.

    An example is ``"milp(objective=rank, gap=1e-4)"``. The policy's `plan` also takes a deadline in
    seconds.

    Raises
    ------
    InputError
        If the policy, a parameter or its value is unknown or impossible.
    """
    name, given = parse(spec)
    given |= parameters
    cls = policy_class(name)
    if given.pop(own.CODE, own.code(cls)) != own.code(cls):
        raise InputError(f"--policy {name}", "a file that has changed", "the one of this run")
    known, fields = parameters_of(name, given.get("objective")), own.parameters(cls)
    options = {key: given.pop(key) for key in [*given] if "." in key and OF_SOLVER in fields}
    refuse_unknown(name, given, known)
    if not dataclasses.is_dataclass(cls):
        return cast(MadePolicy, own.make(cls, name, given))
    if EXTRA in fields:
        given |= {EXTRA: rules(given.get(EXTRA, NO_RULES))}
    if OF_OBJECTIVE in fields:
        given[OF_OBJECTIVE] = {key: given.pop(key) for key in given.keys() - fields.keys()}
    given |= {OF_SOLVER: options} if options else {}
    made: MadePolicy = converted(spec, cls, given, name, known)
    if sys.flags.optimize > 1 and "pyomo" in getattr(made, "packages", ()):
        expected = "python or python -O: Pyomo needs docstrings"
        raise InputError(f"--policy {name}", "python -OO", expected)
    return made


def refuse_unknown(name: str, given: Collection[str], known: Collection[str]) -> None:
    """Raise InputError for the first given parameter that is unknown."""
    for key in given:
        if key not in known:
            expected = one_of(known, key) if known else "no parameter: this policy has none"
            raise InputError(f"--policy {name}", f"parameter {key!r}", expected)


def converted(
    spec: str, cls: type, given: Mapping[str, Any], name: str, known: Mapping[str, Any]
) -> Any:
    """Make an object of a class from the given parameters; refuse unknown or impossible ones.

    ``none`` means None, or the word if the parameter has it.
    """
    words = {key for key, kind in get_type_hints(cls).items() if "none" in get_args(kind)}
    given = {k: "none" if v is None and k in words else v for k, v in given.items()}
    try:
        return msgspec.convert(given, type=cls, strict=False)
    except msgspec.ValidationError as error:
        problem = mismatch(error, given, cls)
        signature = ", ".join(f"{key}={value}" for key, value in known.items())
        expected = f"{problem.expected}, as in {name}({signature})"
        raise InputError(f"--policy {spec}, {problem.place}", problem.found, expected) from None


def parse(spec: str) -> tuple[str, dict[str, Any]]:
    """Split ``name(key=value, ...)`` into the name and its parameters, without looking them up."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise InputError("--policy", repr(spec), "NAME or NAME(key=value, ...)")
    name, inside = match.groups()
    given: dict[str, Any] = {}
    for part in filter(None, split(inside or "", f"--policy {spec}")):
        key, equals, value = part.partition("=")
        if not equals or not _KEY.fullmatch(key.strip()) or not value.strip():
            raise InputError(f"--policy {spec}", repr(part), "key=value")
        given[key.strip()] = _value(value.strip())
    return name, given


def split(text: str, place: str) -> list[str]:
    """Split a text at the commas outside brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote or (letter in "'\"" and not parts[-1][-1:].isalnum()):  # an apostrophe is no quote
            quote = "" if letter == quote else quote or letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            break
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    if depth or quote:
        raise InputError(place, repr(text), "as many ')' as '(', and quotes that end")
    return [part.strip() for part in parts]


def policy_class(name: str) -> type:
    """Return the class of the policy with the given name."""
    if name not in POLICIES:
        found_elsewhere = own.find(name)
        if found_elsewhere is None:
            names = [*POLICIES, *plugins.known("policies").keys() - POLICIES]
            longer = [each for each in names if each.startswith(f"{name}-")]
            raise InputError("--policy", repr(name), one_of(longer or names, name))
        return found_elsewhere
    found: type = plugins.Plugin(POLICIES[name]).load(f"--policy {name}")
    return found


def composed(
    bases: Collection[str], face: type, name: str, about: str, adds: Capability
) -> Callable[[str], type]:
    """Return a function that maps the name of a base policy to its class combined with `face`.

    The combined class has the parameters of the base and then those of `face`. It has the
    capabilities of the base (without `RULES`) and those in `adds`. Its description is made from
    `about`.

    The function raises AttributeError for other bases, as it is the ``__getattr__`` of the module
    of `face`.
    """

    @cache
    def class_of(base: str) -> type:
        if base not in bases:
            raise AttributeError(base)
        plain = policy_class(base)
        members = {
            "name": f"{base}+{name}",
            "capabilities": plain.capabilities & ~Capability.RULES | adds,  # type: ignore[attr-defined]
            "__doc__": f"`{base}`, {about}.\n\n{face.__doc__}",
            "__module__": face.__module__,
            "__qualname__": base,
        }
        return dataclass(frozen=True)(type(base, (face, plain), members))

    return class_of


def parameters_of(name: str, objective: str | None = None) -> dict[str, Any]:
    """Return the parameters of a policy and their defaults.

    The parameters of the objective are included; None means the policy's default objective.
    """
    known = own.parameters(policy_class(name))
    known.pop(OF_SOLVER, None)
    if known.pop(OF_OBJECTIVE, None) is not None:
        from ronda.formulations.objectives.by_name import parameters

        known |= parameters(objective or known["objective"])
    return known


def config_of(made: Policy) -> dict[str, Any]:
    """Return a policy's effective parameters, as records hold them.

    They include the parameters of its objective and the options of its solver. The result does not
    depend on the process in which the policy runs.
    """
    known = own.values(inspect.unwrap(made))  # type: ignore[arg-type]
    if EXTRA in known:
        known[EXTRA] = str(known[EXTRA])
    inner = [dict(known.pop(each, {})) for each in (OF_OBJECTIVE, OF_SOLVER)]
    return known | inner[0] | inner[1]


def seed_may_matter(made: Policy) -> bool:
    """Return whether runs with other seeds may differ; for a third-party policy they may.

    A policy with the name of one of ronda's but another class counts as third-party.
    """
    plain = inspect.unwrap(made)  # type: ignore[arg-type]
    ours = made.name in POLICIES and type(plain) is policy_class(made.name)
    return not ours or Capability.RANDOM in made.capabilities


def as_policy(given: Policy | str) -> Policy:
    """Return a policy: make it from its name as `policy` does, or check a given object."""
    return policy(given) if isinstance(given, str) else own.adopted(given)


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {"true": True, "false": False, "none": None}.get(text.lower(), text)
