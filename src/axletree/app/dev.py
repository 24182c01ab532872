"""An editable source tree: environment, variables and build folder of a variant, kept beside the source."""

from __future__ import annotations

import shlex
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.app.dev_hipify import hipify_tree
from axletree.app.dev_notes import unlike, unpatched
from axletree.app.dev_part import context_of, folder_of
from axletree.app.dev_setup import DevRequest, choose_variant, default_tree, load, plan_changed, set_up
from axletree.buildsystem.cmake.conda import told_to_setup_py
from axletree.buildsystem.editable import changed_settings, compare_files
from axletree.core.errors import Problem, StageError, UsageError
from axletree.core.units import some_of
from axletree.disk import remove_tree
from axletree.execute import editable
from axletree.execute.diagnosing import read_failure
from axletree.execute.editable import CONFIGURING, Outdated, Project
from axletree.execute.killed import begin
from axletree.execute.preparing import prepare
from axletree.execute.variables import child_environment, note_environment
from axletree.execute.workspace import Workplace, workplace_variables
from axletree.host import devtree
from axletree.host.devtree import FOLDER, DevState
from axletree.host.files import replace_file
from axletree.host.hiding import hide_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    from axletree.buildsystem.editable import Count
    from axletree.core.events import Event
    from axletree.core.setting import StageSetting
    from axletree.execute.context import Progress
    from axletree.recipe.settings import Settings
    from axletree.store.store import Store

_RUNNING = "running"
"""File of a tree that is there while it is built: what a killed build leaves."""
_SHOWN = 3


class Developed(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an editable tree: report of ``dev``."""

    tree: str
    variant: str
    stage: str
    way: str
    state: Literal["built", "current"]
    reasons: tuple[str, ...] = ()
    """Why something was done, in addition to what the build tools detected."""
    ran: int = 0
    """Steps that ran."""
    steps: int = 0
    """Steps of the whole build; 0 if unknown."""
    venv: str | None = None
    distribution: str | None = None
    modules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    log: str
    seconds: float = 0.0


def dev(
    recipe: str,
    *,
    sets: tuple[str, ...] = (),
    variant: str | None,
    stage: str | None,
    source: Path | None,
    venv: Path | None,
    store: Store,
    settings: Settings,
    environ: Mapping[str, str],
    emit: Callable[[Event], None],
    progress: Progress,
) -> Developed:
    """Make a source tree editable: install it so that what is edited and rebuilt is what is imported.

    Args:
        recipe: the recipe.
        sets: changes of it, ``KEY=VALUE`` each; they stay with the tree.
        variant: pattern that matches one variant; not needed where there is only one.
        stage: the stage that is built in the tree, where the recipe has several.
        source: the tree; default is the recipe's source folder, or its main checkout in the current folder.
        venv: folder of the environment; default is in the tree.
        store: where locked wheels are.
        settings: for the stages that run before.
        environ: the user's environment.
        emit: gets the events of what is fetched and built for it.
        progress: gets how far the build is.

    Raises:
        UsageError: there is no such variant, stage or tree, or the environment's folder is somebody else's.
        RecipeError: the recipe or a lock is wrong.
        HostError: the machine lacks something, or another `axletree dev` is at work.
        StageError: the build fails.
    """
    loaded, path = load(recipe, sets)
    tree = (source or default_tree(loaded)).resolve()
    if not tree.is_dir():
        raise UsageError(
            f"source folder does not exist: {tree}", hint="run `axletree source sync` to create one from the recipe"
        )
    wanted = DevRequest(
        recipe=path,
        sets=loaded.sets,
        variant=choose_variant(loaded, variant),
        stage=stage,
        tree=tree,
        venv=(tree / FOLDER / "venv" if venv is None else venv.absolute()),
    )
    with _at_work(tree, store):
        devtree.hide_from_git(tree, environ)
        before = devtree.read_state(tree)
        if before is not None and before.tree != str(tree):
            _forget(tree)
            before = None
        state = set_up(wanted, before, store, settings=settings, environ=environ, emit=emit)
        built = _bring_up(state, before, store, environ=environ, progress=progress)
        return msgspec.structs.replace(built, notes=(*built.notes, *unpatched(loaded, tree, environ)))


def rebuild(
    folder: Path,
    *,
    store: Store,
    settings: Settings,
    environ: Mapping[str, str],
    emit: Callable[[Event], None],
    progress: Progress,
) -> Developed:
    """Bring an editable tree up to date: what changed is compiled, what the recipe changed is configured again.

    Args:
        folder: the tree, or a folder in it.
        store: as for :func:`dev`.
        settings: as for :func:`dev`.
        environ: as for :func:`dev`.
        emit: as for :func:`dev`.
        progress: as for :func:`dev`.

    Raises:
        UsageError: the folder is in no editable tree, or the tree was moved.
        RecipeError: the recipe or a lock is wrong.
        HostError: the machine lacks something, or another `axletree dev` is at work.
        StageError: the build fails.
    """
    tree = _find_tree(folder.resolve())
    with _at_work(tree, store):
        before = devtree.read_state(tree)
        assert before is not None  # noqa: S101 (found by it)
        if before.tree != str(tree):
            changes = "".join(f" --set {shlex.quote(text)}" for text in before.sets)
            command = f"axletree dev {before.recipe}{changes} -v {before.variant} --source {tree}"
            message = f"the tree was moved here from {before.tree}"
            raise UsageError(Problem(file=str(tree), message=message, hint=f"set it up again: {command}"))
        state = before
        if plan_changed(before, environ):
            wanted = DevRequest(
                recipe=Path(before.recipe),
                sets=before.sets,
                variant=before.variant,
                stage=before.stage,
                tree=tree,
                venv=Path(before.venv) if before.venv is not None else tree / FOLDER / "venv",
            )
            state = set_up(wanted, before, store, settings=settings, environ=environ, emit=emit)
        return _bring_up(state, before, store, environ=environ, progress=progress)


@contextmanager
def _at_work(tree: Path, store: Store) -> Iterator[None]:
    hide_start()
    with devtree.tree_lock(tree), store.lease("dev"):
        yield


def _find_tree(folder: Path) -> Path:
    for place in (folder, *folder.parents):
        if (place / FOLDER / "dev.json").exists():
            return place
    raise UsageError(
        Problem(file=str(folder), message="the folder is not inside an editable tree"),
        hint="run `axletree dev RECIPE -v VARIANT` to create one",
    )


def _forget(tree: Path) -> None:
    """Remove what does not survive a move: build folder, environment, notes. What is not ours stays."""
    for path in (tree / FOLDER).iterdir():
        if path.name != "lock":
            remove_tree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _bring_up(
    state: DevState,
    before: DevState | None,
    store: Store,
    *,
    environ: Mapping[str, str],
    progress: Progress,
) -> Developed:
    """Build what is out of date, and note what was built with what."""
    began = time.monotonic()
    tree = Path(state.tree)
    ours = tree / FOLDER
    reasons = _note_settings(state, before, ours)
    devtree.write_state(tree, state)
    log_path = ours / "build.log"
    with log_path.open("wb") as stream, _project(state, store, stream, environ, progress) as project:
        files = devtree.list_code(project.source, skip=_skipped(project))
        hipified, told = hipify_tree(state, project, files, progress)
        if hipified:
            state = msgspec.structs.replace(state, hipified=True)
            devtree.write_state(tree, state)
            files = devtree.list_code(project.source, skip=_skipped(project))
        need = _need(state, project, files)
        reasons += _said(need, project)
        result = Developed(
            tree=state.tree,
            variant=state.variant,
            stage=state.stage,
            way=state.way,
            state="current",
            steps=state.steps,
            venv=state.venv,
            distribution=state.distribution,
            modules=state.modules,
            log=str(log_path),
        )
        if not need and editable.is_current(project):
            return msgspec.structs.replace(result, seconds=time.monotonic() - began)
        for reason in reasons:
            progress(reason)
        count, state = _build(state, project, need, log_path)
        files = devtree.list_code(project.source, skip=_skipped(project))  # a build writes some itself
    devtree.write_files(tree, files)
    devtree.write_state(tree, state)
    return msgspec.structs.replace(
        result,
        state="built",
        reasons=tuple(reasons),
        ran=count.ran,
        steps=state.steps,
        distribution=state.distribution,
        modules=state.modules,
        notes=(*told, *unlike(project.context)),
        seconds=time.monotonic() - began,
    )


def _note_settings(state: DevState, before: DevState | None, ours: Path) -> list[str]:
    """Say what differs in the settings, and note for whoever comes after a kill that they are not in effect yet."""
    if before is None:
        replace_file(ours / CONFIGURING, b"configure")
        return []
    changes = changed_settings(before.settings, state.settings, pytorch=state.pytorch)
    if before.way != state.way or any(change.afresh for change in changes):
        replace_file(ours / CONFIGURING, b"afresh")
    elif changes and not (ours / CONFIGURING).exists():
        replace_file(ours / CONFIGURING, b"configure")
    return [str(change) for change in changes]


@contextmanager
def _project(
    state: DevState, store: Store, stream: BinaryIO, environ: Mapping[str, str], progress: Progress
) -> Iterator[Project]:
    tree = Path(state.tree)
    ours = tree / FOLDER
    work = ours / "work"
    remove_tree(work)
    work.mkdir()
    context = context_of(state.request, store, work, stream=stream, progress=progress, environ=environ)
    own = context.parameters.env
    venv = Path(state.venv) if state.venv is not None else None
    keeps = state.way in {"setuptools", "backend"}
    programs, host = (venv, None) if state.build_prefix is None else (Path(state.build_prefix), venv)
    with child_environment(
        context, venv=programs, host=host, compiles=True, variables=own, root=tree, keep_flags=keeps
    ) as variables:
        env = variables | workplace_variables(context, _workplace(state))
        env = told_to_setup_py(env, driver=state.way, rules=state.rules)
        note_environment(context, env)
        yield Project(
            context=context,
            source=tree / context.parameters.directory,
            build=tree / state.build,
            venv=venv,
            env=env,
            way=state.way,
            rules=state.rules,
            scratch=ours,
        )


def _workplace(state: DevState) -> Workplace:
    tree = Path(state.tree)
    ours = tree / FOLDER
    kept = ours / "state"
    kept.mkdir(exist_ok=True)
    folders = {name: ours / folder_of(name) for name in state.inputs}
    sources = {name.removeprefix("source:"): path for name, path in folders.items() if name.startswith("source:")}
    inputs = {name: path for name, path in folders.items() if not name.startswith("source:")}
    return Workplace(root=ours, source=tree, inputs=inputs, sources=sources, state=kept)


def _skipped(project: Project) -> list[Path]:
    return [project.build, *([project.venv] if project.venv is not None else [])]


def _need(state: DevState, project: Project, files: Mapping[str, devtree.Stamp]) -> Outdated:
    marker = project.scratch / CONFIGURING
    how = marker.read_text() if marker.exists() else ""
    changes = compare_files(devtree.read_files(Path(state.tree)), files)
    if state.way != "setuptools":  # CMake and the backends look at the content of files themselves
        changes = msgspec.structs.replace(changes, edited=())
    if state.way == "cmake":
        install = editable.lacks_path_file(project)
    else:
        install = state.project != devtree.project_files(project.source)
    return Outdated(
        afresh=how == "afresh",
        configure=bool(how),
        install=install,
        killed=(project.scratch / _RUNNING).exists(),
        files=changes,
    )


def _said(need: Outdated, project: Project) -> list[str]:
    """Reasons, as people read them."""
    said = []
    if need.killed:
        said.append("the last build was killed")
    if need.files.edited:
        said.append(f"changed: {some_of(need.files.edited, _SHOWN)}")
    if need.files.moved and (project.scratch / "files.json").exists():
        said.append(f"added or removed: {some_of(need.files.moved, _SHOWN)}")
    return said


def _build(state: DevState, project: Project, need: Outdated, log_path: Path) -> tuple[Count, DevState]:
    running = project.scratch / _RUNNING
    if need.killed:
        editable.mend(project, running)
    begin(running)
    try:
        commands = project.context.parameters.commands
        if commands and commands != state.prepared:
            prepare(project.context, _workplace(state), project.source, project.build, project.env)
        count = editable.bring_up_to_date(project, need)
    except StageError as error:
        raise _explained(error, log_path, project.context.request.local.setting) from error
    finally:  # not reached by a build that is killed
        running.unlink(missing_ok=True)
        project.context.log.close()
    installed = editable.find_installed(project)
    return count, msgspec.structs.replace(
        state,
        project=devtree.project_files(project.source),
        prepared=commands,
        distribution=installed.distribution,
        modules=installed.modules,
        steps=count.total,
    )


def _explained(error: StageError, log_path: Path, setting: StageSetting | None) -> StageError:
    """The error with the lines of the log that name the root cause, and what is known of it."""
    said = read_failure(log_path, setting)
    known = [finding for finding in said.findings if finding.severity == "error"]
    lines = [*said.cause, *(f"{finding.message}. {finding.cause} [{finding.rule}]" for finding in known)]
    first, *others = error.problems
    message = "\n".join((first.message, *(f"    {line}" for line in lines)))
    hints = [finding.fix for finding in known if finding.fix]
    return StageError(
        msgspec.structs.replace(first, message=message), *others, hint="\n".join((*hints, f"see the log: {log_path}"))
    )
