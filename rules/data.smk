# Data: get datasets from their public homes, and try out their checkers. Asked for by name only:
# `snakemake fetch`, `snakemake checkers`, `snakemake gym_data`.
#
# IN   data/sources.yaml (addresses, checksums of known versions); the network
# OUT  gym_data: <results>/gym/{dataset}.jsonl, the selected datasets as NeMo Gym's task files
#      fetch:  the file of every selected dataset that data/sources.yaml names, and {dataset}.checksum.json
#      beside it (not declared: what is there is replaced only by a valid file)


localrules:
    fetch,
    checkers,
    gym_data,


rule fetch:
    """Get the selected datasets from their public homes."""
    log:
        "<logs>/fetch.log",
    conda:
        "../envs/adhere.yaml"
    script:
        "../scripts/fetch.py"


rule checkers:
    """Try out every checker of the selected datasets; no model is asked."""
    log:
        "<logs>/checkers.log",
    conda:
        "../envs/adhere.yaml"
    script:
        "../scripts/checkers.py"


rule gym_data:
    """Write the selected datasets as NeMo Gym's task files (scripts/convert.py goes back, too)."""
    log:
        "<logs>/gym_data.log",
    conda:
        "../envs/adhere.yaml"
    script:
        "../scripts/convert.py"
