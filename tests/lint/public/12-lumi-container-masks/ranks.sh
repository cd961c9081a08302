#!/bin/bash -e
# Runs inside the container, once per task.
$WITH_CONDA
export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
exec "$@"
