# Shared by the job scripts of this folder.
module load python/3.11 cuda/12.4
export WANDB_MODE=offline UV_OFFLINE=1
