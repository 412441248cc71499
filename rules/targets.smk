# Targets to ask for by name, beside all: predictions, evaluations, scores, retry, list, plan,
# estimate; and fetch, in data.smk; gate, baseline, archive and spotcheck, in teams.smk.


localrules:
    predictions,
    evaluations,
    scores,
    retry,
    list,
    plan,
    estimate,


rule predictions:
    """Ask the models; no judge."""
    input:
        plan("predict.wanted"),


rule evaluations:
    """Judge the predictions that exist; no model server."""
    input:
        "<results>/summary.md",


rule scores:
    """Score again what is judged; no calls, no keys."""
    input:
        "<results>/summary.md",


rule retry:
    """Compute again what failed for a reason that may have passed."""
    input:
        "<results>/summary.md",


rule list:
    """Show models, modes and judges, and what is done and missing."""
    log:
        "<logs>/list.log",
    conda:
        "../envs/adhere.yaml"
    script:
        "../scripts/list.py"


rule plan:
    """Show in which order local models will be served, and how long that takes."""
    log:
        "<logs>/plan.log",
    conda:
        "../envs/adhere.yaml"
    params:
        schedule=plan("serve.schedule"),
    script:
        "../scripts/plan.py"


rule estimate:
    """Show what the calls that are still missing will take, in tokens and money."""
    log:
        "<logs>/estimate.log",
    conda:
        "../envs/adhere.yaml"
    script:
        "../scripts/estimate.py"
