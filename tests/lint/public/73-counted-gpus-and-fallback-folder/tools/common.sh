# Shared by the job scripts.
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false
source "$HOME/venvs/ft/bin/activate"
