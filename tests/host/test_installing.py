"""Which command lines install what a run published: run as printed, where others have files of the same names."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest
import rattler
from rattler.index import index_fs

from axletree.app.installing import install_commands, wanted
from axletree.core.records import StageRecord
from axletree.core.values import Key, digest_of
from axletree.plan.actions.listing import ListedFile, ListingFacts
from axletree.plan.actions.pack import WheelParameters
from axletree.plan.actions.pack_conda import CondaParameters
from axletree.plan.packaging import root_of
from support.clients import CLIENTS, put_root, rival, run_printed, who
from support.conda import demo, put
from support.index_server import make_wheel
from support.requests import ingredients_of
from support.targets import plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.values import StageId
    from axletree.plan.graph import PlannedStage
    from axletree.view.report_data import InstallCommand

MINOR = sys.version_info[1]
HERE, NEXT = f"3.{MINOR}", f"3.{MINOR + 1}"
RECIPE = f"""\
name = "ferry"
version = "1.2.0"
[source]
path = "src"
[axes]
python = ["{HERE}", "{NEXT}"]
blas = ["mkl", "openblas"]
[environments.build]
axes = ["python"]
[stages.lib]
action = "run"
commands = ["make"]
[stages.build]
action = "run"
axes = ["python", "blas"]
environment = "build"
commands = ["make"]
[packages.libferry]
from = "lib"
formats = FORMATS
[packages.ferry]
from = "build"
formats = FORMATS
local = "{{blas}}"
requires = ["libferry=={{version}}", "foreign>=1"]
[packages.ferry-mkl]
formats = FORMATS
when = {{ blas = "mkl" }}
requires = ["ferry=={{version}}"]
[packages.ferry-openblas]
formats = FORMATS
when = {{ blas = "openblas" }}
requires = ["ferry=={{version}}"]
"""
SMALL = f"""\
name = "ferry"
version = "1.2.0"
[source]
path = "src"
[axes]
python = ["{HERE}", "{NEXT}"]
[environments.build]
axes = ["python"]
[stages.build]
action = "run"
axes = ["python"]
environment = "build"
commands = ["make"]
[packages.ferry]
from = "build"
requires = ["libferry==2.0", "buoy[deep]", "foreign>=1"]
"""
"""What it requires was built by others, into the same root."""


def file_of(stage: PlannedStage, root: Path) -> str:
    """What a stage packs, put into a root; its name there."""
    parameters = stage.step.parameters
    if isinstance(parameters, CondaParameters):
        conda = parameters.conda
        return f"conda/linux-64/{parameters.called}-{conda.version}-{conda.build}.conda"
    assert isinstance(parameters, WheelParameters)
    python = f"cp{stage.step.axes['python'].replace('.', '')}" if "python" in stage.step.axes else ""
    tag = f"{python}-{python}-linux_x86_64" if python else "py3-none-any"
    about = parameters.package
    filename, data = make_wheel(about.name, about.version, tag=tag, requires=about.requires, body="who = 'ours'\n")
    root.mkdir(parents=True, exist_ok=True)
    (root / filename).write_bytes(data)
    return filename


def commands(
    folder: Path, formats: str = '["wheel"]', *, without: str = "nothing", recipe: str = RECIPE
) -> list[InstallCommand]:
    plan = plan_of(recipe.replace("FORMATS", formats), platform="linux-x86_64", conda_names={"ferry": "py-ferry"})
    published: dict[StageId, StageRecord] = {}
    for stage in plan.stages.values():
        if stage.action in ("index", "channel") and without not in stage.id:
            root = root_of(stage)
            packed = [need for name, need in stage.needs.items() if name.startswith(("wheel:", "conda:"))]
            names = [file_of(plan.stages[need], folder / root) for need in packed]
            files = tuple(ListedFile(filename=name, sha256=digest_of(b""), size=0) for name in names)
            facts = ListingFacts(kind="channel" if stage.action == "channel" else "index", root=root, files=files)
            published[stage.id] = StageRecord(
                stage=stage.id,
                key=Key("0" * 64),
                tree=digest_of(b""),
                ingredients=ingredients_of(),
                facts=msgspec.to_builtins(facts),
            )
    return list(install_commands(folder, wanted(plan, published)))


def of(client: str, found: list[InstallCommand], *, what: str = "") -> str:
    """The command for a client, for this Python."""
    tool = "uv" if client == "uv" else "pip"
    return next(each.command for each in found if each.tool == tool and what in each.what)


def url(folder: Path, *files: str) -> list[str]:
    return [(folder / file).as_uri() for file in files]


def test_each_variant_has_a_command_that_names_its_files(tmp_path: Path) -> None:
    found = commands(tmp_path)
    names = [f"py3{minor}-{blas}" for minor in (MINOR, MINOR + 1) for blas in ("mkl", "openblas")]
    assert [(each.tool, each.what) for each in found] == [(tool, name) for name in names for tool in ("pip", "uv")]
    tag = f"cp3{MINOR}-cp3{MINOR}-linux_x86_64"
    ferry, lib, meta = url(
        tmp_path,
        f"ferry-1.2.0+mkl-{tag}.whl",
        "libferry-1.2.0-py3-none-any.whl",
        "ferry_mkl-1.2.0-py3-none-any.whl",
    )
    assert found[0].command == f"pip install 'libferry @ {lib}' 'ferry @ {ferry}' 'ferry-mkl @ {meta}'"
    assert found[1].command == f"uv {found[0].command}"


def test_what_was_not_published_is_not_offered(tmp_path: Path) -> None:
    found = commands(tmp_path, without="mkl]")
    assert {each.what for each in found} == {f"py3{MINOR}-openblas", f"py3{MINOR + 1}-openblas"}
    assert all("%2Bopenblas" in each.command and "mkl" not in each.command for each in found)


@pytest.mark.parametrize("client", CLIENTS)
def test_nobody_elses_file_is_installed(client: str, tmp_path: Path) -> None:
    out = tmp_path / "it's a #1 100% ;é @ [x] $HOME {y}"
    found = commands(out)
    names = [("libferry", "1.2.0"), ("ferry", "1.2.0"), ("ferry", "1.2.0+mkl"), ("ferry-mkl", "1.2.0")]
    against = rival(tmp_path / "rival", *names, ("foreign", "1.5"))
    done = run_printed(of(client, found, what=f"py3{MINOR}-mkl"), client, tmp_path, against)
    assert done.returncode == 0, done.stdout + done.stderr
    assert who(tmp_path) == {"libferry": "ours", "ferry": "ours", "ferry_mkl": "ours", "foreign": "other"}


def test_the_index_and_the_version_alone_let_others_in(tmp_path: Path) -> None:
    """What was printed once; if this fails, the tests around it prove nothing."""
    out = put_root(tmp_path / "ours", [make_wheel("ferry", "1.2.0", body="who = 'ours'\n")])
    command = f"pip install --extra-index-url {(out / 'simple').as_uri()} 'ferry==1.2.0'"
    assert run_printed(command, "pip", tmp_path, rival(tmp_path / "rival", ("ferry", "1.2.0"))).returncode == 0
    assert who(tmp_path) == {"ferry": "other"}


@pytest.mark.parametrize("client", CLIENTS[1:])
def test_what_it_requires_of_the_same_root_is_ours_too(client: str, tmp_path: Path) -> None:
    ours = partial(make_wheel, body="who = 'ours'\n")
    tags = [f"cp3{minor}-cp3{minor}-manylinux_2_17_x86_64" for minor in (MINOR, MINOR + 1)]
    wheels = [ours("libferry", version, tag=tag) for version in ("2.0", "2.1") for tag in tags]
    wheels += [ours("buoy", "3.0", requires=("anchor>=1; extra == 'deep'", "paint; extra == 'new'"))]
    wheels += [ours("anchor", "1.0"), ours("paint", "1.0")]
    out = put_root(tmp_path / "a b#c", wheels)
    found = commands(out, recipe=SMALL)
    names = ("libferry", "2.0"), ("ferry", "1.2.0"), ("buoy", "3.0"), ("anchor", "1.0"), ("foreign", "1.5")
    against = rival(tmp_path / "rival", *names)
    done = run_printed(of(client, found, what=f"py3{MINOR}"), client, tmp_path, against)
    assert done.returncode == 0, done.stdout + done.stderr
    ours_are = dict.fromkeys(("ferry", "libferry", "buoy", "anchor"), "ours")
    assert who(tmp_path) == {**ours_are, "foreign": "other"}


def test_one_command_for_each_python_where_only_a_dependency_tells(tmp_path: Path) -> None:
    tags = [f"cp3{minor}-cp3{minor}-manylinux_2_17_x86_64" for minor in (MINOR, MINOR + 1)]
    out = put_root(tmp_path, [make_wheel("libferry", "2.0", tag=tag) for tag in tags])
    recipe = SMALL.replace('from = "build"\n', "")  # a metapackage, for any Python
    found = [each for each in commands(out, recipe=recipe) if each.tool == "pip"]
    assert [each.what for each in found] == [f"{out.name}, Python {python}, x86_64" for python in (HERE, NEXT)]
    for tag, each in zip(tags, found, strict=True):
        assert f"libferry-2.0-{tag}.whl" in each.command
        assert each.command.count("libferry-") == 1


def test_conda_clients_are_asked_for_the_very_build(tmp_path: Path) -> None:
    channel = (tmp_path / "conda").as_uri()
    text = RECIPE.partition("[packages.ferry-openblas]")[0]
    found = [each.command for each in commands(tmp_path, '["conda"]', recipe=text) if each.what == f"py3{MINOR}-mkl"]
    assert len(found) == 3
    wanted = found[0].removeprefix(f"conda install --strict-channel-priority -c '{channel}' ")
    assert [spec.split("=")[:2] for spec in wanted.split()] == [
        ["'libferry", "1.2.0"],
        ["'py-ferry", "1.2.0"],
        ["'ferry-mkl", "1.2.0"],
    ]
    assert found[1:] == [
        f"micromamba install --strict-channel-priority -c '{channel}' {wanted}",
        f"pixi workspace channel add --prepend '{channel}' && pixi add {wanted}",
    ]


def test_a_conda_client_takes_ours_from_two_channels(tmp_path: Path) -> None:
    ours, other = tmp_path / "our #1" / "conda", tmp_path / "other"
    put(ours, demo(name="py-ferry", version="1.2.0", build="h1_0", depends=("libferry >=1",)), [])
    put(ours, demo(name="libferry", version="1.2.0", build="h1_0"), [])
    for name, version, build in [
        ("py-ferry", "1.2.0", "h9_9"),
        ("py-ferry", "1.2.0.1", "h1_0"),
        ("libferry", "3.0", "x_0"),
    ]:
        put(other, demo(name=name, version=version, build=build, depends=()), [])

    async def solve() -> list[rattler.RepoDataRecord]:
        for channel in (ours, other):
            await index_fs(channel)
        channels = [rattler.Channel(channel.as_uri()) for channel in (ours, other)]
        return await rattler.solve(
            channels, [rattler.MatchSpec("py-ferry=1.2.0=h1_0")], platforms=["linux-64", "noarch"]
        )

    taken = asyncio.run(solve())
    assert {each.name.normalized: str(each.channel).rstrip("/") for each in taken} == dict.fromkeys(
        ("py-ferry", "libferry"), ours.as_uri()
    )
