"""`fleet completion SHELL`, and the answers that its script asks for at every TAB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.main import COMPLETE
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.output import write
from fleet.cli.terminal.render import Raw, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from click.shell_completion import CompletionItem

    from fleet.client import Client
    from fleet.config.keys.table import SettingKey

PROGRAMS = "fleet flt subagent-fleet"
MOST_TASKS = 500
MOST_LANDINGS = 50

BASH = """\
_fleet_completion() {
    local IFS=$'\\n' answer kind value
    answer=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(var)s=bash_complete "$1")
    for line in $answer; do
        IFS=',' read -r kind value <<< "$line"
        case $kind in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o nosort -F _fleet_completion %(programs)s
_fleet_cd_completion() {
    COMP_WORDS=(fleet cd "${COMP_WORDS[@]:1}")
    COMP_CWORD=$((COMP_CWORD + 1))
    _fleet_completion fleet
}
complete -o nosort -F _fleet_cd_completion fleet-cd
fleet-cd() {
    local path
    path=$(fleet cd "$@") && cd "$path"
}
"""

ZSH = """\
#compdef %(programs)s
_fleet_completion() {
    local -a plain described answer
    local kind key words_of_it
    answer=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        %(var)s=zsh_complete ${words[1]})}")
    for kind key words_of_it in ${answer}; do
        case $kind in
            plain)
                if [[ $words_of_it == _ ]]; then
                    plain+=("$key")
                else
                    described+=("$key":"$words_of_it")
                fi ;;
            dir) _path_files -/ ;;
            file) _path_files -f ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#plain )) && compadd -U -V unsorted -a plain
}
_fleet_cd_completion() {
    words=(fleet cd "${(@)words[2,-1]}")
    (( CURRENT++ ))
    _fleet_completion
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _fleet_completion "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
    compdef _fleet_completion %(programs)s
    compdef _fleet_cd_completion fleet-cd
fi
fleet-cd() {
    local where
    where=$(fleet cd "$@") && cd "$where"
}
"""

FISH = """\
function _fleet_completion
    set -l words (commandline -opc)
    set -l answer (env %(var)s=fish_complete COMP_WORDS=(commandline -cp) \\
        COMP_CWORD=(commandline -t) $words[1])
    for line in $answer
        set -l parts (string split -m 1 "," $line)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo $parts[2]
        end
    end
end
for program in %(programs)s
    complete --no-files --command $program --arguments "(_fleet_completion)"
end
function fleet-cd
    set -l where (fleet cd $argv); and cd $where
end
complete --no-files --command fleet-cd --wraps "fleet cd"
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@command()
@click.argument("shell", type=click.Choice(sorted(SCRIPTS)))
def completion(shell: str) -> Result:
    """Print a shell's completion script. It also has the function fleet-cd: see `fleet help cd`.

    One of these turns it on, from the next shell on:

        echo 'eval "$(fleet completion bash)"' >> ~/.bashrc
        echo 'eval "$(fleet completion zsh)"' >> ~/.zshrc
        echo 'fleet completion fish | source' >> ~/.config/fish/config.fish
    """
    script = SCRIPTS[shell] % {"var": COMPLETE, "programs": PROGRAMS}
    return Result("completion", {"shell": shell, "script": script}, Raw(script))


def complete(instruction: str) -> int:
    """Answer the script: `bash_complete` and the like. A TAB never shows an error."""
    from click.shell_completion import get_completion_class

    from fleet.cli.root import root

    kind = get_completion_class(instruction.partition("_")[0])
    if kind is None:
        return 1
    try:
        write(kind(root, {}, "fleet", COMPLETE).complete() + "\n")
    except Exception:  # noqa: BLE001 - an error here would be printed into the line being typed
        return 1
    return 0


def _from_queue(
    named: Callable[[Client], Iterable[tuple[str, str]]],
) -> Callable[..., list[CompletionItem]]:
    """A completion with names and what to say about each. A TAB makes no home."""

    def complete(
        _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from fleet.client import connect

        client = connect()
        names = dict(named(client)) if client.home.is_dir() else {}
        return [
            CompletionItem(n, help=text) for n, text in names.items() if n.startswith(incomplete)
        ]

    return complete


def complete_tasks_for(command: str) -> Callable[..., list[CompletionItem]]:
    """For `click.argument("task", shell_complete=complete_tasks_for("retry"))`: those it can take."""

    def named(client: Client) -> Iterable[tuple[str, str]]:
        from fleet.operations.tasks.list import ListTasks
        from fleet.operations.tasks.statuses import TAKES

        rows = client.call(ListTasks(statuses=TAKES[command], limit=MOST_TASKS))
        return ((row.id, row.title) for row in rows)

    return _from_queue(named)


def _tasks(client: Client) -> Iterable[tuple[str, str]]:
    """Those in view, then those that have ended."""
    from fleet.operations.tasks.list import ListTasks

    for request in (ListTasks(limit=MOST_TASKS), ListTasks(all=True, limit=MOST_TASKS)):
        yield from ((row.id, row.title) for row in client.call(request))


def _to_land(client: Client) -> Iterable[tuple[str, str]]:
    """Those that are done on a branch of their own, and have not landed."""
    from fleet.operations.tasks.list import ListTasks
    from fleet.operations.tasks.statuses import TAKES

    for row in client.call(ListTasks(statuses=TAKES["merge"], limit=MOST_TASKS)):
        if row.status in TAKES["merge"] and row.run is not None and row.run.branch:
            yield row.id, row.title


def _landings(client: Client) -> Iterable[tuple[str, str]]:
    """Those that wait to land, by the landing and by its task."""
    from fleet.operations.landing.landing import ListLandings

    for row in client.call(ListLandings(limit=MOST_LANDINGS)):
        yield from ((row.id, row.title), (row.task, row.title))


def _landed(client: Client) -> Iterable[tuple[str, str]]:
    from fleet.operations.landing.landing import ListLandings

    rows = client.call(ListLandings(all=True, limit=MOST_LANDINGS))
    return ((row.task, row.title) for row in rows if row.state == "landed")


def _at_work(client: Client) -> Iterable[tuple[str, str]]:
    """By branch, as `fleet list` shows them, and by id."""
    from fleet.operations.tasks.at_work import ListAgents

    project = "" if client.is_remote else client.project_or_cwd
    rows = client.call(ListAgents(project, limit=MOST_TASKS))
    yield from ((row.branch, row.title) for row in rows if row.branch)
    yield from ((row.task, row.title) for row in rows)


def _questions(client: Client) -> Iterable[tuple[str, str]]:
    """The tasks that ask; the question itself where a task asks several."""
    from fleet.operations.messages.ask_answer_send import ListQuestions

    questions = client.call(ListQuestions(MOST_TASKS))
    tasks = [question.task for question in questions]
    return ((q.id if tasks.count(q.task) > 1 else q.task, q.text) for q in questions)


def _kept(client: Client) -> Iterable[tuple[str, str]]:
    kept = client.this_machine("Kept work").workspaces.kept()
    return ((work.id, work.branch) for work in kept)


complete_tasks = _from_queue(_tasks)
complete_tasks_to_land = _from_queue(_to_land)
complete_landings = _from_queue(_landings)
complete_landed = _from_queue(_landed)
complete_agents_at_work = _from_queue(_at_work)
complete_questions = _from_queue(_questions)
complete_kept = _from_queue(_kept)


def complete_names(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _coders() -> list[str]:
    from fleet.client import connect

    return connect().loaded.fleet.coder_names()


def _agents() -> Iterable[str]:
    """The declared ones; every coder is one, too."""
    from fleet.client import connect

    fleet = connect().loaded.fleet
    return dict.fromkeys((*fleet.agents, *fleet.coder_names()))


def _statuses() -> Iterable[str]:
    from fleet.operations.tasks.statuses import STATUSES

    return STATUSES


complete_coders = complete_names(_coders)
complete_agents = complete_names(_agents)
complete_statuses = complete_names(_statuses)


def _assigned(ctx: click.Context) -> SettingKey | None:
    """The setting whose value is typed: to bash `coder=cl` is three words."""
    from fleet.config.keys.table import SETTINGS

    words = [word for word in ctx.params.get("assignments") or () if word != "="]
    return next((key for key in SETTINGS if words and key.path == words[-1]), None)


def _values(key: SettingKey) -> Iterable[str]:
    if key.kind == "coder":
        return _coders()
    return ("true", "false") if isinstance(key.default, bool) else key.choices


def complete_keys(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """`max_concurrent`, and for `config set` `max_concurrent=`, and then its values."""
    from click.shell_completion import CompletionItem

    from fleet.config.keys.table import SETTINGS

    if param.name == "assignments":
        if (key := _assigned(ctx)) is not None:
            return [CompletionItem(v) for v in _values(key) if v.startswith(incomplete)]
        path, equals, begun = incomplete.partition("=")
        if equals:
            values = (v for key in SETTINGS if key.path == path for v in _values(key))
            return [CompletionItem(f"{path}={v}") for v in values if v.startswith(begun)]
    known = [k for k in SETTINGS if k.path.startswith(incomplete) and "*" not in k.path]
    end = "=" if param.name == "assignments" else ""
    return [CompletionItem(f"{key.path}{end}", help=key.doc) for key in known]
