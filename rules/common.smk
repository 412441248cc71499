# What the rules look up: the plan of this call, and each job's slice of it. No rules here.

import sys
from pathlib import Path

from snakemake.io import IOFile

from adhere.errors import AdhereError
from adhere.lifeline import export_workflow_pid
from adhere.names import MODE_PATTERN
from adhere.workflow import view


def plainly(function, *arguments):
    """Call a function of the package; what is wrong is said in a line, without a traceback."""
    try:
        return function(*arguments)
    except AdhereError as error:
        sys.exit(f"error: {error}")


def on_record(path):
    """Say whether Snakemake remembers how it made a file."""
    return workflow.persistence.metadata(IOFile(path)) is not None


VIEW = plainly(view, Path(), config, sys.argv[1:])
VIEW.on_record = on_record
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


def plan(question):
    """Return a function of a job's wildcards that asks the plan (a method of adhere's View)."""

    def answer(wildcards):
        return plainly(getattr(VIEW, question), wildcards)

    return answer


def begin():
    """Before the first job: one workflow at a time, and every key that the plan needs is there."""
    jobs = [(job.rule.name, job.wildcards) for job in workflow.dag.needrun_jobs()]
    plainly(VIEW.begin, jobs)


def finish():
    """After the last job: what is left to be tried again makes the call fail, in one line."""
    message = plainly(VIEW.open_work)
    if message:
        sys.exit(message)


def report_failure():
    """After a failed job: the summary still reports everything that is finished."""
    plainly(VIEW.rebuild_summary)
