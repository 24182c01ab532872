"""A tree of PyTorch's shape, relocated: it imports and can be linked to with its build and its system out of sight."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

from axletree.app.audit import Promises, audit_paths
from axletree.binary.elf.facts import is_elf, read_elf
from axletree.core.errors import StageError
from axletree.core.records import StageRecord
from axletree.core.values import Digest
from axletree.host.conda import read_conda
from axletree.host.conda_channel import make_channel
from axletree.host.conda_install import CLOBBERED, solve_and_install
from axletree.package.conda.check import clobbers
from axletree.plan.actions.relocate import RelocateFacts
from axletree.plan.actions.spec import facts_of
from axletree.store.store import Store
from support.clean_host import run_clean
from support.conda import demo, index, put, text
from support.elfs import need, printed, run
from support.tiny import pythons
from support.wagon import ANSWER, CONSUMER, make_wagon

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.binary.elf.facts import ElfFacts
    from support.tiny import Tiny

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("relocation")]
WHEELS = "307 42\n"
USE = "import wagon; print(wagon.wheels(), wagon.extra())"


class Built(NamedTuple):
    """The project after a build."""

    wagon: Tiny
    trees: dict[str, str]
    """Stage -> digest of its tree."""
    facts: dict[str, RelocateFacts]
    """Relocation -> what its record tells."""
    folder: Path

    def lay_out(self, folder: Path, *stages: str) -> Path:
        """The trees of some stages in one folder."""
        store = Store.open(self.wagon.store)
        for number, stage in enumerate(stages):
            part = folder.with_name(f"{folder.name}-{number}")
            store.materialise(Digest(self.trees[stage]), part)
            subprocess.run(["cp", "-a", f"{part}/.", f"{folder}/"], check=True)
        return folder

    @property
    def hidden(self) -> tuple[Path, ...]:
        """What a user's machine does not have: the store with all folders of the build, the project, the depot."""
        return (self.wagon.store, self.wagon.folder, self.folder / "depot")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("wagon")
    wagon = make_wagon(folder)
    trees = {name.partition("[")[0]: tree for name, tree in wagon.built().trees.items()}
    found = [path.read_bytes() for path in (wagon.store / "results").rglob("*.json")]
    records = [msgspec.json.decode(data, type=StageRecord) for data in found]
    facts = {
        record.stage.partition("[")[0]: facts_of(record, RelocateFacts)
        for record in records
        if record.ingredients.action.name == "relocate"
    }
    (folder / "local").mkdir()
    interpreter = pythons()[wagon.versions[0]]
    make_channel(folder / "local", interpreter=interpreter, python=wagon.versions[0], wheels=[], names={})
    return Built(wagon, trees, facts, folder)


def elfs(folder: Path) -> dict[str, ElfFacts]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    heads = {path: path.read_bytes() for path in files}
    return {str(path.relative_to(folder)): read_elf(data) for path, data in heads.items() if is_elf(data[:4])}


def python(built: Built) -> str:
    return pythons()[built.wagon.versions[0]].path


def test_each_library_is_there_once_under_its_plain_name(built: Built, tmp_path: Path) -> None:
    found = elfs(built.lay_out(tmp_path / "site", "libwagon-tree", "wagon-tree"))
    libraries = {path for path in found if path.startswith("libwagon/lib/")}
    hashed = {path for path in libraries if "-" in path.rpartition("/")[2]}
    names = ("libwagon.so", "libwagon_core.so", "libwagon_cpu.so", "libwagon_extra.so", "libwagon_python.so")
    assert libraries - hashed == {f"libwagon/lib/{name}" for name in names}
    assert [path.rpartition("/")[2].partition("-")[0] for path in sorted(hashed)] == ["libplank", "librivet"]
    for path in libraries:
        assert found[path].soname == path.rpartition("/")[2]
        inside = {name for name in found[path].needed if name.startswith(("libwagon", "libplank", "librivet"))}
        assert inside <= {name.rpartition("/")[2] for name in libraries}
    assert built.facts["wagon-tree"].saved > 0


def test_search_paths_are_minimal_and_patchelf_reads_them_so(built: Built, tmp_path: Path) -> None:
    site = built.lay_out(tmp_path / "site", "libwagon-tree", "wagon-tree")
    before = built.lay_out(tmp_path / "before", "bind")
    (extension,) = site.glob("wagon/_C*.so")
    (original,) = before.glob("wagon/_C*.so")
    assert read_elf(original.read_bytes()).runpath[0].startswith("/")
    assert printed(extension)[1] == "$ORIGIN/../libwagon/lib"
    assert printed(site / "libwagon/lib/libwagon_python.so")[1] == "$ORIGIN"
    assert printed(site / "libwagon/lib/libwagon_core.so")[1] == ""
    assert printed(site / "libwagon/lib/libwagon_extra.so")[1] == "$ORIGIN"
    assert printed(site / "libwagon/bin/wagon_manager")[1] == "$ORIGIN/../lib"
    cut = built.facts["wagon-tree"].cut
    assert str(built.folder / "depot" / "lib") in cut
    assert (
        sum(entry.startswith((f"{built.wagon.store}/", "/axletree/store/")) for entry in cut) == 2
    )  # of the environment, of the input


def test_shared_grafts_lie_in_the_tree_that_all_pythons_share(built: Built) -> None:
    grafts = {graft.soname: graft for graft in built.facts["libwagon-tree"].grafts}
    assert list(grafts) == ["libplank.so.3", "librivet.so.2"]
    assert built.facts["wagon-tree"].grafts == ()
    plank = built.folder / "depot" / "lib" / "libplank.so.3"
    assert grafts["libplank.so.3"].origin == str(plank)
    assert grafts["libplank.so.3"].size == plank.stat().st_size


def test_the_bill_names_what_was_taken_in(built: Built, tmp_path: Path) -> None:
    site = built.lay_out(tmp_path / "site", "libwagon-tree")
    bill = json.loads((site / "libwagon" / "lib" / "grafts.cdx.json").read_bytes())
    found = {part["name"]: part for part in bill["components"]}
    assert set(found) == {"libplank.so.3", "librivet.so.2"}
    (place,) = found["libplank.so.3"]["evidence"]["occurrences"]
    assert (site / place["location"]).is_file()
    assert bill["metadata"]["component"]["name"] == "libwagon"


def test_the_bill_goes_with_what_was_taken_in(built: Built, tmp_path: Path) -> None:
    """In a wheel where scanners look for it; in an archive and a conda package where the libraries lie."""
    libraries = {"libplank.so.3", "librivet.so.2"}
    (wheel,) = built.wagon.out.glob("libwagon-*.whl")
    run("unzip", "-q", wheel, "-d", tmp_path / "wheel")
    assert not list((tmp_path / "wheel").rglob("grafts.cdx.json"))
    (papers,) = (tmp_path / "wheel").glob("*.dist-info/sboms/*")
    assert all((tmp_path / "wheel" / path).is_file() for path in places(papers, libraries))
    for layout in ("zip", "conda"):
        root = place_of(built, layout, tmp_path / layout)
        paths = places(root / "lib" / "wagon" / "grafts.cdx.json", libraries)
        assert {path.rpartition("/")[0] for path in paths} == {"lib/wagon"}
        assert all((root / path).is_file() for path in paths)
    (binding,) = built.wagon.out.glob("wagon-*.whl")
    assert "sboms" not in run("unzip", "-l", binding)


def places(bill: Path, libraries: set[str]) -> list[str]:
    """Where a bill that names just these libraries says that they lie."""
    parts = {part["name"]: part for part in json.loads(bill.read_bytes())["components"]}
    assert set(parts) == libraries
    return [each["location"] for part in parts.values() for each in part["evidence"]["occurrences"]]


def test_it_imports_on_a_clean_host_and_the_tree_before_does_not(built: Built, tmp_path: Path) -> None:
    site = built.lay_out(tmp_path / "site", "libwagon-tree", "wagon-tree")
    printed = run_clean(python(built), "-c", USE, hide=built.hidden, environ={"PYTHONPATH": str(site)})
    assert printed == WHEELS
    before = built.lay_out(tmp_path / "before", "bind")
    trouble = run_clean(python(built), "-c", USE, hide=built.hidden, environ={"PYTHONPATH": str(before)}, fails=True)
    assert "libwagon_cpu.so.2.6: cannot open shared object file" in trouble


def installed(built: Built, folder: Path) -> Path:
    """Where wheels of our index put the files."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--target",
        str(folder),
    ]
    source = ["--python-version", built.wagon.versions[0], "--only-binary=:all:", "--no-cache-dir"]
    index = ["--index-url", (built.wagon.out / "simple").as_uri()]
    subprocess.run([*command, *source, *index, "wagon"], check=True, cwd=built.folder)
    return folder


def test_it_imports_from_our_wheels_on_a_clean_host(built: Built, tmp_path: Path) -> None:
    site = installed(built, tmp_path / "site-packages")
    tell = f"{USE}; print(wagon.cmake_prefix_path)"
    printed = run_clean(python(built), "-c", tell, hide=built.hidden, environ={"PYTHONPATH": str(site)})
    assert printed == f"{WHEELS}{site / 'libwagon' / 'share' / 'cmake'}\n"


def test_it_imports_from_one_prefix_on_a_clean_host(built: Built, tmp_path: Path) -> None:
    prefix = built.lay_out(tmp_path / "prefix", "libwagon-prefix", "wagon-prefix")
    (site,) = prefix.glob("lib/python*/site-packages")
    printed = run_clean(python(built), "-c", USE, hide=built.hidden, environ={"PYTHONPATH": str(site)})
    assert printed == WHEELS
    names = {path.name for path in (prefix / "lib").glob("libwagon*")}
    versions = {"libwagon.so.2.6", "libwagon_core.so.2.6", "libwagon_cpu.so.2.6", "libwagon_python.so.2.6"}
    assert names == {*versions, "libwagon_extra.so"}
    assert {path.name.partition("-")[0] for path in (prefix / "lib" / "wagon").glob("*.so*")} == {
        "libplank",
        "librivet",
    }


def conda_environment(built: Built, prefix: Path, *specs: str, beside: tuple[Path, ...] = ()) -> Path:
    """An environment of our packages, and of those in other channels."""
    solve_and_install(
        prefix,
        specs,
        channels=[built.wagon.out / "conda", built.folder / "local" / "conda", *beside],
        subdir="linux-64",
        cache=built.folder / "cache",
        environ={"PATH": "/usr/bin:/bin", "HOME": str(built.folder)},
    )
    return prefix


def place_of(built: Built, layout: str, folder: Path) -> Path:
    """A package for C++ users in a layout: the folder that ``CMAKE_PREFIX_PATH`` names."""
    match layout:
        case "tree":
            return built.lay_out(folder, "libwagon-tree") / "libwagon"
        case "site-packages":
            return installed(built, folder) / "libwagon"
        case "zip":
            (archive,) = built.wagon.out.glob("*.zip")
            run("unzip", "-q", archive, "-d", folder)
            return folder / "libwagon-cxx"
        case _:
            return conda_environment(built, folder, "libwagon-cxx")


@pytest.mark.parametrize("layout", ["tree", "site-packages", "conda", "zip"])
def test_a_cxx_program_is_configured_linked_and_run_on_a_clean_host(built: Built, layout: str, tmp_path: Path) -> None:
    need("unzip")
    place = place_of(built, layout, tmp_path / "package")
    for name, content in CONSUMER.items():
        (tmp_path / name).write_text(content)
    build = tmp_path / "build"
    prefix = f"-DCMAKE_PREFIX_PATH={place}"
    run_clean("cmake", "-G", "Ninja", "-S", tmp_path, "-B", build, prefix, hide=built.hidden)
    run_clean("cmake", "--build", build, hide=built.hidden)
    assert run_clean(build / "consumer", hide=built.hidden) == ANSWER
    assert run_clean(place / "bin" / "wagon_manager", hide=built.hidden) == ANSWER


class Beside(NamedTuple):
    """An environment in which our conda packages lie beside others."""

    built: Built
    prefix: Path
    neighbours: Path

    @property
    def site(self) -> Path:
        """Our package in site-packages."""
        (found,) = self.prefix.glob("lib/python*/site-packages/wagon")
        return found


@pytest.fixture(scope="module")
def beside(built: Built) -> Beside:
    neighbours = built.folder / "neighbours"
    put(neighbours, demo(name="fmt", version="11.0"), [text("include/fmt/core.h", b"#define FMT_OF_A_NEIGHBOUR\n")])
    put(neighbours, demo(name="cart"), [text("include/cart/core.h"), text("lib/libcart.so.1")])
    index(neighbours)
    wanted = ("wagon", "fmt", "cart", "python")
    prefix = conda_environment(built, built.folder / "beside", *wanted, beside=(neighbours,))
    return Beside(built, prefix, neighbours)


def test_conda_packages_share_no_path_with_their_neighbours(beside: Beside) -> None:
    folders = (beside.built.wagon.out, beside.built.folder / "local", beside.neighbours)
    facts = {facts.name: facts for folder in folders for facts in map(read_conda, sorted(folder.rglob("*.conda")))}
    assert {"wagon", "libwagon-cxx", "fmt", "cart", "libstdcxx", "python"} <= facts.keys()
    assert clobbers(list(facts.values())) == ()
    assert not (beside.prefix / CLOBBERED).exists()
    ours = sorted((beside.built.wagon.out / "conda").rglob("*.conda"))
    for report in audit_paths(ours, Promises(neighbours=beside.neighbours)):
        assert [each for each in report.findings if each.rule.startswith("conda/")] == []
        assert report.compared[1:] == ("all paths of 2 packages",)
    index = facts["libwagon-cxx"].index
    assert index is not None
    assert any(spec.startswith("libstdcxx >=") for spec in index.depends), index.depends


def test_headers_of_both_are_there(beside: Beside) -> None:
    assert "FMT_OF_A_NEIGHBOUR" in (beside.prefix / "include/fmt/core.h").read_text()
    assert "VENDORED_IN_WAGON" in (beside.prefix / "include/libwagon/fmt/core.h").read_text()
    assert "VENDORED_IN_WAGON" in (beside.site / "include/fmt/core.h").read_text(), "as in a wheel"
    assert (beside.site / "include/wagon").is_symlink()
    assert (beside.site / "lib/libwagon.so.2.6").resolve() == beside.prefix / "lib/libwagon.so.2.6"
    assert (beside.site / "share/cmake").resolve() == beside.prefix / "share/cmake"
    assert not list((beside.site / "lib").glob("python*")), "no link to the folder that it is in"


@pytest.mark.parametrize("place", ["prefix", "site-packages"])
def test_a_consumer_is_built_beside_the_neighbours(beside: Beside, tmp_path: Path, place: str) -> None:
    for name, content in CONSUMER.items():
        (tmp_path / name).write_text(content)
    guard = "\n#ifndef FMT_OF_A_NEIGHBOUR\n#error the environment's own headers come first\n#endif\n"
    (tmp_path / "consumer.cpp").write_text(CONSUMER["consumer.cpp"] + (guard if place == "prefix" else ""))
    root = beside.prefix if place == "prefix" else beside.site
    build, hide = tmp_path / "build", beside.built.hidden
    run_clean("cmake", "-G", "Ninja", "-S", tmp_path, "-B", build, f"-DWagon_DIR={root}/share/cmake/Wagon", hide=hide)
    run_clean("cmake", "--build", build, hide=hide)
    assert run_clean(build / "consumer", hide=hide) == ANSWER


def test_python_uses_the_links_of_the_environment(beside: Beside) -> None:
    assert run_clean(beside.prefix / "bin" / "python", "-c", USE, hide=beside.built.hidden) == WHEELS


def test_activation_sets_variables_and_deactivation_takes_them_back(beside: Beside) -> None:
    def bash(commands: str, **environ: str) -> str:
        scripts = f"{beside.prefix}/etc/conda"
        source = '{ for each in %s/%s.d/*.sh; do . "$each"; done; }'
        functions = [f"{name}() {source % (scripts, name)}" for name in ("activate", "deactivate")]
        tell = 'tell() { echo "${WAGON_GAUGE-unset} ${WAGON_GAUGE_BACKUP-unset}"; }'
        script = "\n".join(["set -eu", *functions, tell, commands])
        return subprocess.run(["bash", "-c", script], env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout

    once = "activate; tell; deactivate; tell"
    assert bash(once) == "it's 2.6.0 NOT_SET\nunset unset\n"
    assert bash(once, WAGON_GAUGE="mine") == "mine unset\nmine unset\n", "what the user has set stays"
    assert bash(once, WAGON_GAUGE="") == " unset\n unset\n", "an empty value is a value"
    assert bash(f"activate; {once}") == "it's 2.6.0 NOT_SET\nunset unset\n"


def test_a_neighbour_with_a_file_of_ours_is_not_installed_in_silence(beside: Beside, tmp_path: Path) -> None:
    channel = tmp_path / "channel"
    put(channel, demo(name="coach"), [text("include/wagon/core.h", b"// a coach\n")])
    index(channel)
    names = r"include/wagon/core\.h \(coach and libwagon-cxx\)"
    with pytest.raises(StageError, match=rf"1 files are in two packages each, .*{names}"):
        conda_environment(beside.built, tmp_path / "prefix", "libwagon-cxx", "coach", beside=(channel,))


def test_a_second_build_has_nothing_to_do_and_a_changed_library_is_noticed(built: Built) -> None:
    assert built.wagon.built().stages("done") == set()
    rivet = built.folder / "depot" / "lib" / "librivet.so.2"
    rivet.write_bytes(rivet.read_bytes() + b"\0")
    plan = built.wagon.plan()
    assert plan["libwagon"]["status"] == "cached"
    assert plan["libwagon-tree"]["status"] == "run"
    assert "librivet.so.2" in " ".join(plan["libwagon-tree"]["why"])
