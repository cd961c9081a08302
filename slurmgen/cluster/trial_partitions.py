"""Which partitions and QOS are for trying things out, and not for training."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slurmgen.slurm.grammars.time import parse_time

if TYPE_CHECKING:
    from slurmgen.cluster.profile.limits import Selectable

# gputest, gpu_devel, gh-dev, develbooster, boost_qos_dbg, interact, qgpu_exp (express)
# Compiled when a name is looked at: every render loads this module.
_NAMES = r"debug|dbg|devel|interact|test(?![a-z])|(?<![a-z])(?:dev|exp|test)(?![a-z])"
_SHORT = 3600


def is_for_trials(place: Selectable) -> bool:
    """Whether its name says so (debug, test, express, interactive), or its limit is an hour."""
    if re.search(_NAMES, place.name.lower()):
        return True
    longest = parse_time(place.max_time) if place.max_time is not None else None
    return longest is not None and longest <= _SHORT
