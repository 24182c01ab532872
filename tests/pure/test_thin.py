"""Thinning decided and applied on small containers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.edits import Edit, EditedSource
from axletree.binary.gpu.scan import GpuSection, SectionCode, read_containers, summarise
from axletree.binary.gpu.thin import thin_container
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError
from axletree.package.gpu.arch import parse_gpu
from axletree.package.gpu.thin import ThinnedFile, ThinRules, check_thinned, gpus_in, thin_file
from support.device import bundle, fat_container, fat_entry, packed_bundle

PREFIX = "hipv4-amdgcn-amd-amdhsa--"
START = 4096


def code_of(body: bytes, name: str = ".nv_fatbin") -> tuple[BufferSource, SectionCode]:
    source = BufferSource(bytes(START) + body + b"behind")
    return source, read_containers(source, GpuSection(name, START, len(body)))


def thin(body: bytes, *gpus: str, name: str = ".nv_fatbin", **rules: bool) -> tuple[ThinnedFile, SectionCode, bytes]:
    """What thinning says, what is found in the result, and its bytes."""
    source, code = code_of(body, name)
    wanted = ThinRules(gpus=tuple(map(parse_gpu, gpus)), **rules)
    thinned = thin_file([code], wanted, name="lib.so")
    edited = EditedSource(source, thinned.edits)
    after = read_containers(edited, code.section)
    check_thinned([after], thinned, name="lib.so")
    assert edited.size == source.size
    assert [container.offset for container in after.containers] == [container.offset for container in code.containers]
    return thinned, after, edited.read(0, edited.size)


def archs(code: SectionCode) -> list[list[str]]:
    return [[entry.arch for entry in container.entries] for container in code.containers]


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(["sm_80", "sm_86", "sm_90", "sm_90a", "sm_100f", "compute_90", "lto_80"]),
        st.integers(1, 200),
        st.sampled_from([64, 80, 112]),
    ),
    max_size=6,
)


@given(containers=st.lists(ENTRIES, min_size=1, max_size=4), data=st.data())
def test_kept_entries_come_out_as_they_went_in(
    containers: list[list[tuple[str, int, int]]], data: st.DataObject
) -> None:
    body = b"".join(
        fat_container(
            *[fat_entry(arch, size, header=header, fill=index + 1) for index, (arch, size, header) in enumerate(row)]
        )
        for row in containers
    )
    source, code = code_of(body)
    edits: list[Edit] = []
    kept: list[list[bytes]] = []
    for container in code.containers:
        indices = data.draw(
            st.sets(st.integers(0, max(0, len(container.entries) - 1)), max_size=len(container.entries))
        )
        kept.append([source.read(container.entries[i].offset, container.entries[i].size) for i in sorted(indices)])
        edits += thin_container(container, indices)
    edited = EditedSource(source, edits)
    after = read_containers(edited, code.section)
    found = [[edited.read(entry.offset, entry.size) for entry in container.entries] for container in after.containers]
    assert found == kept
    assert after.damaged is None
    assert edited.read(0, START) == bytes(START)
    assert edited.read(START + len(body), 6) == b"behind"
    for before, container in zip(code.containers, after.containers, strict=True):
        assert edited.read(container.end, before.end - container.end).strip(b"\0") == b""


def test_the_best_entries_stay_in_every_container() -> None:
    first = fat_container(fat_entry("sm_80"), fat_entry("sm_90", 128), fat_entry("sm_90a"), fat_entry("compute_90"))
    second = fat_container(fat_entry("sm_80", 256), fat_entry("sm_86"), fat_entry("lto_80"))
    third = fat_container()
    fourth = fat_container(fat_entry("compute_80"), fat_entry("compute_90"))
    body = first + second + third + fourth
    assert archs(thin(body, "80", "90", allow_missing=True)[1]) == [
        ["sm_80", "sm_90", "sm_90a"],
        ["sm_80", "lto_80"],
        [],
        ["compute_80", "compute_90"],
    ]
    assert archs(thin(body, "86")[1]) == [["sm_80"], ["sm_86", "lto_80"], [], ["compute_80"]]
    assert archs(thin(body, "86", keep_ptx=True)[1])[0] == ["sm_80", "compute_90"]


def test_what_would_be_empty_is_refused_all_at_once() -> None:
    body = fat_container(fat_entry("sm_80")) * 3 + fat_container(fat_entry("sm_90", 640), fat_entry("sm_86", 640))
    _, code = code_of(body)
    with pytest.raises(IntegrityError) as error:
        thin_file([code], ThinRules(gpus=(parse_gpu("90"), parse_gpu("120"))), name="lib.so")
    three = f"lib.so: 3 containers in .nv_fatbin (the first at offset {START}) would be empty"
    one = "lib.so: a container in .nv_fatbin (the first at offset 4528) would be empty"
    assert str(error.value).splitlines()[:-1] == [
        f"{three}: code for sm_80 does not run on 90",
        f"{three}: code for sm_80 does not run on 120",
        f"{one}: code for sm_86, sm_90 does not run on 120",
    ]
    thinned, after, _ = thin(body, "90", allow_missing=True)
    assert archs(after) == [["sm_80"], ["sm_80"], ["sm_80"], ["sm_90"]]
    assert (thinned.missing, thinned.exact) == (3, 0)


def test_code_for_exactly_one_gpu_is_counted() -> None:
    body = fat_container(fat_entry("sm_100a"), fat_entry("sm_90")) + fat_container(fat_entry("sm_100"))
    assert thin(body, "100")[0].exact == 1


def test_bundles_get_a_shorter_table_and_code_stays_where_it_is() -> None:
    targets = {
        f"{PREFIX}gfx90a:xnack-": b"a" * 5000,
        f"{PREFIX}gfx90a:xnack+": b"b" * 100,
        f"{PREFIX}gfx1030": b"c" * 70,
    }
    one = bundle(targets)
    body = one + bytes(-len(one) % 4096) + one
    thinned, after, data = thin(body, "gfx90a:xnack-", name=".hip_fatbin")
    assert archs(after) == [["host", "gfx90a:xnack-"]] * 2
    assert data.count(b"a") == body.count(b"a") - 2 * sum(name.count("a") for name in list(targets)[1:])
    assert b"bbb" not in data
    assert b"ccc" not in data
    assert thinned.dropped == 2 * 170
    _, code = code_of(body, ".hip_fatbin")
    assert [container.entries[1].offset for container in after.containers] == [
        container.entries[1].offset for container in code.containers
    ]
    assert archs(thin(body, "gfx90a", name=".hip_fatbin")[1])[0] == ["host", "gfx90a:xnack-", "gfx90a:xnack+"]


def test_compressed_bundles_stay_whole_and_are_named() -> None:
    body = packed_bundle(bundle({f"{PREFIX}gfx90a": b"a" * 5000, f"{PREFIX}gfx1030": b"b" * 5000}))
    thinned, _, data = thin(body, "gfx90a", name=".hip_fatbin")
    assert thinned.edits == ()
    assert thinned.dropped == 0
    assert "1 compressed offload bundles in .hip_fatbin remain unchanged" in thinned.left[0]
    assert body in data


def test_damage_and_other_makers() -> None:
    damaged = fat_container(fat_entry("sm_80"), b"\xff" * 64)
    _, code = code_of(damaged)
    with pytest.raises(IntegrityError, match="no valid fat binary entry"):
        thin_file([code], ThinRules(gpus=(parse_gpu("80"),)), name="lib.so")
    assert thin_file([code], ThinRules(gpus=(parse_gpu("gfx90a"),)), name="lib.so") == ThinnedFile()


def test_a_result_is_proved() -> None:
    _, code = code_of(fat_container(fat_entry("sm_80"), fat_entry("sm_90")))
    thinned = thin_file([code], ThinRules(gpus=(parse_gpu("90"),)), name="lib.so")
    with pytest.raises(
        IntegrityError, match="nothing was written, because the result would still contain code for sm_80"
    ):
        check_thinned([code], thinned, name="lib.so")


def test_the_gpus_that_code_was_made_for_are_in_order() -> None:
    names = ["sm_100f", "sm_90a", "sm_90", "compute_120", "lto_75", "sm_75"]
    _, code = code_of(fat_container(*map(fat_entry, names)))
    assert [gpu.name for gpu in gpus_in([summarise(code)])] == ["75", "90", "100"]
