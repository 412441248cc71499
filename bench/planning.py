"""Planning: a dry-run of a big project beside a bare Snakefile of the same shape."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, children_cpu
from bench.project import Project, judge, make_project, model
from bench.workload import dataset

MODELS, MODES, RUNS, JUDGES = 100, ("thinking", "plain"), 3, 4
_ROUNDS = 4
_BARE, _TRIVIAL = (Path(__file__).with_name(name) for name in ("bare.smk", "trivial.smk"))
_JOBS = 100
_SHAPE = (f"models={MODELS}", f"modes={','.join(MODES)}", f"runs={RUNS}", f"judges={JUDGES}")


def figures() -> Iterator[Figure]:
    """Dry-run both in turn, compare the processor time of the best of each; then the schedulers."""
    with tempfile.TemporaryDirectory() as folder:
        ours = _big_project(Path(folder) / "ours")
        bare = _bare(ours, Path(folder) / "bare")
        rounds = [
            (_cpu(ours.root, "-n"), _cpu(bare, "-n", "--config", *_SHAPE)) for _ in range(_ROUNDS)
        ]
        trivial = {name: _trivial(Path(folder) / name, name) for name in ("greedy", "ilp")}
    own, other = (min(seconds) for seconds in zip(*rounds, strict=True))
    jobs = MODELS * len(MODES) * RUNS * (1 + 2 * JUDGES) + 2
    yield Figure(
        f"dry-run of {jobs:,} jobs / a bare Snakefile of the same shape", own / other, "", 1.3
    )
    yield Figure("dry-run, processor time", own, "s")
    yield Figure("the bare Snakefile", other, "s")
    yield Figure("the same a job", 1000 * own / jobs, "ms")
    for name, seconds in trivial.items():
        yield Figure(f"processor time of a job that does nothing, scheduler {name}", seconds, "ms")


def _big_project(root: Path) -> Project:
    project = make_project(root, repeats=RUNS, default_judge="judge-0")
    modes = {mode: {"temperature": 1.0, "max_tokens": 1000} for mode in MODES}
    for number in range(MODELS):
        project.write_yaml(f"configs/model-{number:03}.yaml", model("http://127.0.0.1:9/v1", modes))
    for number in range(JUDGES):
        project.write_yaml(f"judge_configs/judge-{number}.yaml", judge("http://127.0.0.1:9/v1"))
    project.write_dataset("bench", dataset(20))
    return project


def _bare(ours: Project, root: Path) -> Path:
    """Write the bare project: same files, no configuration, no package."""
    for part in ("scripts", "data", "profiles"):
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        (root / part).symlink_to(ours.root / part)
    shutil.copy2(_BARE, root / "Snakefile")
    return root


def _trivial(root: Path, scheduler: str) -> float:
    """Run jobs that do nothing; return processor milliseconds a job."""
    root.mkdir()
    shutil.copy2(_TRIVIAL, root / "Snakefile")
    options = ("--cores", "2", "--scheduler", scheduler, "--config", f"jobs={_JOBS}")
    return 1000 * _cpu(root, *options) / _JOBS


def _cpu(folder: Path, *arguments: str) -> float:
    """Return the processor seconds of a call of Snakemake, children included."""
    before = children_cpu()
    subprocess.run(
        [sys.executable, "-m", "snakemake", "--quiet", "all", *arguments],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return children_cpu() - before
