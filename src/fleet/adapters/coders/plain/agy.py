"""Google's Antigravity CLI: `agy -p PROMPT`, which prints text.

Written from what others say of it: it could not be had for trying. Which model it asks is in its
own settings (`~/.gemini/antigravity-cli/settings.json`); it takes none from us.
"""

from __future__ import annotations

from fleet.adapters.coders.plain.command import TextListener
from fleet.adapters.coders.shared.abilities import Abilities
from fleet.adapters.coders.shared.options import LONGEST_ARGUMENT, permissions, strings
from fleet.domain.errors import Refused
from fleet.ports import Brief, Launch

BYPASS = "--dangerously-skip-permissions"


class AgyCoder:
    name = "agy"
    resumes = False
    stalls = False  # it may work for long without a word
    costs = False
    estimates = True
    window = 128_000
    abilities = Abilities(
        program="Antigravity CLI",
        resume="No.",
        words="No.",
        usage="Never.",
        cost="Never.",
        context="Estimated from what it prints, at about four characters a token.",
        limits="No: Fleet sees only its exit status.",
        read="Whatever agy does without asking, which was not tested; it has no way to ask.",
        edit="As `read`.",
        full=f"{BYPASS}: everything that you may do.",
        verified="Not with agy itself, only with a stand-in.",
    )

    def launch(self, brief: Brief) -> Launch:
        """Agy has no place for instructions, so they stand before the prompt."""
        granted, extra = permissions(brief), strings(brief, "extra_args")
        if granted != "full" and any("dangerously" in word for word in extra):
            raise Refused(
                f"extra_args has {BYPASS}, and the agent's permissions are '{granted}'.",
                fix="Set agents.NAME.permissions to full, if that is what you want.",
            )
        prompt = "\n\n".join(filter(None, (brief.instructions, brief.prompt)))
        if len(prompt.encode()) > LONGEST_ARGUMENT:
            raise Refused(
                f"agy takes its prompt as one argument, and this one exceeds {LONGEST_ARGUMENT:,} bytes.",
                fix="Put the text into a file, and have the prompt tell the agent to read it.",
            )
        argv = [*(strings(brief, "command") or ("agy",)), "-p", prompt]
        argv += [BYPASS] if granted == "full" else []
        return Launch((*argv, *extra), brief.cwd, brief.env)

    def listen(self, opening: str) -> TextListener:
        del opening  # every line stands for itself
        return TextListener()
