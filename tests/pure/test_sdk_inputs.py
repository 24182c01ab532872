"""Names of artifacts, components by pattern, trees merged from several inputs, what a store lists."""

from __future__ import annotations

import pytest

from axletree.core.errors import IntegrityError, UsageError
from axletree.package.sdk.artifact_name import ArtifactName, archive_stem, in_group, may_be_target, parse_artifact_name
from axletree.package.sdk.components import assigning
from axletree.package.sdk.entries import SdkEntry
from axletree.package.sdk.merge import leaves_tree, merge_entries
from axletree.package.sdk.store_listing import choose_offers, offers, page_links, runs
from axletree.package.sdk.therock import therock_records


def test_names_of_artifacts() -> None:
    name = parse_artifact_name("core-hip_lib_gfx94X-dcgpu")
    assert name == ArtifactName("core-hip", "lib", "gfx94X-dcgpu")
    assert name.folder == "core-hip_lib_gfx94X-dcgpu"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rand_lib_dev", "target 'dev'"),  # ROCm/TheRock#935: became a package for the family "dev"
        ("rand_lib_doc", "target 'doc'"),
        ("rand_libs_generic", "component 'libs'"),
        ("rand_lib", "three parts"),
        ("my_rand_lib_generic", "three parts"),
        ("_lib_generic", "name is ''"),
        ("r/x_lib_generic", "name is 'r/x'"),
        ("rand_lib_gfx", "target 'gfx'"),
        ("rand_lib_GFX942", "target 'GFX942'"),
    ],
)
def test_what_is_no_name(text: str, told: str) -> None:
    with pytest.raises(IntegrityError, match=told):
        parse_artifact_name(text)


def test_targets() -> None:
    good = "generic gfx900 gfx90a gfx90a:xnack+ gfx942:sramecc+:xnack- gfx1100 gfx94X-dcgpu gfx110X-all gfx900-dgpu"
    good += " dgpu-all igpu-all gfx9-4-generic gfx94X-dcgpu-asan sm90 sm90a"
    assert [text for text in good.split() if not may_be_target(text)] == []
    assert [
        text for text in ("dev", "gfx", "gfx94X:foo+", "gfx 900", "all", "", "generic2") if may_be_target(text)
    ] == []


def test_groups_take_what_is_for_all_what_is_theirs_and_what_a_variant_is_of() -> None:
    assert in_group("generic", "gfx1100")
    assert in_group("gfx90a:xnack+", "gfx90a")
    assert in_group("gfx94X-dcgpu", "gfx94X-dcgpu-asan")
    assert not in_group("gfx94X-dcgpu-asan", "gfx94X-dcgpu")
    assert not in_group("gfx1100", "gfx110X-all")
    assert not in_group("gfx94", "gfx942")


def test_archives_by_their_suffix() -> None:
    assert archive_stem("a_lib_generic.tar.zst") == archive_stem("a_lib_generic.tar.xz") == "a_lib_generic"
    assert archive_stem("a_lib_generic.tar.zst.sha256sum") is None


def test_components_by_patterns_the_manifests_first() -> None:
    component_of = assigning({"doc": ("share/man/**",), "run": ("lib/clang/*/include/**",)})
    assert {path: component_of(path) for path in ("lib/a.so.1", "lib/a.so", "bin/x", "include/a.h", "lib/a.a")} == {
        "lib/a.so.1": "lib",
        "lib/a.so": "lib",
        "bin/x": "run",
        "include/a.h": "dev",
        "lib/a.a": "dev",
    }
    assert component_of("share/man/man1/x.gz") == "doc"
    assert component_of("lib/clang/15/include/x.h") == "run"
    assert component_of("lib/cmake/hip/libx.so") == "lib"  # in the order of the chain
    with pytest.raises(IntegrityError, match=r"'a\*\*' of component doc"):
        assigning({"doc": ("a**",)})


def entry(path: str, artifact: str = "base", **more: object) -> SdkEntry:
    values: dict[str, object] = {"component": "lib", "source": f"{artifact}/{path}", "size": 1}
    return SdkEntry(path=path, artifact=artifact, **(values | more))  # type: ignore[arg-type]


def test_merged_by_path_each_once_and_said_so() -> None:
    notes: list[str] = []
    asked: list[tuple[str, str]] = []

    def same(one: SdkEntry, other: SdkEntry) -> bool:
        asked.append((one.source, other.source))
        return True

    given = [entry("b", "sysdeps"), entry("a"), entry("b", "base"), entry("c", kind="folder"), entry("c/d")]
    merged = merge_entries(given, same=same, note=notes.append)
    assert [(found.path, found.artifact) for found in merged] == [("a", "base"), ("b", "base"), ("c/d", "base")]
    assert asked == [("base/b", "sysdeps/b")]
    assert notes == ["base_lib_generic and sysdeps_lib_generic both contain b, with the same content; one copy is used"]


def test_conflicts_name_both_and_are_told_together() -> None:
    given = [
        *(entry("x", "a"), entry("x", "b")),
        *(entry("y", "a", size=2), entry("y", "b")),
        *(entry("z", "a", kind="link", link="x"), entry("z", "b", kind="link", link="y")),
        *(entry("f", "a"), entry("f/g", "b")),
        *(entry("l", "a", kind="link", link="x"), entry("l/g", "b")),
        *(entry("e", "a", executable=True), entry("e", "b")),
    ]
    with pytest.raises(IntegrityError) as caught:
        merge_entries(given, same=lambda one, other: False, note=lambda _: None)
    told = {problem.file: problem.message for problem in caught.value.problems}
    assert told.keys() == {"x", "y", "z", "f", "l", "e"}
    assert told["x"] == "the file is in both a_lib_generic and b_lib_generic, with different content"
    assert told["f"] == "the path is a file in a_lib_generic but a folder in b_lib_generic"
    assert told["l"] == "the path is a link in a_lib_generic but a folder in b_lib_generic"


def test_files_for_several_gpus_may_differ_and_are_for_all_where_they_do_not() -> None:
    def same(one: SdkEntry, other: SdkEntry) -> bool:
        return one.path == other.path == "licence"

    targets = ("gfx900", "gfx1100", "gfx94X-dcgpu")
    given = [entry(path, f"blas-{target}", target=target) for path in ("lib", "licence") for target in targets]
    links = {"link": "licence", "link2": "link", "own": "lib", "own2": "own"}
    given += [
        entry(path, "blas", target=target, kind="link", link=link, size=0, source="")
        for path, link in links.items()
        for target in targets
    ]
    notes: list[str] = []
    merged = merge_entries(given, same=same, note=notes.append)
    assert [(found.path, found.target) for found in merged] == [
        *(("lib", target) for target in sorted(targets)),
        *(("licence", "generic"), ("link", "generic"), ("link2", "generic")),
        *((path, target) for path in ("own", "own2") for target in sorted(targets)),
    ]
    told = {note.partition(" both contain ")[2] for note in notes}
    assert told == {f"{what}, with the same content; one copy is used" for what in ("licence", "link, link2")}


@pytest.mark.parametrize("target", ["generic", "gfx900", "gfx900:xnack+"])
@pytest.mark.parametrize("first", ["a", "c"])
def test_files_for_the_same_gpus_may_not_differ(target: str, first: str) -> None:
    given = [entry("lib", first, target="gfx900"), entry("lib", "b", target=target)]
    with pytest.raises(IntegrityError, match=r"lib: the file is in both [ab]_lib_g\S+ and [bc]_lib_g"):
        merge_entries(given, same=lambda *_: False, note=lambda _: None)
    (one,) = merge_entries(given, same=lambda *_: True, note=lambda _: None)
    assert one.target == ("generic" if target == "generic" else "gfx900" if first == "a" else target)


def test_equal_links_and_folders_are_no_conflict() -> None:
    given = [entry("z", name, kind="link", link="x", source="", size=0) for name in ("a", "b")]
    given += [entry("d", name, kind="folder", source="", size=0) for name in ("a", "b")]
    merged = merge_entries(given, same=lambda *_: False, note=lambda _: None)
    assert [found.path for found in merged] == ["d", "z"]


@pytest.mark.parametrize(
    ("path", "link", "leaves"),
    [
        ("lib/a", "b", False),
        ("lib/a", "../bin/b", False),
        ("lib/a", "../../b", True),
        ("a", "..", True),
        ("a", "../x", True),
        ("lib/a", "/usr/lib/b", True),
        ("lib/a", "x/../../../b", True),
        ("lib/a", "..x", False),
        ("lib/a", "\udcff", True),
    ],
)
def test_links_that_leave_the_tree(path: str, link: str, leaves: bool) -> None:  # noqa: FBT001 (a parameter of a table)
    assert leaves_tree(path, link) is leaves


PAGE = """<html><body><a href="../">up</a> <a href='rand_lib_gfx90a%%3Axnack%%2B.tar.zst'>x</a>
<A HREF="base_lib_generic.tar.xz#sha256=%s">y</A><a href="base_lib_generic.tar.xz.sha256sum">z</a>
<a name="none">no</a><a href="http://[broken">b</a><a href="/other/logs/index.html">l</a></body>"""


def test_pages_of_a_store() -> None:
    digest = "0" * 64
    found = offers(page_links(PAGE % digest, "https://me:secret@host/runs/7-linux/index.html"))
    assert [(offer.filename, offer.sha256) for offer in found] == [
        ("rand_lib_gfx90a:xnack+.tar.zst", None),
        ("base_lib_generic.tar.xz", digest),
    ]
    assert found[1].location == "https://me:secret@host/runs/7-linux/base_lib_generic.tar.xz"


def test_runs_are_numbers_and_the_highest_is_first() -> None:
    names = ("9-linux", "10-linux", "11-windows", "x-linux", "linux", "-linux", "010-linux")
    assert runs(names, "linux") in {("10", "010", "9"), ("010", "10", "9")}
    assert runs(names, "windows") == ("11",)


def test_of_two_archives_the_faster_and_only_the_groups() -> None:
    links = [
        "f/a_lib_generic.tar.xz",
        "f/a_lib_generic.tar.zst",
        *(f"f/r_lib_{target}.tar.zst" for target in ("gfx900", "gfx1100", "gfx1101")),
    ]
    chosen = choose_offers(offers(links), "gfx900", ("gfx1101",))
    assert [offer.filename for offer in chosen.values()] == [
        "a_lib_generic.tar.zst",
        "r_lib_gfx1101.tar.zst",
        "r_lib_gfx900.tar.zst",
    ]
    with pytest.raises(IntegrityError, match="rand_lib_dev"):
        choose_offers(offers(["rand_lib_dev.tar.xz"]), "gfx900")


def test_what_therocks_builder_reads() -> None:
    found = therock_records(("gfx900", "gfx90a", "gfx900"))
    assert found["share/therock/dist_info.json"] == b'{\n  "dist_amdgpu_targets": "gfx900;gfx90a"\n}\n'
    assert b'"KPACK_SPLIT_ARTIFACTS": false' in found["share/therock/therock_manifest.json"]
    with pytest.raises(UsageError, match="'all'"):
        therock_records(("all",))
