"""The parts of a comparison: policies, seeds, and the cases that result from combining them."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

import ronda
from ronda.bench.runs.variant import UNCHANGED, Variant
from ronda.instances.base import Record
from ronda.instances.check.checker import SHAPELESS, check
from ronda.instances.errors import InputError, printable
from ronda.instances.files import fits as predictors
from ronda.instances.files import json as files
from ronda.instances.files.storage import file_name
from ronda.instances.files.storage import label as place_of
from ronda.instances.instance import DECLARED, Cadence, Instance, Knowledge
from ronda.instances.models.fits import Predictor
from ronda.instances.round import Round
from ronda.instances.schedule import RECORDED, Schedule
from ronda.solvers.contract import Policy
from ronda.solvers.registry import config_of, policy, seed_may_matter, split

MAX_SEEDS = 10_000
"""A comparison with more seeds than this is refused as a typing error."""

BoundEffort = Literal["quick", "tight"]
"""How a run is bounded: in seconds, or by a search of minutes (`tight_bound_s`)."""

KEY = r"^[a-z0-9_+-]{1,250}$"
"""The pattern of `RunCase.key`, which names a folder."""


class PredictorFile(Record, frozen=True, kw_only=True):
    """The file of a predictor of sizes, and the checksum of its content."""

    path: str
    checksum: str

    @classmethod
    def by(cls, path: Path) -> "PredictorFile":
        """Return the file in its current state."""
        return cls(path=str(path.absolute()), checksum=predictors.read_predictor(path).checksum)

    def read(self) -> Predictor:
        """Return the predictor; raise InputError if the file now holds another one."""
        found = predictors.read_predictor(self.path)
        if found.checksum != self.checksum:
            raise InputError(self.path, "another predictor by now", "that with which the run began")
        return found


class RecordedFile(Record, frozen=True, kw_only=True):
    """The file of a schedule that a log tells of, and the checksum of its content."""

    path: str
    checksum: str

    @classmethod
    def by(cls, path: Path, instances: Iterable[Instance]) -> tuple[Instance, "RecordedFile"]:
        """Return a file, and the one of some instances that it is a schedule of.

        Raises
        ------
        InputError
            If it is no schedule of any of them, or one that contradicts itself.
        """
        found, place = files.read(path), place_of(path)
        if not isinstance(found, Schedule):
            raise InputError(place, f"the format {found.format!r}", "a schedule of a log")
        if found.policy != RECORDED:
            expected = "a schedule of a log, by ronda instances convert --schedule"
            raise InputError(place, f"a schedule of the policy {found.policy!r}", expected)
        own = next((i for i in instances if files.fingerprint(i) == found.fingerprint), None)
        if own is None:
            other = f"a schedule of another instance ({printable(found.instance)})"
            raise InputError(place, other, "one of the instances to compare, as they are")
        odd = [each for each in check(own, found) if each.code in CONTRADICTIONS]
        if odd:
            worst = min(odd, key=lambda each: each.code != "unknown-job")
            raise InputError(place, str(worst), "runs that can have been")
        return own, cls(path=str(path.absolute()), checksum=files.fingerprint(found))

    def read(self) -> Schedule:
        """Return the schedule; raise InputError if the file now holds another one."""
        found = files.read(self.path)
        if not isinstance(found, Schedule) or files.fingerprint(found) != self.checksum:
            raise InputError(self.path, "another schedule by now", "that of when the run began")
        return found


CONTRADICTIONS = SHAPELESS | {
    "unknown-job",
    "missing-job",
    "duplicate-job",
    "order",
    "submit",
    "end",
}
"""The rules that no record can break: without them there are no figures of a schedule."""


class Spec(Record, frozen=True, kw_only=True):
    """The subject of a run: an instance, a policy with its parameters, and a seed.

    `fingerprint` identifies the instance with its `variant` applied. `label` is the policy as the
    user wrote it, and `config` has all its effective parameters. `time_limit_s` limits a decision
    (None: no limit), and `period_s` is the time between rounds (None: the instance's own). `level`
    is the policies' knowledge of jobs (`ronda.horizon.beliefs`), and `predictor` predicts sizes.
    `bound_effort` says how mean JCT is bounded; `tight_bound_s` is a tight bound found before.
    With the policy `RECORDED` nothing is decided: the schedule is that of the file `recorded`.
    """

    instance: str
    policy: str
    config: dict[str, Any] = {}
    label: str = ""
    fingerprint: str = ""
    seed: int = 0
    time_limit_s: float | None = None
    period_s: float | None = None
    level: Knowledge = DECLARED
    variant: Variant = UNCHANGED
    predictor: PredictorFile | None = None
    recorded: RecordedFile | None = None
    bound_effort: BoundEffort = "quick"
    tight_bound_s: float | None = None

    @property
    def workload(self) -> str:
        """The display name of the instance or round with its change."""
        return ", ".join(filter(None, (self.instance, self.variant.title)))

    @property
    def title(self) -> str:
        """The display name of the run."""
        words = f"{self.instance} {self.label} seed {self.seed}"
        return f"{words} ({self.variant.title})" if self.variant.title else words


class RunCase(Spec, frozen=True, kw_only=True):
    """A run of a comparison; `source` is the packaged name or the path of its instance."""

    source: str

    @property
    def key(self) -> str:
        """The name of the case, equal for equal work by the same version of ronda."""
        what = [ronda.__version__, self.fingerprint, self.policy, self.config, self.seed]
        what += [self.time_limit_s, self.period_s]
        what += [self.level] if self.level != DECLARED else []
        what += [self.bound_effort] if self.bound_effort != "quick" else []
        what += [file.checksum for file in (self.predictor, self.recorded) if file is not None]
        digest = hashlib.sha256(msgspec.json.encode(what, order="deterministic")).hexdigest()
        words = f"{file_name(self.instance)}--{file_name(self.policy)}--s{self.seed}"
        return f"{words}--{digest[:10]}"

    def cadence(self, instance: Instance) -> Cadence:
        """Return the times at which the run decides."""
        if self.period_s is None:
            return instance.cadence
        return msgspec.structs.replace(instance.cadence, period_s=self.period_s)


class Request(Record, frozen=True, kw_only=True):
    """The request to a run's process: a case, and the file for its answer."""

    case: RunCase
    answer: str


def split_policies(text: str) -> tuple[str, ...]:
    """Split a list of policies at the commas outside brackets.

    ``"fifo, milp(gap=1e-4, objective=rank)"`` gives ``("fifo", "milp(gap=1e-4, objective=rank)")``.
    """
    found = split(text, "--policies")
    if not all(found):
        raise InputError("--policies", repr(text), "names with one comma between them: fifo,milp")
    return tuple(dict.fromkeys(found))


def parse_seeds(text: str, option: str = "--seeds") -> tuple[int, ...]:
    """Read ``"0-4"``, ``"0,3,5"`` or a mixture of both as ascending numbers without repeats."""
    seeds: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?", part, re.ASCII)
        if match is None:
            raise InputError(option, repr(text), "whole numbers or ranges, as in 0-4 or 0,3,5")
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if last < first:
            raise InputError(option, repr(part.strip()), f"a rising range: {last}-{first}")
        if last - first >= MAX_SEEDS or len(seeds) > MAX_SEEDS:
            raise InputError(option, repr(text), f"at most {MAX_SEEDS} numbers")
        seeds.update(range(first, last + 1))
    return tuple(sorted(seeds))


def cases(
    instances: Mapping[str, tuple[Instance | Round, str]],
    policies: Sequence[str],
    seeds: Sequence[int],
    *,
    time_limit_s: float | None,
    period_s: float | None = None,
    levels: Sequence[Knowledge] = (DECLARED,),
    variant: Variant = UNCHANGED,
    predictor: Path | None = None,
    bound: BoundEffort = "quick",
    make: Callable[[str], Policy] = policy,
) -> tuple[RunCase, ...]:
    """Combine instances, policies, levels of knowledge and seeds.

    `make` makes a policy from its label; a level other than the default is added to the label.

    A deterministic policy of ronda's own runs once per instance, with the first seed. Two spellings
    of the same policy count as one. `instances` maps the word that loads an instance to the
    instance with its changes, and its fingerprint.
    """
    refuse_namesakes(instances)
    if predictor is not None and "history" not in levels:
        raise InputError("--predictor", f"--knowledge {', '.join(levels)}", "history")
    told = None if predictor is None else PredictorFile.by(predictor)
    made = [
        (label if level == DECLARED else f"{label} [{level}]", make(label), level)
        for label in policies
        for level in levels
    ]
    found: dict[str, RunCase] = {}
    for source, (instance, fingerprint) in instances.items():
        for label, each, known in made:
            for seed in seeds if seed_may_matter(each) else seeds[:1]:
                case = RunCase(
                    source=source,
                    instance=instance.name,
                    fingerprint=fingerprint,
                    label=label,
                    policy=each.name,
                    config=msgspec.to_builtins(config_of(each)),
                    seed=seed,
                    time_limit_s=time_limit_s,
                    period_s=period_s,
                    level=known,
                    variant=variant,
                    predictor=told if known == "history" else None,
                    bound_effort=bound,
                )
                found.setdefault(case.key, case)
    return tuple(found.values())


def refuse_namesakes(instances: Mapping[str, tuple[Instance | Round, str]]) -> None:
    """Refuse different instances with the same name, because tables could not tell them apart."""
    known: dict[str, str] = {}
    for source, (instance, fingerprint) in instances.items():
        if known.setdefault(instance.name, fingerprint) != fingerprint:
            kind = type(instance).__name__.lower()
            found = f"another {kind} with the name {instance.name!r}"
            raise InputError(source, found, "different names")
