"""A team's repository: an instruction set of its own, and an agent that the mock plays."""

from typing import Any

from mock_endpoint import Reply, Rule, RunningMock
from workflow_project import WorkflowProject, judge_config, make_project, model_config

ITEMS = 24
GOOD = '{"product": "lamp", "price": 12}'
# Says too much, and no longer as JSON.
BAD = "Sure! Here is what I found. The lamp costs 12. Anything else? Just ask."


def instruction_set(items: int = ITEMS, *, ask: bool = True) -> dict[str, Any]:
    """Return a set: a hard rule, a format rule, a soft one and a question for the judge."""
    constraints: list[dict[str, Any]] = [
        {"id": "json", "rule": "json", "category": "hard"},
        {"id": "short", "rule": "sentences", "args": {"max": 2}},
        {"id": "no-thanks", "rule": "not_contains", "args": {"keywords": ["thanks"]}},
    ]
    constraints[2]["severity"] = "should"
    if ask:
        constraints.append({"id": "polite", "ask": "The answer must be polite."})
    return {
        "defaults": {"scenario": "prices"},
        "items": [
            {
                "id": f"item-{number}",
                "instruction": f"Give product and price as JSON. Number {number}.",
                "constraints": constraints,
            }
            for number in range(items)
        ],
    }


def make_team(root: Any, mock: RunningMock, **globals_: Any) -> WorkflowProject:
    """Return a project with the set, one agent and one judge."""
    project = make_project(root, mock.base_url, mock.judge_url)
    agent = model_config(mock.base_url, "agent-1")
    agent["modes"] = {"plain": agent["modes"]["plain"]}
    (root / "configs" / "alpha.yaml").unlink()
    project.write_yaml("configs/agent.yaml", agent)
    project.write_yaml("judge_configs/strict.yaml", judge_config(mock.judge_url))
    project.write_yaml("data/team.yaml", instruction_set())
    project.change_yaml(
        "configs/global.yaml",
        datasets={"team": "data/team.yaml"},
        default_datasets=["team"],
        **globals_,
    )
    return project


def answers(mock: RunningMock, bad: range = range(0), verdict: str = "YES") -> None:
    """Have the agent answer well, but for some items; the judge says the same of all."""
    rules = [
        Rule(match=f"Number {number}.", judge=False, reply=Reply(content=BAD)) for number in bad
    ]
    rules += [
        Rule(judge=False, reply=Reply(content=GOOD)),
        Rule(judge=True, reply=Reply(content=verdict)),
    ]
    mock.configure(rules=rules)
