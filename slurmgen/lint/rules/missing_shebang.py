"""The script does not start with `#!` and an interpreter.

## What it does

Finds scripts whose first characters are not `#!`: without such a line, with a blank line, a comment
or a byte order mark before it, or with it misspelt.

## Why is this bad

sbatch refuses the script: "This does not look like a batch script". It looks at the very first two
bytes.

## Example

```bash job.sbatch
#SBATCH --time=2:00:00
hostname
```

## Use instead

```bash job.sbatch
#!/bin/bash
#SBATCH --time=2:00:00
hostname
```

## References

- sbatch(1), DESCRIPTION
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.diagnostics import ERROR, Edit, Place
from slurmgen.lint.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slurmgen.lint.job import Job

NAME = "missing-shebang"
CODE = "SG114"
SEVERITY = ERROR

_BEFORE = re.compile(r"[\s\ufeff]+(?=#!)")
_MISSPELT = re.compile(r"[ \t\\]*(?:# +!|!#|#|!)[ \t]*(?=/(?:usr/)?(?:local/)?bin/)")


def check(job: Job) -> Iterator[Finding]:
    text = job.text
    if text.startswith("#!") and text[2:].split("\n", 1)[0].strip():
        return
    if job.is_submitter:
        return
    place = Place(1, 1, max(1, len(job.script.lines[0])))
    message = "the script has no #! line"
    fix = "write #!/bin/bash as the first line"
    edits: tuple[Edit, ...] = ()
    before, misspelt = _BEFORE.match(text), _MISSPELT.match(text)
    if not text.strip():
        message = "the script is empty"
    elif before is not None:
        what = "a byte order mark" if "\ufeff" in before[0] else "a blank"
        what = "a blank line" if "\n" in before[0] and "\ufeff" not in before[0] else what
        message = f"{what} stands before the #! line"
        fix = "remove it"
        edits = (Edit(0, before.end(), ""),)
    elif misspelt is not None:
        message = f'the first line starts with "{misspelt[0].strip()}", not #!'
        edits = (Edit(0, misspelt.end(), "#!"),)
    else:
        later = next((n for n, line in enumerate(job.script.lines[1:20], 2) if line[:2] == "#!"), 0)
        if later:
            message = f"the #! line is line {later}, not the first"
            fix = "move it to the top"
    yield Finding(
        place, message, "sbatch says: This does not look like a batch script", fix, edits=edits
    )
