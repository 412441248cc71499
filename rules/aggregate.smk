# Aggregate: mean ± sample std over runs, for everything finished below <results>.
#
# IN   the selected accuracy.json files, and all others that are there
# OUT  <results>/summary.md, summary.json, verdicts.parquet (one row a verdict), items.csv (one row an item)


localrules:
    aggregate,


rule aggregate:
    """Write the summary of everything that is scored."""
    input:
        accuracies=plan("score.wanted"),
        changed=plan("aggregate.changed"),
    output:
        markdown="<results>/summary.md",
        json="<results>/summary.json",
        verdicts="<results>/verdicts.parquet",
        table="<results>/items.csv",
    log:
        "<logs>/aggregate.log",
    conda:
        "../envs/adhere.yaml"
    params:
        rows=plan("aggregate.rows"),
        repeats=VIEW.plan.config.repeats,
        open_work=plan("aggregate.open_work_marker"),
        prices=plan("aggregate.prices"),
    script:
        "../scripts/aggregate.py"
