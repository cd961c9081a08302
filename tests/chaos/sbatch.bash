#!/usr/bin/env bash
# In place of sbatch: does what the file `fault` in the working folder says, once, around the real
# one, which REAL_SBATCH names.
fault=
if [ "$1" = --parsable ] && [ -f fault ]; then
  fault=$(<fault)
  rm -f fault
fi

lost() {
  echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
  exit 1
}
garbage() { head -c 50000000 /dev/urandom; }
unheard() { "$REAL_SBATCH" "$@" >/dev/null 2>&1; }

case $fault in
  '') exec "$REAL_SBATCH" "$@" ;;
  lost-before) lost ;;
  lost-after) unheard "$@"; lost ;;
  lost-underway) (sleep 1.5; unheard "$@") >/dev/null 2>&1 & lost ;;
  banner) echo 'Welcome to the cluster. 42 jobs wait.'; exec "$REAL_SBATCH" "$@" ;;
  banner-behind) "$REAL_SBATCH" "$@"; echo 17 ;;
  signal-before) kill -9 $$ ;;
  signal-after) unheard "$@"; kill -9 $$ ;;
  slow) echo $$ > sbatch.pid; sleep 2; exec "$REAL_SBATCH" "$@" ;;
  hang-before) echo $$ > sbatch.pid; exec sleep 1000 ;;
  hang-after) unheard "$@"; echo $$ > sbatch.pid; exec sleep 1000 ;;
  garbage-before) garbage ;;
  garbage-after) unheard "$@"; garbage; garbage >&2; exit 1 ;;
  silent-before) exit 0 ;;
  silent-after) unheard "$@" ;;
  failed-after) "$REAL_SBATCH" "$@"; exit 7 ;;
  copied) "$REAL_SBATCH" --parsable < "${@: -1}" >/dev/null; exit 1 ;;
  refused-after)
    "$REAL_SBATCH" "$@"
    echo 'sbatch: error: Batch job submission failed: Invalid qos specification' >&2
    exit 1 ;;
  refused)
    echo 'sbatch: error: Batch job submission failed: Invalid account or account/partition' \
      'combination specified' >&2
    exit 1 ;;
esac
