"""``--dask``: share a policy's work among the workers of a Dask cluster."""

import click

from ronda.instances.errors import InputError

LOCAL = "local"

dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Share the work of 'prices' in rounds of thousands of jobs among the workers of a Dask "
    "cluster, such as tcp://127.0.0.1:8786, or of one that is started here: local. Same plan.",
)


def with_dask(spec: str, address: str | None) -> str:
    """Return a policy with its parameters, connected to a cluster if there is an address.

    Parameters
    ----------
    spec
        As in ``prices(gap=1e-3)``.
    address
        Of a scheduler; ``local`` or empty for a cluster that is started here; None for none.

    Raises
    ------
    InputError
        If the policy cannot share its work, has an address already, or nobody answers there.
    """
    if address is None:
        return spec
    from ronda.solvers.registry import POLICIES, parameters_of, parse

    name, given = parse(spec)
    if "dask" not in parameters_of(name):
        able = ", ".join(n for n in POLICIES if "dask" in parameters_of(n))
        raise InputError(
            "--dask", f"--policy {name}, which cannot share its work", f"one of: {able}"
        )
    if "dask" in given:
        raise InputError("--dask", f"{address!r} and --policy {spec}", "one address")
    where = address.strip() or LOCAL
    from ronda.solvers.dask.client import client

    client(where)  # an address where nobody answers is an error before any work
    inside = ", ".join(f"{key}={value}" for key, value in (given | {"dask": where}).items())
    return f"{name}({inside})"
