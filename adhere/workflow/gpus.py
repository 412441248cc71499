"""How many GPUs a model or judge takes that a job serves, of those that this machine has."""

from adhere.gpus import Sharing, pool_of
from adhere.workflow.call import Call


class Gpus:
    """What the jobs of a call may take together; without limits until ``share`` learns of some."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._project = call.plan.project
        # The GPUs of this machine; None where jobs run elsewhere, or none takes any.
        self.sharing: Sharing | None = None

    def share(self, stated: int | None) -> int | None:
        """Learn which GPUs are shared by the jobs that run on this machine; return how many.

        ``stated`` is ``--resources gpu=N``. None where nothing that is selected takes any.
        """
        call, project = self._call, self._project
        models = [project.models[name] for name in call.plan.modes] if call.predicts else []
        judges = [project.judges[name].local for name in call.plan.judges] if call.judges else []
        served = [model for model in models if model.is_local] + [j for j in judges if j]
        if not any(local.gpu_count for local in served):
            return None
        self.sharing = Sharing(pool_of(call.plan.config), stated)
        return self.sharing.limit

    @property
    def pool_size(self) -> int | None:
        """GPUs that local models share; None where they have none in common, as on a cluster."""
        return self.sharing.limit if self.sharing is not None else None

    @property
    def names(self) -> list[str]:
        """The names of these GPUs; none where a call may take fewer than there are."""
        devices = self.sharing.pool.devices if self.sharing is not None else ()
        return [device.name for device in devices] if len(devices) == self.pool_size else []

    def servers(self, model: str) -> int:
        """Return how many servers a model gets. Raises ConfigError where not one finds room."""
        config = self._project.models[model]
        if self.sharing is None:
            return config.replicas
        return self.sharing.servers(config, config.replicas, self._project.model_file(model))

    def of_judge(self, judge: str) -> int:
        """GPUs that a judge takes which its job serves. Raises ConfigError without room for it."""
        local = self._project.judges[judge].local
        assert local is not None, "asked for judges that are served only"
        if self.sharing is not None:
            self.sharing.servers(local, 1, self._project.judge_file(judge))
        return local.gpu_count
