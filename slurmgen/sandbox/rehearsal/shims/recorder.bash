# Read by every bash of the job (BASH_ENV): keeps the stand-ins first on PATH whatever the
# script does to it, and stands in for what only a cluster has. Nothing here is exported.
__stage=${BASH_SOURCE[0]%/*}

# kind, text[, line]: where in the script, and in which shell.
__note() {
  printf '%s\0' "$1" "$2" "${3-${BASH_LINENO[1]:-0}}" "${SLURM_JOB_ID-0}" "${SLURM_RESTART_COUNT-0}" \
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

# A program that is named by its path (`"$VENV/bin/python"`) may be on the cluster only: a function of
# that very name takes its place. `exec` and the like find no function, and are given the stand-in's
# own path. The arguments are those of the script, or of its function.
__by_path() {
  local assigned='^([A-Za-z_][A-Za-z0-9_]*=("[^"]*"|[^[:space:]"])*[[:space:]]+)+'
  local IFS=$' \t\n' text=$__command tokens token path via='' standin
  if [[ $text =~ $assigned ]]; then text=${text#"${BASH_REMATCH[0]}"}; fi
  # Nothing here may fail, or set -e ends the job.
  read -rd '' -a tokens <<< "$text" || :
  for token in "${tokens[@]}"; do
    path=
    case $token in
      exec | env | nice | nohup | timeout | stdbuf | ionice | setsid | taskset)
        via=${via:-$token}
        continue
        ;;
      # What is expanded here is expanded again by the command itself.
      *['`(;&|<>']* | *:\?* | *\'*) ;;
      *[\$/]*) eval "path=$token" 2> /dev/null || : ;;
    esac
    if [[ $path =~ ^[A-Za-z0-9_./+-]*/([A-Za-z0-9_.-]+)$ ]]; then
      standin=$__stage/bin/${BASH_REMATCH[1]}
      if [ -e "$standin" ]; then
        if [ "$path" != "$standin" ]; then __stand_in; fi
        return
      fi
    fi
    if [ -z "$via" ]; then return; fi
  done
}

__stand_in() {
  case $via in
    '') eval "$path() { '$standin' \"\$@\"; }" ;;
    exec) eval "${__command/"$token"/"'$standin'"}" ;;
    *) eval "$via() { __wrapped $via \"\$@\"; }" ;;
  esac
}

__wrapped() {
  local word words=("$1")
  shift
  for word; do
    case $word in
      */*) if [ -e "$__stage/bin/${word##*/}" ]; then word=$__stage/bin/${word##*/}; fi ;;
    esac
    words+=("$word")
  done
  command "${words[@]}"
}

# What Slurm has not set; whether the command really expands it is seen later.
__unset() {
  local text=$1 name
  while [[ $text =~ \$\{?(SLURM_[A-Z_]+)(.*) ]]; do
    name=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]}
    if [ -z "${!name+set}" ]; then __note unset "$name $1" "$2"; fi
  done
}

# A trap for the signal that Slurm sends says that it has run.
if [ -r "$__stage/signal" ]; then
  read -r __signal < "$__stage/signal"
  trap() {
    local name
    if [ "${1-}" = -- ]; then shift; fi
    case ${1-} in
      '' | -*) ;;
      *)
        for name in "${@:2}"; do
          case $name in [0-9]*) name=$(kill -l "$name") ;; esac
          if [ "${name^^}" = "$__signal" ] || [ "${name^^}" = "SIG$__signal" ]; then
            set -- "__note trapped $__signal"$'\n'"$1" "${@:2}"
            break
          fi
        done
        ;;
    esac
    # shellcheck disable=SC2064 # quoted by the script itself, as it wants
    builtin trap "$@"
  }
fi

# command, line, arguments of the script.
__before() {
  local __command=$1 line=$2
  shift 2
  case $PATH in "$__stage/bin:"*) ;; *) __first ;; esac
  # Not of what is done here.
  case ${FUNCNAME[1]-} in __*) return ;; esac
  case $__command in *[\$/]*) if [ ! -e "$__stage/real" ]; then __by_path "$@"; fi ;; esac
  case $__command in *\$SLURM_* | *\$\{SLURM_*) __unset "$__command" "$line" ;; esac
}

__first
set -ET
builtin trap '__failed "$?" "$BASH_COMMAND"' ERR
builtin trap '__before "$BASH_COMMAND" "$LINENO" "$@"' DEBUG
# What BASH_ENV was before.
if [ -r "$__stage/own.bash" ]; then builtin source "$__stage/own.bash"; fi
