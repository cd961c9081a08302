#!/bin/sh
# Stands for hostname: a node has several networks, which `hostname -I` tells of. The second address
# is one of those kept for examples (RFC 5737).
case " $* " in
  *" -I "* | *" --all-ip-addresses "*)
    while read -r address names; do
      case " $names " in *" ${SLURMD_NODENAME:-$(uname -n)} "*) echo "$address 192.0.2.1 " && exit ;; esac
    done < /etc/hosts
    ;;
esac
bin=${0%/*}
rest=$PATH:
while [ -n "$rest" ]; do
  folder=${rest%%:*} rest=${rest#*:}
  if [ "$folder" != "$bin" ] && [ -x "$folder/hostname" ]; then exec "$folder/hostname" "$@"; fi
done
exec uname -n
