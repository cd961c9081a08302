#!/bin/bash
# srun ./ddp_env.sh PROGRAM...: names the task's place as torch expects it.
export RANK=${SLURM_PROCID:?not a step}
export LOCAL_RANK=$SLURM_LOCALID
export WORLD_SIZE=$SLURM_NTASKS
exec "$@"
