# A bare Snakefile of the workflow's shape: the same files and jobs, nothing looked up.
MODELS = [f"model-{n:03}" for n in range(config["models"])]
MODES = config["modes"].split(",")
RUNS = range(1, config["runs"] + 1)
JUDGES = [f"judge-{n}" for n in range(config["judges"])]


localrules:
    all,
    score,
    aggregate,


rule all:
    input:
        "results/summary.md",


rule predict:
    input:
        dataset=ancient("data/bench.json"),
    output:
        prediction="results/prediction/{model}__{mode}/run{run}/{dataset}.json",
    log:
        "logs/predict/{model}__{mode}/run{run}/{dataset}.log",
    params:
        identity="text",
    script:
        "scripts/predict.py"


rule judge:
    input:
        prediction="results/prediction/{model}__{mode}/run{run}/{dataset}.json",
        dataset=ancient("data/bench.json"),
    output:
        results="results/scores/{model}__{mode}/run{run}_{judge}/{dataset}/results.json",
        record="results/scores/{model}__{mode}/run{run}_{judge}/{dataset}/judge_run.json",
    log:
        "logs/judge/{model}__{mode}/run{run}_{judge}/{dataset}.log",
    params:
        judge="text",
    script:
        "scripts/judge.py"


rule score:
    input:
        results="results/scores/{model}__{mode}/run{run}_{judge}/{dataset}/results.json",
    output:
        accuracy="results/scores/{model}__{mode}/run{run}_{judge}/{dataset}/accuracy.json",
        verdicts="results/scores/{model}__{mode}/run{run}_{judge}/{dataset}/verdicts.parquet",
    log:
        "logs/score/{model}__{mode}/run{run}_{judge}/{dataset}.log",
    params:
        policy="adhere",
    script:
        "scripts/score.py"


rule aggregate:
    input:
        accuracies=expand(
            "results/scores/{model}__{mode}/run{run}_{judge}/bench/accuracy.json",
            model=MODELS,
            mode=MODES,
            run=RUNS,
            judge=JUDGES,
        ),
    output:
        markdown="results/summary.md",
        json="results/summary.json",
        verdicts="results/verdicts.parquet",
    log:
        "logs/aggregate.log",
    script:
        "scripts/aggregate.py"
