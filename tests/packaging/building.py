"""Building what users install, and running what they run, as if no checkout were there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "configs" / "jobs" / "quickstart.yaml"


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """The output of a command that must end well, with no Python settings of ours."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_"))}
    finished = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**env, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def build(target: str, source: Path, out: Path) -> Path:
    """Without isolation, so without the network; hatchling is one of our tools."""
    run(sys.executable, "-m", "build", "--no-isolation", target, "-o", out, source, cwd=out.parent)
    (built,) = out.iterdir()
    return built


def unpacked(sdist: Path, folder: Path) -> Path:
    """The folder that a sdist holds."""
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    (source,) = folder.iterdir()
    return source


def install(wheel: Path, folder: Path) -> Path:
    """A virtual environment with the wheel, and with our environment's libraries by a .pth file.

    Such a file is not followed further, so that the editable install in that environment, which
    is one too, does not put the checkout on the path.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    site_packages = run(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
    ).strip()
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    Path(site_packages, "libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", "--force-reinstall", wheel, cwd=folder)
    return folder / "bin"
