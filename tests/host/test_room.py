"""The room of a stage, seen from inside: the host's files where they are, and the store at its fixed path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from axletree.host import devices

HEAD = """
import json, os, subprocess, sys
from pathlib import Path
from axletree.host import room, sandbox
from axletree.host.sandbox import run_isolated
store = Path(sys.argv[1])
def body(granted):
    try:
        print(json.dumps(look(granted)), flush=True)
        return 0
    except Exception as error:
        print(json.dumps(repr(error)), flush=True)
        return 1
"""
TAIL = "\nsys.exit(run_isolated(body, network=False, store=store))\n"


def look(store: Path, lines: str, *, before: str = "", prefix: tuple[str, ...] = ()) -> Any:
    """What an expression gives inside; lines before it may do things."""
    *statements, value = lines.strip().splitlines()
    inner = "".join(f"    {line}\n" for line in [*statements, f"return {value.strip()}"])
    script = f"{HEAD}{before}\ndef look(granted):\n{inner}{TAIL}"
    done = subprocess.run(
        [*prefix, sys.executable, "-c", script, str(store)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", autouse=True)
def granted(tmp_path_factory: pytest.TempPathFactory) -> None:
    if look(tmp_path_factory.mktemp("granted"), "granted.paths") is not True:
        pytest.skip("this system does not allow a mount namespace")


def test_the_store_is_at_its_fixed_path_and_still_at_its_own(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("1")
    seen = look(
        tmp_path,
        "(room.STORE / 'made').write_text('2')\n"
        "[room.in_room(), *(sorted(os.listdir(folder)) for folder in ('/axletree/store', store, '/axletree'))]",
    )
    assert seen == [True, ["here", "made"], ["here", "made"], ["changes", "image", "store", "workspace"]]
    assert (tmp_path / "made").read_text() == "2"


def test_all_else_of_the_host_is_where_it_was(tmp_path: Path) -> None:
    """With links as links, and the folder that the root was built on."""
    (tmp_path / "marker").touch()
    entries = [entry.name for entry in Path("/").iterdir() if entry.is_symlink() or entry.is_dir() or entry.is_file()]
    seen = look(
        tmp_path,
        "[sorted(os.listdir('/')), os.path.islink('/bin'), (store / 'marker').exists(), sorted(os.listdir('/tmp')),"
        " os.getpid() in map(int, filter(str.isdigit, os.listdir('/proc')))]",
    )
    assert set(entries) <= set(seen[0])
    assert "axletree" in seen[0]
    assert seen[1] == Path("/bin").is_symlink()
    assert seen[2] is True
    assert set(seen[3]) & {entry.name for entry in Path("/tmp").iterdir()}
    assert seen[4] is True


def test_nothing_is_written_to_the_root_and_no_name_leads_to_the_old_one(tmp_path: Path) -> None:
    seen = look(
        tmp_path,
        "made = subprocess.run(['touch', '/axletree-test'], capture_output=True).returncode\n"
        "[made, len(Path('/proc/self/mountinfo').read_text().split(' / / ')) - 1]",
    )
    assert seen == [1, 1]
    assert not Path("/axletree-test").exists()


def test_files_are_linked_and_renamed_all_over_the_store(tmp_path: Path) -> None:
    """One mount: across two of them that would be refused."""
    for name in ("work", "blobs"):
        (tmp_path / name).mkdir()
    (tmp_path / "blobs" / "a").write_text("a")
    seen = look(
        tmp_path,
        "os.link(room.STORE / 'blobs/a', room.STORE / 'work/a')\n"
        "os.rename(room.STORE / 'work/a', room.STORE / 'blobs/b')\n"
        "os.stat(store / 'blobs/b').st_nlink",
    )
    assert seen == 2


def test_a_kept_folder_is_seen_at_one_path(tmp_path: Path) -> None:
    (tmp_path / "workspaces" / "abc").mkdir(parents=True)
    seen = look(
        tmp_path,
        "kept = room.STORE / 'workspaces/abc'\n"
        "with room.kept_at_one_place(kept) as at:\n"
        "    (at / 'state').mkdir()\n"
        "    names = [str(at), str(room.unaliased(at / 'state')), str(room.unaliased(Path('/usr')))]\n"
        "[*names, os.listdir(at), room.outside(b'in /axletree/workspace/state: no').decode()]",
    )
    assert seen[:4] == ["/axletree/workspace", "/axletree/store/workspaces/abc/state", "/usr", []]
    assert seen[4] == f"in {tmp_path}/workspaces/abc/state: no"
    assert (tmp_path / "workspaces" / "abc" / "state").is_dir()


@pytest.mark.parametrize("name", ["plain", 'with "quotes"', "ünï", "back\\slash"])
def test_what_leaves_has_the_paths_that_users_know(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    texts = [
        "-I/axletree/store/x",
        "/axletree/store: full",
        "/axletree/storehouse",
        "/axletree/store.d",
        "axletree/store/",
    ]
    seen = look(
        tmp_path / name,
        f"texts = {texts!r}\n"
        "[[os.fsdecode(room.outside(text.encode())) for text in texts],"
        " json.loads(room.outside_json(json.dumps(texts).encode()))]",
    )
    at = str(tmp_path / name)
    assert seen[0] == [f"-I{at}/x", f"{at}: full", *texts[2:]]
    assert seen[1] == seen[0]


REFUSALS = {
    "tmpfs": "room.mount = lambda *args, **more: False",
    "store": "room.attach = lambda *args: False",
    "entry": "real = room.bind\nroom.bind = lambda source, target: str(source) != '/usr' and real(source, target)",
    "root": "room.change_root = lambda root: False",
}


@pytest.mark.parametrize("what", REFUSALS)
def test_where_something_is_refused_the_stage_has_its_own_paths(tmp_path: Path, what: str) -> None:
    seen = look(
        tmp_path,
        "[granted.processes, granted.mounts, granted.paths, room.in_room(), os.path.exists('/axletree'),"
        " room.outside(b'/axletree/store/x').decode(), os.listdir(store)]",
        before=REFUSALS[what],
    )
    assert seen == [True, True, False, False, False, "/axletree/store/x", []]


def test_an_ordinary_user_has_a_room_too(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    folder = tmp_path / "store"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    for parent in folder.parents:
        if not parent.stat().st_mode & 0o001:
            parent.chmod(0o711)
    # The interpreter may lie where only root may look, so root becomes the user after everything is imported.
    before = (
        "import ctypes\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)"  # dumpable again: else its files in /proc are root's
    )
    seen = look(
        folder, "(room.STORE / 'made').touch()\n[granted.paths, os.geteuid(), os.listdir(store)]", before=before
    )
    assert seen == [True, 65534, ["made"]]
    assert (folder / "made").stat().st_uid == 65534


def test_an_image_has_the_devices_of_containers_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    seen = look(
        tmp_path,
        "room.prepare_image(room.STORE / 'root')\n"
        "place = room.IMAGE / 'dev'\n"
        "(place / 'null').write_text('x')\n"
        "[sorted(os.listdir(place)), (place / 'null').read_text(), len((place / 'urandom').open('rb').read(4)),"
        " os.readlink(place / 'fd'), room.gpu_variables({}), sorted(os.listdir(room.IMAGE / 'axletree'))]",
    )
    assert set(seen[0]) >= {"full", "null", "random", "urandom", "zero", "fd", "stdout"}
    assert set(seen[0]) <= {*devices._COMMON, *devices._LINKS}
    assert seen[1:] == ["", 4, "/proc/self/fd", {}, ["store", "workspace"]]


def fake_gpus(folder: Path) -> None:
    """Names as a host with NVIDIA's driver, MIG and ROCm has them, and others beside them."""
    for name in ("null", "nvidia0", "nvidiactl", "nvidia-uvm", "kfd", "sda", "kvm"):
        (folder / "dev").mkdir(exist_ok=True)
        (folder / "dev" / name).write_text(name)
    for name in ("dri", "nvidia-caps", "shm"):
        (folder / "dev" / name).mkdir()
    (folder / "dev" / "dri" / "renderD128").touch()
    (folder / "lib").mkdir()
    for name in ("libcuda.so.580.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libGL.so.1", "libc.so.6"):
        (folder / "lib" / name).write_text(name)
    (folder / "lib" / "libcuda.so.1").symlink_to("libcuda.so.580.1")
    (folder / "lib" / "libcuda.so").symlink_to("/nowhere/libcuda.so")


@pytest.mark.parametrize("gpus", [False, True])
def test_gpus_are_among_them_only_if_they_are_passed_on(tmp_path: Path, *, gpus: bool) -> None:
    fake_gpus(tmp_path)
    (tmp_path / "shown").mkdir()
    seen = look(
        tmp_path,
        "from axletree.host import devices\n"
        "place = room.STORE / 'shown'\n"
        f"refused = devices.show_devices(place, gpus={gpus}, source=room.STORE / 'dev')\n"
        "[refused, sorted(name for name in os.listdir(place) if name not in devices._LINKS), "
        "(place / 'null').read_text(), [str(each.name) for each in place.glob('dri/*')]]",
    )
    passed = ["dri", "kfd", "nvidia-caps", "nvidia-uvm", "nvidia0", "nvidiactl"] if gpus else []
    assert seen == [None, sorted([*passed, "null", "shm"]), "null", ["renderD128"] if gpus else []]


def test_the_libraries_of_the_driver_come_with_them_and_cannot_be_written_to(tmp_path: Path) -> None:
    fake_gpus(tmp_path)
    (tmp_path / "shown").mkdir()
    seen = look(
        tmp_path,
        "from axletree.host import devices\n"
        "place = room.STORE / 'shown'\n"
        "refused = devices.show_driver(place, [room.STORE / 'none', room.STORE / 'lib'])\n"
        "written = subprocess.run(['sh', '-c', f'echo x >{place}/libcuda.so.1'], capture_output=True).returncode\n"
        "[refused, {each.name: each.read_text() for each in place.iterdir()}, written]",
    )
    cuda = "libcuda.so.580.1"
    others = {name: name for name in ("libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")}
    assert seen[:2] == [None, {"libcuda.so.1": cuda, cuda: cuda, **others}]
    assert seen[2] != 0
    assert (tmp_path / "lib" / cuda).read_text() == cuda


def test_a_host_without_the_driver_has_no_libraries_to_show(tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    seen = look(
        tmp_path,
        "from axletree.host import devices\n"
        "[devices.show_driver(room.STORE / 'shown', [store]), os.listdir(room.STORE / 'shown')]",
    )
    assert seen == [None, []]


def test_programs_look_for_the_driver_before_other_libraries(tmp_path: Path) -> None:
    fake_gpus(tmp_path)
    (tmp_path / "root").mkdir()
    seen = look(
        tmp_path,
        "room.prepare_image(room.STORE / 'root', gpus=True)\n"
        "shown = sorted(os.listdir(room.IMAGE / 'axletree' / 'driver'))\n"
        "[room.gpu_variables({'LD_LIBRARY_PATH': '/opt/lib'}), room.gpu_variables({}), 'libcuda.so.1' in shown]",
        before="from axletree.host import libraries\nlibraries.search_folders = lambda variable: [store / 'lib']\n",
    )
    assert seen == [
        {"LD_LIBRARY_PATH": "/axletree/driver:/opt/lib"},
        {"LD_LIBRARY_PATH": "/axletree/driver"},
        True,
    ]
