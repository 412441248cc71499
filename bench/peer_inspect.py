"""inspect-ai on the mock, in its own environment: ITEMS QUESTIONS CONNECTIONS from argv.

Prints one JSON line: how many items have a result, how many of their scores are values.
"""

import json
import sys
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as run
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import generate

prompts = [json.loads(line)["question"] for line in Path(sys.argv[1]).read_text().splitlines()]
questions, connections = int(sys.argv[2]), int(sys.argv[3])
# Of its own accord a grader gets ten connections.
grader = get_model(
    "openai-api/judge/judge", config=GenerateConfig(max_connections=connections, max_retries=4)
)
task = Task(
    dataset=[Sample(input=prompt, target="Is every part short?") for prompt in prompts],
    solver=generate(),
    scorer=[
        model_graded_qa(
            template=f"[{number}] Is it so? {{question}} {{answer}} {{criterion}} {{instructions}}",
            instructions="Answer YES or NO.",
            grade_pattern="(YES|NO)",
            model=grader,
        )
        for number in range(questions)
    ],
)
(log,) = run(
    task,
    model="openai-api/model/m",
    max_connections=connections,
    max_samples=connections,
    max_retries=4,
    fail_on_error=False,
    display="none",
    log_dir=sys.argv[4],
)
done = [sample for sample in log.samples or [] if sample.error is None]
print(json.dumps({"items": len(done), "status": log.status}))
