"""The questions to the model as programmer: carry out an action, mend what failed, improve what passed."""

from __future__ import annotations

from methods.ksearch import views
from methods.ksearch.formats import Format
from methods.ksearch.ports import CodeQuestion
from methods.ksearch.prompts import BRIEF_CHARS, Setting
from methods.ksearch.tree import Attempt

MARK = "[K-Search code: {}]"
WORLD_CHARS = 50_000
SHOWN_ROUNDS = 5
"""The prompt counts debug rounds no further than this."""

TASKS = {
    "action": "Carry out ONE action on a kernel that is known to be good.",
    "debug": "A kernel that was to carry out one action does not work. Mend it.",
    "improve": "A kernel works. Make it faster.",
}
RULES = {
    "action": "Implement ONLY the chosen action, by a small change. Keep the signature.",
    "debug": "Correctness first: find why the last attempt failed and mend that; keep to the chosen action. Keep the "
    "signature.",
    "improve": "Find what bounds the last attempt and change that. It must stay correct. Keep the signature.",
}

PROMPT = """\
{mark}
{task} The language is {language}.

# The task
{brief}

# The plan so far
{world}
{targets}
# Known to be good
{base}
{last}{action}
# Rules
{rules}

# Answer
{format}
"""


def code_prompt(question: CodeQuestion, setting: Setting, format: Format) -> str:
    """The prompt of a question. The last code block in it is what is to be changed."""
    kind = question.kind
    targets = f"\n# Times to beat\n{setting.targets}\nThe mean over all workloads counts.\n" if setting.targets else ""
    return PROMPT.format(
        mark=MARK.format(kind),
        task=TASKS[kind],
        language=setting.language,
        brief=views.cut(setting.brief.rstrip(), BRIEF_CHARS),
        world=views.cut(views.compact(question.tree, question.last), WORLD_CHARS),
        targets=targets,
        base=_shown("Its speed", question.base) if question.base is not None else views.NO_CODE,
        last="" if kind == "action" else _last(question),
        action="" if kind == "improve" else _action(question),
        rules=RULES[kind],
        format=format.instructions,
    )


def _last(question: CodeQuestion) -> str:
    assert question.last is not None, "debug and improve follow an attempt"
    told = f"\n# The last attempt\n{_shown('Its verdict', question.last)}\n\nLog:\n{views.log(question.last)}\n"
    if question.kind == "debug":
        told += f"\nDebug round {min(question.attempt - 1, SHOWN_ROUNDS)}/{SHOWN_ROUNDS}.\n"
    return told


def _action(question: CodeQuestion) -> str:
    preface = (
        "There is no base code: write the kernel from the task's description.\n" if _from_nothing(question) else ""
    )
    return f"\n# The chosen action\n{preface}Chosen action: {views.dumped(views.action(question.node))}\n"


def _from_nothing(question: CodeQuestion) -> bool:
    return question.kind == "action" and question.base is None


def _shown(name: str, attempt: Attempt) -> str:
    return f"{views.performance(name, attempt)}\n{attempt.program.text}"
