"""Where files of a relocated tree go, what changes in its libraries, and what stops it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.elf.edit import ElfChange
from axletree.binary.elf.facts import ElfFacts
from axletree.core.errors import IntegrityError
from axletree.core.trees import Entry, Tree, make_tree
from axletree.core.values import Digest, canonical_json, digest_of
from axletree.package.libraries.graft import GraftCandidate
from axletree.package.libraries.providers import Provider
from axletree.package.relocation.layout import RelocatedTree, lay_out, unversioned
from axletree.package.relocation.linked import folder_links
from axletree.package.relocation.links import LinkChanges, plan_links
from axletree.package.relocation.proof import build_path_problems, loading_problems
from axletree.package.relocation.taken import idle_patterns, taken_in, taken_text
from axletree.package.relocation.texts import edit_texts
from axletree.recipe.relocation import Relocate, RelocateTable, TextEdit

SYSTEM = frozenset({"libc.so.6", "libstdc++.so.6"})
PROVIDERS = (
    Provider(
        name="cublas", distributions=("nvidia-cublas",), sonames=("libcublas.so*",), folders=("nvidia/cublas/lib",)
    ),
    Provider(name="NVIDIA driver", kind="driver", sonames=("libcuda.so.1",)),
    Provider(name="desktop of the machine", kind="host", sonames=("libfreetype.so.*",)),
    Provider(name="MPI of the machine", kind="host", exclusive=True, sonames=("libmpi.so.*",)),
    Provider(name="intel-openmp", distributions=("intel-openmp",), sonames=("libiomp5.so",)),
)


def file(path: str, content: str = "", *, executable: bool = False) -> Entry:
    data = (content or path).encode()
    return Entry(path=path, blob=digest_of(data), size=len(data), executable=executable)


def link(path: str, target: str) -> Entry:
    return Entry(path=path, kind="link", target=target)


def elf(*needed: str, soname: str | None = None, rpath: str = "", runpath: str = "") -> ElfFacts:
    return ElfFacts(
        bits=64,
        order="little",
        kind="shared",
        machine=62,
        dynamic=True,
        soname=soname,
        needed=needed,
        rpath=tuple(rpath.split(":")) if rpath else (),
        runpath=tuple(runpath.split(":")) if runpath else (),
    )


LINKED = make_tree(
    [
        link("torch/lib/libc10.so", "libc10.so.2.6"),
        link("torch/lib/libc10.so.2.6", "libc10.so.2.6.0"),
        file("torch/lib/libc10.so.2.6.0", "c10", executable=True),
        file("torch/include/c10/c10.h"),
        file("torch/__init__.py"),
    ]
)
COPIED = make_tree(
    [
        *(file(f"torch/lib/libc10.so{version}", "c10") for version in ("", ".2.6", ".2.6.0")),
        file("torch/include/c10/c10.h"),
        file("torch/__init__.py"),
    ]
)
C10 = elf("libc.so.6", soname="libc10.so.2.6")
RULES = Relocate(place={"torch/lib": "libtorch/lib"}, single=("torch/lib/lib*.so*",))


def facts_of(tree: Tree, facts: dict[str, ElfFacts]) -> dict[str, ElfFacts]:
    """Facts by path, for each file of a tree whose content is a key."""
    by_blob = {digest_of(name.encode()): found for name, found in facts.items()}
    return {entry.path: by_blob[entry.blob] for entry in tree.entries if entry.blob in by_blob}


def messages(error: pytest.ExceptionInfo[IntegrityError]) -> list[str]:
    return [f"{p.file or ''} {p.key or ''}: {p.message}" for p in error.value.problems]


@pytest.mark.parametrize("tree", [LINKED, COPIED])
def test_links_and_copies_of_a_library_become_one_file(tree: Tree) -> None:
    layout = lay_out(tree, RULES, facts_of(tree, {"c10": C10}))
    assert set(layout.entries) == {"libtorch/lib/libc10.so", "torch/include/c10/c10.h", "torch/__init__.py"}
    assert layout.links == {}
    assert layout.names == {"libc10.so.2.6": "libc10.so", "libc10.so.2.6.0": "libc10.so"}
    assert layout.sonames == {"libtorch/lib/libc10.so": "libc10.so"}
    assert {layout.moved[f"torch/lib/libc10.so{v}"] for v in ("", ".2.6", ".2.6.0")} == {"libtorch/lib/libc10.so"}
    assert layout.folders["torch/lib"] == "libtorch/lib"
    assert layout.saved == (0 if tree is LINKED else 6)


def test_a_folder_that_is_divided_is_known_by_all_its_places() -> None:
    tree = make_tree([file("torch/include/c10/c10.h"), file("torch/include/fmt.h"), file("torch/include/ATen/a.h")])
    place = {"torch": ".", "torch/include": "include/own", "torch/include/c10": "include/c10"}
    layout = lay_out(tree, Relocate(place=place), {})
    assert set(layout.entries) == {"include/c10/c10.h", "include/own/fmt.h", "include/own/ATen/a.h"}
    assert layout.spread == {"torch/include": ("include", "include/own")}
    rest = lay_out(make_tree([file("torch/include/c10/c10.h")]), Relocate(place=place), {})
    assert rest.spread["torch/include"] == ("include",), "nothing is left in its own place"
    other = lay_out(tree, Relocate(place={"torch/include/c10": "include/other"}), {})
    assert other.spread == {}, "under another name it is not found by who includes the folder"


def test_rules_without_links_are_in_keys_as_before() -> None:
    table = RelocateTable(place={"a": "b"}, link={"lib": "b/lib"})
    assert canonical_json(table.rules) == canonical_json(Relocate(place={"a": "b"}))


def test_links_to_the_entries_of_a_folder() -> None:
    site = "lib/python3.11/site-packages/torch"
    own = [f"{site}/__init__.py", f"{site}/lib/libshm.so"]
    paths = [*own, "lib/libtorch.so", "lib/own/a.so", "lib/libshm.so", "include/x.h"]
    links = folder_links({"lib": f"{site}/lib", "include": f"{site}/include"}, paths)
    assert links == {
        f"{site}/lib/libtorch.so": "../../../../libtorch.so",
        f"{site}/lib/own": "../../../../own",
        f"{site}/include/x.h": "../../../../../include/x.h",
    }, "its own files are kept, and no link leads to the folder that it is in"
    first = folder_links({"a": "c", "b": "c"}, ["a/x", "b/x", "b/y"])
    assert first == {"c/x": "../a/x", "c/y": "../b/y"}
    with pytest.raises(IntegrityError, match="there is nothing to link"):
        folder_links({"share": "torch/share"}, paths)


def test_the_soname_can_be_the_name_that_stays() -> None:
    rules = Relocate(single=RULES.single, names="soname")
    layout = lay_out(LINKED, rules, facts_of(LINKED, {"c10": C10}))
    assert "torch/lib/libc10.so.2.6" in layout.entries
    assert layout.names == {"libc10.so": "libc10.so.2.6", "libc10.so.2.6.0": "libc10.so.2.6"}


def test_an_executable_copy_is_the_one_that_stays() -> None:
    tree = make_tree([file("lib/libx.so", "x"), file("lib/libx.so.1", "x", executable=True)])
    layout = lay_out(tree, Relocate(single=("lib/*",)), facts_of(tree, {"x": elf(soname="libx.so.1")}))
    assert layout.entries["lib/libx.so"].executable


def test_one_name_with_several_contents_is_an_error() -> None:
    tree = make_tree([file("lib/libx.so", "new x"), file("lib/libx.so.1", "x"), file("lib/liby.so", "y")])
    with pytest.raises(IntegrityError) as caught:
        lay_out(tree, Relocate(single=("lib/*", "gone/*"), place={"no": "where"}), facts_of(tree, {"y": elf()}))
    assert messages(caught) == [
        " single[1]: the pattern matches nothing: the tree has no path like gone/*",
        "lib/libx.so : files of the same library have different contents: lib/libx.so (5 B), lib/libx.so.1 (1 B)",
        " place.no: the pattern matches nothing: the tree has no such folder, or everything in it is dropped",
    ]


def test_what_is_no_library_can_not_be_kept_once() -> None:
    tree = make_tree([file("lib/libx.so", "INPUT(libx.so.1)")])
    with pytest.raises(IntegrityError, match="is not a shared library"):
        lay_out(tree, Relocate(single=("lib/*.so*",)), {})


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [link("lib/libx.so", "libx.so.1")],
            "the path is a link to libx.so.1, which does not lead to a file in the tree",
        ),
        ([link("lib/libx.so", "libx.so")], "the path is a link to libx.so, which does not lead to a file in the tree"),
        (
            [link("lib/libx.so", "../../libx.so.1")],
            "the path is a link to ../../libx.so.1, which does not lead to a file in the tree",
        ),
        (
            [link("lib/libx.so", "libx.so.1"), file("lib/libx.so.1", "x")],
            "the path is a link to libx.so.1, which is dropped",
        ),
    ],
)
def test_links_that_lead_nowhere_are_errors(entries: list[Entry], message: str) -> None:
    tree = make_tree(entries)
    with pytest.raises(IntegrityError) as caught:
        lay_out(tree, Relocate(single=("lib/libx.so",), drop=("lib/libx.so.1",)), {})
    assert message in str(caught.value)


def test_other_links_lead_to_what_they_led_to() -> None:
    tree = make_tree(
        [
            file("a/b/data"),
            link("a/b/near", "data"),
            link("c/far", "../a/b/near"),
            link("c/folder", "../a/b"),
            Entry(path="c/empty", kind="directory"),
        ]
    )
    layout = lay_out(tree, Relocate(place={"a/b": "x", "c": "y/z"}), {})
    assert layout.links == {"x/near": "data", "y/z/far": "../../x/data", "y/z/folder": "../../x"}
    assert set(layout.entries) == {"x/data", "y/z/empty"}
    with pytest.raises(IntegrityError, match="which is not kept"):
        lay_out(tree, Relocate(drop=("a/**",)), {})


def test_the_longest_folder_decides_and_two_files_can_not_be_in_one_place() -> None:
    tree = make_tree([file("a/x"), file("a/b/x"), file("ab/x")])
    assert set(lay_out(tree, Relocate(place={"a": "c", "a/b": "d"}), {}).entries) == {"c/x", "d/x", "ab/x"}
    assert set(lay_out(tree, Relocate(place={".": "c", "a/b": "."}), {}).entries) == {"c/a/x", "x", "c/ab/x"}
    with pytest.raises(IntegrityError) as caught:
        lay_out(tree, Relocate(place={"a": "c", "a/b": "c"}), {})
    assert messages(caught) == ["a/x c/x: the file would overwrite a/b/x with different content"]


def test_what_a_sibling_has_in_the_same_place_is_the_siblings() -> None:
    tree = make_tree([file("torch/include/a.h"), file("torch/include/python.h"), file("torch/x.py")])
    beside = {"inc/a.h": file("inc/a.h", "torch/include/a.h"), "lib/libx.so": file("lib/libx.so")}
    layout = lay_out(tree, Relocate(place={"torch/include": "inc"}), {}, beside=beside)
    assert set(layout.entries) == {"inc/python.h", "torch/x.py"}
    assert layout.shared == ("torch/include/a.h",)
    with pytest.raises(IntegrityError) as caught:
        lay_out(tree, Relocate(place={"torch/include": "inc"}), {}, beside={"inc/a.h": file("inc/a.h", "other")})
    message = "the file would overwrite a file with different content in a sibling tree"
    assert messages(caught) == [f"torch/include/a.h inc/a.h: {message}"]


def test_file_over_folder_is_refused_when_the_tree_is_made() -> None:
    tree = make_tree([file("a/x"), file("b/x/y")])
    layout = lay_out(tree, Relocate(place={"a": "c", "b": "c"}), {})
    with pytest.raises(IntegrityError, match="both a file and a folder"):
        make_tree(Entry(path=path, blob=entry.blob, size=entry.size) for path, entry in layout.entries.items())


@given(st.sampled_from(["libx", "libtorch_cpu", "libnvrtc-builtins"]), st.lists(st.integers(0, 99), max_size=3))
def test_unversioned_names(stem: str, version: list[int]) -> None:
    assert unversioned(".".join([f"{stem}.so", *map(str, version)])) == f"{stem}.so"


def test_what_has_no_version_to_lose() -> None:
    assert unversioned("libx.a") is None
    assert unversioned("_C.cpython-311-x86_64-linux-gnu.so") == "_C.cpython-311-x86_64-linux-gnu.so"
    assert unversioned("libx.so.conf") is None


# Libraries of the machine: name -> what they need.
MACHINE = {
    "libfmt.so.9": elf("libstdc++.so.6", soname="libfmt.so.9"),
    "libonnx.so.1": elf("libprotobuf.so.32", soname="libonnx.so.1", runpath="/usr/lib/onnx"),
    "libprotobuf.so.32": elf("libc.so.6", soname="libprotobuf.so.32"),
    "libgomp.so.1": elf("libc.so.6", soname="libgomp.so.1"),
    "libfreetype.so.6": elf("libpng.so.16", soname="libfreetype.so.6"),
    "libpng.so.16": elf("libc.so.6", soname="libpng.so.16"),
    "libmpi.so.40": elf("libc.so.6", soname="libmpi.so.40"),
    "libiomp5.so": elf("libc.so.6", soname="libiomp5.so"),
}


def find(soname: str, _like: ElfFacts) -> GraftCandidate | None:
    if soname not in MACHINE:
        return None
    digest = digest_of(soname.encode())
    return GraftCandidate(soname=soname, facts=MACHINE[soname], size=1, sha256=digest, origin=f"/usr/lib/{soname}")


def hashed(soname: str) -> str:
    stem, _, version = soname.partition(".so")
    return f"{stem}-{digest_of(soname.encode())[:8]}.so{version}"


def plan(
    files: dict[str, ElfFacts],
    rules: Relocate,
    *,
    siblings: dict[str, ElfFacts] | None = None,
    required: frozenset[str] | None = None,
) -> tuple[RelocatedTree, LinkChanges]:
    tree = make_tree([file(path) for path in files])
    layout = lay_out(tree, rules, files)
    now = {path: files[entry.path] for path, entry in layout.entries.items()}
    links = plan_links(
        now,
        layout,
        rules,
        siblings=siblings or {},
        system=SYSTEM,
        providers=PROVIDERS,
        find=find,
        searched=("/lib",),
        required=required,
    )
    return layout, links


SHARED = {
    "torch/lib/libtorch.so.2": elf("libtorch_cpu.so.2", "libc.so.6", soname="libtorch.so.2"),
    "torch/lib/libtorch_cpu.so.2": elf(
        "libfmt.so.9", "libonnx.so.1", "libgomp.so.1", soname="libtorch_cpu.so.2", runpath="/build/lib:$ORIGIN"
    ),
    "torch/lib/libextra.so": elf(
        "libcublas.so.12", "libcuda.so.1", soname="libextra.so", rpath="/usr/local/cuda/lib64"
    ),
    "torch/bin/tool": elf("libtorch.so.2"),
}
SHARED_RULES = Relocate(
    place={"torch": "libtorch"},
    single=("torch/lib/*.so*",),
    graft=("libfmt.so*", "libonnx*", "libprotobuf.so.32", "libgomp*"),
    graft_to="libtorch/lib",
    opens={"libtorch_cpu.so.2": ("libextra.so", "libabsent.so")},
)


def test_names_paths_and_grafts_of_a_tree() -> None:
    _, links = plan(SHARED, SHARED_RULES)
    fmt, onnx, protobuf = map(hashed, ("libfmt.so.9", "libonnx.so.1", "libprotobuf.so.32"))
    assert links.changes == {
        "libtorch/bin/tool": ElfChange(rpath=("$ORIGIN/../lib",), replace_needed={"libtorch.so.2": "libtorch.so"}),
        "libtorch/lib/libextra.so": ElfChange(rpath=("$ORIGIN/../../nvidia/cublas/lib",)),
        "libtorch/lib/libtorch.so": ElfChange(
            rpath=("$ORIGIN",), soname="libtorch.so", replace_needed={"libtorch_cpu.so.2": "libtorch_cpu.so"}
        ),
        "libtorch/lib/libtorch_cpu.so": ElfChange(
            rpath=("$ORIGIN",), soname="libtorch_cpu.so", replace_needed={"libfmt.so.9": fmt, "libonnx.so.1": onnx}
        ),
        f"libtorch/lib/{fmt}": ElfChange(soname=fmt),
        f"libtorch/lib/{onnx}": ElfChange(
            rpath=("$ORIGIN",), soname=onnx, replace_needed={"libprotobuf.so.32": protobuf}
        ),
        f"libtorch/lib/{protobuf}": ElfChange(soname=protobuf),
    }
    assert [graft.name for graft in links.grafts] == [fmt, "libgomp.so.1", onnx, protobuf]
    assert {each.soname: (each.owner, each.kind) for each in links.outside} == {
        "libc.so.6": ("platform", "system"),
        "libcublas.so.12": ("cublas", "distribution"),
        "libcuda.so.1": ("NVIDIA driver", "driver"),
        "libstdc++.so.6": ("platform", "system"),
    }
    assert links.opens == {"libtorch/lib/libtorch_cpu.so": ("libextra.so",)}
    assert links.cut == ("/build/lib", "/usr/local/cuda/lib64")
    assert set(links.inside) == {"libfmt.so.9", "libgomp.so.1", "libonnx.so.1", "libprotobuf.so.32"}


def bundled(*needed: str, requires: tuple[str, ...] = (), **facts: str) -> LinkChanges:
    """What changes where a package with one extension module takes along what it needs."""
    files = {"small/_core.so": elf(*needed, **facts)}
    return plan(files, Relocate(graft_to="small.libs"), required=frozenset(requires))[1]


def test_a_bundled_package_takes_in_what_it_needs_with_what_that_needs() -> None:
    links = bundled("libonnx.so.1", "libc.so.6")
    onnx, protobuf = map(hashed, ("libonnx.so.1", "libprotobuf.so.32"))
    assert links.changes == {
        "small/_core.so": ElfChange(rpath=("$ORIGIN/../small.libs",), replace_needed={"libonnx.so.1": onnx}),
        f"small.libs/{onnx}": ElfChange(
            rpath=("$ORIGIN",), soname=onnx, replace_needed={"libprotobuf.so.32": protobuf}
        ),
        f"small.libs/{protobuf}": ElfChange(soname=protobuf),
    }
    assert [each.soname for each in links.outside] == ["libc.so.6"]


@pytest.mark.parametrize(
    ("soname", "requires", "owner"),
    [
        ("libiomp5.so", ("intel-openmp",), "intel-openmp"),
        ("libcublas.so.12", ("nvidia-cublas",), "cublas"),
        ("libcuda.so.1", (), "NVIDIA driver"),
        ("libmpi.so.40", (), "MPI of the machine"),
        ("libstdc++.so.6", (), "platform"),
        ("libpython3.11.so.1.0", (), "Python"),
    ],
)
def test_a_bundled_package_leaves_to_others_what_they_bring(soname: str, requires: tuple[str, ...], owner: str) -> None:
    links = bundled(soname, requires=requires)
    assert links.grafts == ()
    assert [(each.soname, each.owner) for each in links.outside] == [(soname, owner)]


@pytest.mark.parametrize("soname", ["libiomp5.so", "libfreetype.so.6"])
def test_a_bundled_package_takes_in_what_others_could_bring_and_do_not(soname: str) -> None:
    assert soname in {graft.library.soname for graft in bundled(soname).grafts}


def test_a_bundled_package_goes_on_searching_its_own_folders() -> None:
    """What its files open by name at run time is not known."""
    links = bundled("libfmt.so.9", runpath="$ORIGIN/plugins:/build/lib")
    assert links.changes["small/_core.so"].rpath == ("$ORIGIN/plugins", "$ORIGIN/../small.libs")
    assert links.cut == ("/build/lib",)


def test_a_bundled_package_names_what_is_nowhere() -> None:
    with pytest.raises(IntegrityError) as caught:
        bundled("libgone.so.1")
    (problem,) = caught.value.problems
    assert (problem.file, problem.key) == ("small/_core.so", "libgone.so.1")
    assert problem.hint == "searched /lib; install the library, or name its provider"


def test_a_library_of_the_desktop_is_taken_in_where_it_is_listed() -> None:
    files = {"small/_ft.so": elf("libfreetype.so.6")}
    _, links = plan(files, Relocate(graft=("libfreetype.so*", "libpng*"), graft_to="small.libs"))
    assert [graft.library.soname for graft in links.grafts] == ["libfreetype.so.6", "libpng.so.16"]
    _, links = plan(files, Relocate(graft=("libpng*",), graft_to="small.libs"))
    assert [(each.soname, each.owner) for each in links.outside] == [("libfreetype.so.6", "desktop of the machine")]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (
            "libmpi.so*",
            ("warning", "the graft pattern copied no library: libmpi.so.40 is provided by MPI of the machine"),
        ),
        ("libstdc++*", ("warning", "the graft pattern copied no library: libstdc++.so.6 is provided by platform")),
        ("libfnt.so*", ("info", "the graft pattern copied no library: no file in the tree needs a matching one")),
        ("libown*", None),
        ("libfmt*", None),
    ],
)
def test_a_pattern_that_takes_nothing_in_is_told(pattern: str, said: tuple[str, str] | None) -> None:
    files = {
        "small/_core.so": elf("libmpi.so.40", "libfmt.so.9", "libown.so"),
        "small/libown.so": elf("libc.so.6", soname="libown.so"),
    }
    rules = Relocate(graft=("libfmt.so*", *([pattern] if pattern != "libfmt*" else [])), graft_to="small.libs")
    _, links = plan(files, rules)
    found = [(each.severity, each.message) for each in idle_patterns(links, rules, files.values())]
    assert found == ([said] if said else [])


def test_what_is_taken_in_is_listed_with_its_size() -> None:
    (finding,) = taken_in(bundled("libfmt.so.9", "libonnx.so.1").grafts, Relocate(graft_to="small.libs"))
    assert finding.evidence[0] == "libfmt.so.9: /usr/lib/libfmt.so.9, 1 B"
    text = taken_text(bundled("libfmt.so.9").grafts)
    assert text == "copies 1 library, 1 B: libfmt.so.9 (/usr/lib/libfmt.so.9, 1 B)"
    assert list(taken_in((), Relocate())) == []


def relocated_facts() -> dict[str, ElfFacts]:
    """The shared tree as the next one finds it."""
    layout, links = plan(SHARED, SHARED_RULES)
    found = {path: SHARED[entry.path] for path, entry in layout.entries.items()}
    found |= {graft.path: graft.library.facts for graft in links.grafts}
    return {path: changed(facts, links.changes.get(path, ElfChange())) for path, facts in found.items()}


def changed(facts: ElfFacts, change: ElfChange) -> ElfFacts:
    needed = [change.replace_needed.get(name, name) for name in facts.needed]
    entries = (facts.runpath or facts.rpath) if change.rpath is None else change.rpath
    return elf(*needed, soname=change.soname or facts.soname, rpath=":".join(entries))


def test_libraries_of_other_packages_are_looked_for_where_they_put_them() -> None:
    """In one prefix, as conda has it: its own packages bring OpenMP, CUDA and even what a platform promises."""
    files = {
        "lib/liba.so": elf("libgomp.so.1", "libcublas.so.12", "libstdc++.so.6"),
        "lib/deep/libb.so": elf("libgomp.so.1"),
    }
    rules = Relocate(
        elsewhere={"lib": ("libgomp*", "libstdc++*"), "targets/lib": ("libcublas*",)}, graft=("libgomp*",), graft_to="x"
    )
    _, links = plan(files, rules)
    assert links.changes == {
        "lib/liba.so": ElfChange(rpath=("$ORIGIN", "$ORIGIN/../targets/lib")),
        "lib/deep/libb.so": ElfChange(rpath=("$ORIGIN/..",)),
    }
    assert links.grafts == ()
    assert {each.owner for each in links.outside} == {"another package"}


def test_a_sibling_brings_its_libraries_and_its_grafts() -> None:
    own = {
        "torch/_C.so": elf("libtorch_python.so.2", "libtorch.so.2", runpath="/env/lib:/build/torch/lib"),
        "torch/lib/libtorch_python.so.2": elf("libtorch_cpu.so.2", "libonnx.so.1", soname="libtorch_python.so.2"),
    }
    rules = Relocate(place={"torch/lib": "libtorch/lib"}, single=("torch/lib/*.so*",))
    _, links = plan(own, rules, siblings=relocated_facts())
    assert links.grafts == ()
    assert links.changes == {
        "torch/_C.so": ElfChange(
            rpath=("$ORIGIN/../libtorch/lib",),
            replace_needed={"libtorch_python.so.2": "libtorch_python.so", "libtorch.so.2": "libtorch.so"},
        ),
        "libtorch/lib/libtorch_python.so": ElfChange(
            rpath=("$ORIGIN",),
            soname="libtorch_python.so",
            replace_needed={"libtorch_cpu.so.2": "libtorch_cpu.so", "libonnx.so.1": hashed("libonnx.so.1")},
        ),
    }


def test_all_that_would_have_to_be_taken_in_is_said_at_once() -> None:
    with pytest.raises(IntegrityError) as caught:
        plan(
            SHARED, Relocate(place={"torch": "libtorch"}, single=("torch/lib/*.so*",), graft=("libfmt*",), graft_to="x")
        )
    assert messages(caught) == [
        f"{user}: this library is needed, but found only on this machine: /usr/lib/{library}"
        for user, library in (
            ("libtorch/lib/libtorch_cpu.so libonnx.so.1", "libonnx.so.1"),
            ("libtorch/lib/libtorch_cpu.so libgomp.so.1", "libgomp.so.1"),
            ("libonnx.so.1 libprotobuf.so.32", "libprotobuf.so.32"),
        )
    ]
    listed = '["libfmt*", "libgomp.so*", "libonnx.so*", "libprotobuf.so*"]'
    hint = (
        f"to copy these libraries into the tree, set graft = {listed}; if other packages provide them, use `elsewhere`"
    )
    assert caught.value.problems[-1].hint == hint


def test_what_is_nowhere_is_named_with_the_places() -> None:
    files = {"a/x.so": elf("libnowhere.so.1", runpath="$ORIGIN/lib:/build/lib"), "a/y.so": elf("libnowhere.so.1")}
    with pytest.raises(IntegrityError) as caught:
        plan(files, Relocate())
    assert messages(caught) == [
        "a/x.so libnowhere.so.1: this library is needed, but it is neither in the tree nor on this machine"
    ]
    assert (
        caught.value.problems[0].hint
        == "searched $ORIGIN/lib, /build/lib, /lib; add the library's folder to `graft-from`"
    )


def test_a_library_that_is_needed_by_a_path_is_needed_by_its_name() -> None:
    files = {"lib/liba.so": elf("/build/lib/libb.so", "out/libc0.so.1"), "lib/libb.so": elf(), "x/libc0.so.1": elf()}
    _, links = plan(files, Relocate(single=("x/*",)))
    names = {"/build/lib/libb.so": "libb.so", "out/libc0.so.1": "libc0.so"}
    assert links.changes == {"lib/liba.so": ElfChange(rpath=("$ORIGIN", "$ORIGIN/../x"), replace_needed=names)}


def test_a_name_that_code_opens_must_stay() -> None:
    files = {"lib/liba.so": elf(soname="liba.so"), "lib/libb.so.2": elf(soname="libb.so.2")}
    with pytest.raises(IntegrityError, match=r"opens libb.so.2 by name, but only libb.so is kept"):
        plan(files, Relocate(single=("lib/*",), opens={"liba.so": ("libb.so.2",)}))


def test_a_tree_that_is_right_does_not_change() -> None:
    facts = relocated_facts()
    _, links = plan(facts, Relocate(opens=SHARED_RULES.opens))
    assert links.changes == {}
    assert links.grafts == ()


def test_the_proof_finds_what_a_plan_would_have_to_prevent() -> None:
    files = {
        "torch/_C.so": elf("libtorch.so", "libc.so.6", rpath="$ORIGIN/lib"),
        "torch/lib/libtorch.so": elf("libc10.so", "libfmt.so.9", rpath="/build/lib:lib", soname="libtorch.so"),
        "libtorch/lib/libc10.so": elf("libc.so.6", soname="libc10.so"),
        "torch/bad.so": elf(rpath="$ORIGIN/../../elsewhere"),
    }
    found = loading_problems(files, {}, outside={"libc.so.6"}, opens={"torch/_C.so": ("libc10.so",)})
    assert [f"{p.file} {p.key or ''}: {p.message}" for p in found] == [
        "torch/lib/libtorch.so libc10.so: the loader cannot find this library in /build/lib, lib",
        "torch/lib/libtorch.so libfmt.so.9: the loader cannot find this library in /build/lib, lib",
        "torch/_C.so libc10.so: the file opens this library at run time, but the loader cannot find it in torch/lib",
        "torch/lib/libtorch.so : the file has a search path entry outside the package: '/build/lib'",
        "torch/lib/libtorch.so : the file has a search path entry outside the package: 'lib'",
        "torch/bad.so : the file has a search path entry outside the package: '$ORIGIN/../../elsewhere'",
    ]
    whole = relocated_facts()
    outside = {*SYSTEM, "libcublas.so.12", "libcuda.so.1"}
    opens = {"libtorch/lib/libtorch_cpu.so": ("libextra.so",)}
    assert loading_problems(whole, {}, outside=outside, opens=opens) == ()
    assert loading_problems({}, files, outside=(), opens={}) == ()  # siblings answer for themselves


def test_lines_that_name_the_build_are_found() -> None:
    texts = [("a.py", "x = 1\ny = '/store/work/a'\n"), ("b.pc", "prefix=/usr\n"), ("c.cmake", "# /store\n")]
    found = list(build_path_problems(texts, ["/store", "/env/lib"]))
    assert [(p.file, p.line, p.excerpt) for p in found] == [
        ("a.py", 2, "y = '/store/work/a'"),
        ("c.cmake", 1, "# /store"),
    ]


def test_edits_fit_exactly_or_fail() -> None:
    texts = {"a.py": "one two one", "b.py": ""}
    edits = [TextEdit(file="a.py", find="one", replace="1", count=2), TextEdit(file="a.py", find="1 two", replace="3")]
    assert edit_texts(texts, edits) == {"a.py": "3 1"}
    assert edit_texts(texts, []) == {}
    wrong = [TextEdit(file="a.py", find="one", replace="1"), TextEdit(file="c.py", find="x", replace="y")]
    with pytest.raises(IntegrityError) as caught:
        edit_texts(texts, [*wrong, TextEdit(file="b.py", find="x", replace="y")])
    assert messages(caught) == [
        "a.py edits[0]: the text to replace occurs 2 times, expected 1",
        "c.py edits[1]: the file to edit does not exist",
        "b.py edits[2]: the text to replace occurs 0 times, expected 1",
    ]


VERSIONS = st.lists(st.sampled_from(["", ".2", ".2.6", ".2.6.0"]), min_size=1, max_size=4, unique=True)
GRAPH = st.dictionaries(
    st.sampled_from(["liba", "libb", "libc0", "libd"]),
    st.tuples(
        st.sampled_from(["one/lib", "two", "one/deep/er"]),
        VERSIONS,
        st.sets(st.sampled_from(["liba", "libb", "libc0", "libd"])),
    ),
    min_size=1,
)


@given(
    GRAPH, st.dictionaries(st.sampled_from(["one", "one/lib", "two"]), st.sampled_from(["x", "x/y", "z"]), max_size=3)
)
def test_whatever_is_relocated_loads(graph: dict[str, tuple[str, list[str], set[str]]], place: dict[str, str]) -> None:
    """Libraries in several folders under several names, in any layout: each finds all that it needs."""
    sonames = {name: f"{name}.so{versions[-1]}" for name, (_, versions, _) in graph.items()}
    files: dict[str, ElfFacts] = {}
    entries: list[Entry] = []
    for name, (folder, versions, needs) in graph.items():
        facts = elf(*(sonames[each] for each in sorted(needs & graph.keys())), soname=sonames[name], runpath="/build")
        for version in versions:
            path = f"{folder}/{name}.so{version}"
            entries.append(file(path, name))
            files[path] = facts
    kept = {folder: target for folder, target in place.items() if any(path.startswith(f"{folder}/") for path in files)}
    rules = Relocate(place=kept, single=("**/*.so*",))
    layout = lay_out(make_tree(entries), rules, files)
    now = {path: files[entry.path] for path, entry in layout.entries.items()}
    links = plan_links(now, layout, rules, siblings={}, system=SYSTEM, providers=(), find=lambda *_: None, searched=())
    after = {path: changed(facts, links.changes.get(path, ElfChange())) for path, facts in now.items()}
    assert loading_problems(after, {}, outside=SYSTEM, opens={}) == ()
    assert len(after) == len(graph)
    assert {facts.soname for facts in after.values()} == {f"{name}.so" for name in graph}
    assert Digest(layout.entries[min(after)].blob or "") in {entry.blob for entry in entries}
