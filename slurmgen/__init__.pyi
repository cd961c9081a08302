from slurmgen.api import Job as Job
from slurmgen.api import lint as lint
from slurmgen.api import render as render
from slurmgen.api import submit as submit

__version__: str
__all__ = ["Job", "__version__", "lint", "render", "submit"]
