# Targets to ask for by name, beside all: predictions, evaluations, scores, retry, list; and fetch,
# in data.smk.


localrules:
    predictions,
    evaluations,
    scores,
    retry,
    list,


rule predictions:
    """Ask the models; no judge."""
    input:
        plan("predictions"),


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
