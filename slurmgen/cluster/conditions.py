"""What conditions and bounds of a profile look at, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from slurmgen.cluster.ask import Ask
    from slurmgen.cluster.profile import Profile, When
    from slurmgen.jobfile.job import JobSpec


class Circumstances(NamedTuple):
    """A job as the rules of a site see it. Counts are of the whole job.

    time: seconds; None where no limit is given, or none is wanted (`endless`). partitions:
    those that are written, by the job or for it. cpus: None where they are left to the site.
    """

    spec: JobSpec
    nodes: int
    gpus: int
    gpus_per_node: int
    cpus: int | None
    time: int | None
    endless: bool
    partitions: tuple[str, ...]
    qos: str | None
    node_type: str | None
    whole_nodes: bool
    launcher: str
    container: bool


def of(spec: JobSpec, profile: Profile, ask: Ask) -> Circumstances:
    """The circumstances of a job on the nodes it will get."""
    select = ask.node_type.select.given() if ask.node_type is not None else {}
    partition = spec.partition or select.get("partition")
    time = spec.time.seconds if spec.time is not None else None
    cpus = None if ask.cpus_per_task is None else ask.layout.ntasks * ask.cpus_per_task
    return Circumstances(
        spec=spec,
        nodes=spec.nodes,
        gpus=ask.gpus * spec.nodes,
        gpus_per_node=ask.gpus,
        cpus=cpus,
        time=time,
        endless=spec.time is not None and time is None,
        partitions=tuple(partition.split(",")) if partition else (),
        qos=spec.qos or select.get("qos"),
        node_type=ask.node_type.name if ask.node_type is not None else None,
        whole_nodes=_takes_whole_nodes(profile, ask),
        launcher=spec.launcher,
        container=spec.setup.container is not None,
    )


def _takes_whole_nodes(profile: Profile, ask: Ask) -> bool:
    if not ask.gpus:
        return False
    if profile.gpus.form == "none":
        return True
    kinds = [ask.node_type] if ask.node_type is not None else profile.node_types
    sizes = {kind.gpus_per_node for kind in kinds if kind.gpus_per_node}
    return sizes == {ask.gpus}


def holds(when: When, job: Circumstances) -> bool:
    """Whether everything that a condition says is so."""
    return (
        (when.min_nodes is None or job.nodes >= when.min_nodes)
        and (when.max_nodes is None or job.nodes <= when.max_nodes)
        and (when.min_gpus is None or job.gpus >= when.min_gpus)
        and (when.max_gpus is None or job.gpus <= when.max_gpus)
        and (not when.node_type or job.node_type in when.node_type)
        and (not when.partition or not set(when.partition).isdisjoint(job.partitions))
        and (not when.qos or job.qos in when.qos)
        and (not when.launcher or job.launcher in when.launcher)
        and (when.whole_nodes is None or when.whole_nodes == job.whole_nodes)
        and (when.container is None or when.container == job.container)
    )


def describe(when: When) -> str:
    """A condition in words; empty where there is none."""
    parts = []
    for noun, least, most in (
        ("node", when.min_nodes, when.max_nodes),
        ("GPU", when.min_gpus, when.max_gpus),
    ):
        if least is not None and most is not None:
            span = f"{least}" if least == most else f"{least} to {most}"
            parts.append(f"{span} {_plural(noun, most)}")
        elif least is not None:
            parts.append(f"{least} {_plural(noun, least)} or more")
        elif most is not None:
            parts.append(f"up to {most} {_plural(noun, most)}")
    if when.node_type:
        parts.append(f"{' or '.join(when.node_type)} nodes")
    if when.partition:
        parts.append(f"partition {' or '.join(when.partition)}")
    if when.qos:
        parts.append(f"QOS {' or '.join(when.qos)}")
    if when.launcher:
        parts.append(f"launcher {' or '.join(when.launcher)}")
    if when.whole_nodes is not None:
        parts.append("whole nodes" if when.whole_nodes else "a part of each node")
    if when.container is not None:
        parts.append("a container" if when.container else "no container")
    return ", ".join(parts)


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"
