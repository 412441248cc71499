# Aggregate: mean ± sample std over runs, for everything finished below <results>.
#
# IN   the selected accuracy.json files, and all others that are there
# OUT  <results>/summary.md, summary.json, verdicts.parquet (one row a verdict)

localrules:
    aggregate,


rule aggregate:
    """Write the summary of everything that is scored."""
    input:
        VIEW.accuracies,
    output:
        markdown="<results>/summary.md",
        json="<results>/summary.json",
        verdicts="<results>/verdicts.parquet",
    params:
        results_root=VIEW.results_root,
        rows=VIEW.rows,
        repeats=VIEW.repeats,
        open_work=VIEW.open_work_marker,
    log:
        "<logs>/aggregate.log",
    conda:
        "../envs/adhere.yaml"
    script:
        "../scripts/aggregate.py"
