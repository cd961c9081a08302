# Read by every bash of the job (BASH_ENV): keeps the stand-ins first on PATH whatever the
# script does to it, and stands in for what only a cluster has. Nothing here is exported.
__stage=${BASH_SOURCE[0]%/*}

# kind, text: a line of the script's own and the shell that it is in.
__note() {
  printf '%s\0' "$1" "$2" "${BASH_LINENO[1]:-0}" "${SLURM_JOB_ID-0}" "${SLURM_RESTART_COUNT-0}" \
    "${SLURM_STEP_ID-batch}" "${SLURMD_NODENAME-}" "${EPOCHREALTIME-0}" "$0" \
    >> "$__stage/events/${SLURM_JOB_ID-0}.${SLURM_RESTART_COUNT-0}.${SLURM_STEP_ID-batch}.$$"
}

__first() {
  PATH=:$PATH:
  PATH=${PATH//":$__stage/bin:"/:}
  PATH=${PATH#:} PATH=$__stage/bin:${PATH%:}
}

if ! declare -F module > /dev/null && ! type -P module > /dev/null; then
  module() { __note module "$*"; }
  ml() { __note module "$*"; }
fi

# An environment that isn't on this machine: taken to be there.
__sourced() {
  if [ "$#" = 0 ] || [ -e "$1" ] || { [[ $1 != */* ]] && type -P "$1" > /dev/null; }; then
    return 1
  fi
  case $1 in
    *.py | *.env | *.cfg | *.conf) return 1 ;;
    */bin/activate | */conda.sh | */profile.d/* | */etc/* | /*) ;;
    *) return 1 ;;
  esac
  __note source "$1"
  case $1 in */conda.sh) __conda_hook ;; esac
}
source() { __sourced "$@" || builtin source "$@"; }
.() { __sourced "$@" || builtin source "$@"; }

__conda_hook() {
  conda() {
    case ${1-} in
      activate | deactivate)
        case $- in *u*) __note conda-nounset "$*" ;; esac
        __note conda "$*"
        ;;
      *) command conda "$@" ;;
    esac
  }
}

# A command that this machine lacks may be there on the cluster; one that is no name isn't.
command_not_found_handle() {
  case $1 in
    [A-Za-z_]*) ;;
    *)
      __note no-command "$*"
      printf '%s: line %s: %s: command not found\n' "$0" "${BASH_LINENO[0]}" "$1" >&2
      return 127
      ;;
  esac
  __note missing "$*"
}

__failed() {
  __note failed "$1 $2"
  return "$1"
}

# `exec` finds no function, so an interpreter that is named by its path is put in its place here.
__exec() {
  local assigned='^([A-Za-z_][A-Za-z0-9_]*=[^[:space:]]*[[:space:]]+)*'
  local called='exec[[:space:]]+([^[:space:]]*/(python[0-9.]*|pypy3?)"?)([[:space:]]|$)'
  if [[ $1 =~ $assigned$called ]]; then
    local path=${BASH_REMATCH[2]} name=${BASH_REMATCH[3]}
    if [ -e "$__stage/bin/$name" ]; then
      eval "${1/"$path"/"'$__stage/bin/$name'"}"
    fi
  fi
}

__first
set -ET
trap '__failed "$?" "$BASH_COMMAND"' ERR
trap 'case $PATH in "$__stage/bin:"*) ;; *) __first ;; esac
  case $BASH_COMMAND in *exec*/*) __exec "$BASH_COMMAND" ;; esac' DEBUG
if [ -r "$__stage/functions.bash" ]; then builtin source "$__stage/functions.bash"; fi
