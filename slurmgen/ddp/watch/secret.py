"""What the ranks of one run know and nobody else. No torch here.

The batch script makes the secret, in a variable that srun hands to the tasks: neither a command
line nor Slurm shows it, and another user can't read the environment of a process. Requeued, a job
makes another one.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slurmgen.ddp.failure import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurmgen.ddp.launch.identity import Identity

VARIABLE = "SLURMGEN_SECRET"
"""Of each run: hexadecimal digits from the kernel's generator, of which blanks don't count."""

_LEAST = 32


def secret_of(env: Mapping[str, str]) -> str:
    """The secret of the run, "" without one. Raises LaunchError for one that could be guessed."""
    secret = "".join(env.get(VARIABLE, "").split())
    if secret and len(secret) < _LEAST:
        raise LaunchError(
            f"{VARIABLE} has {len(secret)} characters",
            why="what is that short could be guessed, and with it a place among the ranks",
            fix=f"read -r {VARIABLE} < <(od -An -N32 -tx8 -w32 /dev/urandom), and export it; or"
            " leave it to the rendered script",
        )
    return secret


@dataclass(frozen=True)
class Token:
    """What only the ranks of one run have in common.

    run: its name. Without a `secret` that is all, and job ids are public: then a token keeps runs
    apart that meet by accident, and no more.
    """

    run: str
    world_size: int
    secret: str = field(default="", repr=False)

    @classmethod
    def of(cls, identity: Identity, env: Mapping[str, str]) -> Token:
        """Of this attempt of the run that `identity` belongs to. Raises LaunchError."""
        run = f"{identity.job} attempt {identity.attempt}"
        return cls(run, identity.world_size, secret_of(env))

    def digest(self, purpose: str) -> str:
        """64 hexadecimal digits for one purpose: a proof, or the choice of a port."""
        text = f"slurmgen.ddp|{purpose}|{self.run}|{self.world_size}"
        return hmac.new(self.secret.encode(), text.encode(), hashlib.sha256).hexdigest()
