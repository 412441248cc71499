# What the rules look up: the plan of this call, and each job's slice of it. No rules here.

import sys
from functools import cache
from inspect import signature
from operator import attrgetter
from pathlib import Path

from snakemake.io import IOFile

from adhere.errors import told
from adhere.gpus import mark_allocation
from adhere.lifeline import export_workflow_pid, pass_on_sigterm
from adhere.names import MODE_PATTERN
from adhere.workflow import make_view
from adhere.workflow.writable import check_writable

KEPT = (
    "Everything that was finished or answered is kept: the same command goes on from there and "
    "asks nothing twice."
)


def plainly(function, *arguments):
    """Call a function of the package; what is wrong is said in a line, without a traceback."""
    try:
        return function(*arguments)
    except Exception as error:
        message = told(error)
        if message is None:
            raise
        sys.exit(f"error: {message}")


def on_record(path):
    """Say whether Snakemake remembers how it made a file."""
    return workflow.persistence.metadata(IOFile(path)) is not None


VIEW = plainly(make_view, Path(), config, sys.argv[1:], on_record)
if workflow.is_main_process:
    export_workflow_pid()
    for remark in VIEW.plan.remarks():
        print(remark, file=sys.stderr)
if not workflow.subprocess_exec:
    mark_allocation(sent_away=workflow.remote_exec)


@cache
def share_gpus():
    """Have Snakemake start no more here at once than this machine's GPUs hold.

    Called when jobs are planned: no sooner is it known where they run. `use_threads` says that too
    for a dry-run. Jobs that a cluster runs get its GPUs, and in a job's own process all is decided.
    """
    planned = workflow.is_main_process and workflow.execution_settings is not None
    if not planned or workflow.use_threads:
        return
    stated = workflow.global_resources.get("gpu").value
    limit = plainly(VIEW.gpus.share, stated)
    if limit is not None and stated is None:
        workflow.register_resource("gpu", limit)


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
    """Return a function of a job's wildcards that asks adhere's View, such as "judge.changed"."""
    ask = attrgetter(question)(VIEW)

    def answer(wildcards):
        share_gpus()
        return plainly(ask, wildcards)

    # Snakemake asks for it several times a job, and to work it out costs more than the answer.
    answer.__signature__ = signature(answer)
    return answer


def begin():
    """Before the first job: one workflow at a time, and every key that the plan needs is there."""
    pass_on_sigterm()
    jobs = list(workflow.dag.needrun_jobs())
    plainly(check_writable, [path for job in jobs for path in (*job.output, *job.log)])
    plainly(VIEW.begin, [(job.rule.name, job.wildcards) for job in jobs])


def at_the_end(function):
    """Call a function after the last job. Returns its answer, and what went wrong or None.

    Snakemake would show a traceback and leave out what it says itself.
    """
    try:
        return function(), None
    except Exception as error:
        message = told(error) or f"unexpected: {type(error).__name__}: {error}"
        return None, f"error: {message}"


def finish():
    """After the last job: what is left to be tried again, or a gate, makes the call fail.

    Snakemake ends with 1 for any failed job, and the gate has a code for each outcome.
    """
    for question in (VIEW.aggregate.open_work, VIEW.teams.gate_code):
        answer, wrong = at_the_end(question)
        if wrong or answer:
            sys.exit(wrong or answer)


def report_failure():
    """After a failed job or an interruption: the summary still reports everything finished."""
    _, wrong = at_the_end(VIEW.aggregate.rebuild)
    if wrong:
        print(wrong, file=sys.stderr)
    if not VIEW.call.looks_on:
        print(KEPT, file=sys.stderr)
