# Completion of slurmgen for Bash 4.4 and newer. `slurmgen __complete` says what is offered.
_slurmgen() {
  local -a words=() reply=()
  local word part broken="" value index
  # Bash takes --cluster=lumi apart, and nodes=4, at every "=" and ":".
  for ((index = 1; index <= COMP_CWORD; index++)); do
    word=${COMP_WORDS[index]//\\/}
    word=${word#[\"\']}
    part=$word
    if [[ $word =~ ^[=:]+$ ]]; then part=; fi
    if [[ -n $broken || (-z $part && -n $word) ]] && ((${#words[@]})); then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    broken=
    if [[ -z $part && -n $word ]]; then broken=yes; fi
  done
  # What Bash does not take for a part of the last word must not be offered again.
  local before=${words[-1]%"$part"}

  mapfile -t reply < <("$1" __complete "${words[@]}" 2>/dev/null)
  COMPREPLY=()
  for value in "${reply[@]:1}"; do
    value=${value%%$'\t'*}
    if [[ $value == "$before"* ]]; then COMPREPLY+=("${value#"$before"}"); fi
  done
  case ${reply[0]-} in
    files) compopt -o default ;;
    paths) compopt -o filenames ;;
  esac
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}

complete -F _slurmgen slurmgen
