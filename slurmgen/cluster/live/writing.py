"""A detected profile as the text of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDTH = 96


def profile_text(data: Mapping[str, Any]) -> str:
    """YAML that `slurmgen.jobfile.source` reads back unchanged; short lists stand on one line."""
    name = data["name"]
    top = (
        f"# {name}, as its Slurm {data['slurm']} describes it. Read it, add what Slurm does not\n"
        f"# know, and keep it as clusters/{name}.yaml beside your jobs; `slurmgen cluster diff\n"
        f"# {name}` says where the two have drifted apart.\n"
    )
    rest = {key: value for key, value in data.items() if key != "name"}
    return top + yaml.dump(rest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


class _Dumper(yaml.SafeDumper):
    """Indents lists under their key, as people do."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:  # noqa: ARG002
        plain = all(isinstance(item, (str, int)) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=plain)
