#compdef slurmgen
# Completion of slurmgen for Zsh. `slurmgen __complete` says what is offered.
_slurmgen() {
  local -a reply before plain open described
  local line value
  before=("${(@Q)words[2,CURRENT-1]}")
  ((CURRENT > 2)) || before=()
  reply=("${(@f)$(${(Q)~words[1]} __complete "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
  if [[ $reply[1] == files ]]; then
    compset -P '--*='
    _files
    return
  fi
  for line in "${reply[@]:1}"; do
    value=${line%%$'\t'*}
    if [[ $value == *[=/] ]]; then
      open+=("$value")
    elif [[ $line == *$'\t'* ]]; then
      described+=("${value//:/\\:}:${line#*$'\t'}")
    else
      plain+=("$value")
    fi
  done
  local found=1
  if [[ $reply[1] == paths ]]; then
    compadd -f -S '' -- "${open[@]}" && found=0
    compadd -f -- "${plain[@]}" && found=0
    return found
  fi
  ((${#described})) && _describe -t values value described && found=0
  ((${#open})) && compadd -S '' -- "${open[@]}" && found=0
  ((${#plain})) && compadd -- "${plain[@]}" && found=0
  return found
}

# A function of Zsh's own folder of completions, or a file that ~/.zshrc reads.
if [[ $funcstack[1] == _slurmgen ]]; then
  _slurmgen "$@"
else
  (($+functions[compdef])) || { autoload -Uz compinit && compinit }
  compdef _slurmgen slurmgen
fi
