"""The job asks for what the cluster does not have or allow.

## What it does

Compares the directives with what the profile of the cluster knows: partitions, their time and node
limits, types and numbers of GPUs (upper and lower case differ), CPUs and memory of a node,
features, nodes, reservations, licenses, the largest array, and options that the site refuses.

## Why is this bad

Slurm refuses the job ("Requested node configuration is not available", "Invalid partition name
specified"), or lets it wait for ever.

## Example

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:A100:2
#SBATCH --time=2:00:00
hostname
```

```yaml cluster.yaml
node_types:
  - {name: gpu, gpu: a100, gpus_per_node: 4, cpus: 64, memory: 512G}
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --gres=gpu:a100:2
#SBATCH --time=2:00:00
hostname
```

```yaml cluster.yaml
node_types:
  - {name: gpu, gpu: a100, gpus_per_node: 4, cpus: 64, memory: 512G}
```

## References

- sinfo(1), -o "%P %l %D %c %m %G %f"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, Edit, Place
from slurmgen.lint.facts.options import place, sound, value_place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.cluster.profile import Profile
    from slurmgen.lint.job import Job
    from slurmgen.slurm.directives import Directive
    from slurmgen.slurm.request import Request

NAME = "cluster-mismatch"
CODE = "SG117"
SEVERITY = ERROR
NEEDS = "a profile of the cluster (`--cluster`)"


def check(job: Job) -> Iterator[Finding]:
    profile = job.profile
    if profile is None or job.is_submitter:
        return
    from slurmgen.lint.facts.on_cluster import mismatches

    fine = {directive.start for directive in sound(job)}
    said: set[str] = set()
    for request in job.script.requests:
        for mismatch in mismatches(request, profile, fine):
            if mismatch.what in said:
                continue
            said.add(mismatch.what)
            directive = mismatch.directive
            where = value_place(job, directive) if directive is not None else Place(1, 1)
            if directive is not None and directive.value is None:
                where = place(directive)
            yield Finding(
                where,
                mismatch.what,
                mismatch.why,
                mismatch.fix,
                edits=_cased(job, request, profile, directive),
            )


def _cased(
    job: Job, request: Request, profile: Profile, directive: Directive | None
) -> tuple[Edit, ...]:
    """The type of the GPUs, where only its case is wrong."""
    written = request.gpu_type
    if directive is None or written is None or directive.value_start is None:
        return ()
    kinds = {kind.gpu for kind in profile.node_types if kind.gpu}
    meant = [kind for kind in kinds if kind.lower() == written.lower() and kind != written]
    text = job.text[directive.value_start : directive.value_end]
    if len(meant) != 1 or text.count(written) != 1:
        return ()
    at = directive.value_start + text.index(written)
    return (Edit(at, at + len(written), meant[0]),)
