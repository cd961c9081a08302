"""The schema in a real editor's hands: yaml-language-server completes, explains and complains."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from slurmgen.cli.schemas import schema_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("language server")
_NAME = "yaml-language-server"


def server_command(folder: Path) -> list[str]:
    """The server on PATH, or one that npm fetches."""
    found = shutil.which(_NAME)
    if found:
        return [found, "--stdio"]
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip(f"needs {_NAME}, or node and npm to fetch it")
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline")
    try:
        done = subprocess.run(
            [npm, "install", *options, "--prefix", str(folder), f"{_NAME}@1"],
            capture_output=True,
            timeout=120,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"needs {_NAME}, which npm does not fetch here")
    if done.returncode:
        pytest.skip(f"needs {_NAME}, which npm does not fetch here")
    return [node, str(folder / "node_modules" / _NAME / "bin" / _NAME), "--stdio"]


class Server:
    """A language server, spoken to over its pipes."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=folder,
        )  # fmt: skip
        self.number = 0
        self.diagnostics: dict[str, list[dict[str, Any]]] = {}
        root = folder.as_uri()
        self.ask("initialize", {"processId": os.getpid(), "rootUri": root, "capabilities": {}})
        self.tell("initialized", {})

    def tell(self, method: str, parameters: Any, **others: Any) -> None:
        self._send({"method": method, "params": parameters, **others})

    def _send(self, content: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **content}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def ask(self, method: str, parameters: Any) -> Any:
        self.number += 1
        number = self.number
        self.tell(method, parameters, id=number)
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    def read(self) -> dict[str, Any]:
        """The next message; what the server asks for is answered with nothing."""
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline().strip()) or not length:
            assert line, "the server has ended"
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif "method" in message and "id" in message:
            items = message["params"].get("items", []) if message.get("params") else []
            self._send({"id": message["id"], "result": [None] * len(items)})
        return message

    def open(self, path: Path) -> str:
        """Opens a file and waits for what the server has to say of it."""
        uri = path.as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": path.read_text()}
        self.tell("textDocument/didOpen", {"textDocument": document})
        while uri not in self.diagnostics:
            self.read()
        return uri

    def at(self, uri: str, line: int, character: int) -> dict[str, Any]:
        position = {"line": line, "character": character}
        return {"textDocument": {"uri": uri}, "position": position}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    command = server_command(tmp_path_factory.mktemp("npm"))
    started = Server(command, tmp_path_factory.mktemp("project"))
    yield started
    started.process.kill()
    started.process.communicate()


def job(folder: Path, text: str) -> Path:
    """A job file as `slurmgen init` writes it, beside its schema."""
    (folder / ".slurmgen").mkdir()
    (folder / ".slurmgen/job.schema.json").write_text(schema_text("job"))
    path = folder / "job.yaml"
    path.write_text(f"# yaml-language-server: $schema=.slurmgen/job.schema.json\n{text}")
    return path


def test_a_right_job_file_is_left_alone(server: Server, tmp_path: Path) -> None:
    text = "nodes: 2\ngpus_per_node: a100:4\ntime: 4:00:00\ncommand: python train.py\n"
    uri = server.open(job(tmp_path, text))
    assert server.diagnostics[uri] == []


def test_mistakes_are_marked_at_their_place(server: Server, tmp_path: Path) -> None:
    text = "gpus_per_nod: 4\ntime: 1.5h\nlauncher: mpirun\ncommand: python train.py\n"
    uri = server.open(job(tmp_path, text))
    found = {d["range"]["start"]["line"]: d["message"] for d in server.diagnostics[uri]}
    assert set(found) == {1, 2, 3}
    assert "gpus_per_nod" in found[1]
    assert "srun" in found[3]


def test_keys_and_values_are_completed(server: Server, tmp_path: Path) -> None:
    def offered(name: str, text: str, line: int, character: int) -> set[str]:
        (tmp_path / name).mkdir()
        uri = server.open(job(tmp_path / name, "command: python train.py\n" + text))
        found = server.ask("textDocument/completion", server.at(uri, line, character))
        return {item["label"].strip('"') for item in found["items"]}

    assert "gpus_per_node" in offered("keys", "gpus\n", 2, 4)
    values = offered("values", "launcher: \n", 2, 10)
    assert {"srun", "torchrun", "spawn", "plain"} <= values
    assert "hint" in offered("options", "sbatch:\n  hi\n", 3, 4)


def test_a_key_is_explained(server: Server, tmp_path: Path) -> None:
    uri = server.open(job(tmp_path, "command: python train.py\nmem: 64G\n"))
    shown = server.ask("textDocument/hover", server.at(uri, 2, 1))["contents"]["value"]
    assert "memory of each node, with K, M, G or T" in shown.replace("\\", "")
