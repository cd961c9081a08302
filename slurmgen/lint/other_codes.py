"""The codes that no rule of lint stands behind: what other steps and verbs find, and why.

A job file is read, a template rendered and a cluster asked before or beside any rule, so what is
wrong there can be neither chosen nor suppressed; it can be explained like a rule.
"""

from __future__ import annotations

import textwrap
from typing import NamedTuple


class Code(NamedTuple):
    """summary: one sentence. text: the rest, for `lint --explain`."""

    name: str
    code: str
    severity: str
    summary: str
    text: str


CODES = (
    Code(
        "yaml-syntax",
        "SG001",
        "error",
        "The file cannot be read as YAML 1.2, or is no mapping of keys",
        "Nothing of it is known, so nothing else is said. The place is where the reader gave "
        "up; the fault is there or shortly before: a quote or bracket that is not closed, a "
        "tab, two keys on a line, a key given twice.",
    ),
    Code(
        "unknown-key",
        "SG003",
        "error",
        "A key that job files, or cluster profiles, do not have",
        "It would mean nothing, and the job would silently lack what was meant. The nearest "
        "key is proposed; an option of sbatch without a key of its own goes under sbatch:. "
        "The keys are in the reference of the job file, and `slurmgen schema` teaches them to "
        "an editor.",
    ),
    Code(
        "invalid-value",
        "SG004",
        "error",
        "A value without a meaning there, or over a limit of the cluster's profile",
        "It may also contradict another one, such as more tasks than GPUs. A job file that "
        "is refused renders no script. What comes from a profile has the site's reason and "
        "its document; `slurmgen cluster show NAME` has all of them, and `slurmgen cluster "
        "diff NAME` says where a profile is out of date.",
    ),
    Code(
        "live-cluster",
        "SG005",
        "error",
        "The cluster on which check runs cannot run this job",
        "Said by `slurmgen check`, of what scontrol and sacctmgr told it: more than any node "
        "has, over a limit of the partition or of one's own QOS, an account or a partition "
        "that is not one's own, a name that does not exist, too few nodes. sbatch would "
        "refuse the job, or leave it pending for ever. The fix is the nearest job that fits.",
    ),
    Code(
        "refused-by-slurm",
        "SG006",
        "error",
        "sbatch --test-only refuses the job, for a reason that was not foreseen",
        "The sentence is Slurm's own. Sites have plugins that refuse jobs by rules of their "
        "own, which nobody can ask for; `slurmgen cluster show NAME` has what their documents "
        "say.",
    ),
    Code(
        "live-cluster-doubt",
        "SG007",
        "warning",
        "The job would run on this cluster, but wait, or take what it does not use",
        "Said by `slurmgen check`: nodes or a partition that are down, GPUs that nobody can "
        "use beside the job because it takes their CPUs or their memory, whole nodes for a "
        "part of their GPUs. Most sites charge a job by its largest share of a node.",
    ),
    Code(
        "template",
        "SG010",
        "error",
        "A template cannot be rendered",
        "The place is in the template, or in the one that it extends. `slurmgen template "
        "show` prints the built-in ones, with the values that they are given.",
    ),
    Code(
        "template-changes-plan",
        "SG011",
        "error",
        "A template of the project renders another job than the job file describes",
        "What was checked of the job (limits, ranks, ports) would not be what runs. Templates "
        "lay out; values belong into the job file, and {{ super() }} keeps what the built-in "
        "blocks say.",
    ),
    Code(
        "not-read-to-the-end",
        "SG012",
        "warning",
        "Lint stopped here, and has not looked at the rest",
        "Reading a script may be so much work and no more, so that lint ends soon whatever it is "
        "given. No script that a person wrote comes near; one that a program has written may hold "
        "more commands, nested more deeply, than are followed. What was found until then is "
        "said, but that nothing else was found says nothing. It is said whatever was selected, "
        "and cannot be suppressed.",
    ),
)


# What lint says where it stopped before the end.
STOPPED = ("not-read-to-the-end", "SG012")
# What `check` finds on the running cluster, what Slurm refuses for a reason of its own, and waste.
LIVE, REFUSED, DOUBTFUL = (
    ("live-cluster", "SG005"),
    ("refused-by-slurm", "SG006"),
    ("live-cluster-doubt", "SG007"),
)


def find(name: str) -> Code | None:
    """The code of this name or number, case aside."""
    return next((code for code in CODES if name.lower() in (code.name, code.code.lower())), None)


def explain(code: Code) -> str:
    """As plain text."""
    text = textwrap.fill(code.text, width=96, break_on_hyphens=False)
    return f"{code.name} ({code.code}, {code.severity})\n\n{code.summary}.\n\n{text}\n"
