"""What makes an instance or a round consistent.

One file an object that can be wrong, and what is said of it: where, what was found, what was
expected. Nothing here reads files or looks at answers.
"""

from ronda.instances.rules.problem import Problem
from ronda.instances.rules.validate import MalformedError, normal

__all__ = [
    "MalformedError",
    "Problem",
    "normal",
]
