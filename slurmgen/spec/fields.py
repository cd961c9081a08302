"""The kinds of value a job file or a profile has, as types for Pydantic's models."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from slurmgen.spec import readers

Word = Annotated[str, BeforeValidator(readers.word)]
Words = Annotated[tuple[str, ...], BeforeValidator(readers.words)]
Path = Annotated[str, BeforeValidator(readers.path)]
Paths = Annotated[tuple[str, ...], BeforeValidator(readers.paths)]
ModuleNames = Annotated[tuple[str, ...], BeforeValidator(readers.module_names)]
BashLines = Annotated[tuple[str, ...], BeforeValidator(readers.bash_lines)]
Environment = Annotated[dict[str, str], BeforeValidator(readers.environment)]
Name = Annotated[str, BeforeValidator(readers.name)]
Identifier = Annotated[str, BeforeValidator(readers.identifier)]
NameList = Annotated[str, BeforeValidator(readers.name_list)]
Licenses = Annotated[str, BeforeValidator(readers.licenses)]
Directory = Annotated[str, BeforeValidator(readers.directory)]
TemplateName = Annotated[str, BeforeValidator(readers.template_name)]
Exclusive = Annotated[str | None, BeforeValidator(readers.exclusive)]
OpenMode = Annotated[str, BeforeValidator(readers.open_mode)]
GpuCount = Annotated[str, BeforeValidator(readers.gpus)]
NodeCount = Annotated[int, BeforeValidator(readers.node_count)]
Time = Annotated[str, BeforeValidator(readers.time)]
Memory = Annotated[str, BeforeValidator(readers.memory)]
Gres = Annotated[str, BeforeValidator(readers.gres)]
HostList = Annotated[str, BeforeValidator(readers.host_list)]
Constraint = Annotated[str, BeforeValidator(readers.constraint)]
Begin = Annotated[str, BeforeValidator(readers.begin)]
Array = Annotated[str, BeforeValidator(readers.array)]
Dependency = Annotated[str, BeforeValidator(readers.dependency)]
Signal = Annotated[str, BeforeValidator(readers.signal)]
RequeueSignal = Annotated[str, BeforeValidator(readers.requeue_signal)]
Restarts = Annotated[int, BeforeValidator(readers.restarts)]
MailType = Annotated[str, BeforeValidator(readers.mail_type)]
LogPattern = Annotated[str, BeforeValidator(readers.log_pattern)]
Export = Annotated[str, BeforeValidator(readers.export)]
Variables = Annotated[dict[str, Any], BeforeValidator(readers.variables)]
Script = Annotated[str, BeforeValidator(readers.script)]
Command = Annotated[str | tuple[str, ...], BeforeValidator(readers.command)]
OtherOptions = Annotated[dict[str, str | None], BeforeValidator(readers.options)]
