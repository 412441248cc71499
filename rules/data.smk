# Data: get datasets from their public homes, and try out their checkers. Asked for by name only:
# `snakemake fetch`, `snakemake checkers`.
#
# IN   data/sources.yaml (addresses, checksums of known versions); the network
# OUT  the file of every selected dataset that data/sources.yaml names, and {dataset}.checksum.json
#      beside it (not declared: what is there is replaced only by a valid file)


localrules:
    fetch,
    checkers,


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
