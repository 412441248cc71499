# Adhere: predict → judge → score → aggregate for every (model, mode, run, judge, dataset).
# Science is in configs/ and judge_configs/, machines are in profiles/, logic is in adhere/.


include: "rules/common.smk"


localrules:
    all,


rule all:
    """Everything selected, up to the summary."""
    input:
        "<results>/summary.md",


include: "rules/data.smk"
include: "rules/predict.smk"
include: "rules/judge.smk"
include: "rules/score.smk"
include: "rules/aggregate.smk"
include: "rules/teams.smk"
include: "rules/targets.smk"


onstart:
    begin()


onsuccess:
    finish()


onerror:
    report_failure()
