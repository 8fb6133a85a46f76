"""Schemas, the page of formats and the reader say the same."""

import copy
import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ronda.instances import generate
from ronda.instances.arguments import described
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.files import canonical
from ronda.instances.files.json import KINDS, decode, read, write
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.validate import normal
from ronda.instances.schedule import Schedule
from tools import formats_page
from tools import schema as schemas

DOCS = Path(__file__).resolve().parents[2] / "docs"
VALIDATORS = {name: Draft202012Validator(schemas.schema(name)) for name in KINDS}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=3,
)


def values(info):
    """Return a strategy for everything that msgspec's description of a type allows."""
    inspect = msgspec.inspect
    match info:
        case inspect.AnyType():
            return JSON
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            most = info.le if info.le is not None else 1000
            return st.integers(info.ge if info.ge is not None else -1000, most)
        case inspect.FloatType():
            low = info.gt if info.gt is not None else info.ge
            most = info.lt if info.lt is not None else info.le
            return st.floats(
                low,
                most,
                exclude_min=info.gt is not None,
                exclude_max=info.lt is not None,
                allow_nan=False,
                allow_infinity=False,
            )
        case inspect.StrType():
            return st.text(min_size=info.min_length or 0, max_size=4)
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.EnumType():
            return st.sampled_from(list(info.cls))
        case inspect.VarTupleType():
            return st.lists(values(info.item_type), max_size=2).map(tuple)
        case inspect.TupleType():
            return st.tuples(*map(values, info.item_types))
        case inspect.DictType():
            return st.dictionaries(st.text(max_size=3), values(info.value_type), max_size=2)
        case inspect.UnionType():
            return st.one_of(*map(values, info.types))
        case inspect.StructType():
            fields = {f.name: values(f.type) for f in info.fields}
            return st.builds(info.cls, **fields)
    raise AssertionError(f"no strategy for {info}")


STRATEGIES = {name: values(msgspec.inspect.type_info(kind)) for name, kind in KINDS.items()}
relaxed = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


@pytest.mark.parametrize("name", KINDS)
@relaxed
@given(data=st.data())
def test_whatever_the_types_allow_survives_writing(name, data):
    """Canonical JSON of any object satisfies the schema, gives an equal object and equal bytes."""
    obj = normal(data.draw(STRATEGIES[name]))
    text = canonical.encode(obj)
    VALIDATORS[name].validate(json.loads(text))
    back = msgspec.json.decode(text, type=KINDS[name])
    assert back == obj
    assert canonical.encode(back) == text


@pytest.mark.parametrize("name", ["ronda/plan/1", "ronda/schedule/1"])
@relaxed
@given(data=st.data())
def test_any_plan_and_schedule_can_be_written_and_read(name, data, tmp_path_factory):
    """These kinds have no cross-references, so whatever their types allow is a valid file."""
    obj = normal(data.draw(STRATEGIES[name]))
    path = tmp_path_factory.mktemp("any") / "x.json.gz"
    write(obj, path)
    assert read(path) == obj


@relaxed
@given(
    seed=st.integers(0, 2**32),
    jobs=st.integers(1, 20),
    severity=st.sampled_from(list(generate.SEVERITIES)),
)
def test_generated_objects_can_be_written_and_read(seed, jobs, severity, tmp_path_factory):
    """Valid instances and rounds come back equal, through the whole reader."""
    folder = tmp_path_factory.mktemp("generated")
    made = (
        generate.tiny_round(seed),
        generate.round(jobs, severity=severity, seed=seed),
        generate.horizon(jobs, 16, severity, seed),
    )
    for obj in made:
        write(obj, folder / "x.json.zst")
        assert read(folder / "x.json.zst") == obj


@pytest.mark.parametrize("name", schemas.KINDS)
def test_schema_file_is_that_of_the_code(name):
    """Run ``python -m tools.schema`` if this fails."""
    path = DOCS / "schemas" / schemas.file_name(name)
    assert path.read_text(encoding="utf-8") == schemas.text(name)


def test_no_schema_file_is_left_over():
    """Every file in docs/schemas belongs to a format."""
    found = {path.name for path in (DOCS / "schemas").iterdir()}
    assert found == {schemas.file_name(name) for name in schemas.KINDS}


def test_the_tables_of_the_page_are_those_of_the_code():
    """Run ``python -m tools.schema`` if this fails."""
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    assert formats_page.fill(page, [schemas.schema(name) for name in schemas.KINDS]) == page


def test_a_record_without_a_table_is_noticed():
    """A new type cannot be forgotten on the page, nor a type that is gone be left there."""
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    made = [schemas.schema(name) for name in schemas.KINDS]
    without = re.sub(r"<!-- fields of Rack -->.*?<!-- end -->", "", page, flags=re.DOTALL)
    with pytest.raises(ValueError, match="Rack"):
        formats_page.fill(without, made)
    with pytest.raises(ValueError, match="Wheel"):
        formats_page.fill(page + "<!-- fields of Wheel -->\n<!-- end -->", made)


def test_write_makes_what_is_in_the_repository(tmp_path):
    """The command fills empty tables and writes every schema."""
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    empty = re.sub(r"(<!-- fields of \w+ -->\n).*?(<!-- end -->)", r"\1\2", page, flags=re.DOTALL)
    (tmp_path / "formats.md").write_text(empty, encoding="utf-8")
    schemas.write(tmp_path)
    assert (tmp_path / "formats.md").read_text(encoding="utf-8") == page
    for path in (DOCS / "schemas").iterdir():
        assert (tmp_path / "schemas" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", KINDS)
def test_schemas_are_valid_and_every_field_is_described(name):
    """A schema obeys its dialect and leaves no field without a sentence."""
    made = schemas.schema(name)
    Draft202012Validator.check_schema(made)
    parts = [made, *(part for part in made["$defs"].values() if "enum" not in part)]
    for part in parts:
        assert part["description"]
        fields = part.get("properties", {}).values() or part.get("prefixItems", ())
        assert all(field["description"] for field in fields)


@pytest.mark.parametrize("kind", [Instance, Round, Plan, Schedule, Demand])
def test_docstrings_describe_only_fields_and_properties(kind):
    """A field that was renamed or removed does not live on in the documentation."""
    for struct in schemas.structs(kind).values():
        known = set(struct.__struct_fields__) | set(dir(struct))
        assert set(described(struct)) <= known


@pytest.mark.parametrize("kind", ["instance", "round", "plan", "schedule", "demand"])
def test_examples_on_the_page_are_valid(kind):
    """Each example can be read, and satisfies the schema."""
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    examples = re.findall(rf"```json {kind}\n(.*?)```", page, flags=re.DOTALL)
    assert examples
    for text in examples:
        obj = decode(text.encode(), "example")
        name = next(name for name in KINDS if f"/{kind}/" in name)
        assert type(obj) is KINDS[name]
        VALIDATORS[name].validate(json.loads(text))


DOCUMENTS = [
    json.loads(canonical.encode(obj))
    for obj in (generate.horizon(2, 8), generate.round(2), generate.tiny_round(3))
] + [
    json.loads(text)
    for text in re.findall(
        r"```json (?:plan|schedule|instance|demand)\n(.*?)```",
        (DOCS / "formats.md").read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
]


def places(document, path=()):
    """Yield the path of everything inside a document."""
    yield path
    inner = document.items() if isinstance(document, dict) else ()
    inner = enumerate(document) if isinstance(document, list) else inner
    for key, value in inner:
        yield from places(value, (*path, key))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_slip_gives_anything_but_one_line(data):
    """Whatever is replaced, removed or added anywhere, reading works or fails in one line."""
    document = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    *way, last = data.draw(st.sampled_from([p for p in places(document) if p]))
    spot = document
    for step in way:
        spot = spot[step]
    slip = data.draw(st.sampled_from(["replace", "remove", "add"]))
    if slip == "replace":
        spot[last] = data.draw(JSON)
    elif slip == "remove":
        del spot[last]
    elif isinstance(spot, list):
        spot.append(data.draw(JSON))
    else:
        spot[data.draw(st.text(max_size=3))] = data.draw(JSON)
    try:
        decode(json.dumps(document).encode(), "x.json")
    except InputError as error:
        message = str(error)
    else:
        message = "x.json"
    assert message.startswith("x.json")
    assert "\n" not in message
