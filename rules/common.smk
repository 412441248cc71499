# What the rules look up: the plan of this call, and each job's slice of it. No rules here.

import os
import re
import sys
from functools import lru_cache
from pathlib import Path

from adhere import workflow as adhere_workflow
from adhere.errors import AdhereError
from adhere.lifeline import export_workflow_pid
from adhere.names import MODE_PATTERN


def planned():
    """Read and validate all configuration, and apply --config and the targets to it."""
    try:
        return adhere_workflow.view(Path.cwd(), config, sys.argv[1:])
    except AdhereError as error:
        sys.exit(f"error: {error}")


VIEW = planned()
if workflow.is_main_process:
    export_workflow_pid()


pathvars:
    results=VIEW.results_root,
    logs=VIEW.logs_root,


wildcard_constraints:
    model=r"[^/]+",
    mode=MODE_PATTERN,
    run=r"[1-9]\d*",
    judge=r"[^/]+",
    dataset=r"[^/]+",


def dataset_file(wildcards):
    return VIEW.dataset_file(wildcards.dataset)


def served(wildcards):
    return VIEW.served(wildcards)


def reopened_prediction(wildcards):
    return VIEW.reopened_prediction(wildcards)


def reopened_judging(wildcards):
    return VIEW.reopened_judging(wildcards)


def prediction_state(wildcards):
    return VIEW.prediction_state(wildcards)


def unfinished(wildcards):
    return VIEW.unfinished(wildcards.model)


def gpus(wildcards):
    return VIEW.gpus(wildcards.model)


def judge_hash(wildcards):
    return VIEW.judge_hash(wildcards.judge)


def dataset_sha256(wildcards):
    return VIEW.dataset(wildcards.dataset).sha256


def begin():
    """Before the first job: one workflow at a time, and every key that the plan needs is there."""
    try:
        VIEW.begin((job.rule.name, job.wildcards) for job in workflow.dag.needrun_jobs())
    except AdhereError as error:
        sys.exit(f"error: {error}")


def finish():
    """After the last job: what is left to be tried again makes the call fail, in one line."""
    message = VIEW.open_work()
    if message:
        sys.exit(message)


def report_failure():
    """After a failed job: the summary still reports everything that is finished."""
    VIEW.rebuild_summary()
