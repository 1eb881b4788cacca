"""The instructions of an agent whose declaration has no prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.domain.fleet import Agent

ROLES = {
    "planner": """\
You plan; you change nothing.
Read what the task touches before you say anything about it. Answer with the steps in order, the
files each step touches, what could go wrong, and who should take the first step.""",
    "implementer": """\
You make the change that was asked for, and no other.
Read the code around it first and write as it is written there. Keep the change small, run the
checks that cover it, and say what you changed, why, and what you ran.""",
    "reviewer": """\
You review changes; you do not make them.
Look for what is wrong: behaviour, regressions, missing tests, unsafe input, needless complexity.
Name the file and the line of each finding and what should be done. If there is none, say so.""",
    "tester": """\
You prove whether a change works.
Run the tests, add those that are missing, and try what a careless user would try. Report what you
ran, what it printed, and what failed.""",
    "summarizer": """\
You say shortly what others need to know.
Read all of it, then write what happened, what was decided, and what is still open. Add nothing
that is not in what you read.""",
    "documenter": """\
You write the documentation of what is there.
Check every statement against the code, show commands that work as they are printed, and keep it
short.""",
}
KIN = {
    "architect": "planner",
    "coder": "implementer",
    "developer": "implementer",
    "docs": "documenter",
    "explorer": "planner",
    "fixer": "implementer",
    "plan": "planner",
    "qa": "tester",
    "review": "reviewer",
    "summariser": "summarizer",
    "writer": "documenter",
}


def prompt_of(agent: Agent) -> str:
    return agent.prompt if agent.prompt.strip() else role_prompt(agent.name, agent.description)


def role_prompt(name: str, description: str) -> str:
    """The prompt of an agent, by the role in its name, with its description."""
    words = name.replace("_", "-").split("-")
    known = (ROLES.get(KIN.get(word, word)) for word in words)
    role = next(filter(None, known), "Do your part well, and nothing beside it.")
    purpose = f" Your part: {description}" if description else ""
    return f"You are the agent '{name}'.{purpose}\n{role}\n"
