"""What happens on the first node before the program starts: `setup:` of a job file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from slurmgen.jobfile.base import SpecModel
from slurmgen.jobfile.fields import BashLines, ModuleNames, Path, Paths, given
from slurmgen.jobfile.keys import CONTAINER, MODULES, SETUP
from slurmgen.jobfile.shapes import PATH, TEXT_OR_LIST, OrShort


def _modules_from_list(value: Any) -> Any:
    return {"load": value} if isinstance(value, (list, tuple, str)) else value


def _container_from_image(value: Any) -> Any:
    return {"image": value} if isinstance(value, str) else value


class Modules(SpecModel):
    """Environment modules, in the order purge, use, load. A bare list means `load`."""

    purge: bool = given(MODULES["purge"])
    use: Paths = given(MODULES["use"])
    load: ModuleNames = given(MODULES["load"])


class Container(SpecModel):
    """The container that every task runs in. A bare string is the image."""

    image: Path = Field(description=CONTAINER["image"].description)
    runtime: Literal["apptainer", "singularity", "pyxis"] | None = given(CONTAINER["runtime"])
    mounts: Paths = given(CONTAINER["mounts"])
    gpu: Literal["nvidia", "rocm", "none"] | None = given(CONTAINER["gpu"])
    workdir: Path | None = given(CONTAINER["workdir"])


class Setup(SpecModel):
    """Everything the program needs around it; see each key.

    `commands` are lines of Bash for the batch shell, run once on the first node
    after modules and environment; a failing line ends the job.
    """

    modules: Annotated[
        Modules | None, BeforeValidator(_modules_from_list), OrShort(TEXT_OR_LIST)
    ] = given(SETUP["modules"])
    venv: Path | None = given(SETUP["venv"])
    conda: Path | None = given(SETUP["conda"])
    uv: Path | None = given(SETUP["uv"])
    container: Annotated[
        Container | None, BeforeValidator(_container_from_image), OrShort(PATH)
    ] = given(SETUP["container"])
    commands: BashLines = given(SETUP["commands"])
