"""What happens on the first node before the program starts: `setup:` of a job file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from slurmgen.spec.base import SpecModel
from slurmgen.spec.fields import BashLines, ModuleNames, Path, Paths
from slurmgen.spec.shapes import PATH, TEXT_OR_LIST, OrShort


def _modules_from_list(value: Any) -> Any:
    return {"load": value} if isinstance(value, (list, tuple, str)) else value


def _container_from_image(value: Any) -> Any:
    return {"image": value} if isinstance(value, str) else value


class Modules(SpecModel):
    """Environment modules, in the order purge, use, load. A bare list means `load`."""

    purge: bool = Field(False, description="run `module purge` first")
    use: Paths = Field((), description="folders for `module use`")
    load: ModuleNames = Field((), examples=[["cuda/12.4"]])


class Container(SpecModel):
    """The container that every task runs in. A bare string is the image."""

    image: Path = Field(description="a .sif file, a docker:// address, or what pyxis takes")
    runtime: Literal["apptainer", "singularity", "pyxis"] | None = Field(
        None, description="default: the cluster profile's, else pyxis for .sqsh, else apptainer"
    )
    mounts: Paths = Field((), examples=[["/data", "/scratch/me:/out:ro"]])
    gpu: Literal["nvidia", "rocm", "none"] | None = Field(
        None, description="--nv or --rocm for apptainer; default: by the job's GPUs"
    )
    workdir: Path | None = Field(None, description="working folder inside the container")


class Setup(SpecModel):
    """Everything the program needs around it; see each key.

    `commands` are lines of Bash for the batch shell, run once on the first node
    after modules and environment; a failing line ends the job.
    """

    modules: Annotated[
        Modules | None, BeforeValidator(_modules_from_list), OrShort(TEXT_OR_LIST)
    ] = Field(None, description="environment modules", examples=[["cuda/12.4"]])
    venv: Path | None = Field(None, description="folder of a Python virtual environment")
    conda: Path | None = Field(None, description="name or folder of a conda environment")
    uv: Path | None = Field(None, description="folder of a uv project that has been synced")
    container: Annotated[
        Container | None, BeforeValidator(_container_from_image), OrShort(PATH)
    ] = Field(None, description="the container that every task runs in", examples=["train.sif"])
    commands: BashLines = Field((), description="Bash, evaluated once in the batch shell")
