"""The same spec without Pydantic, for job files that are certainly valid.

Importing Pydantic and building its models takes longer than all the rest of `render`. So
a job file is first read by the functions that the models are made of (`readers.py`);
whatever they do not take at once goes to Pydantic, which then says what is wrong.
`tests/property/test_quick.py` holds the two to the same result.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from slurmgen import launchers
from slurmgen.errors import Refusal
from slurmgen.spec import checks, readers
from slurmgen.spec.requeue import MAX_RESTARTS, ON_NODE_FAIL, SIGNAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.spec.job import JobSpec
    from slurmgen.spec.readers import Reader


# The most of each count; `spec/job.py` says why.
MOST = 65_533
MOST_TASKS = 16_000_000


class _Spec(SimpleNamespace):
    """Values as attributes; as in Pydantic, `model_fields_set` has the keys that were given."""

    __slots__ = ("model_fields_set",)
    model_fields_set: set[str]

    def __copy__(self) -> _Spec:
        other = _Spec(**self.__dict__)
        other.model_fields_set = set(self.model_fields_set)
        return other


class _Doubtful(Exception):
    """Let Pydantic judge."""


def quick_job(data: Mapping[str, Any]) -> JobSpec | None:
    """An object with the attributes of `JobSpec(**data)`, or None where that might raise."""
    try:
        spec = cast("JobSpec", _read(data, _JOB, _JOB_DEFAULTS))
        checks.check_together(spec)
    except (_Doubtful, Refusal, checks.Refusals):
        return None
    return spec


def _read(
    data: Mapping[str, Any], known: Mapping[str, Reader], defaults: Mapping[str, Any]
) -> SimpleNamespace:
    values = dict(defaults)
    for key, value in data.items():
        reader = known.get(key)
        if reader is None:
            raise _Doubtful
        # An empty key is the default of those that may be None, and wrong for the others.
        if value is None:
            if defaults[key] is not None:
                raise _Doubtful
        else:
            values[key] = reader(value)
    spec = _Spec(**values)
    spec.model_fields_set = set(data)
    return spec


def _number(value: Any, most: int = MOST) -> int:
    text = readers.text(value)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= most):
        raise _Doubtful
    return int(text)


def _tasks(value: Any) -> int:
    return _number(value, MOST_TASKS)


def _cpus(value: Any) -> int | str:
    return "default" if value == "default" else _number(value)


def _truth(value: Any) -> bool:
    if value not in ("true", "false", True, False):
        raise _Doubtful
    return value in ("true", True)


def _one_of(*allowed: str) -> Reader:
    def read(value: Any) -> Any:
        if value not in allowed:
            raise _Doubtful
        return value

    return read


def _requeue(value: Any) -> bool | str | SimpleNamespace:
    if isinstance(value, dict):
        return _read(value, _REQUEUE, _REQUEUE_DEFAULTS)
    return ON_NODE_FAIL if value == ON_NODE_FAIL else _truth(value)


def _setup(value: Any) -> SimpleNamespace:
    if not isinstance(value, dict):
        raise _Doubtful
    return _read(value, _SETUP, _SETUP_DEFAULTS)


def _modules(value: Any) -> SimpleNamespace:
    given = value if isinstance(value, dict) else {"load": value}
    return _read(given, _MODULES, {"purge": False, "use": (), "load": ()})


def _container(value: Any) -> SimpleNamespace:
    given = value if isinstance(value, dict) else {"image": value}
    if given.get("image") is None:
        raise _Doubtful
    return _read(given, _CONTAINER, {**dict.fromkeys(_CONTAINER), "mounts": ()})


_REQUEUE: dict[str, Reader] = {
    "signal": readers.requeue_signal,
    "max_restarts": readers.restarts,
    "on_node_fail": _truth,
}
_REQUEUE_DEFAULTS: dict[str, Any] = {
    "signal": SIGNAL,
    "max_restarts": MAX_RESTARTS,
    "on_node_fail": False,
}
_MODULES: dict[str, Reader] = {"purge": _truth, "use": readers.paths, "load": readers.module_names}
_CONTAINER: dict[str, Reader] = {
    "image": readers.path,
    "runtime": _one_of("apptainer", "singularity", "pyxis"),
    "mounts": readers.paths,
    "gpu": _one_of("nvidia", "rocm", "none"),
    "workdir": readers.path,
}
_SETUP: dict[str, Reader] = {
    "modules": _modules,
    "venv": readers.path,
    "conda": readers.path,
    "uv": readers.path,
    "container": _container,
    "commands": readers.bash_lines,
}
_SETUP_DEFAULTS: dict[str, Any] = {**dict.fromkeys(_SETUP), "commands": ()}
_JOB: dict[str, Reader] = {
    "job_name": readers.name,
    "comment": readers.name,
    "account": readers.identifier,
    "partition": readers.name_list,
    "qos": readers.identifier,
    "reservation": readers.identifier,
    "constraint": readers.constraint,
    "nodes": _number,
    "gpus_per_node": readers.gpus,
    "ntasks_per_node": _number,
    "ntasks": _tasks,
    "gpu_form": _one_of("gres", "gpus-per-node"),
    "nproc_per_node": _number,
    "cpus_per_task": _cpus,
    "cpus_per_gpu": _number,
    "mem": readers.memory,
    "mem_per_cpu": readers.memory,
    "mem_per_gpu": readers.memory,
    "gres": readers.gres,
    "exclusive": readers.exclusive,
    "nodelist": readers.host_list,
    "exclude": readers.host_list,
    "licenses": readers.licenses,
    "time": readers.time,
    "time_min": readers.time,
    "begin": readers.begin,
    "deadline": readers.begin,
    "array": readers.array,
    "dependency": readers.dependency,
    "signal": readers.signal,
    "requeue": _requeue,
    "mail_type": readers.mail_type,
    "mail_user": readers.name_list,
    "output": readers.log_pattern,
    "error": readers.log_pattern,
    "input": readers.log_pattern,
    "open_mode": readers.open_mode,
    "chdir": readers.directory,
    "export": readers.export,
    "sbatch": readers.options,
    "template": readers.template_name,
    "vars": readers.variables,
    "launcher": _one_of(*launchers.NAMES),
    "rdzv": _one_of("static", "c10d"),
    "setup": _setup,
    "env": readers.environment,
    "command": readers.command,
    "ddp": readers.word,
    "args": readers.words,
    "script": readers.script,
}
_JOB_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(_JOB),
    "nodes": 1,
    "sbatch": {},
    "template": "job",
    "vars": {},
    "launcher": launchers.DEFAULT,
    "rdzv": "static",
    "setup": SimpleNamespace(**_SETUP_DEFAULTS),
    "env": {},
    "args": (),
}
