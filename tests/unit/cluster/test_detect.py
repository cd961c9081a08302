"""Which cluster this is: by a variable or a host's name, never by guessing between two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurmgen.cluster.detect import recognise
from slurmgen.cluster.load import find_profile, profile_files
from slurmgen.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("environment", "hostname", "name", "sign"),
    [
        ({"CC_CLUSTER": "fir"}, "login1", "fir", "CC_CLUSTER=fir"),
        ({"CC_CLUSTER": "trillium"}, "x", "trillium_gpu", "CC_CLUSTER=trillium"),
        ({"NREL_CLUSTER": "kestrel"}, "x", "kestrel", "NREL_CLUSTER=kestrel"),
        ({"SYSTEMNAME": "juwelsbooster"}, "x", "juwels_booster", "SYSTEMNAME=juwelsbooster"),
        ({"SYSTEMNAME": "jurecadc"}, "x", "jureca_dc", "SYSTEMNAME=jurecadc"),
        ({"IDRPROJ": "abc"}, "x", "jean_zay", "IDRPROJ=abc"),
        ({}, "daint-ln003", "daint", "host daint-ln003"),
        ({}, "login01.leonardo.local", "leonardo", "host login01.leonardo.local"),
    ],
)
def test_a_cluster_is_recognised(
    environment: dict[str, str], hostname: str, name: str, sign: str, tmp_path: Path
) -> None:
    assert recognise(tmp_path, environment, hostname) == (name, sign)


@pytest.mark.parametrize(
    ("environment", "hostname"),
    [({}, "laptop"), ({"CC_CLUSTER": "graham", "IDRPROJ": ""}, "daint-ln005")],
)
def test_nothing_is_recognised(environment: dict[str, str], hostname: str, tmp_path: Path) -> None:
    assert recognise(tmp_path, environment, hostname) is None


def test_two_that_may_be_it_are_both_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        recognise(tmp_path, {"CC_CLUSTER": "fir"}, "santis-ln001")
    assert str(caught.value) == "this may be fir (CC_CLUSTER=fir) and santis (host santis-ln001)"
    assert caught.value.fix == "say --cluster fir or --cluster santis"


def test_the_project_s_own_profile_hides_a_built_in_one(tmp_path: Path) -> None:
    (tmp_path / "clusters").mkdir()
    (tmp_path / "clusters" / "fir.yaml").write_text("title: ours\n")
    (tmp_path / "clusters" / "lab.yaml").write_text("detect: {env: {LAB: '*'}}\n")
    assert recognise(tmp_path, {"CC_CLUSTER": "fir"}, "x") is None
    assert recognise(tmp_path, {"LAB": "1"}, "x") == ("lab", "LAB=1")


def test_the_order_in_which_profiles_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project, user = tmp_path / "project", tmp_path / "config" / "slurmgen" / "clusters"
    assert find_profile("fir", project).parts[-3:] == ("configs", "clusters", "fir.yaml")
    user.mkdir(parents=True)
    (user / "fir.yaml").write_text("")
    assert find_profile("fir", project) == user / "fir.yaml"
    (project / "clusters").mkdir(parents=True)
    (project / "clusters" / "fir.yaml").write_text("")
    assert find_profile("fir", project) == project / "clusters" / "fir.yaml"
    assert profile_files(project)["fir"] == project / "clusters" / "fir.yaml"
    assert str(find_profile("./fir.yaml", project)) == "fir.yaml"


def test_a_relative_config_folder_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "config" / "slurmgen" / "clusters"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("")
    with pytest.raises(UsageError, match="no cluster profile"):
        find_profile("mine", tmp_path)
    home = tmp_path / "home" / ".config" / "slurmgen" / "clusters"
    home.mkdir(parents=True)
    (home / "mine.yaml").write_text("")
    assert find_profile("mine", tmp_path) == home / "mine.yaml"


def test_a_name_that_is_nearly_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_profile("Perlmuter", tmp_path)
    assert caught.value.fix.startswith("did you mean perlmutter? known: adastra, ")
