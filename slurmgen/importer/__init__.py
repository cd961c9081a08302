"""An existing batch script as a job file; pure, and total: no text makes it fail.

Two levels. *Idiomatic*: the script does what a job file says in its own keys (set-up,
variables, one program started last), and the rendered script asks Slurm for the same and
starts the same program (`idiom`). *Kept*: whatever else, as `script:`, the directives as
keys and the code as it stands (`kept`). Which of the two is decided by rendering the job
file and comparing (`check`): what is printed has been read back and rendered before.
"""

from slurmgen.importer.importer import Imported, NotImportable, import_script

__all__ = ["Imported", "NotImportable", "import_script"]
