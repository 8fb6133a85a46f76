"""The packaged rounds."""

from typing import Any, ClassVar

from benchopt import BaseDataset

from ronda.instances.files.packaged import entries, load


class Dataset(BaseDataset):  # type: ignore[misc]
    """One packaged round."""

    name = "round"
    parameters: ClassVar = {"packaged": [e.name for e in entries() if e.kind == "round"]}

    def get_data(self) -> dict[str, Any]:
        """Return the round."""
        return {"round": load(self.packaged)}
