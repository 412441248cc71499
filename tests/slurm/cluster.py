"""A real Slurm on this machine: one node with fake GPUs, everything of it in one folder.

No file of the machine's own Slurm is read or written: configuration, keys, sockets, spools and the
GPUs' device files lie in the folder, ports are free ones, and clients find it through SLURM_CONF.
The node's processes live in a PID namespace of their own. So a process number means nothing on
"the other side", as between machines, and the node takes all its jobs with it when it ends.
"""

import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from adhere.locks import folder_lock

GPUS = 4
CPUS = 64
MEMORY_MB = 512_000
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
PACKAGES = ("slurm-wlm", "munge")
_PATIENCE_S = 60.0
_POLICY = Path("/usr/sbin/policy-rc.d")

_CONFIGURATION = """\
ClusterName=adhere-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
PlugStackConfig={folder}/plugstack.conf
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
# Without a database, ended jobs stay visible to squeue this long.
MinJobAge=3600
KillWait=5
# Believe the line of the node rather than its hardware.
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=gpu Nodes={host} Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=100
"""


def why_not() -> str | None:
    """Say what this machine lacks for a Slurm of its own; install it where that is possible."""
    if os.geteuid() != 0:
        return "a Slurm of its own needs root"
    missing = _missing()
    if missing and (shutil.which("apt-get") is None or not Path("/etc/debian_version").exists()):
        return f"{', '.join(missing)}: installed by name on Debian only"
    if missing:
        # One worker at a time: apt takes no second one, and after the first nothing is missing.
        with folder_lock(Path(tempfile.gettempdir())):
            if _missing():
                _install()
    probe = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, check=False
    )
    return None if probe.returncode == 0 else "PID namespaces"


def _missing() -> list[str]:
    return [program for program in PROGRAMS if shutil.which(program) is None]


def _install() -> None:
    """Install Debian's packages without letting them start services."""
    asks_first = not _POLICY.exists()
    if asks_first:
        _POLICY.write_text("#!/bin/sh\nexit 101\n")
        _POLICY.chmod(0o755)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES]
    try:
        for command in (["apt-get", "update", "-qq"], install):
            subprocess.run(command, env=quiet, check=True, stdout=subprocess.DEVNULL)
    finally:
        if asks_first:
            _POLICY.unlink()


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """One row of the job table; ``gpus`` are the indices that Slurm gave to the job."""

    id: str
    state: str
    comment: str
    gpus: str
    start: str
    end: str
    workdir: str


class Cluster:
    """Daemons of one Slurm; a context manager that ends what it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Cluster":
        try:
            self._prepare()
            self._start_controller()
            self._start_node()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def environment(self) -> dict[str, str]:
        """What clients of this Slurm need in their environment."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def ask(self, *command: str) -> str:
        """Run one of Slurm's commands and return what it says."""
        done = subprocess.run(
            command,
            env=self._clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}"
        return done.stdout

    def jobs(self) -> list[SlurmJob]:
        """Return every job since the start, ended ones too, by number."""
        blocks = self.ask("scontrol", "--details", "show", "job").split("\n\n")
        found = [_job(block) for block in blocks if "JobId=" in block]
        return sorted(found, key=lambda job: int(job.id))

    def kill_node_daemon(self) -> None:
        """Kill slurmd alone: its jobs' processes go on, as on a node that lost its network."""
        self._end("slurmd")

    def declare_node_down(self) -> None:
        """Do what the controller does by itself when a node has been silent for too long."""
        host = _host()
        self.ask("scontrol", "update", f"NodeName={host}", "State=DOWN", "Reason=silent")

    def restart_node_daemon(self) -> None:
        """Start slurmd again; the node takes jobs again."""
        self._start_node_daemon()
        self._wait_until_idle()

    def stop(self) -> None:
        """End every daemon, and with the node all its processes."""
        for name in ("slurmd", "node", "slurmctld", "munged"):
            self._end(name)

    def _prepare(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        devices = [self.folder / f"gpu{number}" for number in range(GPUS)]
        for device in devices:
            # Clones of /dev/null: the number at the end is what CUDA_VISIBLE_DEVICES gets.
            subprocess.run(["mknod", "-m", "666", str(device), "c", "1", "3"], check=True)
        (self.folder / "plugstack.conf").touch()
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/gpu[0-{GPUS - 1}]\n")
        (self.folder / "slurm.conf").write_text(
            _CONFIGURATION.format(
                host=_host(),
                folder=self.folder,
                controller_port=_free_port(),
                node_port=_free_port(),
                cpus=CPUS,
                memory=MEMORY_MB,
                gpus=GPUS,
            )
        )

    def _start_controller(self) -> None:
        munge = ("socket", "key-file", "pid-file", "seed-file", "log-file")
        options = [f"--{name}={self.folder}/munge.{name.partition('-')[0]}" for name in munge]
        # Forced, for a folder that only its owner may enter is no place to others' minds.
        self._start("munged", ["munged", "--foreground", "--force", *options])
        self._until(lambda: (self.folder / "munge.socket").exists(), "munged")
        self._start("slurmctld", ["slurmctld", "-D", "-c"])
        self._until(lambda: "is UP" in self._says("scontrol", "ping"), "slurmctld")

    def _start_node(self) -> None:
        """Start the node: namespaces whose first process does nothing, and slurmd in them.

        Jobs lose SLURM_CONF on their way to srun, so on the node, and there only, the
        configuration also lies where srun looks for it.
        """
        inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        idle = 'mount --bind "$0" /etc/slurm && exec sleep infinity'
        self._start("node", [*inside, "sh", "-c", idle, str(self.folder)])
        self._until(lambda: bool(self._node_children()), "node")
        self._start_node_daemon()
        self._wait_until_idle()

    def _start_node_daemon(self) -> None:
        first = self._node_children()[0]
        enter = ["nsenter", f"--target={first}", "--pid", "--mount"]
        self._start("slurmd", [*enter, "slurmd", "-D"])

    def _node_children(self) -> list[int]:
        return [child.pid for child in psutil.Process(self._daemons["node"].pid).children()]

    def _wait_until_idle(self) -> None:
        host = _host()

        def idle() -> bool:
            state = self._says("sinfo", "--noheader", "--format=%T").strip()
            if state.startswith("down"):
                self._says("scontrol", "update", f"NodeName={host}", "State=RESUME")
            return state in ("idle", "mixed", "allocated")

        self._until(idle, "slurmd")

    def _start(self, name: str, command: Sequence[str]) -> None:
        # The kernel ends the daemon should the tests themselves be killed.
        leashed = ["setpriv", "--pdeathsig=KILL", *command]
        with (self.folder / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                leashed,
                env=self._clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _end(self, name: str) -> None:
        daemon = self._daemons.pop(name, None)
        if daemon is None:
            return
        if daemon.poll() is None:
            # Entering a namespace leaves a process on each side of its border.
            for process in psutil.Process(daemon.pid).children():
                process.kill()
            daemon.kill()
        daemon.wait()

    def _says(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self._clean_environment(), capture_output=True, text=True, check=False
        )
        return done.stdout

    def _until(self, done: Callable[[], bool], name: str) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not done():
            ended = self._daemons[name].poll() is not None
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not start: see {self.folder}")
            time.sleep(0.05)

    def _clean_environment(self) -> dict[str, str]:
        kept: Mapping[str, str] = {k: v for k, v in os.environ.items() if "SLURM" not in k}
        return {**kept, **self.environment}


def _job(block: str) -> SlurmJob:
    fields = dict(re.findall(r"(\w+)=(\S*)", block))
    gpus = re.search(r"GRES=gpu[^ ]*\(IDX:([0-9,-]+)\)", block)
    return SlurmJob(
        fields["JobId"],
        fields["JobState"],
        fields.get("Comment", ""),
        gpus[1] if gpus else "",
        fields["StartTime"],
        fields["EndTime"],
        fields["WorkDir"],
    )


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
