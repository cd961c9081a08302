#!/bin/sh
# Stands for a program that starts others: see start.py.
stage=${0%/bin/*}
exec "$stage/interpreter" -I -S "$stage/shims/start.py" "$stage" "${0##*/}" "$@"
