"""A project -> a recipe that builds it, with a comment where a line does not speak for itself."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from axletree.core.units import some_of
from axletree.package.project.needs import holds_here, name_of
from axletree.recipe.faults import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.project.model import Asked, Project

_WIDTH = 118
_SHOWN = 6
NO_VERSION = "0.dev0"
"""What a recipe says where no version was found."""
_RELOCATED = "relocated"
_CPU_SWITCHES = ("FORCE_ONLY_CPU", "FORCE_CPU", "CPU_ONLY")
_CUDA_SWITCHES = ("FORCE_CUDA",)
_COMPILERS = {"cuda": "nvcc", "rocm": "hipcc"}


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What a project's files can't tell."""

    source: tuple[tuple[str, str | bool | tuple[str, ...]], ...]
    """Keys of the recipe's ``source``."""
    origin: str
    """What was read, for the first line."""
    pythons: tuple[str, ...]
    torch: str | None = None
    """Version of PyTorch that it is compiled against."""
    gpu: str = "cpu"
    world: str = "cpu"
    """The backend that owns ``gpu``: ``cpu``, ``cuda``, ``rocm``."""
    programs: frozenset[str] = frozenset()
    """Programs that this host has."""
    rustup: str = ""
    """Folder of rustup's toolchains, where this host's Rust is rustup's."""


class _Writer:
    """Lines of a recipe; comments stand behind a line, or above one that is long."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def key(self, key: str, value: object, comment: str = "") -> None:
        line, note = f"{key} = {_toml(value)}", f"# {visible(comment)}" if comment else ""
        if note and len(line) + 2 + len(note) > _WIDTH:
            self.lines += textwrap.wrap(note, _WIDTH, subsequent_indent="# ", break_on_hyphens=False)
            note = ""
        self.lines.append(f"{line}  {note}".rstrip())

    def add(self, *lines: str) -> None:
        self.lines += lines


def render_recipe(project: Project, choices: Choices) -> str:
    """The text of a recipe.

    Args:
        project: What is known of the project.
        choices: What the user or this host adds to it.
    """
    writer = _Writer()
    name = canonicalize_name(project.name.value)
    stated = project.version.stated
    version = stated.value if stated is not None else NO_VERSION
    shared = _is_shared(project, choices)
    axes = () if shared else ("python", "gpu", "torch") if choices.torch else ("python",)
    writer.add(f"# Read from {visible(choices.origin)} by `axletree init`; comments say where a line comes from.")
    writer.key("name", name, "" if name == project.name.value else f"{project.name.value} in {project.name.place}")
    writer.key("version", version, stated.place if stated is not None else "not found; enter it here")
    for key, value in choices.source:
        writer.key(f"source.{key}", value)
    writer.key("axes.python", choices.pythons, _pythons(project, shared=shared))
    if choices.torch:
        writer.key("axes.gpu", (choices.gpu,))
        writer.key(
            "axes.torch",
            (choices.torch,),
            f"compiled against it: {project.gpu.torch.place}" if project.gpu.torch else "",
        )
    writer.add("")
    _environments(writer, project, choices, shared=shared, axes=axes)
    _package(writer, project, choices, name)
    _stage(writer, project, choices, axes)
    _relocation(writer, project, axes, name)
    _test(writer, project, name)
    _remarks(writer, project, choices)
    return "\n".join(writer.lines) + "\n"


def missing_programs(project: Project, programs: frozenset[str]) -> tuple[Asked, ...]:
    """What the backend asks for beyond the declared requirements, unless the host has it."""
    return tuple(each for each in project.asked if not each.program or each.program not in programs)


def _is_shared(project: Project, choices: Choices) -> bool:
    """Whether one wheel is for all Pythons that are asked for."""
    if choices.torch or any(python.endswith("t") for python in choices.pythons):
        return False
    if project.stable_abi is None:
        return not project.compiles
    oldest = project.stable_abi.value or "3.2"
    return all(_number(python) >= _number(oldest) for python in choices.pythons)


def _number(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.removesuffix("t").split("."))


def _pythons(project: Project, *, shared: bool) -> str:
    said = project.requires_python
    parts = (
        [f"it supports {said.value} ({said.place})"]
        if said
        else ["the project does not say which versions it supports"]
    )
    if shared and project.stable_abi is not None:
        parts.append(f"one wheel for all: stable ABI, {project.stable_abi.place}")
    elif shared:
        parts.append("one wheel for all: nothing is compiled")
    return "; ".join(parts)


def _environments(writer: _Writer, project: Project, choices: Choices, *, shared: bool, axes: tuple[str, ...]) -> None:
    torch = ("torch=={torch}+{gpu}",) if choices.torch else ()
    declared = [each for each in project.requires if _counts(each.value, choices)]
    asked = [each for each in missing_programs(project, choices.programs) if _counts(each.requirement, choices)]
    if choices.torch and project.gpu.plain_setuptools is None and "ninja" not in choices.programs:
        torch = (*torch, "ninja")
    requires = [*torch, *(_literal(each.value) for each in declared), *(_literal(each.requirement) for each in asked)]
    places = dict.fromkeys(each.place for each in declared)
    notes = [some_of([*places], 2), *(f"{name_of(each.requirement)}: {each.why}" for each in asked)]
    writer.key("environments.build.requires", tuple(dict.fromkeys(requires)), "; ".join(filter(None, notes)))
    if shared:
        writer.key("environments.build.axes", ())
        writer.key("environments.build.python", min(choices.pythons, key=_number))
    elif axes != ("python",):
        writer.key("environments.build.axes", axes)
    run = [each for each in project.run_requires if _counts(each.value, choices)]
    tested = [*torch[:1], *(_literal(each.value) for each in run)]
    place = some_of([*dict.fromkeys(each.place for each in run)], 2)
    writer.key("environments.test.requires", tuple(tested), f"what the wheel requires: {place}" if run else "")
    if choices.torch:
        writer.key("environments.test.axes", axes)


def _counts(requirement: str, choices: Choices) -> bool:
    """Whether a requirement is for this system and these Pythons, and not PyTorch, which has an axis."""
    of_torch = choices.torch is not None and name_of(requirement) == "torch"
    return not of_torch and holds_here(requirement, choices.pythons)


def _package(writer: _Writer, project: Project, choices: Choices, name: str) -> None:
    writer.key(f"packages.{name}.from", _RELOCATED if project.linked else "build")
    if not choices.torch:
        return
    writer.key(f"packages.{name}.local", "torch.{torch.minor}.{gpu}")
    writer.key(f"packages.{name}.requires", ("torch=={torch}",), "its C++ ABI changes with each release")
    writer.key(f"packages.{name}.index", "torch-{torch.minor}/{gpu}")
    writer.key(f"packages.{name}.provided-by.torch", ("libc10*.so", "libtorch*.so"))


def _stage(writer: _Writer, project: Project, choices: Choices, axes: tuple[str, ...]) -> None:
    writer.add("", "[stages.build]")
    writer.key("action", "build", f"{project.backend_at.value} ({project.backend_at.place})")
    if axes:
        writer.key("axes", axes)
    writer.key("environment", "build")
    tools = dict(_tools(project, choices))
    if tools:
        writer.key("tools", tuple(tools), "; ".join(dict.fromkeys(filter(None, tools.values()))))
    variables = {name: (value, why) for name, value, why in _variables(project, choices)}
    if variables:
        writer.key(
            "env",
            {name: value for name, (value, _) in variables.items()},
            "; ".join(why for _, why in variables.values()),
        )
    if choices.torch and project.gpu.plain_setuptools is not None:
        writer.key("parallel", "setuptools", f"the project disables Ninja: {project.gpu.plain_setuptools.place}")


def _tools(project: Project, choices: Choices) -> Iterator[tuple[str, str]]:
    """Programs of the host, and why."""
    for each in project.tools:
        if each.value != "pkg-config" or each.value in choices.programs:
            yield each.value, each.place if each.file else ""
    for asked in project.asked:
        if asked.program and asked.program in choices.programs:
            yield asked.program, asked.why
    if choices.torch and project.gpu.plain_setuptools is None and "ninja" in choices.programs:
        yield "ninja", "torch.utils.cpp_extension compiles with it"
    if choices.world in _COMPILERS and project.gpu.cuda is not None:
        yield _COMPILERS[choices.world], project.gpu.cuda.place


def _variables(project: Project, choices: Choices) -> Iterator[tuple[str, str, str]]:
    """Variables of the build, their values, and why."""
    version = project.version
    if version.variable and not project.is_sdist:
        yield version.variable, "{version}", f"{version.from_git} cannot use git in a stage"
    if project.system_pybind11 is not None:
        why = f"otherwise the host's pybind11 is found before the required one ({project.system_pybind11.place})"
        yield "PKG_CONFIG_LIBDIR", "/none", why
    if choices.rustup and any(each.value == "cargo" for each in project.tools):
        yield (
            "RUSTUP_HOME",
            choices.rustup,
            "Rust on this host comes from rustup, and stages have their own home folder",
        )
    wanted = _CPU_SWITCHES if choices.world == "cpu" else _CUDA_SWITCHES
    for each in project.switches if choices.torch else ():
        if each.value in wanted:
            yield each.value, "1", each.place


def _relocation(writer: _Writer, project: Project, axes: tuple[str, ...], name: str) -> None:
    """A stage that takes in the libraries of the host that the wheel needs."""
    if not project.linked:
        return
    writer.add("", f"[stages.{_RELOCATED}]")
    writer.key("action", "relocate", "copies libraries of this host that the wheel needs")
    if axes:
        writer.key("axes", axes)
    writer.key("inputs", ("build",))
    patterns = tuple(f"lib{each.value}*.so*" for each in project.linked)  # -lpng may be libpng16.so.16
    places = some_of([each.place for each in project.linked], 2)
    writer.key("relocate", {"graft": patterns, "graft-to": f"{name.replace('-', '_')}.libs"}, f"linked: {places}")


def _test(writer: _Writer, project: Project, name: str) -> None:
    modules = {each.value: each.place for each in (*project.imports, *project.compiled)}
    if not modules:
        return
    writer.add("", "[tests.imports]")
    writer.key("packages", (name,))
    writer.key("imports", tuple(modules), some_of([*dict.fromkeys(modules.values())], 2))


def _remarks(writer: _Writer, project: Project, choices: Choices) -> None:
    """What to know, to check or to add."""
    remarks = [f"not known: {sentence}" for sentence in unknown_of(project, choices)]
    if project.test_requires:
        names = dict.fromkeys(each.value.partition(";")[0].strip() for each in project.test_requires)
        shown = some_of([*names], _SHOWN)
        remarks.append(
            f"its own tests need {shown} ({project.test_requires[0].place}); run them with `commands` of a test"
        )
    if remarks:
        writer.add("", *(f"# {visible(remark)}" for remark in remarks))


def unknown_of(project: Project, choices: Choices) -> tuple[str, ...]:
    """What could not be found out, as sentences, once the choices are known."""
    found = list(project.unknown)
    if choices.torch and choices.world == "cuda":
        found.append("for which GPUs: PyTorch compiles for the GPUs of this host unless env has TORCH_CUDA_ARCH_LIST")
        found.append("where the CUDA toolkit is: unless nvcc is in it, env needs CUDA_HOME")
    if choices.torch and choices.world == "rocm":
        found.append("for which GPUs: PyTorch compiles for many GPUs unless env has PYTORCH_ROCM_ARCH")
    return tuple(found)


def _literal(requirement: str) -> str:
    """A requirement as a recipe's text, in which braces are placeholders."""
    return requirement.replace("{", "{{").replace("}", "}}")


def _toml(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(visible(str(value)), ensure_ascii=False)
