"""A selector that chose GPUs where it was built says so when that is wrong where it runs, and only then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.small_sdk import Site, interpreter, make_site, pip_hint

if TYPE_CHECKING:
    from pathlib import Path

FAMILY = {
    "schema": 1,
    "family": "gfx94x",
    "by": "detection",
    "targets": ["gfx942"],
    "packages": ["rocm-sdk-libraries-gfx94x"],
    "reasons": ["KFD node 1: gfx942"],
}


def chosen(tmp_path: Path, only: list[str], **changes: Any) -> Site:
    site = make_site(tmp_path, only=only)
    (site.folder / "rocm_sdk/_selection.json").write_text(json.dumps({**FAMILY, **changes}))
    return site


def told(site: Site, **variables: str) -> str:
    done = site.run("-m", "rocm_sdk", "version", env=variables)
    assert (done.returncode, done.stdout) == (0, "7.1.0\n"), done.stderr
    return done.stderr


def gpus(*targets: str) -> dict[str, str]:
    return {"ROCM_SDK_FORCE_GFX_ARCH": ",".join(targets)}


def test_nothing_is_said_where_it_is_right(tmp_path: Path) -> None:
    site = chosen(tmp_path, ["core", "libraries", "libraries-gfx94x"])
    assert told(site) == ""  # no GPU here
    assert told(site, **gpus("gfx942")) == ""
    assert told(site, **gpus("gfx941")) == ""  # another of the family
    assert told(site, **gpus("gfx9999")) == ""  # there is nothing for it anyway
    assert told(site, ROCM_SDK_TARGET_FAMILY="gfx942") == ""


def test_another_gpu_or_family_is_noticed(tmp_path: Path) -> None:
    site = chosen(tmp_path, ["core", "libraries", "libraries-gfx94x", "devel"])
    past = "rocm-sdk: warning: the SDK was installed with packages for gfx94x (KFD node 1: gfx942), but "
    again = (
        "To choose again, run: "
        + pip_hint("--force-reinstall --no-cache-dir --no-deps 'rocm==7.1.0'", "'rocm[libraries,devel]==7.1.0'")
        + "\n"
    )
    other = f"this host has gfx1100, which needs rocm-sdk-device-gfx1100. {again}"
    assert told(site, **gpus("gfx1100")) == past + other
    assert "this host has gfx942, gfx1100, which needs rocm-sdk-device-gfx1100" in told(
        site, **gpus("gfx942", "gfx1100")
    )
    named = told(site, ROCM_SDK_TARGET_FAMILY="gfx110x")
    assert "but ROCM_SDK_TARGET_FAMILY=gfx110x, which needs rocm-sdk-libraries-gfx110x" in named


def test_what_was_added_by_hand_counts(tmp_path: Path) -> None:
    site = chosen(tmp_path, ["core", "libraries", "libraries-gfx94x", "device-gfx1100"])
    assert told(site, **gpus("gfx1100")) == ""
    assert told(site, **gpus("gfx942", "gfx1100")) == ""


def test_a_name_that_is_none_does_not_stop_it(tmp_path: Path) -> None:
    site = chosen(tmp_path, ["core"], by="default", reasons=[])
    said = told(site, ROCM_SDK_TARGET_FAMILY="gfx94y")
    assert said.startswith("rocm-sdk: warning: ROCM_SDK_TARGET_FAMILY=gfx94y is not one of ")
    assert "the SDK was installed with packages for gfx94x (the default because no GPU was found)" in said
    assert said.count("\n") == 1


def test_a_damaged_package_is_another_matter(tmp_path: Path) -> None:
    site = chosen(tmp_path, ["core", "libraries"])
    (site.folder / "_rocm_sdk_core/_sdk.json").write_text("{")
    assert told(site, ROCM_SDK_DISABLE_DETECTION="0") == ""


def test_uv_has_a_command_of_its_own(tmp_path: Path) -> None:
    site = chosen(tmp_path, ["core", "libraries"])
    next(site.folder.glob("rocm-7.1.0.dist-info")).joinpath("INSTALLER").write_text("uv\n")
    said = told(site, **gpus("gfx1100"))
    alone = "uv pip install --no-config --no-index --find-links PLACE --prerelease allow"
    assert f"{alone} --no-cache --reinstall-package rocm 'rocm[libraries]==7.1.0'" in said


@pytest.mark.parametrize("page", ["", "/index.html"])
def test_the_command_names_where_the_selector_came_from(page: str, tmp_path: Path) -> None:
    site, place = chosen(tmp_path, ["core", "libraries"]), tmp_path / "a b#c"
    place.mkdir()
    url = (place / "rocm-7.1.0-py3-none-any.whl").as_uri()
    about = next(site.folder.glob("rocm-7.1.0.dist-info")) / "direct_url.json"
    about.write_text(json.dumps({"url": url, "archive_info": {"hash": "sha256=0"}}))
    if page:
        place.joinpath("index.html").touch()
    said = told(site, **gpus("gfx1100"))
    assert f" --no-index --find-links '{place.as_uri()}{page}' 'rocm[libraries]==7.1.0'" in said
    assert "PLACE" not in said
    about.write_text(json.dumps({"url": "https://h.example/x/rocm-7.1.0-py3-none-any.whl", "archive_info": {}}))
    assert " --find-links 'https://h.example/x/index.html' " in told(site, **gpus("gfx1100"))


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"url": 3}'),
        '{"url": "file:///gone/rocm.whl", "archive_info": {}}',
        '{"url": "file:///tmp", "dir_info": {"editable": true}}',
        """{"url": "https://x/'y/z.whl", "archive_info": {}}""",
    ],
)
def test_what_tells_nothing_of_the_place(text: str, tmp_path: Path) -> None:
    site = chosen(tmp_path, ["core", "libraries"])
    (next(site.folder.glob("rocm-7.1.0.dist-info")) / "direct_url.json").write_text(text)
    assert " --find-links PLACE " in told(site, **gpus("gfx1100"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"family": 1}', '{"family": "x", "by": "y", "targets": 3}'])
def test_a_damaged_file_says_nothing(text: str, tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    (site.folder / "rocm_sdk/_selection.json").write_text(text)
    assert told(site, **gpus("gfx1100")) == ""


@pytest.mark.parametrize("version", ["3.9", "3.13"])
def test_a_process_is_warned_once_before_anything_is_loaded(version: str, tmp_path: Path) -> None:
    site = chosen(tmp_path, ["core", "libraries", "libraries-gfx94x"])
    code = "import rocm_sdk as sdk\nfor _ in range(2): sdk.initialize_process(preload_shortnames=['hiprand'])"
    done = site.run("-W", "always", "-c", code, python=interpreter(version), env=gpus("gfx1100"))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.count("UserWarning: rocm 7.1.0: the SDK was installed with packages for gfx94x") == 1
    quiet = site.run("-W", "error", "-c", code, python=interpreter(version), env=gpus("gfx942"))
    assert quiet.returncode == 0, quiet.stderr
