"""Programs that are no training: builtins of the shell, and what scripts call on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurmgen.reading.shell.launch import Launch

# None of these reads ranks, addresses or devices.
TOOLS = frozenset(
    """
    : . [ [[ alias awk basename bc break builtin cat cd chmod chown command compgen conda continue
    cp curl cut date declare df dirname disown dmesg du echo egrep env eval exit export expr
    false fgrep file find free getent getopt getopts gawk grep gunzip gzip head hash host
    hostname hwloc-ls id ifconfig install ip jobs jq kill less let ln local ls lscpu lspci
    lstopo mail mailx mamba mapfile md5sum micromamba mkdir mktemp ml module mv nproc nslookup
    numfmt nvidia-smi nvcc paste pigz ping pip pip3 pkill popd printenv printf pushd pwd read
    readarray readlink readonly realpath return rev rm rmdir rocm-smi rocminfo rsync sacct
    sbcast scancel scontrol scp sed seff seq set sgather sha256sum shift shopt shuf sinfo
    sleep sort source spack squeue sstat stat sync tail tar tee test time times timeout touch tr
    trap tree true type typeset ulimit umask unalias uname uniq unset unzip uptime wait wc wget
    which who whoami xargs yes zcat zip
    """.split()
)


def is_tool(launch: Launch) -> bool:
    """Whether a launch starts one of TOOLS, or nothing."""
    return launch.launcher is None and not launch.is_python and launch.program in TOOLS
