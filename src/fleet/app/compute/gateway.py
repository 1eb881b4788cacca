"""The gateway and the relay behind it, as two services of one home and port."""

from __future__ import annotations

import http.client
import json
import os
import sys
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fleet.adapters.gateway import refusals
from fleet.adapters.gateway.install import OWN, Environment
from fleet.adapters.gateway.key import ensure_key, key_of
from fleet.adapters.gateway.litellm_config import litellm_text, relay_port
from fleet.adapters.home.home import Home
from fleet.adapters.machine.doctor_checks import free_pair, is_taken
from fleet.adapters.nodes.measurements import Measurements
from fleet.adapters.processes.background import (
    Background,
    Service,
    ServiceRecord,
    fleet_argv,
    within,
)
from fleet.adapters.relay.plan import relay_config, speed_key
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused, Unavailable
from fleet.domain.findings import BAD, exposed_gateway
from fleet.domain.fleet import url_of

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator

    from fleet.domain.fleet import Fleet

READY = 180.0  # seconds: LiteLLM loads for half a minute on a small machine
RELAY_READY = 20.0
REFUSALS = "fleet_refusals"  # the module that LiteLLM loads from beside its configuration
GRACE = 30.0
ASK = 2.0
HERE = "127.0.0.1"


def environment(home: Path) -> Environment:
    """Where LiteLLM is: ours, or the one that the person named."""
    return Environment(home, os.environ.get(OWN, ""))


class Answer(NamedTuple):
    name: str
    record: ServiceRecord | None
    port: int
    answers: bool
    log: Path


class Services:
    def __init__(self, fleet: Fleet, home: Path, base: Path) -> None:
        self.fleet, self.home, self.base = fleet, home, base
        gateway = fleet.gateway
        self.port, self.relay_port = gateway.port, relay_port(gateway)
        self.directory = home / "gateway" / str(gateway.port)
        self.litellm_config = self.directory / "litellm_config.yaml"
        self.relay_config = self.directory / "relay.config.json"
        logs = home / "logs"
        self.gateway = Service("gateway", self.directory, logs / f"gateway-{self.port}.log")
        self.relay = Service("relay", self.directory, logs / f"relay-{self.port}.log")
        self.environment = environment(home)

    def start(self, say: Callable[[str], None]) -> list[Answer]:
        """The relay, then LiteLLM; those that run are left, but told what is new."""
        self._check_exposure()
        version = self.environment.checked()
        Home(self.home).ensure()  # before a folder in it would bring it along, open to all
        with self.gateway.alone():
            self._check_free()
            self._check_whose()
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            started = self.start_relay(say)
            try:
                self._start_gateway(version, say)
            except BaseException:
                if started:
                    self.relay.stop(GRACE)
                raise
        return self.look()

    def stop(self) -> list[str]:
        """Those that ran, and have ended."""
        if not self.directory.exists():
            return []
        with self.gateway.alone():
            both = (self.gateway, self.relay)
            return [service.name for service in both if service.stop(GRACE)]

    def taken(self) -> list[int]:
        """The ports that another program has, where ours should be."""
        places = ((self.gateway, self._host, self.port), (self.relay, HERE, self.relay_port))
        return [
            port for process, host, port in places if not process.running() and is_taken(port, host)
        ]

    def look(self) -> list[Answer]:
        gateway, relay = self.gateway, self.relay
        return [
            Answer("gateway", gateway.running(), self.port, self.ready(), gateway.log),
            Answer("relay", relay.running(), self.relay_port, self.relay_ready(), relay.log),
        ]

    def ready(self) -> bool:
        return answers(self.port, "/health/liveliness", self._host)

    @property
    def _host(self) -> str:
        """Where this machine reaches the gateway."""
        return urlsplit(self.url()).hostname or HERE

    def relay_ready(self) -> bool:
        return answers(self.relay_port, "/relay/health")

    @property
    def traces(self) -> Path:
        return self.home / "logs" / "traces.jsonl"

    def _check_free(self) -> None:
        for port in self.taken():
            what = "the gateway" if port == self.port else "the relay"
            raise Refused(
                f"Port {port}, where {what} should be, is in use by another program.",
                fix="Stop that program, or choose another port: "
                f"fleet config set --project gateway.port={free_pair(self.port + 100)}",
            )

    def stale(self) -> bool:
        """Whether one runs that was told of another fleet than the one that is declared now."""
        if not (self.gateway.running() or self.relay.running()):
            return False
        wanted = self._configs()
        if not _holds(self.litellm_config, wanted[self.litellm_config]):
            return True
        return _without_speeds(self._running_config()) != _without_speeds(
            json.loads(wanted[self.relay_config])
        )

    def _running_config(self) -> dict[str, Any]:
        """What the relay was told when it was last told anything."""
        try:
            config = json.loads(self.relay_config.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return config if isinstance(config, dict) else {}

    def _check_whose(self) -> None:
        """Two projects of one home may have one port by chance, and one would undo the other."""
        if not (self.gateway.running() or self.relay.running()):
            return
        other = Path(self._running_config().get("settings", {}).get("base") or self.base)
        if other != self.base and other.is_dir():
            raise Refused(
                f"The gateway on port {self.port} serves the fleet of {other}.",
                fix="End it (`fleet gateway stop`), or choose another port here: "
                f"fleet config set --project gateway.port={free_pair(self.port + 100)}",
            )

    def _configs(self) -> dict[Path, str]:
        config = relay_config(
            self.fleet,
            port=self.relay_port,
            traces=str(self.traces),
            base=str(self.base),
            heartbeat=0,  # LiteLLM has its own, and lets none of ours through
            speeds=self._speeds(),
            limits={a.name: a.max_requests for a in self.fleet.agents.values() if a.max_requests},
            priorities={a.name: a.priority for a in self.fleet.agents.values()},
        )
        return {
            self.litellm_config: litellm_text(
                self.fleet, "fleet.yaml", callbacks=[f"{REFUSALS}.log"]
            ),
            self.relay_config: json.dumps(config, indent=1) + "\n",
        }

    def _speeds(self) -> dict[str, dict[str, float]]:
        """What `fleet benchmark` found: until the relay has seen for itself."""
        rows = Measurements(self.home).read().values()
        return {speed_key(row.url, row.upstream): asdict(row.pace) for row in rows}

    def start_relay(self, say: Callable[[str], None]) -> bool:
        """False when it ran already; then it reads anew what is written."""
        write_atomically(self.relay_config, self._configs()[self.relay_config])
        if self.relay.running() and self.relay_ready():
            return False
        self.relay.stop(GRACE)
        say(f"Starting the relay on port {self.relay_port}")
        with _ended_unless_up(self.relay):
            process = self._launch_relay()
            within(RELAY_READY, lambda: self.relay_ready() or process.poll() is not None)
            if process.poll() is not None or not self.relay_ready():
                raise _not_up("relay", self.relay)
        return True

    def _start_gateway(self, version: str, say: Callable[[str], None]) -> None:
        """LiteLLM reads once: what it was told is what is in the file while it runs."""
        text = self._configs()[self.litellm_config]
        if self.gateway.running() and self.ready() and _holds(self.litellm_config, text):
            return
        self.gateway.stop(GRACE)
        write_atomically(
            self.directory / f"{REFUSALS}.py", Path(refusals.__file__).read_text("utf-8")
        )
        write_atomically(self.litellm_config, text)
        say(f"Starting LiteLLM {version} on port {self.port} (some seconds)")
        with _ended_unless_up(self.gateway):
            process = self._launch_gateway(version)
            within(READY, lambda: self.ready() or process.poll() is not None)
            if process.poll() is not None or not self.ready():
                raise _not_up("gateway", self.gateway)

    def revive(self, name: str) -> bool:
        """Start it again, with what it was told last, if it died. Do not wait until it answers."""
        with self.gateway.alone():
            service = self.relay if name == "relay" else self.gateway
            record = service.record()
            if record is None or service.running():
                return False  # it was stopped, or started, meanwhile
            if name == "relay":
                self._launch_relay(record.restarts + 1)
            else:
                self._launch_gateway(record.version, record.restarts + 1)
        return True

    def warm_later(self, models: Iterable[str], config: Path | None) -> None:
        """In processes of their own, one a model; one on a node that hangs ends with its timeout."""
        log = Background(self.home / "logs" / "warmup.log")
        for model in models:
            words = ["warmup", "--model", model, *(["--config", str(config)] if config else [])]
            log.launch(fleet_argv(words), cwd=Path.cwd())

    def _launch_relay(self, restarts: int = 0) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "fleet.adapters.relay.process", str(self.relay_config)]
        return self.relay.start(argv, env=os.environ, port=self.relay_port, restarts=restarts)

    def _launch_gateway(self, version: str, restarts: int = 0) -> subprocess.Popen[bytes]:
        config, gateway = str(self.litellm_config), self.fleet.gateway
        argv = [
            *(str(self.environment.python), "-c", "from litellm import run_server; run_server()"),
            *("--config", config, "--host", gateway.host, "--port", str(self.port)),
        ]
        env, port = self._env(), self.port
        return self.gateway.start(argv, env=env, port=port, version=version, restarts=restarts)

    def _env(self) -> dict[str, str]:
        """It looks for prices and updates on the Internet unless it is told not to."""
        ensure_key(self.home)
        quiet = {
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_TELEMETRY": "False",
            "NO_DOCS": "True",
            "PYTHONUNBUFFERED": "1",
            refusals.TRACES: str(self.traces),
            refusals.PROJECT: str(self.base),
        }
        key = {self.fleet.gateway.master_key_env: self.key()}
        return {**os.environ, **quiet, **key}

    def key(self) -> str:
        return key_of(self.fleet.gateway, self.home, os.environ)

    def url(self) -> str:
        return url_of(self.fleet.gateway)

    def _check_exposure(self) -> None:
        gateway = self.fleet.gateway
        exposure = exposed_gateway(gateway, os.environ.get(gateway.master_key_env, ""))
        if exposure.state == BAD:
            raise Refused(exposure.said, fix=f"{exposure.fix}: a key is made for you.")


@contextmanager
def _ended_unless_up(service: Service) -> Iterator[None]:
    """Also when a person has lost patience: half of a gateway is of no use."""
    try:
        yield
    except BaseException:
        service.stop(1.0)
        raise


def answers(port: int, path: str, host: str = HERE) -> bool:
    """Whether something there says 200, quickly."""
    connection = http.client.HTTPConnection(host, port, timeout=ASK)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _without_speeds(config: dict[str, Any]) -> dict[str, Any]:
    """A benchmark that was run meanwhile changes no fleet."""
    return config | {"settings": config.get("settings", {}) | {"speeds": {}}}


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text("utf-8") == text
    except OSError:
        return False


def _not_up(name: str, service: Service) -> Unavailable:
    return Unavailable(
        f"The {name} did not start: {' '.join(service.words(6).splitlines())}",
        fix=f"`fleet gateway logs{' --relay' if name == 'relay' else ''}` shows its output.",
    )
