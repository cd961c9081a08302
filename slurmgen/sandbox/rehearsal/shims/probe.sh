#!/bin/sh
# Stands for a program of the job, under that program's name: writes down what it was started
# with, waits until the rehearsal lets all of them go, and ends. No process but one `cat`: a
# job may have a thousand of these.
name=${0##*/}
bin=${0%/*}
stage=${bin%/bin}

# The program that this one stands for, elsewhere on PATH; status 1 where there is none.
find_real() {
  rest=$PATH:
  while [ -n "$rest" ]; do
    folder=${rest%%:*} rest=${rest#*:}
    if [ "$folder" != "$bin" ] && [ -x "$folder/$1" ] && [ ! -d "$folder/$1" ]; then
      real=$folder/$1
      return 0
    fi
  done
  return 1
}

run_real() {
  if find_real "$name"; then exec "$real" "$@"; fi
}

# Whether a command substitution of the shell reads what this prints: the shell that made the
# subshell around it has the other end of the pipe open then, for good, and not if there is
# another program behind the pipe.
is_captured() {
  if [ ! -p /proc/$$/fd/1 ]; then return 1; fi
  read -r _ _ _ above _ < "/proc/$PPID/stat"
  if holds_other_end "$PPID" || holds_other_end "$above"; then
    sleep 0.1
    holds_other_end "$PPID" || holds_other_end "$above"
  else
    return 1
  fi
}

holds_other_end() {
  for end in /proc/"$1"/fd/*; do
    case $end in
      */[012]) ;;
      *)
        if [ "$end" -ef /proc/$$/fd/1 ]; then
          while read -r key value; do
            # An octal number that ends in 0 is open for reading; `> >(tee log)` is not.
            case $key$value in flags:*0) return 0 ;; esac
          done < "/proc/$1/fdinfo/${end##*/}"
        fi
        ;;
    esac
  done
  return 1
}

what=
module=
code=
case $name in
  python* | pypy*)
    what=code next=
    for word; do
      case $next in
        skip) next='' && continue ;;
        module) what=module module=$word && break ;;
      esac
      case $word in
        -W | -X) next=skip ;;
        -m) next=module ;;
        -m?*) what=module module=${word#-m} && break ;;
        -V | -VV | --version | -h | --help) what=ask && break ;;
        -c* | - | -[a-zA-Z]c) break ;;
        -*) ;;
        *) what=file code=$word && break ;;
      esac
    done
    case $what:$module:${code##*/} in
      # The batch script itself, where it is written in Python.
      file::slurm_script | ask:*) run_real "$@" ;;
      module:torch.distributed.run: | module:torch.distributed.launch: | \
        module:accelerate.commands.launch: | module:deepspeed.launcher.runner:)
        exec "$stage/interpreter" -I -S "$stage/shims/start.py" "$stage" "$name" "$@"
        ;;
      module:slurmgen.ddp:)
        if [ "${SLURMGEN_LAUNCHER-}" = spawn ] && [ -z "${SLURMGEN_SPAWN_PARENT-}" ]; then
          exec "$stage/interpreter" -I -S "$stage/shims/start.py" "$stage" spawn "$name" "$@"
        fi
        ;;
      module:venv: | module:pip: | module:virtualenv: | module:ensurepip: | module:compileall:)
        what=tool
        ;;
    esac
    if [ -z "${SLURM_STEP_NUM_TASKS-}" ] && is_captured; then run_real "$@"; fi
    ;;
  probe)
    # Called as `probe NAME arguments`, for a program that has no shim of its own.
    what=other
    ;;
  nvidia-smi | rocm-smi)
    what=tool
    case " $* " in
      *" -L "*)
        at=0
        for gpu in $(echo "${CUDA_VISIBLE_DEVICES-}" | tr , ' '); do
          echo "GPU $at: pretended (index $gpu)"
          at=$((at + 1))
        done
        ;;
    esac
    ;;
  git)
    next=
    for word; do
      if [ "$next" = skip ]; then next='' && continue; fi
      case $word in
        -C | -c | --git-dir | --work-tree | --namespace) next=skip ;;
        -*) ;;
        *) break ;;
      esac
    done
    case ${word-} in
      clone | fetch | pull | push | lfs | submodule | ls-remote | send-email) ;;
      *) run_real "$@" ;;
    esac
    what=tool
    ;;
  rsync)
    case " $* " in *:*) ;; *) run_real "$@" ;; esac
    what=tool
    ;;
  curl | wget | ssh | scp | sftp | rclone | aws | gsutil | gcloud | az | azcopy | s5cmd | mc | hf | \
    huggingface-cli | wandb | dvc | mail | sendmail | mutt | sudo | su | doas)
    what=tool
    ;;
  sbatch)
    what=tool
    case " $* " in
      *" --parsable "*) echo 1 ;;
      *) echo "Submitted batch job 1" ;;
    esac
    ;;
  *)
    what=other
    ;;
esac

id=${SLURM_JOB_ID-0}.${SLURM_RESTART_COUNT-0}.${SLURM_STEP_ID-batch}.$$
if [ "$what" = tool ]; then
  {
    printf '%s\0' tool "$name" "$what" "$#" "$PWD"
    cat "/proc/$$/cmdline" "/proc/$$/environ"
    printf '.end'
  } > "$stage/records/$id"
  : > "$stage/ended/$id"
  exit 0
fi

# Set before it is written down: from then on the signal may come.
told=
if [ -n "${SLURMGEN_SIGNAL-}" ]; then
  trap ': > "$stage/ended/$id"; exit 75' "$SLURMGEN_SIGNAL" TERM
elif [ -r "$stage/signal" ]; then
  read -r signal < "$stage/signal"
  trap 'told=1; : > "$stage/told/$id"' "$signal"
fi
{
  printf '%s\0' program "$name" "$what" "$#" "$PWD"
  cat "/proc/$$/cmdline" "/proc/$$/environ"
  printf '.end'
} > "$stage/records/$id"
if [ -e "$stage/real" ]; then
  # From here on nobody waits for this one.
  : > "$stage/ended/$id"
  trap - "${SLURMGEN_SIGNAL:-TERM}" TERM
  if [ "$name" = probe ]; then exec "$@"; fi
  run_real "$@"
fi
# The end of file comes when the rehearsal closes its side, or is killed.
read -r _ < "$stage/gate"
while [ -n "$told" ]; do
  # It was a signal that ended the wait.
  told=
  read -r _ < "$stage/gate"
done
: > "$stage/ended/$id"
if [ -e "$stage/fail" ]; then exit 9; fi
exit 0
