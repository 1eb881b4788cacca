"""The checks of `fleet doctor`: each looks at one thing, and all run at the same time."""

from __future__ import annotations

import tempfile
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.isolation.container import Contained
from fleet.adapters.machine import doctor_checks as checks
from fleet.app.store.open import the_kind
from fleet.app.store.schema import schema_of
from fleet.config.keys.kinds import masked
from fleet.domain.errors import BadConfig, FleetError
from fleet.domain.findings import (
    BAD,
    OK,
    SKIPPED,
    WARNING,
    Finding,
    exposed_gateway,
    exposed_nodes,
    judged_contexts,
    judged_nodes,
    judged_slots,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from fleet.adapters.gateway.round_trip import Trip
    from fleet.adapters.isolation.isolation import Isolation
    from fleet.app.app import App
    from fleet.app.compute.gateway import Services
    from fleet.domain.fleet import Fleet, Model

    Check: TypeAlias = Callable[[], Iterator[Finding]]

SURVEY_SECONDS = 3.0  # seconds for all nodes together
GRACE = 2.0  # seconds for a check to report its own time-out
NO_FLEET = Finding("fleet", SKIPPED, "There is no fleet.yaml here.", "fleet init")
READ = 0.5  # the share of a long prompt that must reach the model, as tokens are only estimated


class Checkup:
    """`within`: seconds for all checks, except for round trips through a model."""

    def __init__(self, app: App, *, within: float) -> None:
        self._app, self._within = app, within

    def run(self) -> list[Finding]:
        """Run the checks side by side; the results come in the order of the checks."""
        first = self._settings()
        acts: dict[str, Check] = {"programs": self._programs, "files": self._files}
        if first.state == OK:
            acts |= {"store": self._store} if self._app.shared else {}
            acts |= {"coders": self._coders, "orphans": self._orphans}
            acts |= {"isolation": self._isolation}
            acts |= self._of_the_fleet() if self._fleet.nodes else {"fleet": self._no_fleet}
        return [first, *_side_by_side(acts, self._within + 2 * GRACE)]

    def _of_the_fleet(self) -> dict[str, Check]:
        return {
            "keys": self._keys,
            "exposure": self._exposure,
            "litellm": self._litellm,
            "ports": self._ports,
            "gateway": self._gateway,
            "nodes": self._nodes,
            "round trip": self._round_trips,
        }

    @property
    def _fleet(self) -> Fleet:
        return self._app.loaded.fleet

    @cached_property
    def _services(self) -> Services:
        from fleet.app.compute.gateway import Services

        return Services(self._fleet, self._app.home.path, self._app.settings_folder)

    def _settings(self) -> Finding:
        try:
            loaded = self._app.loaded
        except BadConfig as error:
            return Finding(
                "settings", BAD, error.message, error.fix or "fleet config edit --project"
            )
        file = loaded.project_file
        return Finding("settings", OK, f"{file} is valid." if file else "No fleet.yaml; all valid.")

    def _no_fleet(self) -> Iterator[Finding]:
        if self._app.loaded.project_file is None:
            yield NO_FLEET
        else:
            yield NO_FLEET._replace(said="No nodes are declared.", fix="`nodes:` in fleet.yaml.")

    def _programs(self) -> Iterator[Finding]:
        yield from checks.programs(self._app.env)

    def _files(self) -> Iterator[Finding]:
        yield from checks.modes(self._app.home.path)

    def _store(self) -> Iterator[Finding]:
        """Check that the shared store answers, and say what it is suited for."""
        schema, text, fix = schema_of(self._app)
        if schema.may != "write":
            yield Finding("store", WARNING if schema.may else BAD, text, fix)
            return
        began = time.monotonic()
        store = self._app.another_store()
        store.counts()
        store.close()
        took = (time.monotonic() - began) * 1000
        url = self._app.loaded.settings.store.url
        about = the_kind(url).good_for
        parts = (f"{masked(url)} answers in {took:.0f} ms.", text, about)
        yield Finding("store", OK, " ".join(filter(None, parts)))

    def _isolation(self) -> Iterator[Finding]:
        """Try to read our secrets as an agent would."""
        settings = self._app.loaded.settings.workspace
        name = settings.isolation
        isolation = self._app.isolation(settings)
        if isolation is None:
            text = "Agents can read this home's key, database and runs: they run as you."
            choice = "isolation=bubblewrap, or isolation=landlock"
            fix = f"If you do not trust all who give them work: fleet config set {choice}"
            yield Finding("isolation", SKIPPED, text, fix)
            return
        try:
            yield from self._tried(isolation, name)
        except (FleetError, OSError) as error:
            yield Finding("isolation", BAD, str(error), getattr(error, "fix", ""))

    def _tried(self, isolation: Isolation, name: str) -> Iterator[Finding]:
        if files := isolation.readable([p for p in self._app.secret_files() if p.exists()]):
            text = f"Agents can read {_names(files)} in spite of {name}."
            fix = "Do not give agents work of people you do not trust."
            yield Finding("isolation", BAD, text, fix)
            return
        text = f"Agents cannot read this home's key, database and other runs ({name})."
        yield Finding("isolation", OK, text)
        if isinstance(isolation, Contained):
            yield _judged_caps(isolation.caps())
        if sockets := isolation.sockets():
            text = f"Agents can have commands run outside {name} through {_names(sockets)}."
            fix = "End these programs, or: fleet config set isolation=bubblewrap"
            yield Finding("isolation", WARNING, text, fix)
        if folders := isolation.closed([Path.home(), Path(tempfile.gettempdir())]):
            text = f"Agents cannot create files directly in {_names(folders)}, above this home."
            fix = "Move the home, such as to /var/lib/fleet: FLEET_HOME; or isolation=bubblewrap"
            yield Finding("isolation", WARNING, text, fix)

    def _coders(self) -> Iterator[Finding]:
        """The coders of the declared agents, and the default coder."""
        from fleet.app.coders import make_coder, probe_programs

        fleet = self._fleet
        names = {self._app.loaded.settings.coder, *(a.coder for a in fleet.agents.values())}
        coders = [make_coder(name, fleet) for name in sorted(names)]
        for name, program_info in probe_programs(coders, self._app.env, ask=True).items():
            program = program_info["executable"]
            own = name in fleet.own_coders and program_info["path"]  # these need report no version
            if not program or program_info["version"] or own:
                words = f"{name} {program_info['version'] or ''}".rstrip()
                yield Finding("coders", OK, words if program else f"{name} needs no program")
                continue
            why = program_info["why"] or f"There is no {program} on PATH."
            fix = f"Install {program}, or choose another: fleet config set coder=NAME"
            yield Finding("coders", BAD, f"The coder {name} cannot run here. {why}", fix)

    def _keys(self) -> Iterator[Finding]:
        from fleet.adapters.nodes.key import FROM_ENV, key_of

        named = [node for node in self._fleet.nodes.values() if node.api_key]
        for node in named:
            try:
                key_of(node.api_key, self._app.env, self._app.settings_folder)
            except FleetError as error:
                variable = node.api_key.removeprefix(FROM_ENV)
                fix = f"Write it, one line, into the file that nodes.{node.name}.api_key names."
                if node.api_key.startswith(FROM_ENV):
                    fix = f"export {variable}=THE-KEY"
                yield Finding("keys", BAD, f"The node {node.name}: {error.message}.", fix)
            else:
                yield Finding("keys", OK, f"The key of {node.name} is there.")

    def _exposure(self) -> Iterator[Finding]:
        gateway = self._fleet.gateway
        yield exposed_gateway(gateway, self._app.env.get(gateway.master_key_env, ""))
        yield from exposed_nodes(self._fleet.nodes.values())

    def _litellm(self) -> Iterator[Finding]:
        environment = self._services.environment
        if not environment.own and not environment.version():
            message = "LiteLLM is not installed yet."
            yield Finding("litellm", SKIPPED, message, "fleet gateway install")
            return
        try:
            yield Finding("litellm", OK, f"LiteLLM {environment.checked()}")
        except FleetError as error:
            yield Finding("litellm", BAD, error.message, error.fix)

    def _ports(self) -> Iterator[Finding]:
        services = self._services
        taken = services.taken()
        if not taken:
            ports = f"{services.port} and {services.relay_port}"
            yield Finding("ports", OK, f"Ports {ports} are free, or used by this fleet.")
            return
        other = checks.free_pair(services.port + 100)
        yield Finding(
            "ports",
            BAD,
            f"Another program listens on port {' and '.join(map(str, taken))}, where the gateway "
            "or the relay should be.",
            f"fleet config set --project gateway.port={other}",
        )

    def _gateway(self) -> Iterator[Finding]:
        answers = self._services.look()
        if self._services.stale():
            message = "The gateway and the relay run with another fleet.yaml than this one."
            yield Finding("gateway", BAD, message, "fleet gateway start")
        elif self._services.has_another_key():
            message = (
                "The gateway was started with another key than the one here, and refuses this one."
            )
            yield Finding("gateway", BAD, message, "fleet gateway start")
        elif all(each.record and each.answers for each in answers):
            yield Finding("gateway", OK, f"It answers at {self._services.url()}.")
        elif not any(each.record for each in answers):
            yield Finding("gateway", SKIPPED, "The gateway is not running.", "fleet up")
        else:
            down = [each.name for each in answers if not (each.record and each.answers)]
            message = f"Not answering: {' and '.join(down)}, though the other is running."
            yield Finding("gateway", BAD, message, "fleet gateway start")

    def _nodes(self) -> Iterator[Finding]:
        from fleet.app.compute.nodes import Compute

        seen = Compute(self._app).survey(within=min(SURVEY_SECONDS, self._within))
        yield from judged_nodes(self._fleet, seen)
        yield from judged_contexts(self._fleet, seen)
        yield from judged_slots(self._fleet, seen)

    def _round_trips(self) -> Iterator[Finding]:
        services = self._services
        answers = services.look()
        if not all(each.record and each.answers for each in answers):
            down = next((each.name for each in answers if not each.answers), "gateway")
            message = f"The models were not tested: the {down} is not running."
            yield Finding("round trip", SKIPPED, message, "fleet up, then fleet doctor")
            return
        models = self._fleet.own_models
        acts = {model.alias: self._trip_of(model) for model in models}
        yield from _side_by_side(acts, self._within + GRACE, check="round trip")

    def _trip_of(self, model: Model) -> Check:
        return lambda: iter([self._round_trip(model)])

    def _round_trip(self, model: Model) -> Finding:
        from fleet.adapters.gateway.round_trip import GatewayAddress, round_trip

        if not any(serving.node.endpoint for serving in model.servings):
            message = f"{model.alias} is a hosted API: asking it costs money."
            return Finding(
                "round trip", SKIPPED, message, f"Ask it yourself, by the name {model.alias}."
            )
        services = self._services
        gateway = GatewayAddress(services.url(), services.key(), services.traces)
        trip = round_trip(gateway, model.alias, context=model.context, within=self._within)
        return _judged(model, trip)

    def _orphans(self) -> Iterator[Finding]:
        from fleet.app.leftovers import orphans

        yield from orphans(self._app)


def _judged_caps(by: str) -> Finding:
    """Report how caps work. `by`: what ended a trial program that exceeded its memory."""
    if by != "looks":
        return Finding("isolation", OK, "A program that exceeds its memory is ended.")
    text = (
        "No control group can be made here: what exceeds its memory or its processes is ended within "
        "a fifth of a second, and CPU is limited to whole processors."
    )
    fix = "fleet config set workspace.container.program=systemd, or use Docker or Podman."
    return Finding("isolation", WARNING, text, fix)


def _judged(model: Model, trip: Trip) -> Finding:
    name = model.alias
    where = f" at {trip.node}" if trip.node else ""
    if trip.error:
        status = f" ({trip.status})" if trip.status else ""
        return Finding("round trip", BAD, f"{name} failed{where}: {trip.error}{status}", _fix(trip))
    if trip.read and trip.read < trip.sent * READ:
        return Finding(
            "round trip",
            BAD,
            f"{name}: the model got {trip.read} of about {trip.sent} tokens{where}: cut to fit.",
            f"fleet warmup --model {model.name}; else lower models.{model.name}.context",
        )
    message = (
        f"{name} was answered by {trip.node or 'a node that is not known'} in {trip.seconds:.1f} s"
    )
    own = {serving.node.name for serving in model.servings}
    if trip.node and trip.node not in own:
        fix = "`fleet nodes` says what is wrong with its own nodes."
        return Finding("round trip", WARNING, f"{message}: a fallback.", fix)
    if not trip.called:
        fix = f"Agents need tools: choose a model that can call them for models.{model.name}."
        return Finding("round trip", WARNING, f"{message}, but called no tool.", fix)
    return Finding("round trip", OK, f"{message}, with a tool call.")


def _fix(trip: Trip) -> str:
    if "No connected db" in trip.error or trip.status in {401, 403}:
        return "The gateway was started with another key: fleet gateway stop; fleet gateway start"
    if not trip.status:
        return "fleet warmup, then fleet doctor --timeout 300"
    return "`fleet trace --agent doctor --explain` and `fleet nodes` say more."


def _names(paths: Sequence[Path]) -> str:
    names = [*map(str, paths[:3]), *([f"{len(paths) - 3} more"] if len(paths) > 3 else [])]
    return ", ".join(names)


def _side_by_side(acts: Mapping[str, Check], within: float, *, check: str = "") -> list[Finding]:
    """Run checks in threads; return their findings in order, with one for each that is too late."""
    findings: dict[str, list[Finding]] = {}
    bugs: list[Exception] = []

    def act(name: str) -> None:
        try:
            findings[name] = list(acts[name]())
        except (FleetError, OSError) as error:
            fix = getattr(error, "fix", "") or "`FLEET_DEBUG=1 fleet doctor` shows more."
            findings[name] = [Finding(check or name, BAD, f"It could not be checked: {error}", fix)]
        except Exception as error:  # noqa: BLE001  # raised below, where a person sees it
            bugs.append(error)

    threads = [threading.Thread(target=act, args=(name,), daemon=True) for name in acts]
    until = time.monotonic() + within
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    for bug in bugs:
        raise bug
    late = f"not done within {within:g} s"
    more = "fleet doctor --timeout 300"
    return [
        finding
        for name in acts
        for finding in findings.get(name, [Finding(check or name, BAD, f"{name}: {late}.", more)])
    ]
