"""Install the built packages from their index into a fresh environment, with a real client, and use them."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.core.errors import StageError
from axletree.core.trees import Entry, make_tree
from axletree.core.values import canonical_json
from axletree.execute.conda_client import conda_environment, untried
from axletree.execute.context import Outcome
from axletree.execute.environments import fresh_prefix, is_conda, wheels_in
from axletree.execute.process import check_program
from axletree.execute.stage_venvs import client_environ, describe, interpreter_for, uv_cache, wheel_folder
from axletree.execute.variables import child_environment
from axletree.host.sandbox import can_protect
from axletree.host.venvs import create_venv, install_with_pip, install_with_uv
from axletree.plan.actions.test import ClientTestFacts

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.execute.context import ActionContext
    from axletree.plan.actions.test import ClientTestParameters

_SUMMARY = re.compile(r"^(?:=+ )?(\d+ (?:passed|failed|errors?|skipped)\b.*) in [\d.]+s")
_COUNT = re.compile(r"(?<!\d)(\d{1,9}) (passed|failed|skipped)")


def run(context: ActionContext[ClientTestParameters]) -> Outcome:
    """Install, compare what was installed with the lock, import, run the commands.

    The built packages can come from our index alone, everything else only from the locked wheels: where that does not
    resolve, the client fails rather than fetching something else.

    Raises:
        StageError: installation, an import or a command fails, or another version than the locked one came in.
    """
    installer = context.parameters.installer
    environment = context.request.inputs["environment"]
    wheels = wheel_folder(context, environment)
    roots = [
        context.materialise(name, f"index-{number}")
        for number, name in enumerate(context.request.inputs)
        if name != "environment"
    ]
    prefix = context.work / "venv"
    if installer == "conda":
        made = conda_environment(context, prefix, roots=roots, files=wheels)
        installed, outside = made.installed, made.outside
    else:
        _make_environment(context, prefix, files=wheels)
        installed, outside = _install(context, prefix, roots=roots, wheels=wheels), {}
    folder = _lay_out_files(context)
    with child_environment(context, venv=prefix, compiles=False, sealed=(prefix, wheels)) as env:
        _use(context, prefix, folder, env)
    facts = ClientTestFacts(installer=installer, installed=installed, outside=outside, **_counts(context))
    data = canonical_json(facts)
    entry = Entry(path="result.json", blob=context.store.put_bytes(data), size=len(data))
    return Outcome(tree=context.store.put_tree(make_tree([entry])), facts=facts, findings=untried(outside))


def _make_environment(context: ActionContext[ClientTestParameters], prefix: Path, *, files: Path) -> None:
    """An environment of its own for the client: an empty one, or a conda prefix, whose packages are part of it."""
    environment = context.request.inputs["environment"]
    if is_conda(context, environment):
        fresh_prefix(context, prefix, files=files)
        return
    create_venv(
        prefix,
        interpreter=interpreter_for(context, describe(context, environment)["version"]),
        lock_folder=None,
        uv_cache=uv_cache(context),
        environ=client_environ(context),
        say=context.log.write,
    )


def _lay_out_files(context: ActionContext[ClientTestParameters]) -> Path:
    """A folder with the test's files, which is a root of its own for pytest.

    pytest looks for its settings in all folders above, and a store may lie inside somebody's project.
    """
    folder = context.work / "tests"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    for file in context.parameters.files:
        path = folder / (file.at or file.path.rpartition("/")[2])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(context.store.read_blob(file.blob))
    return folder


def _install(
    context: ActionContext[ClientTestParameters], venv: Path, *, roots: list[Path], wheels: Path
) -> dict[str, str]:
    locked_wheels = wheels_in(wheels)
    built = [f"{package.name}=={package.version}" for package in context.parameters.packages]
    installer = context.parameters.installer
    context.progress(f"installing with {installer}")
    indexes = [(root / "simple").as_uri() for root in roots]
    requirements = [*built, *(f"{wheel.name}=={wheel.version}" for wheel in locked_wheels)]
    with_uv = partial(install_with_uv, cache=uv_cache(context), share=can_protect())
    install = with_uv if installer == "uv" else install_with_pip
    installed = install(
        venv,
        requirements,
        index_urls=indexes,
        find_links=wheels,
        environ=client_environ(context),
        say=context.log.write,
    )
    locked = {canonicalize_name(wheel.name): wheel.version for wheel in locked_wheels}
    wanted = locked | {canonicalize_name(each.name): each.version for each in context.parameters.packages}
    wrong = [
        f"{name} {installed.get(name, 'is missing')}, expected {version}"
        for name, version in wanted.items()
        if name not in installed or Version(installed[name]) != Version(version)
    ]
    if wrong:
        raise StageError(f"{installer} did not install the built and locked packages: {'; '.join(wrong)}")
    return installed


def _use(context: ActionContext[ClientTestParameters], venv: Path, folder: Path, env: dict[str, str]) -> None:
    python = str(venv / "bin" / "python")
    for module in context.parameters.imports:
        context.progress(f"importing {module}")
        check_program(
            [python, "-I", "-c", f"import {module}"],
            cwd=folder,
            env=env,
            log=context.log,
            progress=context.progress,
            what=f"importing {module}",
        )
    for command in context.parameters.commands:
        context.progress(command)
        check_program(
            ["/bin/bash", "-euo", "pipefail", "-c", command],
            cwd=folder,
            env=env,
            log=context.log,
            progress=context.progress,
            what=f"test command `{command}`",
        )


def _counts(context: ActionContext[ClientTestParameters]) -> dict[str, int]:
    """The numbers of pytest's closing line, where a command printed one."""
    return {word: int(number) for number, word in _COUNT.findall(context.log.last_match(_SUMMARY) or "")}
