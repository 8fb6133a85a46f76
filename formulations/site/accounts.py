"""The rules of a round's site as accounts, for policies that add jobs one by one."""

from collections.abc import Callable
from typing import Protocol

from ronda.formulations.node_rules.host_rows import host_account
from ronda.formulations.node_rules.licences import licence_account
from ronda.formulations.node_rules.shapes import Shapes
from ronda.formulations.site.order import tasks
from ronda.formulations.tenants.quotas import quotas
from ronda.instances.job import Allocation, JobState
from ronda.instances.round import Round


class Account(Protocol):
    """What a rule still allows while jobs are added.

    Jobs that run already and go on are taken first, whether or not they fit: a limit that was
    lowered stops nobody.
    """

    def fits(self, state: JobState, given: Allocation) -> bool:
        """Return whether the rule allows one more job with an allocation.

        An allocation without a placement asks only for what does not depend on nodes.
        """
        ...

    def take(self, state: JobState, given: Allocation) -> None:
        """Add a job with its allocation, whether or not it fits."""
        ...


ACCOUNTS: tuple[Callable[[Round], Account | None], ...] = (
    tasks,
    host_account,
    licence_account,
    quotas,
    Shapes.of,
)
"""Functions that return the account of a rule with no job yet, or None if the round does not have
the rule."""


def accounts(round: Round) -> tuple[Account, ...]:
    """Return the accounts of all rules of a round's site, with no job yet."""
    found = (account(round) for account in (ACCOUNTS if round.has_rules else ()))
    return tuple(account for account in found if account is not None)
