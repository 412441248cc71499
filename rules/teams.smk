# Teams: hold a change against thresholds and a baseline, keep failures, have people check judges.
#
# IN   the selected accuracy.json files with the results.json beside them; <baselines>/{dataset}.json
# OUT  gate:       <results>/gate.json, gate.md; the call ends with 0 pass, 1 fail, 3 not enough
#                  evidence
#      baseline:   <baselines>/{dataset}.json
#      archive:    archive/failures.jsonl
#      spotcheck:  spotcheck/sheet.csv, sheet.html, report.md, report.json; labels from labels/*.csv
#
# What lies outside <results> belongs to people, who commit and edit it, and is not declared: the
# places are in configs/global.yaml. All but `gate` take what is judged as it is.


localrules:
    gate,
    baseline,
    archive,
    spotcheck,


rule gate:
    """Compute what is selected and hold it against thresholds and the baseline."""
    input:
        accuracies=plan("score.wanted"),
        summary="<results>/summary.md",
    output:
        json="<results>/gate.json",
        markdown="<results>/gate.md",
    log:
        "<logs>/gate.log",
    conda:
        "../envs/adhere.yaml"
    params:
        evaluated=plan("teams.evaluated"),
        call=plan("teams.this_call"),
    script:
        "../scripts/gate.py"


rule baseline:
    """Store what is judged as the baseline that gates compare with."""
    input:
        accuracies=plan("score.wanted"),
    log:
        "<logs>/baseline.log",
    conda:
        "../envs/adhere.yaml"
    params:
        evaluated=plan("teams.evaluated"),
    script:
        "../scripts/baseline.py"


rule archive:
    """Add what failed to the archive of failures."""
    input:
        accuracies=plan("score.wanted"),
    log:
        "<logs>/archive.log",
    conda:
        "../envs/adhere.yaml"
    params:
        evaluated=plan("teams.evaluated"),
    script:
        "../scripts/archive.py"


rule spotcheck:
    """Draw verdicts of judges for people to label, and report on their labels."""
    input:
        accuracies=plan("score.wanted"),
    log:
        "<logs>/spotcheck.log",
    conda:
        "../envs/adhere.yaml"
    params:
        evaluated=plan("teams.evaluated"),
    script:
        "../scripts/spotcheck.py"
