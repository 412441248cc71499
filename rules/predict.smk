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


if VIEW.call.predicts:

    rule serve:
        """Serve a local model once and answer all its unfinished cells into their journals."""
        output:
            served=temp("<results>/.served/{model}.json"),
        log:
            "<logs>/serve/{model}.log",
        priority: plan("serve.priority") if workflow.is_main_process else 0
        conda:
            "../envs/vllm.yaml"
        resources:
            gpu=plan("serve.gpus"),
        params:
            unfinished=plan("serve.unfinished"),
        script:
            "../scripts/serve.py"

    rule predict:
        """Ask an API model one prediction file."""
        input:
            dataset=ancient(plan("datasets.file")),
            served=plan("serve.stamp"),
            changed=plan("predict.changed"),
        output:
            prediction="<results>/prediction/{model}__{mode}/run{run}/{dataset}.json",
        log:
            "<logs>/predict/{model}__{mode}/run{run}/{dataset}.log",
        wildcard_constraints:
            model=VIEW.predict.models(served=False),
        localrule: VIEW.plan.calls_here
        conda:
            "../envs/adhere.yaml"
        params:
            identity=plan("predict.identity"),
            inputs=plan("datasets.inputs_sha256"),
            attempt=plan("predict.attempt"),
        script:
            "../scripts/predict.py"

    localrules:
        collect,

    use rule predict as collect with:
        """Write one prediction file of a local model from its journal."""
        wildcard_constraints:
            model=VIEW.predict.models(served=True),
