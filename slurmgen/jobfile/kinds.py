"""The kinds of value that a job file has: how each is read, and what sbatch makes of it.

Without Pydantic, for which `fields.py` has the type of each kind.
"""

from __future__ import annotations

from typing import NamedTuple

from slurmgen.jobfile import readers
from slurmgen.jobfile.readers import Reader


class Kind(NamedTuple):
    """A kind of value.

    read: from what YAML or Python gives to the canonical spelling; raises Refusal.
    is_parsed: sbatch itself reads it, so that two spellings of one value are the same; any
    other text it hands on as it is. is_bare: written without quotes, as people expect it.
    """

    read: Reader
    is_parsed: bool = False
    is_bare: bool = False


WORD = Kind(readers.word)
WORDS = Kind(readers.words)
PATH = Kind(readers.path)
PATHS = Kind(readers.paths)
MODULE_NAMES = Kind(readers.module_names)
BASH_LINES = Kind(readers.bash_lines)
ENVIRONMENT = Kind(readers.environment)
NAME = Kind(readers.name)
IDENTIFIER = Kind(readers.identifier)
NAME_LIST = Kind(readers.name_list)
LICENSES = Kind(readers.licenses)
DIRECTORY = Kind(readers.directory)
TEMPLATE_NAME = Kind(readers.template_name)
EXCLUSIVE = Kind(readers.exclusive, is_parsed=True, is_bare=True)
OPEN_MODE = Kind(readers.open_mode, is_parsed=True)
GPUS = Kind(readers.gpus, is_bare=True)
NODES = Kind(readers.nodes, is_parsed=True, is_bare=True)
COUNT = Kind(readers.count, is_parsed=True, is_bare=True)
TASKS = Kind(readers.tasks, is_parsed=True, is_bare=True)
CPUS = Kind(readers.cpus, is_parsed=True, is_bare=True)
RESTARTS = Kind(readers.restarts)
TRUTH = Kind(readers.truth)
TIME = Kind(readers.time, is_parsed=True, is_bare=True)
MEMORY = Kind(readers.memory, is_parsed=True, is_bare=True)
GRES = Kind(readers.gres)
HOSTS = Kind(readers.host_list)
CONSTRAINT = Kind(readers.constraint)
BEGIN = Kind(readers.begin, is_parsed=True, is_bare=True)
ARRAY = Kind(readers.array, is_bare=True)
DEPENDENCY = Kind(readers.dependency)
SIGNAL = Kind(readers.signal, is_parsed=True)
REQUEUE_SIGNAL = Kind(readers.requeue_signal)
MAIL_TYPE = Kind(readers.mail_type, is_parsed=True)
LOG = Kind(readers.log_pattern)
EXPORT = Kind(readers.export)
VARIABLES = Kind(readers.variables)
SCRIPT = Kind(readers.script)
COMMAND = Kind(readers.command)


def one_of(*allowed: str) -> Kind:
    """Words of a short list."""
    return Kind(readers.one_of(*allowed))
