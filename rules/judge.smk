# Judge: run every constraint's chain on a prediction file.
#
# IN   <results>/prediction/…/{dataset}.json; the dataset's constraints; judge_configs/{judge}.yaml
# OUT  <results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/results.json, rows as predicted
#      and judge_run.json beside it; replies are journaled in ../{dataset}.partial.jsonl

if VIEW.judges:

    rule judge:
        """Judge one prediction file; replies that are journaled are not asked again."""
        input:
            prediction="<results>/prediction/{model}__{mode}/run{run}/{dataset}.json",
            dataset=ancient(dataset_file),
            reopened=reopened_judging,
        output:
            results="<results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/results.json",
            record="<results>/scores/{model}__{mode}/run{run}_{judge}/{dataset}/judge_run.json",
        params:
            judge=judge_hash,
            dataset_sha256=dataset_sha256,
        log:
            "<logs>/judge/{model}__{mode}/run{run}_{judge}/{dataset}.log",
        conda:
            "../envs/adhere.yaml"
        script:
            "../scripts/judge.py"
