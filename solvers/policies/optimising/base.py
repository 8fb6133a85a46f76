"""What the policies that optimise one round's allocation model share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.objectives.forms import minds_power
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import OPTIMISING, Capability, Deadline
from ronda.solvers.decision.plan import Choice, to_plan
from ronda.solvers.decision.question import Question
from ronda.solvers.greedy.in_time import in_time


@dataclass(frozen=True, kw_only=True)
class Optimising(ABC):
    """Build the options of a round and their values, choose, and place the choice on nodes.

    What the choice cannot realise on nodes is left out, and the plan's objective and gap are
    those of what is placed.
    """

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    capabilities: ClassVar[Capability] = OPTIMISING

    objective: str = "rank"
    gap: float = 1e-4
    elastic: bool = True

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        if not 0 <= self.gap < 1:
            raise InputError(f"{self.name}: gap", f"{self.gap:g}", "a number from 0 to below 1")
        minds_power(self.objective)  # refuses an unknown objective

    @property
    def parameters(self) -> dict[str, float]:
        """The objective's parameters, where they are not its own defaults."""
        return {}

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round."""
        return self.answer(self.question(round, deadline, seed), deadline, initial)

    def question(self, round: Round, deadline: Deadline, seed: int) -> Question:
        """Build the options of a round and what they are worth."""
        return Question.of(
            round,
            self.objective,
            policy=self.name,
            packages=self.packages,
            seed=seed,
            deadline=deadline,
            elastic=self.elastic,
            parameters=self.parameters,
        )

    def answer(self, question: Question, deadline: Deadline, initial: Plan | None) -> Plan:
        """Choose among the options of a question, and place the choice."""
        choice = self.choose(question, deadline, initial)
        return self.finish(question, choice, to_plan(question, choice, deadline), initial)

    def finish(self, question: Question, choice: Choice, plan: Plan, initial: Plan | None) -> Plan:
        """Return the plan as it is carried out; by default as it is."""
        return plan

    @abstractmethod
    def choose(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose every job's option."""
