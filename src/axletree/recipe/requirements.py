"""Files with requirements, one a line, as pip reads them (``requirements.txt``), without pip's options."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement

from axletree.core.errors import Problem, RecipeError

_COMMENT = re.compile(r"(^|\s)#.*$")
_HINT = "write plain requirements, such as numpy>=2; the lock pins versions and digests"


def parse_requirements(text: str, *, file: str) -> tuple[str, ...]:
    """The requirements of a file, in its order.

    Raises:
        RecipeError: lines are options of pip, addresses, or no requirements (PEP 508); names all of them.
    """
    found: list[str] = []
    problems: list[Problem] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", raw).strip()
        if not line:
            continue
        message = _message(line)
        if message is None:
            found.append(line)
        else:
            problems.append(Problem(file=file, line=number, excerpt=raw[:200], message=message, hint=_HINT))
    if problems:
        raise RecipeError(*problems)
    return tuple(found)


def _message(line: str) -> str | None:
    """What is wrong with a line."""
    if line.startswith("-") or " --" in line or line.endswith("\\"):
        return f"options of pip are not supported in a file for requires-from: {line[:80]}"
    if "{" in line or "}" in line:
        return "placeholders are not supported in a file for requires-from"
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        return f"not a valid requirement (PEP 508): {str(error).splitlines()[0]}"
    return None if requirement.url is None else f"a requirement with a URL cannot be locked: {line[:80]}"
