"""``axletree thin``: variants that uv chooses by GPU and variantlib agrees with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from variantlib.variant_dist_info import VariantDistInfo  # type: ignore[import-untyped]
from variantlib.variants_json import VariantsJson  # type: ignore[import-untyped]

from axletree.cli.main import cli
from axletree.core.errors import IntegrityError, UsageError
from axletree.core.units import format_bytes
from axletree.package.gpu.arch import order
from axletree.package.wheel.record import check_record, content_of, parse_record
from support.cuda import build_library
from support.device import bundle
from support.elfs import load
from support.envelopes import result_of
from support.hip_library import TARGETS, bundles, hip_library
from support.wheels import demo_metadata, make_elf, wheel_bytes

TAG = "py3-none-linux_x86_64"
LIBRARY = "demo/libk.so"
SBOM = "demo-1.0.dist-info/sboms/axletree.cdx.json"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("library") / "libk.so", "80 90 compute_90", kernels=1)


@pytest.fixture
def wheel(tmp_path: Path, library: Path) -> Path:
    path = tmp_path / "in" / f"demo-1.0-{TAG}.whl"
    path.parent.mkdir()
    metadata = demo_metadata(requires=("nvidia-cuda-runtime==13.0.96",))
    files = {"demo/__init__.py": b"x = 1\n" * 99, LIBRARY: library.read_bytes(), SBOM: b'{"bomFormat": "CycloneDX"}'}
    path.write_bytes(wheel_bytes(files, tag=TAG, metadata=metadata))
    return path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli, ["thin", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_each_architecture_becomes_a_variant(tmp_path: Path, wheel: Path) -> None:
    out = tmp_path / "out"
    output = run(wheel, "--arch-each", "--out", out)
    assert "the download gets smaller, but the installed size does not change" in output
    names = [f"demo-1.0-{TAG}-cu130_{arch}.whl" for arch in ("sm80", "sm90")]
    assert sorted(path.name for path in out.iterdir()) == [".axletree.lock", *names, "demo-1.0-variants.json"]
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(out / names[1]) as after:
        assert after.testzip() is None
        for unchanged in ("demo/__init__.py", SBOM):
            assert after.read(unchanged) == before.read(unchanged)
        assert after.getinfo(LIBRARY).file_size == before.getinfo(LIBRARY).file_size
        assert after.getinfo(LIBRARY).compress_size < before.getinfo(LIBRARY).compress_size
        folder = "demo-1.0.dist-info"
        contents = {name: content_of(after.read(name)) for name in after.namelist()}
        assert check_record(parse_record(after.read(f"{folder}/RECORD")), contents, dist_info=folder) == ()
        VariantDistInfo(after.read(f"{folder}/variant.json"), "cu130_sm90")


def test_variantlib_agrees(tmp_path: Path, wheel: Path) -> None:
    run(wheel, "--arch-each", "--out", tmp_path)
    ours = json.loads((tmp_path / "demo-1.0-variants.json").read_text())
    assert json.loads(VariantsJson(ours).to_str()) == ours
    tool = Path(sys.executable).with_name("variantlib")
    (path,) = tmp_path.glob("*sm90.whl")
    done = subprocess.run([tool, "analyze-wheel", "-i", path], capture_output=True, text=True, check=True)
    assert "nvidia :: sm_arch :: 90_real" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("driver", "gpu", "label"),
    [
        ("13.0", "9.0", "cu130_sm90"),
        ("13.2", "8.6", "cu130_sm80"),
        ("13.0", "10.0", None),
        ("12.8", "9.0", None),
        (None, None, None),
    ],
)
def test_uv_installs_the_variant_for_the_gpu(
    tmp_path: Path, wheel: Path, driver: str | None, gpu: str | None, label: str | None
) -> None:
    out = tmp_path / "out"
    run(wheel, "--arch-each", "--out", out)
    shutil.copy(wheel, out)
    forced = {
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": driver,
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": gpu,
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }
    command_line = [sys.executable, "-m", "uv", "pip", "install", "-q", "--preview-features", "wheel-variants"]
    command_line += ["--no-index", "--find-links", str(out), "--no-deps", "--target", str(tmp_path / "site"), "demo"]
    environment = {**os.environ, **{name: value for name, value in forced.items() if value is not None}}
    subprocess.run(command_line, check=True, env=environment, capture_output=True)
    description = tmp_path / "site" / "demo-1.0.dist-info" / "variant.json"
    installed = next(iter(json.loads(description.read_text())["variants"])) if description.exists() else None
    assert installed == label


def test_a_dry_run_tells_what_would_be_saved_and_writes_nothing(tmp_path: Path, wheel: Path) -> None:
    out = tmp_path / "out"
    text = run(wheel, "--arch", "90", "--dry-run", "--out", out)
    assert f"demo-1.0-{TAG}-cu130_sm90.whl" in text
    assert "sm_80" in text
    assert "other sections are left unchanged" in text
    assert not out.exists()
    report = result_of(run(wheel, "--arch", "90", "--dry-run", "--json"))
    (result,) = report["results"]
    (saving,) = result["libraries"]
    assert {arch["arch"]: arch["kept_entries"] for arch in saving["archs"]} == {"sm_80": 0, "sm_90": 1, "compute_90": 0}
    assert result["properties"] == [
        "nvidia :: cuda_version_lower_bound :: 13.0",
        "nvidia :: sm_arch :: 90_real",
    ]


def test_several_architectures_go_into_one_wheel_and_ptx_stays_on_request(tmp_path: Path, wheel: Path) -> None:
    report = result_of(run(wheel, "--arch", "80", "--arch", "9.0", "--keep-ptx", "--out", tmp_path, "--json"))
    (result,) = report["results"]
    assert result["label"] == "cu130_sm80_90"
    assert result["libraries"][0]["dropped"] == 0


def test_what_would_be_empty_is_refused_by_name(tmp_path: Path, wheel: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(IntegrityError) as error:
        run(wheel, "--arch", "75", "--out", out)
    assert f"{wheel.name}: {LIBRARY}" in str(error.value)
    assert "code for sm_80, sm_90, compute_90 does not run on 75" in str(error.value)
    assert not out.exists()
    text = run(wheel, "--arch", "75", "--allow-missing", "--cuda", "12.8", "--out", out)
    assert "already lacked code for that GPU" in text
    assert (out / f"demo-1.0-{TAG}-cu128_sm75.whl").exists()


def test_a_wheel_without_gpu_code_is_a_clear_answer(tmp_path: Path) -> None:
    path = tmp_path / f"demo-1.0-{TAG}.whl"
    path.write_bytes(wheel_bytes({"demo/lib.so": make_elf()}, tag=TAG))
    with pytest.raises(UsageError, match="contains no GPU code"):
        run(path, "--arch", "90")
    with pytest.raises(UsageError, match="either --arch"):
        run(path)
    with pytest.raises(UsageError, match="unknown GPU architecture"):
        run(path, "--arch", "hopper")


def test_a_bare_library_is_thinned_in_a_copy(tmp_path: Path, library: Path) -> None:
    run(library, "--arch", "80", "--out", tmp_path)
    copy = tmp_path / library.name
    assert copy.stat().st_size == library.stat().st_size
    assert copy.stat().st_mode == library.stat().st_mode
    report = result_of(run(copy, "--arch-each", "--dry-run", "--json"))
    assert [result["gpus"] for result in report["results"]] == [["80"]]
    with pytest.raises(UsageError, match="the input file"):
        run(copy, "--arch", "80", "--out", tmp_path)


def test_offload_bundles_become_variants_for_amd(tmp_path: Path) -> None:
    targets = {f"hipv4-amdgcn-amd-amdhsa--{arch}": arch.encode() * 900 for arch in ("gfx90a:xnack-", "gfx1030")}
    library = tmp_path / "demo.so"
    library.write_bytes(make_elf(soname="demo.so"))
    fatbin = tmp_path / "fatbin"
    fatbin.write_bytes(bundle(targets))
    section = [f"--add-section=.hip_fatbin={fatbin}", "--set-section-flags=.hip_fatbin=alloc,readonly"]
    subprocess.run(["objcopy", *section, "--set-section-alignment=.hip_fatbin=4096", library], check=True)
    path = tmp_path / f"demo-1.0-{TAG}.whl"
    path.write_bytes(wheel_bytes({"demo/lib.so": library.read_bytes()}, tag=TAG))
    report = result_of(run(path, "--arch-each", "--out", tmp_path / "out", "--json"))
    assert [(result["label"], result["properties"]) for result in report["results"]] == [
        ("gfx90a_no_xnack", ["amd :: gfx_arch :: gfx90a"]),
        ("gfx1030", ["amd :: gfx_arch :: gfx1030"]),
    ]
    with pytest.raises(UsageError, match="none for GPUs from the vendor of 90"):
        run(path, "--arch", "90", "--out", tmp_path / "out")


@pytest.fixture(scope="module")
def hip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hip_library(tmp_path_factory.mktemp("hip") / "libhip.so", bundles(4))


def test_a_wheel_for_amd_is_smaller_once_installed(tmp_path: Path, hip: Path) -> None:
    fixed = hip_library(tmp_path / "libfixed.so", bundles(2), more="const void *elsewhere = __hip_fatbin_1;")
    path = tmp_path / f"demo-1.0-{TAG}.whl"
    files = {"demo/libhip.so": hip.read_bytes(), "demo/libfixed.so": fixed.read_bytes()}
    path.write_bytes(wheel_bytes(files, tag=TAG))
    text = run(path, "--arch", "gfx90a", "--out", tmp_path / "out")
    kept, whole = 4 * 2 * 3 * 4096, 4 * 4 * 3 * 4096
    assert "something other than a bundle's wrapper points into .hip_fatbin" in text
    assert "Dropped code becomes zeros unless noted otherwise: the download gets smaller" in text
    site = tmp_path / "site"
    (out,) = (tmp_path / "out").glob("*.whl")
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
        archive.extractall(site)
        folder = "demo-1.0.dist-info"
        contents = {name: content_of(archive.read(name)) for name in archive.namelist()}
        assert check_record(parse_record(archive.read(f"{folder}/RECORD")), contents, dist_info=folder) == ()
    assert (site / "demo/libfixed.so").stat().st_size == fixed.stat().st_size
    smaller = hip.stat().st_size - (site / "demo/libhip.so").stat().st_size
    assert whole - kept - 4096 <= smaller <= whole - kept
    assert f"{format_bytes(smaller)} smaller once installed" in text
    assert [load(site / "demo" / name) for name in ("libhip.so", "libfixed.so")] == [42, 42]


def test_a_bare_library_for_amd_is_smaller(tmp_path: Path, hip: Path) -> None:
    report = result_of(run(hip, "--arch-each", "--out", tmp_path, "--json"))
    assert [result["gpus"] for result in report["results"]] == [[target] for target in sorted(TARGETS, key=order)]
    for result in report["results"]:
        copy = Path(result["file"])
        assert copy.stat().st_size == result["size"] < hip.stat().st_size
        assert load(copy) == 42
        (archs,) = (
            [arch["arch"] for arch in library["archs"] if arch["kept_entries"]] for library in result["libraries"]
        )
        assert archs == result["gpus"]
    text = run(hip, "--arch", "gfx1030", "--out", tmp_path)
    assert "takes up no space, neither in the download nor once installed" in text
    plan = result_of(run(hip, "--arch", "gfx1030", "--dry-run", "--json"))
    assert plan["results"][0]["size"] == (tmp_path / hip.name).stat().st_size
