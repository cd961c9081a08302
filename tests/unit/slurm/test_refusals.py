"""Which words of sbatch are a refusal: those that it said on 20.11 to 26.05, and those it lost."""

from __future__ import annotations

import pytest

from slurmgen.slurm.live.refusals import is_refusal, is_unreached

FAILED = "sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(
    "said",
    [
        (
            "sbatch: error: invalid partition specified: nosuch\n"
            f"{FAILED}Invalid partition name specified\n"
        ),
        f"{FAILED}Requested node configuration is not available\n",
        f"{FAILED}Invalid generic resource (gres) specification\n",
        # A site's own plugin speaks first.
        f"sbatch: error: lua: ask for a GPU\n{FAILED}Access/permission denied\n",
        "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n",
        "sbatch: unrecognized option '--gpu-per-nodes=4'\nTry \"sbatch --help\" for more\n",
        "sbatch: error: Invalid --time specification\n",
        (
            'sbatch: error: Invalid numeric value "x" for --cpus-per-task.\n'
            "sbatch: error: Invalid directive found in batch script: x\n"
        ),
        (
            "sbatch: error: This does not look like a batch script.  The first\n"
            "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
        ),
    ],
)
def test_refusals(said: str) -> None:
    assert is_refusal(said)
    assert not is_unreached(said)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Killed\n",
        f"{FAILED}Socket timed out on send/recv operation\n",
        f"{FAILED}Unable to contact slurm controller (send failure)\n",
        f"{FAILED}Unable to contact slurm controller (connect failure)\n",
        f"{FAILED}Zero Bytes were transmitted or received\n",
        f"{FAILED}Unspecified error\n",
        f"{FAILED}Resource temporarily unavailable\n",
        f"{FAILED}I/O error writing script/environment to file\n",
        # The second attempt of a wrapper is refused since the first was taken.
        (
            f"{FAILED}Socket timed out on send/recv operation\n"
            f"{FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or "
            "time limits)\n"
        ),
        (
            "sbatch: error: Socket timed out on send/recv operation\n"
            f"{FAILED}Invalid qos specification\n"
        ),
        "Invalid partition name specified\n",
    ],
)
def test_what_leaves_it_open(said: str) -> None:
    assert not is_refusal(said)


def test_a_controller_that_nothing_was_sent_to() -> None:
    said = f"{FAILED}Unable to contact slurm controller (connect failure)\n"
    assert is_unreached(said)
    for why in (
        "Could not establish a configuration source",
        "Unable to process configuration file",
    ):
        assert is_unreached(
            f"sbatch: error: ClusterName needs to be specified\nsbatch: fatal: {why}\n"
        )
    assert not is_unreached(f"{FAILED}Socket timed out on send/recv operation\n{said}")
