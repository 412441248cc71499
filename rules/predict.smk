# Predict: ask a model every item of a dataset. API models are asked by `predict`; local ones are
# served by `serve`, which answers into their journals, and `collect` writes their files.
#
# IN   the dataset's inputs; configs/{model}.yaml, as far as it can change an answer
# OUT  <results>/prediction/{model}__{mode}/run{run}/{dataset}.json, one row an item
#      and beside it run_config.json and the journal {dataset}.partial.jsonl (not declared: a failed
#      job keeps them)
#
# A local model is served by one job for all its unfinished cells. Its stamp is an input only
# while a cell is unfinished, so that one run more computes one run.


if VIEW.predicts:

    rule serve:
        """Serve a local model once and answer all its unfinished cells into their journals."""
        output:
            served=temp("<results>/.served/{model}.json"),
        log:
            "<logs>/serve/{model}.log",
        priority: plan("priority") if workflow.is_main_process else 0
        conda:
            "../envs/vllm.yaml"
        resources:
            gpu=plan("gpus"),
        params:
            unfinished=plan("unfinished"),
        script:
            "../scripts/serve.py"

    rule predict:
        """Ask an API model one prediction file."""
        input:
            dataset=ancient(plan("dataset_file")),
            served=plan("served"),
            changed=plan("changed_prediction"),
        output:
            prediction="<results>/prediction/{model}__{mode}/run{run}/{dataset}.json",
        log:
            "<logs>/predict/{model}__{mode}/run{run}/{dataset}.log",
        wildcard_constraints:
            model=VIEW.models(served=False),
        localrule: VIEW.plan.calls_here
        conda:
            "../envs/adhere.yaml"
        params:
            identity=plan("model_identity"),
            inputs=plan("inputs_sha256"),
            attempt=plan("predicting_attempt"),
        script:
            "../scripts/predict.py"

    localrules:
        collect,

    use rule predict as collect with:
        """Write one prediction file of a local model from its journal."""
        wildcard_constraints:
            model=VIEW.models(served=True),
