"""What to do about a failure of a stage: lines of its recipe. A variable of the user's shell reaches no stage."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from axletree.check.diagnosis.bringers import module_distribution
from axletree.check.diagnosis.commands import take_apart
from axletree.core.secrets import looks_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.check.diagnosis.commands import Pieces
    from axletree.core.setting import StageSetting

STAGE_WORDS = frozenset(("stage", "environment", "recipe", "lock", "distribution"))
"""What a kind's ``fix-in-stage`` may name beside what its patterns catch."""

_OURS = frozenset(
    (
        "PATH",
        "HOME",
        "TMPDIR",
        "TMP",
        "TEMP",
        "LANG",
        "LC_ALL",
        "TZ",
        "SOURCE_DATE_EPOCH",
        "PYTHONUTF",
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CCACHE_DIR",
        "SCCACHE_DIR",
        "UV_CACHE_DIR",
        "PIP_CACHE_DIR",
        "CONDA_PKGS_DIRS",
        "XDG_CACHE_HOME",
        "PIP_RETRIES",
        "PIP_RESUME_RETRIES",
        "PIP_DEFAULT_TIMEOUT",
        "UV_HTTP_TIMEOUT",
        "PIP_CERT",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_FILE",
        "UV_SYSTEM_CERTS",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "PIP_CONSTRAINT",
        "PIP_INDEX_URL",
        "UV_INDEX_URL",
    )
)
"""Variables that Axletree sets itself, or that nothing in a stage uses: tools of a stage are offline."""
_JOBS = frozenset(("MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL"))
"""Variables in which Axletree tells a stage its number of jobs."""
_CMAKE_ARGS = "CMAKE_ARGS"


def stage_words(setting: StageSetting, groups: Mapping[str, str]) -> dict[str, str]:
    """What a kind's texts for stages may name."""
    module = groups.get("module", "")
    return {
        **groups,
        "stage": setting.table or "the stage",
        "environment": f"environments.{setting.environment}" if setting.environment else "environments.NAME",
        "recipe": setting.recipe,
        "lock": lock_of(setting),
        "distribution": module_distribution(module) if module else "",
    }


def lock_of(setting: StageSetting) -> str:
    """The command that locks the recipe around a stage."""
    return setting.lock or shlex.join(["axletree", "lock", setting.recipe])


def fix_in_stage(text: str, setting: StageSetting) -> str:
    """A fix as lines of the recipe where it sets variables or installs packages; all else stays as it is."""
    return "\n".join(line for part in _paragraphs(text) for line in _translated(*part, setting=setting))


def _paragraphs(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Sentences with the commands that follow them."""
    prose: list[str] = []
    commands: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
            continue
        if commands:
            yield prose, commands
            prose, commands = [], []
        prose.append(line)
    yield prose, commands


def _translated(prose: list[str], commands: list[str], *, setting: StageSetting) -> list[str]:
    if not commands:
        return prose
    pieces = take_apart(commands)
    lines = [
        *fetched(setting, submodules=pieces.submodules),
        *required(pieces.requires, setting),
        *(f"$ {command}" for command in pieces.runs),
        *_declared(pieces.tools, setting),
        *_set(pieces, setting),
        *_unset(pieces.unsets, setting),
    ]
    return [*prose, *lines] if lines else [line for line in prose if not line.endswith(":")]


def fetched(setting: StageSetting, *, submodules: bool) -> Iterator[str]:
    """How a recipe gets the submodules of its source."""
    if submodules:
        yield f"Include the source's submodules. If [source] has `git`, set this in {setting.recipe}:"
        yield "    source.submodules = true"
        yield "If it has `path`, run `git submodule update --init --recursive` in that folder."


def required(requires: tuple[str, ...], setting: StageSetting) -> Iterator[str]:
    """How a stage gets distributions."""
    if not requires:
        return
    names = ", ".join(json.dumps(name) for name in requires)
    if not setting.environment:
        table = setting.table or "stages.NAME"
        yield f"Give the stage an environment that contains {names} (`environment` in [{table}])."
        return
    key = f"environments.{setting.environment}.requires"
    if setting.is_set(key):
        yield f"Add {names} to {setting.place(key)}."  # the next build has another value, and locks it
        return
    yield f"Add {names} to {setting.place(key)}, then:"
    yield f"$ {lock_of(setting)}"


def _declared(tools: tuple[str, ...], setting: StageSetting) -> Iterator[str]:
    if tools and setting.table.startswith("stages."):
        key = f"{setting.table}.tools"
        unsaid = setting.unsaid.get(key, ())
        names = ", ".join(json.dumps(name) for name in dict.fromkeys((*unsaid, *tools)))
        if unsaid:
            yield f"Set {setting.place(key)}, which replaces the default:"
            yield f"    {key} = [{names}]"
        else:
            yield f"Add {names} to {setting.place(key)}."


def _set(pieces: Pieces, setting: StageSetting) -> Iterator[str]:
    given = {name: value for name, value in pieces.sets if name not in _OURS | _JOBS and value}
    secret = [name for name, value in given.items() if looks_secret(name) or value == "..."]
    plain = {name: value for name, value in given.items() if name not in secret}
    if setting.is_test:
        if given:
            yield f"Put this in front of the command that needs it ({setting.place(f'{setting.table}.commands')}):"
            yield "    " + " ".join(f"{name}={_quoted(value)}" for name, value in given.items())
        return
    if not setting.table.startswith("stages."):
        return
    # The `compile` action calls CMake itself, and that reads no such variable.
    options = _options(plain.pop(_CMAKE_ARGS)) if setting.action == "compile" and _CMAKE_ARGS in plain else {}
    for key, values in (("env", plain), ("options", options)):
        if values:
            yield f"Set {setting.place(f'{setting.table}.{key}')}:"
            yield f"    {line_for(key, values, setting)}"
    if secret:
        names = ", ".join(json.dumps(name) for name in secret)
        yield f"Add {names} to {setting.place(f'{setting.table}.pass-env')}."
    if any(name in _JOBS for name, _ in pieces.sets):
        yield f"Set {setting.place(f'{setting.table}.resources')} so that fewer jobs run at once:"
        yield f'    {setting.table}.resources = {{ memory-per-job = "4 GB" }}'


def _options(arguments: str) -> dict[str, str]:
    """CMake's variables in ``-DNAME=VALUE ...``."""
    return {
        word[2:].partition("=")[0].partition(":")[0]: word.partition("=")[2]
        for word in arguments.split()
        if word.startswith("-D")
    }


def line_for(key: str, values: Mapping[str, str], setting: StageSetting) -> str:
    """The recipe's line that sets names to values; braces are doubled, since single ones hold placeholders."""
    quoted = {name: _quoted(value).replace("{", "{{").replace("}", "}}") for name, value in values.items()}
    pairs = ", ".join(f"{name} = {value}" for name, value in quoted.items())
    return f"{setting.table or 'stages.NAME'}.{key} = {{ {pairs} }}"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _unset(names: Iterable[str], setting: StageSetting) -> Iterator[str]:
    names = [name for name in names if name not in _OURS]
    if names and setting.table.startswith("stages."):
        keys = f"{setting.table}.env and {setting.table}.pass-env"
        yield (
            f"Remove {', '.join(names)} from {keys} in {setting.recipe}; a stage gets no other variables from your "
            f"shell."
        )


def cpu_variant(setting: StageSetting) -> tuple[str, str]:
    """Cause and fix where a project looks for a GPU toolkit in a variant without a GPU."""
    cause = (
        f'This variant is for gpu = "{setting.gpu}", so it needs no toolkit. The project builds its GPU code anyway: a '
        "switch of its own requests it, or the project found nvcc or hipcc in a system folder, which stages see even "
        "if "
        "`tools` does not list it."
    )
    key = f"{setting.table}.env" if setting.table.startswith("stages.") else "env"
    fix = (
        "Turn the GPU code off. The name of the switch is in the project's setup.py or CMakeLists.txt "
        f"(FORCE_CUDA, USE_CUDA, WITH_CUDA). Set {setting.place(key)}:\n"
        f'    {key} = {{ FORCE_CUDA = "0", USE_CUDA = "0" }}\n'
        "If it has no switch and only checks for nvcc, change that line of setup.py with a patch, or with sed in "
        f"{setting.table or 'the stage'}.commands."
    )
    return cause, fix
