"""A small round of tasks that tests share."""

import numpy as np
import pytest

from ronda.instances.tasks.arrays import TaskRound


@pytest.fixture
def small():
    """Return a function that makes a round of three nodes, with other fields where given.

    Two nodes are of pool a with 4 CPUs and 8 GPUs, one is of pool b with as many. Tasks 0 and 1
    take (2, 1) and are a group; 2 is a gang of two slices of (1, 4); 3 and 4 are ways of one job to
    take (2, 1) or (4, 2); 5 takes (4, 2) in pool b only. Task 0 runs on node 0.
    """

    def made(**fields):
        usual = {
            "resources": ("cpu", "gpu"),
            "kinds": ("old", "new"),
            "capacity": np.array([[4, 8], [4, 8]]),
            "count": np.array([2, 1]),
            "pool": np.array([0, 1]),
            "pools": ("a", "b"),
            "use": np.array([[2, 1], [1, 4], [4, 2], [4, 2]]),
            "slices": np.array([1, 2, 1, 1]),
            "speed": np.array([[1.0, 1.5], [1.0, 1.0], [1.0, 1.5], [0.0, 2.0]]),
            "shape": np.array([0, 0, 1, 0, 2, 3]),
            "value": np.array([10.0, 8.0, 6.0, 5.0, 9.0, 20.0]),
            "group": np.array([0, 0, -1, -1, -1, -1]),
            "job": np.array([0, 1, 2, 3, 3, 4]),
            "held_task": np.array([0]),
            "held_node": np.array([0]),
            "move_cost": np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        }
        return TaskRound(**(usual | fields))

    return made
