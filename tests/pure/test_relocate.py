"""Search paths computed from the closure of needed and opened libraries."""

from __future__ import annotations

from axletree.binary.elf.edit import ElfChange
from axletree.binary.elf.facts import ElfFacts
from axletree.package.libraries.loading import find_library, follow_loading
from axletree.package.libraries.providers import Provider
from axletree.package.libraries.relocate import PathPlan, plan_search_paths


def elf(*needed: str, rpath: str = "", runpath: str = "", soname: str | None = None, dynamic: bool = True) -> ElfFacts:
    return ElfFacts(
        bits=64,
        order="little",
        kind="shared",
        machine=62,
        dynamic=dynamic,
        soname=soname,
        needed=needed,
        rpath=tuple(rpath.split(":")) if rpath else (),
        runpath=tuple(runpath.split(":")) if runpath else (),
    )


SYSTEM = {"libc.so.6", "libm.so.6"}
NVIDIA = (
    Provider(
        name="cublas",
        distributions=("nvidia-cublas",),
        sonames=("libcublas.so*",),
        folders=("nvidia/cu13/lib", "nvidia/cublas/lib"),
    ),
    Provider(name="cudnn", distributions=("nvidia-cudnn-cu13",), sonames=("libcudnn*",), folders=("nvidia/cudnn/lib",)),
    Provider(name="driver", kind="driver", sonames=("libcuda.so.1",)),
)
FILES = {
    "torch/_C.so": elf("libtorch_python.so", "libc.so.6"),
    "torch/lib/libtorch_python.so": elf("libtorch_cuda.so", "libc.so.6"),
    "torch_cuda/lib/libtorch_cuda.so": elf("libcublas.so.13", "libcuda.so.1", "libtorch_python.so"),
    "torch/lib/libdata.so": elf("libc.so.6"),
}


def entries(plans: tuple[PathPlan, ...]) -> dict[str, tuple[str, ...]]:
    return {plan.path: plan.entries for plan in plans}


def test_entries_lead_across_packages() -> None:
    result = plan_search_paths(
        FILES,
        providers=NVIDIA,
        system=SYSTEM,
        dlopens={"libtorch_cuda.so": ("libcudnn.so.9",)},
        present={"nvidia/cu13/lib/libcublas.so.13"},
    )
    assert result.unreached == ()
    assert entries(result.plans) == {
        "torch/_C.so": ("$ORIGIN/lib",),
        "torch/lib/libdata.so": (),
        "torch/lib/libtorch_python.so": ("$ORIGIN/../../torch_cuda/lib",),
        "torch_cuda/lib/libtorch_cuda.so": (
            "$ORIGIN/../../nvidia/cu13/lib",
            "$ORIGIN/../../torch/lib",
            "$ORIGIN/../../nvidia/cudnn/lib",
        ),
    }
    changes = {plan.path: plan.change for plan in result.plans}
    assert changes["torch/lib/libdata.so"] is None
    assert changes["torch/_C.so"] == ElfChange(rpath=("$ORIGIN/lib",), kind="rpath")


def test_without_knowing_where_it_lies_all_folders_of_a_provider_are_searched() -> None:
    plans = plan_search_paths({"a/lib.so": elf("libcublas.so.12")}, providers=NVIDIA).plans
    assert plans[0].entries == ("$ORIGIN/../nvidia/cu13/lib", "$ORIGIN/../nvidia/cublas/lib")
    files = {"a/lib.so": elf("libcublas.so.12", rpath="$ORIGIN/../nvidia/cublas/lib")}
    assert plan_search_paths(files, providers=NVIDIA).plans[0].entries == ("$ORIGIN/../nvidia/cublas/lib",)


def test_existing_entries_stay_once_each() -> None:
    file = elf("libb.so", runpath="/opt/lib:$ORIGIN/../dead:$ORIGIN/../b:$ORIGIN/../b")
    files = {"a/liba.so": file, "b/libb.so": elf(), "c/libc.so": elf()}
    kept = plan_search_paths(files, kind="runpath").plans[0]
    assert (kept.entries, kept.added) == (("/opt/lib", "$ORIGIN/../dead", "$ORIGIN/../b"), ())
    assert kept.change == ElfChange(rpath=kept.entries, kind="runpath")


def test_the_kind_of_each_file_can_stay() -> None:
    files = {"a/liba.so": elf("libb.so", runpath="/opt"), "a/libc.so": elf("libb.so"), "b/libb.so": elf()}
    plans = {plan.path: plan for plan in plan_search_paths(files, kind=None).plans}
    assert plans["a/liba.so"].change == ElfChange(rpath=("/opt", "$ORIGIN/../b"), kind="runpath")
    assert plans["a/libc.so"].change == ElfChange(rpath=("$ORIGIN/../b",), kind="rpath")


def test_libraries_that_were_not_read_are_found_where_they_lie() -> None:
    files = {"a/liba.so": elf("libb.so", "libx.so", rpath="$ORIGIN/../c")}
    unread = ["b/libb.so", "c/libb.so", "b/libd.so", "demo-1.data/scripts/libx.so"]
    result = plan_search_paths(files, unread=unread, dlopens={"liba.so": ["libd.so"]})
    assert entries(result.plans) == {"a/liba.so": ("$ORIGIN/../c", "$ORIGIN/../b")}
    assert [each.soname for each in result.unreached] == ["libx.so"]


def test_what_is_as_it_should_be_does_not_change() -> None:
    files = {"a/liba.so": elf("libb.so", rpath="$ORIGIN"), "a/libb.so": elf()}
    assert [plan.changed for plan in plan_search_paths(files).plans] == [False, False]
    assert plan_search_paths(files, kind="runpath").plans[0].changed


def test_the_copy_that_the_loader_takes_first() -> None:
    two = {"b/libx.so": elf(), "c/libx.so": elf()}
    files = {"a/liba.so": elf("libx.so", rpath="$ORIGIN/../c"), "b/libb.so": elf("libx.so"), **two}
    result = entries(plan_search_paths(files).plans)
    assert result["a/liba.so"] == ("$ORIGIN/../c",)
    assert result["b/libb.so"] == ("$ORIGIN",)


def test_libraries_that_nobody_provides() -> None:
    files = {
        "a/liba.so": elf("libone.so.1", "libtwo.so", "libc.so.6"),
        "b/libone-1234.so": elf("libtwo.so", soname="libone.so.1"),
    }
    one, three, two = plan_search_paths(files, system=SYSTEM, dlopens={"a/liba.so": ("libthree.so",)}).unreached
    assert (one.soname, one.files, one.lookalikes) == ("libone.so.1", ("a/liba.so",), ("b/libone-1234.so",))
    assert (two.soname, two.files) == ("libtwo.so", ("a/liba.so", "b/libone-1234.so"))
    assert (three.soname, three.opened) == ("libthree.so", True)


def test_scripts_and_static_files_have_no_plan() -> None:
    files = {"demo-1.data/scripts/tool": elf("liba.so"), "a/static": elf(dynamic=False)}
    assert plan_search_paths(files).plans == ()


def test_rpath_is_inherited_and_runpath_is_not() -> None:
    files = {
        "bin/app": elf("liba.so", rpath="$ORIGIN/../a:$ORIGIN/../b"),
        "a/liba.so": elf("libb.so"),
        "b/libb.so": elf(),
    }
    loading = follow_loading(files, "bin/app")
    assert [(reach.path, reach.owner, reach.how) for reach in loading.found] == [
        ("a/liba.so", "bin/app", "rpath"),
        ("b/libb.so", "bin/app", "rpath"),
    ]
    files["bin/app"] = elf("liba.so", runpath="$ORIGIN/../a:$ORIGIN/../b")
    assert follow_loading(files, "bin/app").missing == (("libb.so", "a/liba.so"),)
    files["bin/app"] = elf("liba.so", rpath="$ORIGIN/../a:$ORIGIN/../b")
    files["a/liba.so"] = elf("libb.so", runpath="$ORIGIN")
    assert follow_loading(files, "bin/app").missing == (("libb.so", "a/liba.so"),)


def test_rpath_beside_runpath_is_ignored() -> None:
    files = {"a/liba.so": elf("libb.so", rpath="$ORIGIN/../b", runpath="$ORIGIN"), "b/libb.so": elf()}
    assert find_library(files, "a/liba.so", "libb.so") is None
    files["c/libc.so"] = elf("libb.so")
    assert find_library(files, "c/libc.so", "libb.so", loaders=("a/liba.so",)) is None


def test_what_is_loaded_is_found_by_name_and_soname() -> None:
    files = {
        "a/liba.so": elf("libone.so", "libb.so", rpath="$ORIGIN"),
        "a/libone.so": elf(soname="libuno.so"),
        "a/libb.so": elf("libuno.so"),
    }
    loading = follow_loading(files, "a/liba.so")
    assert [reach.path for reach in loading.found] == ["a/libone.so", "a/libb.so"]
    assert loading.missing == ()
    assert find_library(files, "a/libb.so", "libuno.so") is None


def test_files_of_others_count_where_they_are_known() -> None:
    files = {"a/liba.so": elf("libx.so", "liby.so", rpath="$ORIGIN/../x:/opt/y:relative:")}
    present = {"x/libx.so", "/opt/y/liby.so"}
    places = [find_library(files, "a/liba.so", name, present=present) for name in ("libx.so", "liby.so")]
    assert [place and place.path for place in places] == ["x/libx.so", "/opt/y/liby.so"]
    assert [each[0] for each in follow_loading(files, "a/liba.so").missing] == ["libx.so", "liby.so"]
