"""The gateway and the relay behind it, as two services of one home and port.

They serve every project of the home that was started with this port and not stopped since.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fleet.adapters.gateway import refusals
from fleet.adapters.gateway.install import OWN, Environment
from fleet.adapters.gateway.key import ensure_key, fingerprint, key_of
from fleet.adapters.gateway.litellm_config import litellm_text, relay_port
from fleet.adapters.home.home import Home
from fleet.adapters.machine.doctor_checks import free_pair, is_taken
from fleet.adapters.nodes.key import FROM_FILE
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
from fleet.base.loose_json import integer, mapping
from fleet.config import load
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError, Refused, Unavailable
from fleet.domain.findings import BAD, exposed_gateway
from fleet.domain.fleet import url_of
from fleet.domain.nodes.together import owners, together

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fleet.domain.fleet import Fleet, Model, Node

READY = 180.0  # seconds: LiteLLM loads for half a minute on a small machine
RELAY_READY = 20.0
REFUSALS = "fleet_refusals"  # the module that LiteLLM loads from beside its configuration
REREAD = 5.0  # seconds within which a relay reads its changed configuration
GRACE = 30.0
ASK = 2.0
HERE = "127.0.0.1"


def environment(home: Path) -> Environment:
    """Return the environment with LiteLLM: Fleet's own, or the one that the user named."""
    return Environment(home, os.environ.get(OWN, ""))


class ServiceAnswer(NamedTuple):
    name: str
    record: ServiceRecord | None
    port: int
    answers: bool
    log: Path


class Services:
    """`file`: the project's settings, if they are not in fleet.yaml."""

    def __init__(self, fleet: Fleet, home: Path, base: Path, file: Path | None = None) -> None:
        self.fleet, self.home, self.base = fleet, home, base
        self._file = file or base / "fleet.yaml"
        gateway = fleet.gateway
        self.port, self.relay_port = gateway.port, relay_port(gateway)
        self.directory = home / "gateway" / str(gateway.port)
        self.litellm_config = self.directory / "litellm_config.yaml"
        self.relay_config = self.directory / "relay.config.json"
        self._projects = self.directory / "projects.json"
        logs = home / "logs"
        self.gateway = Service("gateway", self.directory, logs / f"gateway-{self.port}.log")
        self.relay = Service("relay", self.directory, logs / f"relay-{self.port}.log")
        self.environment = environment(home)

    def start(self, say: Callable[[str], None]) -> list[ServiceAnswer]:
        """Start the relay, then LiteLLM; those that run already only get the new configuration."""
        self._check_exposure()
        version = self.environment.checked()
        Home(self.home).ensure()  # before a folder in it would bring it along, open to all
        with self.gateway.alone():
            self._check_free()
            self._configs()  # whether the projects can share it
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write_projects({**self._served(), self.base: self._file})
            started = self.start_relay(say)
            try:
                self._start_gateway(version, say)
            except BaseException:
                if started:
                    self.relay.stop(GRACE)
                raise
        return self.look()

    def stop(self) -> list[str]:
        """Stop the services; return those that ran. While other projects use them (`others`), they go on."""
        if not self.directory.exists():
            return []
        with self.gateway.alone():
            others = {b: f for b, f in self.others().items() if str(b) in self._fleets()}
            if others and (self.gateway.running() or self.relay.running()):
                self._write_projects(others)
                return []
            self._write_projects({})
            both = (self.gateway, self.relay)
            return [service.name for service in both if service.stop(GRACE)]

    def taken(self) -> list[int]:
        """Return the ports of these services that another program uses."""
        places = ((self.gateway, self._host, self.port), (self.relay, HERE, self.relay_port))
        return [
            port for process, host, port in places if not process.running() and is_taken(port, host)
        ]

    def look(self) -> list[ServiceAnswer]:
        gateway, relay = self.gateway, self.relay
        return [
            ServiceAnswer("gateway", gateway.running(), self.port, self.ready(), gateway.log),
            ServiceAnswer("relay", relay.running(), self.relay_port, self.relay_ready(), relay.log),
        ]

    def ready(self) -> bool:
        return answers(self.port, "/health/liveliness", self._host)

    @property
    def _host(self) -> str:
        """Return the host name under which this machine reaches the gateway."""
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
        """Whether a running service has a configuration other than what is declared now."""
        if not (self.gateway.running() or self.relay.running()):
            return False
        try:
            wanted = self._configs()
        except Refused:  # they serve other projects, whose settings contradict this one's
            return True
        if not _holds(self.litellm_config, wanted[self.litellm_config]):
            return True
        return _without_speeds(self._running_config()) != _without_speeds(
            json.loads(wanted[self.relay_config])
        )

    def has_another_key(self) -> bool:
        """Whether the running gateway was started with another key, so that it refuses ours."""
        record = self.gateway.running()
        if record is None or not record.key:
            return False
        return record.key != fingerprint(self.key())

    def _running_config(self) -> dict[str, Any]:
        """Return the configuration that was last written for the relay; empty: none."""
        try:
            config = json.loads(self.relay_config.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return config if isinstance(config, dict) else {}

    def others(self) -> dict[Path, Path]:
        """Return the other projects that these serve: the settings' file, by directory."""
        return {base: file for base, file in self._served().items() if base != self.base}

    def _served(self) -> dict[Path, Path]:
        """Return the served projects, oldest first: the settings' file, by directory."""
        try:
            projects = json.loads(self._projects.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        files = {Path(base): Path(file) for base, file in projects.items()}
        return {base: file for base, file in files.items() if file.is_file()}

    def _write_projects(self, projects: Mapping[Path, Path]) -> None:
        values = {str(base): str(file) for base, file in projects.items()}
        write_atomically(self._projects, json.dumps(values, indent=1) + "\n")

    def _fleets(self) -> dict[str, Fleet]:
        """The fleets of all projects, the oldest first, without those whose file is wrong or has moved."""
        fleets = {}
        for base, file in {**self._served(), self.base: self._file}.items():
            if base == self.base:
                fleets[base] = self.fleet
                continue
            with suppress(FleetError):
                fleet = load(base, home=self.home, env=os.environ, config_file=file).fleet
                if fleet.gateway.port == self.port:
                    fleets[base] = fleet
        if len(fleets) == 1:
            return {str(self.base): self.fleet}
        return {str(base): _anchored(fleet, base) for base, fleet in fleets.items()}

    def _shared(self, fleets: Mapping[str, Fleet]) -> Fleet:
        try:
            return together(fleets)
        except Refused as error:
            raise Refused(
                error.message,
                fix="Make them agree, or choose another port here: "
                f"fleet config set --project gateway.port={free_pair(self.port + 100)}",
            ) from None

    def _configs(self) -> dict[Path, str]:
        fleets = self._fleets()
        fleet = self._shared(fleets)
        config = relay_config(
            fleet,
            port=self.relay_port,
            traces=str(self.traces),
            base=next(iter(fleets)),
            projects=owners(fleets) if len(fleets) > 1 else {},
            heartbeat=0,  # LiteLLM has its own, and lets none of ours through
            speeds=self._speeds(),
            limits={a.name: a.max_requests for a in fleet.agents.values() if a.max_requests},
            priorities={a.name: a.priority for a in fleet.agents.values()},
        )
        return {
            self.litellm_config: litellm_text(fleet, "fleet.yaml", callbacks=[f"{REFUSALS}.log"]),
            self.relay_config: json.dumps(config, indent=1) + "\n",
        }

    def _speeds(self) -> dict[str, dict[str, float]]:
        """Return the speeds that `fleet benchmark` measured, for a relay without its own."""
        rows = Measurements(self.home).read().values()
        return {speed_key(row.url, row.upstream): asdict(row.pace) for row in rows}

    def start_relay(self, say: Callable[[str], None]) -> bool:
        """Start the relay; return False when it runs already and reads its new configuration."""
        write_atomically(self.relay_config, self._configs()[self.relay_config])
        if self.relay.running() and self.relay_ready():
            written = self.relay_config.stat().st_mtime_ns
            within(REREAD, lambda: relay_config_at(self.relay_port) >= written)
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
        """Start LiteLLM, or restart it when its configuration, read only at start, has changed."""
        text = self._configs()[self.litellm_config]
        if (
            self.gateway.running()
            and self.ready()
            and _holds(self.litellm_config, text)
            and not self.has_another_key()
        ):
            return
        self.gateway.stop(GRACE)
        write_atomically(
            self.directory / f"{REFUSALS}.py", Path(refusals.__file__).read_text("utf-8")
        )
        self.write_litellm_config()
        say(f"Starting LiteLLM {version} on port {self.port} (some seconds)")
        with _ended_unless_up(self.gateway):
            process = self._launch_gateway(version)
            within(READY, lambda: self.ready() or process.poll() is not None)
            if process.poll() is not None or not self.ready():
                raise _not_up("gateway", self.gateway)

    def write_litellm_config(self) -> None:
        write_atomically(self.litellm_config, self._configs()[self.litellm_config])

    def revive(self, name: str) -> bool:
        """Start a service that died again, with its last configuration; do not wait for it."""
        with self.gateway.alone():
            service = self.relay if name == "relay" else self.gateway
            record = service.record()
            if record is None or service.running():
                return False  # a command has stopped or started it meanwhile
            if name == "relay":
                self._launch_relay(record.restarts + 1)
            else:
                self._launch_gateway(record.version, record.restarts + 1)
        return True

    def warm_later(self, models: Iterable[str], config: Path | None) -> None:
        """Warm each model in a process of its own; one on a node that hangs ends with its timeout."""
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
        return self.gateway.start(
            argv,
            env=self._env(),
            port=self.port,
            version=version,
            restarts=restarts,
            key=fingerprint(self.key()),
        )

    def _env(self) -> dict[str, str]:
        """LiteLLM's environment: it looks for prices and updates on the Internet unless told not to."""
        ensure_key(self.home)
        quiet = {
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_TELEMETRY": "False",
            "NO_DOCS": "True",
            "PYTHONUNBUFFERED": "1",
            refusals.TRACES: str(self.traces),
            refusals.PROJECT: "" if self.others() else str(self.base),
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
    """Stop the service if the block fails, also by Ctrl-C: half a gateway is of no use."""
    try:
        yield
    except BaseException:
        service.stop(1.0)
        raise


def answers(port: int, path: str, host: str = HERE) -> bool:
    """Whether a program on this port answers 200 to this path in time."""
    connection = http.client.HTTPConnection(host, port, timeout=ASK)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def relay_config_at(port: int) -> int:
    """Return when the configuration that the relay uses was written, in nanoseconds; 0: unknown."""
    connection = http.client.HTTPConnection(HERE, port, timeout=ASK)
    try:
        connection.request("GET", "/relay/health")
        return integer(mapping(json.loads(connection.getresponse().read())).get("config_at"))
    except (OSError, ValueError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def _anchored(fleet: Fleet, base: Path) -> Fleet:
    """Return the fleet with absolute paths of key files, as projects have different directories."""
    nodes = {name: _with_path(node, base) for name, node in fleet.nodes.items()}

    def bound(model: Model) -> Model:
        servings = tuple(s._replace(node=nodes[s.node.name]) for s in model.servings)
        return model._replace(servings=servings, fallbacks=tuple(map(bound, model.fallbacks)))

    return fleet._replace(
        nodes=nodes,
        models={name: bound(model) for name, model in fleet.models.items()},
        agents={
            name: agent._replace(model=agent.model and bound(agent.model))
            for name, agent in fleet.agents.items()
        },
    )


def _with_path(node: Node, base: Path) -> Node:
    if not node.api_key.startswith(FROM_FILE):
        return node
    path = base / Path(node.api_key.removeprefix(FROM_FILE).strip()).expanduser()
    return node._replace(api_key=f"{FROM_FILE}{path}")


def _without_speeds(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without measured speeds, which a benchmark may change at any time."""
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
