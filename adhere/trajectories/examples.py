"""Short trajectories, for the examples beside the rules and for tests."""

from adhere.trajectories.form import Trajectory
from adhere.trajectories.loading import load


def run(*steps: object, answer: str | None = None, tools: list[str] | None = None) -> Trajectory:
    """Return the trajectory of these steps of the plain ``steps`` JSON.

    A text is a step that calls the tool of that name and sees ``ok``, a list a step with several
    actions, an object with ``tool`` a step with that action, any other object the step itself.
    """
    document = {
        "steps": [_step(step) for step in steps],
        "final_answer": answer,
        "tools": tools,
    }
    return load(document, format="steps")[0]


def _step(step: object) -> object:
    if isinstance(step, list):
        return {"actions": [_action(action) for action in step]}
    if isinstance(step, str) or (isinstance(step, dict) and "tool" in step):
        return {"action": _action(step)}
    return step


def _action(action: object) -> object:
    return {"tool": action, "result": "ok"} if isinstance(action, str) else action
