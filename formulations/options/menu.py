"""The configurations of one application in one pool: computed once, chosen from for every job."""

from ronda.formulations.models.efficiency import worth
from ronda.formulations.models.throughput import model_of, samples_per_s
from ronda.formulations.options.grid import minds_racks
from ronda.formulations.options.menu_section import Section, Terms
from ronda.formulations.options.pools import PoolShape
from ronda.formulations.remembered import remembered
from ronda.instances.job import Option
from ronda.instances.profile import NoiseScale, Profile, Rigid

# Entries that are kept of each kind; a block is about 1 KiB.
MOST_REMEMBERED = 8192


class Menu:
    """Rows of options of one profile in one pool, and what an option achieves on real nodes.

    Parameters
    ----------
    profile
        The application; it must have a throughput model of the pool's GPU type.
    shape
        The pool.
    """

    def __init__(self, profile: Profile, shape: PoolShape) -> None:
        self.profile, self.shape = profile, shape
        self.rigid = isinstance(model_of(profile, shape.pool.gpu_type), Rigid)
        self.minds_racks = minds_racks(profile, shape)
        self._sections: dict[Terms, Section] = {}
        self._speeds: dict[tuple[int, int, float, float, int], float] = {}

    def trim(self) -> None:
        """Forget everything once it is a lot; between two tables, never while one is built."""
        if sum(map(len, self._sections.values())) > MOST_REMEMBERED:
            self._sections.clear()
        if len(self._speeds) > MOST_REMEMBERED:
            self._speeds.clear()

    def section(self, terms: Terms) -> Section:
        """Return the rows for some terms."""
        section = self._sections.get(terms)
        if section is None:
            section = self._sections[terms] = Section(self.profile, self.shape, terms)
        return section

    def rate(self, option: Option, reach: tuple[int, int], noise: NoiseScale | None) -> float:
        """Return the rate of an option on so many nodes in so many racks; 0.0 if not feasible."""
        nodes, racks = reach
        key = (option.gpus, nodes, option.batch, option.clock, racks if self.minds_racks else 1)
        speed = self._speeds.get(key)
        if speed is None:
            gpu_type = self.shape.pool.gpu_type
            speed = self._speeds[key] = float(samples_per_s(self.profile, gpu_type, *key))
        if noise is None or self.rigid:
            return speed
        return speed * worth(noise, option.batch, self.profile.base_batch)


def menu(profile: Profile, shape: PoolShape) -> Menu:
    """Return the menu of a profile in a pool, kept with the profile."""
    key = ("menu", shape)
    return remembered(profile, key, lambda: Menu(profile, shape))
