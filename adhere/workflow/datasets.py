"""The datasets of a call, by the names that they have in results, and what a model gets of them."""

from adhere import data, sources
from adhere.errors import ConfigError
from adhere.names import unlimited
from adhere.plan import Cell, Plan
from adhere.prediction import asks_model, with_recordings
from adhere.workflow.wildcards import Wildcards, cell_of


class PlannedDatasets:
    """The datasets of a plan; each is read once for each state of its file."""

    def __init__(self, plan: Plan) -> None:
        self._project = plan.project
        self._known = sources.Datasets(plan.project.root, accept=plan.accept_dataset)

    # Questions of the rules

    def file(self, wildcards: Wildcards) -> str:
        """Return the file of a job's dataset."""
        return self._file(unlimited(wildcards.dataset)[0])

    def sha256(self, wildcards: Wildcards) -> str:
        """Checksum over a whole dataset."""
        return self.load(wildcards.dataset).sha256

    def inputs_sha256(self, wildcards: Wildcards) -> str:
        """Checksum over everything of a dataset that answers are made from."""
        return self.given(cell_of(wildcards)).inputs_sha256

    # For the stages

    def load(self, name: str) -> data.Dataset:
        """Return a dataset, with its limit. Raises ConfigError or DataError."""
        base, limit = unlimited(name)
        return self._known.load(base, self._project.root / self._file(base)).first(limit)

    def given(self, cell: Cell) -> data.Dataset:
        """Return a dataset as a model is given it. Raises DataError for a missing recording."""
        return with_recordings(self._project, cell, self.load(cell.dataset))

    def asks_model(self, cell: Cell) -> bool:
        """Whether a cell takes a model: recorded items need none."""
        return asks_model(self.given(cell).rows)

    def asks_judge(self, name: str) -> bool:
        """Whether a dataset holds a constraint that only a judge can decide."""
        return data.asks_judge(self.load(name).rows)

    def record(self) -> None:
        """Record checksums that are new; warn where that is not possible."""
        self._known.record()

    def _file(self, base: str) -> str:
        datasets = self._project.config.datasets
        if base not in datasets:
            raise ConfigError(
                f"configs/global.yaml: datasets: there is no {base!r} (there are: "
                f"{', '.join(datasets)})"
            )
        return datasets[base]
