# Judge: run every constraint's chain on a prediction file. `judge` calls an endpoint,
# `judge_served` serves a judge that has `local:` in its file for as long as it takes.
#
# IN   <results>/prediction/…/{dataset}.json; the dataset's constraints; judge_configs/{judge}.yaml
# OUT  <results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/results.json, rows as predicted
#      and judge_run.json beside it; replies are journaled in ../{dataset}.partial.jsonl

if VIEW.call.judges:

    rule judge:
        """Judge one prediction file; replies that are journaled are not asked again."""
        input:
            prediction="<results>/prediction/{model}__{mode}/run{run}/{dataset}.json",
            dataset=ancient(plan("datasets.file")),
            changed=plan("judge.changed"),
        output:
            results="<results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/results.json",
            record="<results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/judge_run.json",
        log:
            "<logs>/judge/{model}__{mode}/run{run}_{judge}/{dataset}.log",
        wildcard_constraints:
            judge=VIEW.judge.judges(served=False),
        localrule: VIEW.plan.calls_here
        conda:
            "../envs/adhere.yaml"
        params:
            judge=plan("judge.identity"),
            dataset_sha256=plan("datasets.sha256"),
            attempt=plan("judge.attempt"),
        script:
            "../scripts/judge.py"

    use rule judge as judge_served with:
        """Serve a judge and judge one prediction file."""
        wildcard_constraints:
            judge=VIEW.judge.judges(served=True),
        localrule: False
        conda:
            "../envs/vllm.yaml"
        resources:
            gpu=plan("judge.gpus"),
