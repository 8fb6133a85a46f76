"""The rules of a round's site as rows and terms over its options."""

from collections.abc import Callable

import msgspec
import numpy as np

from ronda.formulations.node_rules.host_rows import host_rows, too_much
from ronda.formulations.node_rules.licences import licence_rows
from ronda.formulations.node_rules.outages import staying_rows
from ronda.formulations.node_rules.parts import part_rows
from ronda.formulations.node_rules.shapes import named_rows, neighbour_rows
from ronda.formulations.node_rules.slices import slice_rows
from ronda.formulations.options.stages import Aim
from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.formulations.site.classes import strict_classes, worth_of_classes
from ronda.formulations.site.disruption import stopped
from ronda.formulations.site.order import array_rows, not_yet
from ronda.formulations.tenants.guarantees import (
    Guarantee,
    guarantees,
    owed_first,
    price_of_a_gpu,
    state_guarantees,
)
from ronda.formulations.tenants.quotas import state_quotas
from ronda.instances.base import Floats, Mask
from ronda.instances.round import Round
from ronda.instances.site import NO_SITE

FAMILIES: tuple[Callable[[Round, OptionTable, Floats, Sheet], None], ...] = (
    array_rows,
    staying_rows,
    host_rows,
    licence_rows,
    state_quotas,
    named_rows,
    neighbour_rows,
    slice_rows,
    stopped,
    part_rows,
)
"""Functions that state the rows of a rule, and add the worth of its terms, for options with the
given values (K,). A function states nothing if the round does not have its rule, or if the rule
cannot bind."""

FORBIDS: tuple[Callable[[Round, OptionTable], Mask | None], ...] = (
    not_yet,
    too_much,
)
"""Functions that return the options (K,) that a rule forbids whatever else runs, or None."""

FACTORS: tuple[Callable[[Round, OptionTable], Floats | None], ...] = (worth_of_classes,)
"""Functions that return a factor (K,) on the values of options, or None."""

AIMS: tuple[Callable[[Round, OptionTable, Floats], list[Aim]], ...] = (
    owed_first,
    strict_classes,
)
"""Functions that return the aims of a rule, which come before the objective one after the other,
for options with the given values (K,)."""


def aims_of(round: Round, table: OptionTable, values: Floats, added: Floats | float) -> list[Aim]:
    """Return the aims of a round's site, in the order in which they are served.

    The `values` (K,) include what terms have `added`, which counts for no aim.
    """
    if round.site == NO_SITE:
        return []
    return [aim for aims in AIMS for aim in aims(round, table, values - added)]


def under_site_rules(
    round: Round, table: OptionTable, values: Floats, at_rest: Callable[[], Floats]
) -> tuple[OptionTable, Floats, Floats, list[Guarantee]]:
    """Return the table with the site's rows, and the values (K,) under its rules.

    Options that a rule forbids have the value -infinity; current options stay, as nothing that runs
    is stopped by a rule that came later. Also return the part of the values from terms, (K,), and
    the guarantees of tenants among them. `at_rest` returns the values as if nobody ran.
    """
    if not round.has_rules:
        return table, values, np.zeros(len(table)), []
    sheet, factors = Sheet(len(table)), np.ones(len(table))
    for factor in FACTORS:
        by = factor(round, table)
        values = values if by is None else values * by
        factors = factors if by is None else factors * by
    for state in FAMILIES:
        state(round, table, values, sheet)
    claims = guarantees(round, table)
    if claims:
        price = price_of_a_gpu(table, at_rest() * factors)
        claims = state_guarantees(round, claims, price, sheet)
    values = values + sheet.worth
    for forbids in FORBIDS:
        found = forbids(round, table)
        if found is not None:
            values = np.where(found & ~table.current, -np.inf, values)
    rows = sheet.rows()
    if rows.names:
        table = msgspec.structs.replace(table, own=rows)
    return table, values, sheet.worth, claims
