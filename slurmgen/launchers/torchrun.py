"""torchrun: a task per node, which starts the node's ranks."""

from __future__ import annotations

from slurmgen.launchers import AGENT, Launcher, Layout


class Torchrun(Launcher):
    """A task per node, a rank per GPU."""

    name = "torchrun"
    about = "a task per node, which starts a rank per GPU"
    how = "srun starts one torchrun per node"
    ranks = AGENT
    entrypoint = "torchrun"
    # torchrun takes every argument for a template: ${local_rank} is filled in and $$ becomes $
    # (torch.distributed.elastic.multiprocessing.api and agent.server.local_elastic_agent,
    # class macros). Doubling each $ brings the arguments through unchanged.
    arguments = '"${@//\\$/\\$\\$}"'
    stands_for = ("torchrun",)
    # Under c10d the order of the nodes is torchrun's own.
    rendezvous = ("static", "c10d")
    dies_of_signals = "the process that started the ranks gets it too, dies of it, and ends them"
    # Seen with torch 2.13.
    loses_status = (
        "torchrun itself dies of the signal and leaves its ranks behind, and of a rank "
        "that exits 75 it makes a failure of its own, status 1"
    )
    unstamped = "# What the one task of each node does: torchrun"

    def program(self, world: Layout, nodes: int, rdzv: str) -> tuple[str, ...]:
        """torchrun by its module, so that it runs in the same Python as the program.

        static: the rank follows from the node's number, as `plan` shows it. c10d: told
        which node hosts the store, since comparing host names fails on clusters whose
        nodes know themselves by another name (pytorch/pytorch#79073).
        """
        words = [
            "python3 -m torch.distributed.run",
            f"--nnodes={nodes}",
            f"--nproc-per-node={world.nproc_per_task}",
        ]
        if rdzv == "static":
            words += [
                '--node-rank="$SLURM_NODEID"',
                '--master-addr="$MASTER_ADDR"',
                '--master-port="$MASTER_PORT"',
                "--no-python",
            ]
        else:
            words += [
                "--rdzv-backend=c10d",
                '--rdzv-id="$SLURM_JOB_ID.$SLURM_STEP_ID"',
                '--rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT"',
                '--rdzv-conf="is_host=$((SLURM_NODEID == 0))"',
                "--no-python",
                # Under c10d the order of the nodes is torchrun's own.
                "bash -c 'export NODE_RANK=$GROUP_RANK; exec \"$@\"' rank",
            ]
        return tuple(words)


LAUNCHER = Torchrun()
