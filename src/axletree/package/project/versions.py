"""The version of a project: where it stands, or which tool takes it from git and by which variable it is told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from axletree.package.project.code import constants, parse_python, text_of
from axletree.package.project.model import Found, ProjectVersion
from axletree.package.project.pyproject import providers_of
from axletree.package.project.tree import line_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.project.model import Backend
    from axletree.package.project.pyproject import PyProject
    from axletree.package.project.setup_script import SetupScript
    from axletree.package.project.tree import SourceTree

_SCM = "SETUPTOOLS_SCM_PRETEND_VERSION"
_PDM = "PDM_BUILD_SCM_VERSION"
_POETRY = "POETRY_DYNAMIC_VERSIONING_BYPASS"
_NAMES = ("__version__", "version", "VERSION", "__VERSION__")
_MESON = re.compile(r"^project\s*\(|[(,]\s*version\s*:\s*'([^'\n]+)'", re.MULTILINE)
_CARGO = re.compile(r"^[ \t]*version[ \t]*=[ \t]*\"([^\"\n]+)\"", re.MULTILINE)


def read_version(
    tree: SourceTree, project: PyProject, script: SetupScript, info: Found | None, *, backend: Backend
) -> ProjectVersion:
    """What the files tell of a version.

    Args:
        tree: The project.
        project: Its pyproject.toml.
        script: Its setup.py and setup.cfg.
        info: The version in the metadata of an sdist.
        backend: What builds it.
    """
    tool = _git_tool(project, script, tree)
    static = project.text("project", "version") or (
        project.text("tool", "poetry", "version") if backend == "poetry" and not tool else None
    )
    known = (static, info, *_of_files(tree, project, script, backend)) if not tool else (static, info)
    stated = next((each for each in known if each is not None and _is_version(each.value)), None)
    return ProjectVersion(stated=stated, from_git=tool, variable=_variable(tool, project, backend))


def _git_tool(project: PyProject, script: SetupScript, tree: SourceTree) -> str:
    """The tool that takes the version from git; empty where none does."""
    tools = project.table("tool")
    source = project.get("tool", "hatch", "version", "source")
    required = {_plain(each.value) for each in project.texts("build-system", "requires")}
    if source == "vcs" or "flit-scm" in required:
        return "hatch-vcs" if source == "vcs" else "flit_scm"
    if project.get("tool", "pdm", "version", "source") == "scm":
        return "pdm-backend"
    if project.get("tool", "poetry-dynamic-versioning", "enable") is True:
        return "poetry-dynamic-versioning"
    providers = [each.value for each in providers_of(project)]
    dynamic = "version" in (project.get("project", "dynamic") or ()) or not project.table("project")
    if (
        any(provider.endswith("setuptools_scm") for provider in providers)
        or "use_scm_version" in script.arguments
        or (dynamic and ("setuptools_scm" in tools or required & {"setuptools-scm", "setuptools-git-versioning"}))
    ):
        return "setuptools_scm"
    asks_versioneer = "versioneer" in tools or "versioneer.py" in tree.sizes or "versioneer" in required
    return "versioneer" if asks_versioneer else ""


def is_version_variable(name: str) -> bool:
    """Whether a variable tells one of these tools the version."""
    return name in {_PDM, _POETRY} or name.startswith(_SCM)


def _variable(tool: str, project: PyProject, backend: Backend) -> str:
    """The variable that tells a tool the version where there is no git; empty for tools without one.

    Only setuptools tells setuptools_scm the project's name for certain, and that where pyproject.toml has it.
    """
    name = project.get("project", "name")
    match tool:
        case "setuptools_scm" if backend == "setuptools" and isinstance(name, str):
            return f"{_SCM}_FOR_{re.sub(r'[-_.]+', '_', name).upper()}"
        case "setuptools_scm" | "hatch-vcs" | "flit_scm":
            return _SCM
        case "pdm-backend":
            return _PDM
        case "poetry-dynamic-versioning":
            return _POETRY
        case _:
            return ""


def _of_files(tree: SourceTree, project: PyProject, script: SetupScript, backend: Backend) -> Iterator[Found | None]:
    yield _attribute(tree, project.get("tool", "setuptools", "dynamic", "version", "attr"), project)
    yield _whole_file(tree, project.get("tool", "setuptools", "dynamic", "version", "file"))
    for path in (project.get("tool", "hatch", "version", "path"), project.get("tool", "pdm", "version", "path")):
        yield _in_python(tree, str(path)) if path else None
    yield _by_expression(tree, project)
    configured = script.config.get("metadata", {}).get("version", "").strip()
    if configured.startswith("attr:"):
        yield _attribute(tree, configured.removeprefix("attr:").strip(), project)
    elif configured.startswith("file:"):
        yield _whole_file(tree, configured.removeprefix("file:").strip())
    yield script.text("version", "metadata", "version")
    if backend == "meson-python":
        text = tree.text("meson.build")
        found = next((each for each in _MESON.finditer(text, max(text.find("project("), 0)) if each[1]), None)
        yield Found(value=found[1], file="meson.build", line=line_at(text, found.start(1))) if found else None
    if backend == "maturin" and (crate := _CARGO.search(tree.text("Cargo.toml"))):
        yield Found(value=crate[1], file="Cargo.toml", line=line_at(tree.text("Cargo.toml"), crate.start(1)))
    if backend == "flit":
        name = str(project.get("tool", "flit", "module", "name") or project.get("project", "name") or "")
        for start in ("", "src/"):
            module = f"{start}{name.replace('-', '_').replace('.', '/')}"
            yield _in_python(tree, f"{module}/__init__.py") or _in_python(tree, f"{module}.py")


def _attribute(tree: SourceTree, attribute: object, project: PyProject) -> Found | None:
    """The value of ``package.module.NAME``, as setuptools finds it."""
    if not isinstance(attribute, str):
        return None
    module, _, name = attribute.rpartition(".")
    roots = [
        "",
        "src/",
        *(f"{each.value}/" for each in project.texts("tool", "setuptools", "packages", "find", "where")),
    ]
    for root in roots:
        path = root + module.replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if found := _in_python(tree, file, name):
                return found
    return None


def _in_python(tree: SourceTree, path: str, *names: str) -> Found | None:
    """A version that a Python file assigns as a plain text."""
    path = path.removeprefix("./")
    known = constants(parse_python(tree.text(path)))
    for name in names or _NAMES:
        if (found := text_of(known.get(name), known)) is not None:
            return Found(value=found[0], file=path, line=found[1])
    return None


def _whole_file(tree: SourceTree, path: object) -> Found | None:
    first = path[0] if isinstance(path, list) and len(path) == 1 else path
    text = tree.text(first).strip() if isinstance(first, str) else ""
    return Found(value=text, file=str(first)) if text and "\n" not in text else None


def _by_expression(tree: SourceTree, project: PyProject) -> Found | None:
    """A version that scikit-build-core finds by an expression; the usual one, as a stranger's may take for ever."""
    table = project.table("tool", "scikit-build", "metadata", "version")
    path = table.get("input")
    if table.get("provider") != "scikit_build_core.metadata.regex" or not isinstance(path, str):
        return None
    if path.endswith(".py"):
        return _in_python(tree, path)
    text = tree.text(path)
    found = re.search(r"(?i)^.{0,80}version\b.{0,20}?\b(\d+(?:\.\d+)+[a-z0-9.]*)", text, re.MULTILINE)
    return Found(value=found[1], file=path, line=line_at(text, found.start(1))) if found else None


def _plain(requirement: str) -> str:
    """The normalised name that a requirement begins with."""
    name = re.match(r"[A-Za-z0-9._-]*", requirement.strip())
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
