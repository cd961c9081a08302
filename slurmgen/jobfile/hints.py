"""Keys that people try, and what the job file has in their place."""

from __future__ import annotations

_NUMBER = "ranks follow from the GPUs: a rank per GPU"

# name -> (why it is not a key, what to write)
FOREIGN_KEYS: dict[str, tuple[str, str]] = {
    "gpus": (
        "a number of GPUs for the whole job lets Slurm spread them 7 + 1 over two nodes",
        "write nodes: and gpus_per_node:",
    ),
    "gpus_per_task": (
        "each task would see only its own GPU, which hides the peers from NCCL",
        "write gpus_per_node:",
    ),
    "gpus_per_socket": ("how many sockets a node has is not known here", "write gpus_per_node:"),
    "ntasks_per_gpu": (_NUMBER, "remove it"),
    "tres_per_task": (
        "it exists only since Slurm 23.02",
        "write gpus_per_node: and cpus_per_task:",
    ),
    "num_gpus": ("", "write gpus_per_node:"),
    "gpu": ("", "write gpus_per_node:"),
    "num_nodes": ("", "write nodes:"),
    "walltime": ("", "write time:"),
    "queue": ("", "write partition:"),
    "max_restarts": ("", "write requeue: {max_restarts: 20}"),
    "name": ("", "write job_name:"),
    "memory": ("", "write mem:"),
    "modules": ("", "write modules: under setup:"),
    "venv": ("", "write venv: under setup:"),
    "conda": ("", "write conda: under setup:"),
    "uv": ("", "write uv: under setup:"),
    "container": ("", "write container: under setup:"),
    "environment": ("", "write env:"),
    "variables": ("", "write vars: for a template of your own, env: for the program"),
    "mail": ("", "write mail_type: and mail_user:"),
    "stdout": ("", "write output:"),
    "stderr": ("", "write error:"),
    "nproc_per_task": (_NUMBER, "write nproc_per_node: with a launcher that has one task per node"),
}
