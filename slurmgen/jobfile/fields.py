"""The kinds of value a job file or a profile has, as types for Pydantic's models."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, InstanceOf, WithJsonSchema

from slurmgen.jobfile import readers, shapes
from slurmgen.jobfile.keys import KEYS, Key
from slurmgen.slurm.grammars import array, memory
from slurmgen.slurm.grammars.gres import Gpus
from slurmgen.slurm.grammars.time import Duration

Word = Annotated[str, BeforeValidator(readers.word), WithJsonSchema(shapes.SCALAR)]
Words = Annotated[
    tuple[str, ...], BeforeValidator(readers.words), WithJsonSchema(shapes.TEXT_OR_LIST)
]
Path = Annotated[str, BeforeValidator(readers.path), WithJsonSchema(shapes.PATH)]
Paths = Annotated[tuple[str, ...], BeforeValidator(readers.paths), WithJsonSchema(shapes.PATHS)]
ModuleNames = Annotated[
    tuple[str, ...], BeforeValidator(readers.module_names), WithJsonSchema(shapes.TEXT_OR_LIST)
]
BashLines = Annotated[
    tuple[str, ...], BeforeValidator(readers.bash_lines), WithJsonSchema(shapes.TEXT_OR_LIST)
]
Environment = Annotated[
    dict[str, str], BeforeValidator(readers.environment), WithJsonSchema(shapes.ENVIRONMENT)
]
Name = Annotated[str, BeforeValidator(readers.name), WithJsonSchema(shapes.SCALAR)]
Identifier = Annotated[str, BeforeValidator(readers.identifier), WithJsonSchema(shapes.SCALAR)]
NameList = Annotated[str, BeforeValidator(readers.name_list), WithJsonSchema(shapes.TEXT_OR_LIST)]
Licenses = Annotated[str, BeforeValidator(readers.licenses), WithJsonSchema(shapes.TEXT_OR_LIST)]
Directory = Annotated[str, BeforeValidator(readers.directory), WithJsonSchema(shapes.SCALAR)]
TemplateName = Annotated[str, BeforeValidator(readers.template_name), WithJsonSchema(shapes.SCALAR)]
Exclusive = Annotated[
    str | None, BeforeValidator(readers.exclusive), WithJsonSchema(shapes.EXCLUSIVE)
]
OpenMode = Annotated[str, BeforeValidator(readers.open_mode), WithJsonSchema(shapes.OPEN_MODE)]
GpuCount = Annotated[InstanceOf[Gpus], BeforeValidator(readers.gpus), WithJsonSchema(shapes.GPUS)]
NodeCount = Annotated[int, BeforeValidator(readers.node_count), WithJsonSchema(shapes.NODES)]
Time = Annotated[str, BeforeValidator(readers.time_text), WithJsonSchema(shapes.TIME)]
TimeLimit = Annotated[
    InstanceOf[Duration], BeforeValidator(readers.time), WithJsonSchema(shapes.TIME)
]
Memory = Annotated[str, BeforeValidator(readers.memory_text), WithJsonSchema(shapes.MEMORY)]
MemorySize = Annotated[
    InstanceOf[memory.Memory], BeforeValidator(readers.memory), WithJsonSchema(shapes.MEMORY)
]
Gres = Annotated[str, BeforeValidator(readers.gres), WithJsonSchema(shapes.TEXT_OR_LIST)]
HostList = Annotated[str, BeforeValidator(readers.host_list), WithJsonSchema(shapes.TEXT_OR_LIST)]
Constraint = Annotated[str, BeforeValidator(readers.constraint), WithJsonSchema(shapes.SCALAR)]
Begin = Annotated[str, BeforeValidator(readers.begin), WithJsonSchema(shapes.SCALAR)]
Array = Annotated[
    InstanceOf[array.Array], BeforeValidator(readers.array), WithJsonSchema(shapes.RANGES)
]
Dependency = Annotated[str, BeforeValidator(readers.dependency), WithJsonSchema(shapes.SCALAR)]
Signal = Annotated[str, BeforeValidator(readers.signal), WithJsonSchema(shapes.SCALAR)]
RequeueSignal = Annotated[
    str, BeforeValidator(readers.requeue_signal), WithJsonSchema(shapes.SCALAR)
]
Restarts = Annotated[int, BeforeValidator(readers.restarts), WithJsonSchema(shapes.NUMBER)]
MailType = Annotated[str, BeforeValidator(readers.mail_type), WithJsonSchema(shapes.TEXT_OR_LIST)]
LogPattern = Annotated[str, BeforeValidator(readers.log_pattern), WithJsonSchema(shapes.SCALAR)]
Export = Annotated[str, BeforeValidator(readers.export), WithJsonSchema(shapes.SCALAR)]
Variables = Annotated[
    dict[str, Any], BeforeValidator(readers.variables), WithJsonSchema(shapes.VARIABLES)
]
Script = Annotated[str, BeforeValidator(readers.script), WithJsonSchema(shapes.SCRIPT)]
Command = Annotated[
    str | tuple[str, ...], BeforeValidator(readers.command), WithJsonSchema(shapes.COMMAND)
]
OtherOptions = Annotated[
    dict[str, str | None], BeforeValidator(KEYS["sbatch"].kind.read), shapes.SbatchOptions()
]


def given(
    key: Key,
    *,
    default: Any = None,
    description: str = "",
    ge: int | None = None,
    le: int | None = None,
) -> Any:
    """The field of a key of `keys.py`, whose type is the annotation of the model.

    default: in place of the key's own, if that is a model. description: in place of the key's
    own, if what it says isn't known without imports that the quick reader can't afford.
    """
    usual = key.default if default is None else default
    return Field(usual, description=description or key.description or None, ge=ge, le=le)
