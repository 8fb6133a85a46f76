"""The expansion of a suite into cases, each with its values on the suite's axes.

A suite also makes instances, with ronda's generators or a function in a file next to the suite.
Both take their table's parameters by name, and the seed if they have one.
"""

import inspect
import re
import runpy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec
from msgspec.structs import replace

from ronda.bench.runs.folder import keep, kept_at
from ronda.bench.runs.specs import RecordedFile, RunCase, cases, parse_seeds, refuse_namesakes
from ronda.bench.runs.variant import UNCHANGED, Variant, reference_w
from ronda.bench.suites.suite import Suite, SuitePart, converted
from ronda.instances import generate
from ronda.instances.base import Positive
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance
from ronda.instances.rules.problem import one_of, show
from ronda.instances.schedule import RECORDED
from ronda.solvers.contract import Policy
from ronda.solvers.plugins import find, known
from ronda.solvers.registry import parse, policy

FIXED = ("instance", "policy", "knowledge", "seed")
"""The axes of every suite; each list in a suite adds an axis."""


class AxisValue(NamedTuple):
    """A value of an axis: its text, its index, and the number of values."""

    label: str
    place: int
    places: int


At = dict[str, AxisValue]
"""The value on each axis."""


class InstanceSource(NamedTuple):
    """An instance; `load` returns its source and the instance, for a seed if it `draws`."""

    at: At
    draws: bool
    load: Callable[[int], tuple[str, Instance]]


GENERATORS: dict[str, Callable[..., Any]] = {
    "horizon": generate.horizon,
    "sweep": generate.sweep,
    "mixed": generate.mixed,
}


class Maker:
    """A generator, or ``FILE.py:NAME`` in a folder; `draws` says whether it takes a seed."""

    def __init__(self, word: str, folder: Path, place: str) -> None:
        self.make, self.place = _maker(word, folder, place), place
        known, hints = inspect.signature(self.make).parameters, get_type_hints(self.make)
        self.draws = "seed" in known
        fields = [
            (name, hints.get(name, Any), *(() if each.default is each.empty else (each.default,)))
            for name, each in known.items()
            if name != "seed"
        ]
        self.table = msgspec.defstruct("Table", fields, kw_only=True, forbid_unknown_fields=True)

    def __call__(self, given: Mapping[str, Any], seed: int) -> Instance:
        """Return an instance for the given parameters; refuse unknown and unusable ones."""
        table = converted(given, self.table, f"{self.place}.")
        values = {name: getattr(table, name) for name in self.table.__struct_fields__}
        try:
            made = self.make(**values | ({"seed": seed} if self.draws else {}))
        except InputError as error:
            raise InputError(f"{self.place}.{error.place}", error.found, error.expected) from None
        except Exception as error:  # the code may be the user's own
            found = f"{type(error).__name__}: {error}"
            raise InputError(self.place, found, "parameters that it can use") from error
        if not isinstance(made, Instance):
            raise InputError(self.place, f"a {type(made).__name__}", "a maker of instances")
        return made


def _maker(word: str, folder: Path, place: str) -> Callable[..., Any]:
    """Return a generator by its name, or a function from a Python file."""
    if word in GENERATORS:
        return GENERATORS[word]
    if (plugin := find("makers", word)) is not None:
        made: Callable[..., Any] = plugin.load(place)
        return made
    match = re.fullmatch(r"(.+\.py):(\w+)", word)
    if match is None:
        expected = f"one of {', '.join([*GENERATORS, *known('makers')])}, or FILE.py:NAME"
        raise InputError(f"{place}.make", show(word), expected)
    path, name = folder / match[1], match[2]
    try:
        there = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        found = f"{path}: {type(error).__name__}: {error}"
        raise InputError(f"{place}.make", found, "a file that can be imported") from error
    functions = {key: value for key, value in there.items() if inspect.isfunction(value)}
    if name not in functions:
        raise InputError(f"{place}.make", f"no function {show(name)}", one_of(functions, name))
    return functions[name]


@dataclass(frozen=True, slots=True)
class Cell:
    """A run of a suite, and its value on each axis."""

    at: dict[str, str]
    case: RunCase


@dataclass(slots=True)
class Expanded:
    """All runs of a suite.

    Instances that the suite makes are stored below the folder `out` by `keep`. Code is searched for
    in the folder `beside`, and the places of errors begin with `before`.
    """

    out: Path
    before: str = ""
    beside: Path = Path()
    cells: list[Cell] = field(default_factory=list)
    made: dict[str, Instance] = field(default_factory=dict)
    named: dict[str, tuple[Instance, str]] = field(default_factory=dict)

    @property
    def cases(self) -> tuple[RunCase, ...]:
        """The cases without duplicates, because two cells may ask for the same work."""
        return tuple({cell.case.key: cell.case for cell in self.cells}.values())

    @property
    def axes(self) -> dict[str, list[str]]:
        """The values of each axis."""
        found: dict[str, dict[str, None]] = {axis: {} for axis in FIXED}
        for cell in self.cells:
            for axis, value in cell.at.items():
                found.setdefault(axis, {})[value] = None
        return {axis: list(values) for axis, values in found.items()}

    def keep(self) -> None:
        """Write the instances that are not packaged and not yet stored."""
        for source, instance in self.made.items():
            keep(self.out, source, instance)
        for source, (instance, _) in self.named.items():
            keep(self.out, source, instance)

    def tighten(self, watch: Callable[[str, float], None]) -> None:
        """Bound the instances of runs that ask for a tight bound, and keep their certificates.

        `watch` is called with the name of an instance and the share of its search that is done.
        """
        from ronda.solvers.prices.over_time import tight_bound_s  # loads HiGHS

        found_s = dict[str, float]()  # once for all policies and seeds of an instance
        for k, cell in enumerate(self.cells):
            case, own = cell.case, cell.case.fingerprint
            if case.bound_effort == "tight":
                if own not in found_s:
                    plain = self.made.get(case.source) or self.named[case.source][0]
                    instance = case.variant.apply(plain)
                    path = self.out / "bounds" / f"{own}.json.zst"
                    found_s[own] = tight_bound_s(instance, path, partial(watch, case.workload))
                self.cells[k] = Cell(cell.at, replace(case, tight_bound_s=found_s[own]))

    def add(self, part: SuitePart) -> None:
        """Add the cells of a part."""
        place = f"{self.before}change"
        seeds = parse_seeds(part.seeds, f"{self.before}seeds" if self.before else "--seeds")
        sources, changes = list(self._sources(part)), list(points(part.change, place))
        self._recorded(part, sources)
        made = {axis for source in sources for axis in source.at}
        changed = {axis for at, _ in changes for axis in at}
        for axis in sorted(made & changed | (made - {FIXED[0]} | changed) & {*FIXED}):
            raise InputError(place, f"another axis {show(axis)}", "a name of its own for each")
        for axis in part.by_seed:
            if axis not in made | changed:
                raise InputError(f"{self.before}by_seed", show(axis), one_of(made | changed, axis))
        for source, (at, fields) in product(sources, changes):
            stands, variant = source.at | at, _variant(fields, place)
            dealt = [stands[axis] for axis in part.by_seed]
            own = [s for s in seeds if all(s % level.places == level.place for level in dealt)]
            drawn = source.draws or variant.draws
            for some in [[s] for s in own] if drawn else [own] * bool(own):
                self._add(part, source, stands, variant, some)

    def _add(
        self,
        part: SuitePart,
        source: InstanceSource,
        stands: At,
        variant: Variant,
        seeds: list[int],
    ) -> None:
        word, plain = source.load(seeds[0])
        watts = None if variant.factor is None else variant.factor * reference_w(plain)
        seed = seeds[0] if variant.draws else 0
        variant = replace(variant, seed=seed, sustained_w=watts or variant.sustained_w)
        varied = variant.apply(plain)
        labels = {axis: level.label for axis, level in stands.items()}
        for level in part.knowledge:
            told = level == "history" and bool(part.predictor)
            made = cases(
                {word: (varied, fingerprint(varied))},
                self._policies(part),
                seeds,
                time_limit_s=part.time_limit_s,
                levels=(level,),
                variant=variant,
                predictor=Path(part.predictor) if told else None,
                bound=part.bound or "quick",
                make=self._policy,
            )
            for case in made:
                name = case.label.removesuffix(f" [{level}]")
                fixed = {"policy": name, "knowledge": level, "seed": str(case.seed)}
                self.cells.append(Cell(labels | fixed, case))

    def _recorded(self, part: SuitePart, sources: Sequence[InstanceSource]) -> None:
        """Add a cell for each schedule of a log, which is of one of the part's instances."""
        if not part.recorded:
            return
        loaded = [(source, *source.load(0)) for source in sources if not source.draws]
        for path in part.recorded:
            own, file = RecordedFile.by(Path(path), [instance for _, _, instance in loaded])
            source, word = next((s, word) for s, word, instance in loaded if instance is own)
            case = RunCase(
                source=word,
                instance=own.name,
                fingerprint=fingerprint(own),
                label=RECORDED,
                policy=RECORDED,
                recorded=file,
                bound_effort=part.bound or "quick",
            )
            fixed = {"policy": RECORDED, "knowledge": part.knowledge[0], "seed": "0"}
            at = {axis: level.label for axis, level in source.at.items()}
            self.cells.append(Cell(at | fixed, case))

    def _sources(self, part: SuitePart) -> Iterator[InstanceSource]:
        """Yield the instances of a part, one for each combination of a table's parameters."""
        for k, entry in enumerate(part.instances):
            if isinstance(entry, str):
                loaded = load(entry)
                if not isinstance(loaded, Instance):
                    hint = f"an instance (decide a single round with: ronda solve {entry})"
                    raise InputError(entry, "a round", hint)
                self.named[entry] = loaded, fingerprint(loaded)
                at = {FIXED[0]: AxisValue(loaded.name, k, len(part.instances))}
                yield InstanceSource(at, False, lambda _, e=entry, i=loaded: (e, i))  # type: ignore[misc]
                continue
            place, table = f"{self.before}instances[{k}]", dict(entry)
            word = str(table.pop("make", ""))
            name = str(table.pop("name", word.rpartition(":")[2]))
            maker = Maker(word, self.beside, place)
            for at, fields in points(table, place):
                title = "-".join([name, *(f"{axis}{level.label}" for axis, level in at.items())])
                whole = {FIXED[0]: AxisValue(name, k, len(part.instances))} | at
                yield InstanceSource(whole, maker.draws, self._making(maker, fields, title))

    def _making(
        self, maker: Maker, fields: Mapping[str, Any], title: str
    ) -> Callable[[int], tuple[str, Instance]]:
        """Return a function that makes an instance for a seed and returns it with its path."""

        def make(seed: int) -> tuple[str, Instance]:
            made = maker(fields, seed)
            made = replace(made, name=f"{title}-{seed}" if maker.draws else title)
            path = str(kept_at(self.out, made.name, fingerprint(made)))
            self.made[path] = made
            return path, made

        return make

    def _policies(self, part: SuitePart) -> list[str]:
        """Return the policies of a part as written on the command line."""
        found = []
        for k, entry in enumerate(part.policies):
            table = {"policy": entry} if isinstance(entry, str) else entry
            for _, given in points(table, f"{self.before}policies[{k}]"):
                name = given.pop("policy", "")
                inside = ", ".join(f"{key}={value}" for key, value in given.items())
                found.append(f"{name}({inside})" if inside else str(name))
        return found

    def _policy(self, label: str) -> Policy:
        """Make a policy; the user's own file is also searched for next to the suite."""
        name, parameters = parse(label)
        file, colon, _ = name.rpartition(":")
        there = f"{self.beside / name}" if colon and (self.beside / file).exists() else name
        return policy(there, **parameters)


def expand(suite: Suite, out: Path, place: str = "", beside: Path = Path()) -> Expanded:
    """Return the runs of a suite; error messages begin with its file, `place`."""
    found = Expanded(out, f"{place}, " if place else "", beside)
    for part in suite.parts():
        for name in ("instances", "policies"):
            if not getattr(part, name):
                raise InputError(f"{found.before}{name}", "none", "at least one")
        try:
            found.add(part)
        except InputError as error:
            if error.place.startswith(found.before):
                raise
            where = error.place.replace("--policy", "policies")
            raise InputError(found.before + where, error.found, error.expected) from None
    refuse_namesakes(found.named)
    # Parts may make different changes at the same axis values.
    groups: dict[Any, list[Cell]] = {}
    for cell in found.cells:
        at = frozenset(p for p in cell.at.items() if p[0] not in {"policy", "knowledge", "seed"})
        groups.setdefault(at, []).append(cell)
    for group in groups.values():
        words = [list(filter(None, cell.case.variant.title.split(", "))) for cell in group]
        shared = set(words[0]).intersection(*words)
        for cell, all_words in zip(group, words, strict=True):
            own = [word for word in all_words if word not in shared]
            cell.at["instance"] = ", ".join([cell.at["instance"], *own])
    return found


def _variant(fields: Mapping[str, Any], place: str) -> Variant:
    """Return the variant for the fields of a change; a budget sets only the variant's factor."""
    given, known = dict(fields), {*Variant.__struct_fields__, "budget"} - {"seed", "factor"}
    for name in sorted(given.keys() - known):
        raise InputError(place, f"unknown field {show(name)}", one_of(known, name))
    if "budget" in given:
        given["factor"] = converted(given.pop("budget"), Positive, f"{place}.budget")
    made: Variant = converted(given, Variant, f"{place}.") if given else UNCHANGED
    return made


def points(table: Mapping[str, Any], place: str) -> Iterator[tuple[At, dict[str, Any]]]:
    """Yield the combinations of a table's values; a list or a table of tables is an axis."""
    choices: list[list[tuple[At, Any]]] = []
    for name, value in table.items():
        named = isinstance(value, dict) and any(isinstance(v, dict) for v in value.values())
        if named or isinstance(value, list):
            labels = [written(each, f"{place}.{name}[{k}]") for k, each in enumerate(value)]
            if len({*labels}) < max(1, len(labels)):
                raise InputError(f"{place}.{name}", show(value), "different values, one at least")
            each = value.values() if named else value
            levels = (AxisValue(label, k, len(labels)) for k, label in enumerate(labels))
            choices.append([({name: at}, one) for at, one in zip(levels, each, strict=True)])
        elif isinstance(value, dict):
            choices.append(list(points(value, f"{place}.{name}")))
        else:
            choices.append([({}, value)])
    for chosen in product(*choices):
        at = {name: level for each, _ in chosen for name, level in each.items()}
        yield at, dict(zip(table, (value for _, value in chosen), strict=True))


def written(value: Any, place: str = "") -> str:
    """Write a value of an axis."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return value if isinstance(value, str) else f"{value:g}"
    expected = "a text or a number; several tables stand by names, as [change.faults.NAME]"
    raise InputError(place, show(value), expected)
