"""What the daemons of a sandbox find their names by: no line of this machine's may change it."""

from __future__ import annotations

import pytest

from slurmgen.sandbox import Shape
from slurmgen.sandbox.addresses import Addresses
from slurmgen.sandbox.configuration import hosts_file, nsswitch_file

OWN = "127.20.0.1 ctl\n127.20.1.1 n1\n127.20.1.2 n2\n"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("127.0.0.1 localhost", "127.0.0.1 localhost"),
        ("127.0.1.1 n1", "# 127.0.1.1 n1"),
        ("127.0.1.1\tN1.local\tN1", "127.0.1.1 N1.local"),
        ("127.0.1.1 n1.local n1", "127.0.1.1 n1.local"),
        ("127.0.0.1 localhost n1 n2", "127.0.0.1 localhost"),
        ("127.0.0.1 CTL # the controller", "# 127.0.0.1 CTL # the controller"),
        ("::1 n1 ip6-localhost", "::1 ip6-localhost"),
        ("10.0.0.3 n3 n11  # another", "10.0.0.3 n3 n11  # another"),
        ("# 127.0.1.1 n1", "# 127.0.1.1 n1"),
        ("n1", "n1"),
        ("", ""),
    ],
)
def test_a_line_of_the_machine_never_names_a_node(line: str, kept: str) -> None:
    layout = Addresses(20, 17_000)
    assert hosts_file(line, Shape(nodes=2), layout) == OWN + (f"{kept}\n" if line else "")
    assert hosts_file("", Shape(nodes=2), layout, [line]) == f"{OWN}{kept}\n"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("hosts: files dns", "hosts: files dns"),
        ("hosts:\tdns files", "hosts: files dns"),
        (" Hosts: dns [!UNAVAIL=return] files", " Hosts: files dns [!UNAVAIL=return]"),
        (
            "hosts: mymachines resolve [!UNAVAIL=return] files [NOTFOUND=return] myhostname",
            "hosts: files mymachines resolve [!UNAVAIL=return] myhostname",
        ),
        ("hosts: dns # no files", "hosts: files dns"),
        ("hosts:", "hosts: files"),
        ("passwd: files", "passwd: files"),
    ],
)
def test_etc_hosts_answers_first(line: str, kept: str) -> None:
    assert nsswitch_file(f"group: sss\n{line}\n") == f"group: sss\n{kept}\n"
