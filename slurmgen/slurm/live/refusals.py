"""Which words of sbatch mean that there is no job.

sbatch ends with status 1 whatever went wrong: where slurmctld refused the job, and also where
the job was taken and only the answer got lost. Known refusals are listed; whatever isn't is asked
about (`whereabouts`).
"""

from __future__ import annotations

import re

# What sbatch says last where slurmctld's answer was an error, or none came
# (src/sbatch/sbatch.c, the same from 20.11 to 26.05).
_FAILED = "Batch job submission failed: "

# No controller let itself be connected to, so nothing was sent: it is the one error that
# slurm_open_controller_conn() gives, and nobody else (src/common/slurm_protocol_api.c).
UNREACHED = "Unable to contact slurm controller (connect failure)"

# Without a configuration sbatch doesn't know whom to ask, and ends before it has sent anything
# (slurm_conf_init() in src/common/read_config.c; seen on 22.05).
_UNCONFIGURED = re.compile(
    r"^sbatch: fatal: (?:Could not establish a configuration source"
    r"|Unable to process configuration file)$",
    re.MULTILINE,
)

# The wordings of slurm_errno.c, 20.02 to 26.05, of errors with which slurmctld rejects a job at
# its submission. Left out are those that a client makes up itself, those of a lost connection or
# a standby controller, and those that could as well be about a job that exists.
_REFUSALS = frozenset(
    """\
Invalid partition name specified
No partition specified or system default partition
Access/permission denied
User's group not permitted to use this partition
Requested nodes not in this partition
More processors requested than permitted
Node count specification invalid
Unable to create job record, try again
Job size specification needs to be provided
Job script not specified
Invalid user id
Invalid user ID
Invalid group id
Invalid group ID
Unable to resolve user ID to user name
Unable to resolve group ID to group name
Pathname of a file, directory or other parameter too long
Immediate execution impossible, insufficient priority
Requested node configuration is not available
Requested partition configuration not available now
Requested topology configuration is not available
Requested nodes are busy
Invalid node name specified
Task distribution specification invalid
Task count specification invalid
Invalid feature specification
Invalid preferred feature specification
Invalid extra constraints specification
Immediate execution impossible, resources too fragmented for allocation
Requested operation not supported on this system
Requested operation is presently disabled
Job dependency problem
Circular job dependency
Current SwitchType does not permit arbitrary task distribution
Requested more tasks than available processors
Memory required by task is not available
Invalid account or account/partition combination specified
Invalid or unknown association
Invalid qos specification
Invalid QOS specification, relative QOS can only be used in a single partition per cluster.
Requested account has breached requested QOS usage threshold
Invalid wckey specification
Invalid license specification
Licenses currently unavailable
Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)
Requested time limit is invalid (missing or exceeds some limit)
Time limit specification required, but not provided
Invalid time-min specification (exceeds job's time or other limits)
Invalid time specified
Access denied to requested reservation
Requested reservation is invalid
Requested reservation is in use
Requested reservation not usable now
Job can not start due to maintenance reservation.
Required node not available (down, drained or reserved)
CPU count specification invalid
Cannot request more threads per core than the job allocation
Required partition not available (inactive or drain)
Partition in DOWN state
Multiple partition job request not supported when a partition is set in the association
Invalid generic resource (gres) specification
Duplicate generic resource (gres) specification
Invalid GRES specification (with and without type identification)
Requested GRES option unsupported by configured SelectType plugin
RestrictedCoresPerGPU: Not enough unique cores per GPU
RestrictedCoresPerGPU: Missing core topology for GPUs
RestrictedCoresPerGPU: No GPUs configured on node
Invalid Trackable RESource (TRES) specification
Invalid job array specification
Invalid --nice value
Invalid mcs_label specified
Burst Buffer permission denied
Burst Buffer resource limit exceeded
Burst Buffer request invalid
Invalid KNL configuration (MCDRAM or NUMA option)
Multiple KNL NUMA and/or MCDRAM constraints require use of a heterogeneous job
Job --batch option is invalid or not a subset of --constraint
Job --batch option is invalid or not a subset of --constraints
X11 forwarding not available
System submissions disabled
Environment is missing in job
Job cannot be submitted without the current working directory specified.
Container support is not configured
Preemption is required but is disabled on this system
MaxJobCount limit reached
Rate limit exceeded, please retry later
Invalid cluster name
Invalid cluster feature specification
No eligible clusters for federated job
Incompatible versions of client and server code""".splitlines()
)

# What sbatch says of its options and of the script, before it asks anybody: src/sbatch/opt.c,
# src/common/slurm_opt.c, src/common/proc_args.c, getopt_long(3).
_OF_OPTIONS = re.compile(
    r"sbatch: (?:"
    r"(?:unrecognized|invalid) option\b"
    r"|option .*(?:requires an argument|doesn't allow an argument|is ambiguous)"
    r"|error: (?:Invalid|invalid) .*(?:specification|argument|option|directive found in batch)\b"
    r"|error: (?:Unable to open file|This does not look like a batch script|Batch script "
    r"(?:contains DOS line breaks|is empty)|The first line must start with)"
    r"|error: No cluster '.*' known by database"
    r"|fatal: .*(?:mutually exclusive|Unexpected `|Unmatched `)"
    r")"
)

# With one of these beside it even a refusal proves nothing: what it refused may have been
# a second attempt.
_LOST = re.compile(r"timed out|Unable to contact|[Cc]onnection|[Cc]ommunication|Zero Bytes|Message")


def is_refusal(stderr: str) -> bool:
    """Whether this is all that sbatch says where there is no job for sure."""
    lines = [line.strip() for line in stderr.splitlines()]
    failures = [line.partition(_FAILED)[2] for line in lines if _FAILED in line]
    others = [line for line in lines if _FAILED not in line and line.startswith("sbatch: ")]
    if any(_LOST.search(line) for line in others):
        return False
    if failures:
        return len(failures) == 1 and failures[0] in _REFUSALS
    return any(_OF_OPTIONS.match(line) for line in others)


def is_unreached(stderr: str) -> bool:
    """Whether sbatch never got as far as to send the job to a controller."""
    if _UNCONFIGURED.search(stderr):
        return True
    return [
        line.partition(_FAILED)[2].strip() for line in stderr.splitlines() if _FAILED in line
    ] == [UNREACHED]
