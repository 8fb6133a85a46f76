"""Packaged certificates prove what they claim, and bounds of their instances use them."""

import pytest

from ronda.formulations.bounds.certificate import check_bound, packaged_bound
from ronda.formulations.bounds.clairvoyant import bounds
from ronda.instances.files import storage
from ronda.instances.files.packaged import load

NAMES = [name.removesuffix(".json.zst") for name in storage.packaged_folder("bounds")]


def test_a_packaged_certificate_is_of_a_packaged_instance_as_it_is_now():
    """The bound of the instance is that of the certificate, without a search."""
    assert NAMES
    for name in NAMES:
        found, certificate = bounds(load(name)), packaged_bound(load(name))
        assert certificate is not None, name
        assert (found.proof, found.mean_jct_s) == ("packaged", certificate.mean_jct_s)


@pytest.mark.parametrize(
    "name", [n if n == "gangs" else pytest.param(n, marks=pytest.mark.soak) for n in NAMES]
)
def test_a_packaged_certificate_proves_its_bound(name):
    """Evaluated on any machine, it proves at least its claim."""
    instance = load(name)
    assert check_bound(instance, packaged_bound(instance)) >= packaged_bound(instance).mean_jct_s
