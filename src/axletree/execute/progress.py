"""What a step of a build does, in few words: from CMake's description of it, or from its command line.

With ``-v`` ninja prints the command instead of the description, and one of PyTorch has two thousand characters.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from axletree.core.units import some_of

# Wording: cmNinjaTargetGenerator, cmNinjaNormalTargetGenerator, cmLocalNinjaGenerator of CMake.
_OBJECT = re.compile(r"^Building (?P<language>\S+) object (?P<path>\S+)$")
_SOURCE_OF_OBJECT = re.compile(r"\.(o|obj|gch|pch)$")
_LINK = re.compile(
    r"^Linking \S+ (shared library|shared module|static library|executable|device code|CUDA device code)\s(?P<path>.*)$"
)
_GENERATE = re.compile(r"^Generating (?P<paths>.*)$")
_INSTALL = re.compile(r"^Install(ing)? the project")
_COMPILES = re.compile(r"(?:^|\s)(?:-c|--compile|-dc)(?=\s)")
_OUTPUT = re.compile(r"(?:^|\s)(?:-o|--output-file)\s+(?P<path>\S+)")
_SOURCE = re.compile(r"(?:^|\s)(?P<path>[^\s'\"]+\.(?:c|cc|cpp|cxx|c\+\+|C|cu|hip|m|mm|s|S|asm|f|f90))(?=\s|$)")
_LINKS = re.compile(r"(?:^|\s)(?:-shared|-Wl,\S+)(?=\s)")
_COMPILER = re.compile(
    r"^\s*(?:\S*/)?(?:s?ccache\s+(?:\S*/)?)?(?:[\w.]+-)*(?:g?cc|[cg]\+\+|clang(?:\+\+)?|nvcc|hipcc|icp?x)(?:-[\d.]+)?\s"
)
"""A compiler's name in front of its arguments, with a compiler cache or without."""
_SHELL = re.compile(r"^:\s*+&&\s*+|(?<!\s)\s*+&&\s*+:\s*+$")
_RUN = re.compile(r"^cd \S+ && (?P<program>\S+)(?P<rest>.*)$")
_LONGEST = 120
"""Characters of a step that nothing is known of; the log has it whole."""


def describe(step: str) -> str:
    """Words for the text behind ninja's ``[12/40]``; a text of unknown form is cut to a line's length."""
    return _described(step) or _commanded(_SHELL.sub("", step)) or _cut(step)


def compile_step(line: str) -> str | None:
    """Words for a line that is a compiler's command for one object, as setuptools and make print it; else ``None``."""
    return _commanded(line) if _COMPILER.match(line) and _COMPILES.search(line) and _OUTPUT.search(line) else None


def _described(step: str) -> str | None:
    if (match := _OBJECT.match(step)) is not None:
        return f"compiling {_SOURCE_OF_OBJECT.sub('', _name(match['path']))}"
    if (match := _LINK.match(step)) is not None:
        return f"linking {_name(match['path'].split(';')[0].strip())}"
    if (match := _GENERATE.match(step)) is not None:
        names = [_name(path) for path in match["paths"].split(", ") if path]
        return f"generating {some_of(names, 1)}"
    return "installing" if _INSTALL.match(step) else None


def _commanded(command: str) -> str | None:
    """For a command line of a compiler, a linker or a script."""
    output = _OUTPUT.search(command)
    if _COMPILES.search(command) is not None:
        sources = _SOURCE.findall(command)
        return f"compiling {_name(sources[-1])}" if sources else None
    if output is not None and _LINKS.search(command) is not None:
        return f"linking {_name(output['path'])}"
    if (run := _RUN.match(command)) is not None:
        return _cut(f"running {_name(run['program'])}{run['rest']}")
    return None


def _name(path: str) -> str:
    return PurePosixPath(path).name


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
