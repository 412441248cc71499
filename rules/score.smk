# Score: account for recorded verdicts under a named policy. No calls, no keys.
#
# IN   <results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/results.json, judge_run.json
# OUT  accuracy.json (CSR, ISR, breakdowns, coverage), verdicts.parquet and items.csv beside them


localrules:
    score,


rule score:
    """Compute CSR, ISR and their breakdowns for one results file."""
    input:
        results="<results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/results.json",
        changed=plan("score.changed"),
    output:
        accuracy="<results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/accuracy.json",
        verdicts="<results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/verdicts.parquet",
        table="<results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/items.csv",
    log:
        "<logs>/score/{model}__{mode}/run{run}_{judge}/{dataset}.log",
    conda:
        "../envs/adhere.yaml"
    params:
        policy=VIEW.plan.config.policy,
    script:
        "../scripts/score.py"
