"""Documents of kubectl: any form of them, each object once, and what is broken in one line."""

import gzip
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube_objects import listed, node, pod, queue, workload
from ronda.hosts.clusters.kubernetes.kueue import read_kueue
from ronda.hosts.clusters.kubernetes.objects import Doc
from ronda.hosts.clusters.read import Text
from ronda.instances.errors import InputError

yaml = pytest.importorskip("yaml")

CLUSTER = listed(node("n1", gpus="8"), queue("q"), workload("w"), pod("p", on="n1", gpus=2))


def read(*texts):
    """Return the snapshot of some texts."""
    files = [Text(f"f{k}", text.encode()) for k, text in enumerate(texts)]
    return read_kueue(files, None)


def told(*texts):
    """Return the line by which some texts are refused."""
    with pytest.raises(InputError) as error:
        read(*texts)
    line = str(error.value)
    assert line.isprintable()
    return line


def test_every_form_gives_the_same_cluster(seen):
    """A List, kinds' own lists, a stream of JSON, several YAML documents, several files, gzip."""
    items = CLUSTER["items"]
    whole = seen("kueue", CLUSTER)
    kinds = [
        {"kind": f"{each['kind']}List", "apiVersion": each["apiVersion"], "items": [dict(each)]}
        for each in items
    ]
    for each in kinds:
        for item in each["items"]:
            del item["kind"], item["apiVersion"]  # as in the API's answers
    forms = [
        ["\n".join(json.dumps(each) for each in items)],
        [json.dumps(each) for each in items],
        [json.dumps(each) for each in kinds],
        [yaml.safe_dump_all(items)],
        [yaml.safe_dump(CLUSTER), "---\n---\n" + yaml.safe_dump(items[0])],
        [gzip.compress(json.dumps(CLUSTER).encode())],
    ]
    for form in forms:
        again = seen("kueue", *form)
        assert (again.nodes, again.jobs, again.tenants) == (whole.nodes, whole.jobs, whole.tenants)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"kind": "List", "items": [', "line 1 column 28: found the end of the file"),
        ('{"a": NaN}', "found NaN; expected a finite number"),
        ("[" * 100_000, "nested too deeply"),
        ("a: [1,\nb: 2", "f0, line 3 column 1: found broken YAML (did not find expected"),
        ("- " * 30_000 + "x", "found more than 200 levels"),
        ("", "found no object"),
        ("--- \n---\n", "found no object"),
        ("just words", 'found "just words"; expected an object'),
        ('{"metadata": {"name": "x"}}', "found no field kind"),
        ('{"kind": "Node", "metadata": {}}', "found no metadata.name"),
        ('{"kind": "NodeList", "items": 4}', "items: found 4; expected a list"),
        ("kind: !!bool maybe", "a value that its tag does not fit"),
        ("kind: !!timestamp soon", "a value that its tag does not fit"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("\x00\x01", "found unacceptable character"),
        ("a: &x [1]\nb: *x", "f0, line 2 column 4: found the alias *x"),
    ],
)
def test_broken_files_are_refused_in_one_line(text, words):
    """The line says where, and what would be right."""
    assert words in told(text)


def test_what_multiplies_itself_is_refused_at_once():
    """Nine levels of nine aliases would be 3e9 entries: the first alias is refused."""
    laughs = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    laughs += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 10)]
    begun = time.monotonic()
    assert "the alias *a0" in told("\n".join(laughs))
    assert time.monotonic() - begun < 1


def test_large_yaml_is_refused(monkeypatch):
    """The line names the way out."""
    monkeypatch.setattr("ronda.hosts.clusters.kubernetes.objects.YAML_MIB", 0)
    assert "kubectl get -o json" in told(yaml.safe_dump(CLUSTER))


def test_yaml_without_its_package(monkeypatch):
    """The extra is named; JSON needs none."""
    monkeypatch.setattr("ronda.instances.errors.installed", lambda package: package != "yaml")
    assert "pip install 'ronda[kubernetes]'" in told(yaml.safe_dump(CLUSTER))
    assert read(json.dumps(CLUSTER)).nodes


def test_an_object_in_two_states():
    """The same object twice is one; in two states it is a contradiction."""
    again = node("n1", gpus="4")
    assert len(read(json.dumps(CLUSTER), json.dumps(CLUSTER["items"][0])).nodes) == 1
    line = told(json.dumps(CLUSTER), json.dumps(again))
    assert line.startswith('f1: found Node "n1" in another state than in f0, items[0]')


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:01:00Z", 60),
        ("1970-01-01T01:01:00+01:00", 60),
        ("1970-01-01T00:01:00.500000Z", 60.5),
        ("0001-01-01T00:00:00Z", None),  # Go's zero
        (None, None),
    ],
)
def test_times(text, seconds):
    """Seconds since 1970, in any zone."""
    assert Doc({"at": text}, "here").time_s("at") == seconds


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("metadata", "creationTimestamp"), "yesterday", "creationTimestamp: found"),
        (("spec", "podSets", 0, "count"), "2", 'podSets[0].count: found "2"'),
        (("spec", "podSets", 0, "count"), 2**31, "a whole number of 32 bits"),
        (("spec", "podSets", 0, "template", "spec"), 7, "template.spec: found 7"),
        (
            ("spec", "podSets", 0, "template", "spec", "containers", 0, "resources", "requests"),
            {"cpu": "-1"},
            "a quantity of at least 0",
        ),
        (("spec", "podSets"), [], "found no spec.podSets"),
        (("spec", "priority"), True, "priority: found true"),
        (("status", "conditions"), {"type": "x"}, "a list"),
    ],
)
def test_odd_fields_are_named(path, value, words):
    """The line has file, object and field."""
    cluster = json.loads(json.dumps(CLUSTER))
    at = next(each for each in cluster["items"] if each["kind"] == "Workload")
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    line = told(json.dumps(cluster))
    assert words in line
    assert line.startswith('f0, items[3] (Workload "a/w")')


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
def test_half_documents_raise_nothing_else(cut, seed, as_yaml):
    """Any part of a document, and any field replaced by something else: a snapshot or one line."""
    text = yaml.safe_dump(CLUSTER) if as_yaml else json.dumps(CLUSTER)
    spoilt = hostile_value(json.loads(json.dumps(CLUSTER)), seed)
    for each in (text[: cut % len(text)], json.dumps(spoilt)):
        line = ""
        try:
            read(each)
        except InputError as error:
            line = str(error)
        assert line.isprintable()


def hostile_value(document, seed):
    """Return a document with one of its values replaced."""
    odd = [None, True, -1, 2**63, 1.5, "", "x", "-5", [], [None], {}, {"x": 1}, "1e3", ["a"]]
    places = []

    def walk(value):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            places.append((value, key))
            if isinstance(inner, dict | list):
                walk(inner)

    walk(document)
    parent, key = places[seed % len(places)]
    parent[key] = odd[seed // len(places) % len(odd)]
    return document
