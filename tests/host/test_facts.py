"""All facts of this machine: each has a source, each agrees with the command that confirms it, none is private."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.app.facts import read_facts
from axletree.check.host.facts import HostFacts, decode_facts
from axletree.check.host.part import FactGroup
from axletree.core.errors import UsageError
from axletree.core.secrets import looks_secret
from axletree.host.facts import gather
from axletree.host.facts.access import Answer, this_host
from axletree.host.facts.gather import gather_facts
from axletree.host.facts.privacy import scrubbed, scrubber, without_credentials
from axletree.host.facts.variables import group_of, variable_facts
from support.envelopes import result_of
from support.fake_host import FakeHost

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> HostFacts:
    """Facts of this machine, taken once."""
    folder = tmp_path_factory.mktemp("facts")
    return gather_facts(this_host(os.environ, cwd=folder, store=folder / "store"), taken=NOW, version="1")


def said(*command: str) -> str:
    """What a command prints; the test is skipped without it."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    environ = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environ).stdout.strip()


def parts(value: object) -> Iterator[FactGroup]:
    """A part and all parts in it."""
    if isinstance(value, FactGroup):
        yield value
        for field in value.__struct_fields__:
            yield from parts(getattr(value, field))
    elif isinstance(value, tuple):
        for each in value:
            yield from parts(each)


def test_every_field_has_a_source_also_those_that_are_not_known(facts: HostFacts) -> None:
    silent = {
        f"{type(part).__name__}.{field}"
        for part in parts(facts)
        for field in part.__struct_fields__
        if field != "sources" and not part.sources.get(field)
    }
    assert not silent


def test_no_probe_failed(facts: HostFacts) -> None:
    assert not [source for source in facts.sources.values() if "failed" in source]


def test_they_are_written_and_read_back(facts: HostFacts) -> None:
    assert decode_facts(msgspec.json.encode(facts), file="host.json") == facts


def test_the_system_agrees_with_commands(facts: HostFacts) -> None:
    system = facts.system
    assert system.kernel == said("uname", "-r")
    assert system.machine == said("uname", "-m")
    assert f"{system.libc} {system.libc_version}" == said("getconf", "GNU_LIBC_VERSION")
    assert system.distribution == platform.freedesktop_os_release()["ID"]
    assert system.open_files is not None
    assert str(system.open_files.soft) == said("bash", "-c", "ulimit -Sn").replace("unlimited", str(2**63 - 1))
    assert system.root == (said("id", "-u") == "0")


def test_the_processor_agrees_with_commands(facts: HostFacts) -> None:
    assert facts.cpu.affinity == int(said("nproc"))
    assert facts.cpu.logical == int(said("getconf", "_NPROCESSORS_ONLN"))
    loader = subprocess.run(
        ["/lib64/ld-linux-x86-64.so.2", "--help"], capture_output=True, text=True, check=False
    ).stdout
    levels = re.findall(r"^\s+(x86-64-v\d) \(supported", loader, re.MULTILINE)
    if not levels:
        pytest.skip("this loader tells no levels")
    assert facts.cpu.level == levels[0]


def test_memory_agrees_with_free(facts: HostFacts) -> None:
    rows = {line.split()[0]: line.split()[1:] for line in said("free", "-b").splitlines()[1:]}
    assert facts.memory.total == int(rows["Mem:"][0])
    assert facts.memory.swap_total == int(rows["Swap:"][0])


def test_disks_agree_with_df(facts: HostFacts) -> None:
    assert facts.disks
    for disk in facts.disks:
        kind, size = said("df", "-B1", "--output=fstype,size", disk.mount or "/").splitlines()[1].split()
        assert (disk.filesystem, disk.size) == (kind, int(size))
        assert disk.writable is True


def test_compilers_agree_with_what_they_say(facts: HostFacts) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    compilers = facts.toolchain.compilers or ()
    cxx = next(each for each in compilers if (each.kind, each.language) == ("gcc", "c++"))
    assert cxx.version == said(cxx.path, "-dumpfullversion")
    assert cxx.target == said(cxx.path, "-dumpmachine")
    assert cxx.works is True
    header = said(cxx.path, "-M", "-include", "vector", "-x", "c++", "-fsyntax-only", os.devnull)
    vector = next(word for word in header.split() if word.endswith("/vector"))
    assert Path(vector).resolve().parent == Path((cxx.includes or ("",))[0]).resolve()
    assert cxx.runtime is not None
    strings = said("readelf", "--version-info", "--wide", cxx.runtime.path)
    numbers = {tuple(map(int, text.split("."))) for text in re.findall(r"Name: GLIBCXX_(\d[\d.]*)", strings)}
    assert cxx.runtime.glibcxx == ".".join(map(str, max(numbers)))


def test_nvcc_agrees_with_what_it_says(facts: HostFacts) -> None:
    if shutil.which("nvcc") is None and not Path("/usr/local/cuda/bin/nvcc").exists():
        pytest.skip("no nvcc")
    nvcc = next(each for each in facts.toolchain.compilers or () if each.kind == "nvcc")
    assert f"V{nvcc.version}" in said(nvcc.path, "--version")
    kit = (facts.cuda.toolkits or ())[0]
    assert list(kit.archs or ()) == said(nvcc.path, "--list-gpu-arch").split()
    assert nvcc.works is True


def test_tools_agree_with_what_they_say(facts: HostFacts) -> None:
    tools = (*(facts.toolchain.linkers or ()), *(facts.toolchain.build_tools or ()), *(facts.toolchain.tools or ()))
    home = str(Path.home())
    there = {name for name in ("cmake", "ld", "make", "ninja") if shutil.which(name)}
    assert there <= {Path(tool.path).name for tool in tools if tool.version is not None}
    for tool in tools:
        if tool.version is not None:
            path = tool.path.replace("~", home, 1) if tool.path.startswith("~/") else tool.path
            done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
            assert tool.version in done.stdout + done.stderr


def test_interpreters_agree_with_what_they_say(facts: HostFacts) -> None:
    own = next(each for each in facts.python.interpreters or () if "axletree" in each.names)
    assert own.version == platform.python_version()
    assert own.virtual == (sys.prefix != sys.base_prefix)
    assert (own.packages or {})["pip"] == said(sys.executable, "-c", "import pip; print(pip.__version__)")


def test_git_agrees_with_what_it_says(facts: HostFacts) -> None:
    assert said("git", "--version") == f"git version {facts.git.version}"


def test_nothing_of_the_trials_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    access = this_host(os.environ, cwd=tmp_path, store=tmp_path / "store")
    gather_facts(access, taken=NOW, version="1")
    assert not list(tmp_path.rglob("*axletree-probe*"))


def test_the_command_prints_them_without_what_is_private(tmp_path: Path) -> None:
    home = tmp_path / "home" / "grace.hopper"
    home.mkdir(parents=True)
    secrets = {
        "PIP_INDEX_URL": "https://grace:hunter2@index.example/simple",
        "CMAKE_ARGS": "-DX=https://oauth2:hunter2@git.example/x.git",
        "USE_TOKEN": "hunter2",
        "GIT_PASSWORD": "hunter2",
        "LOGNAME": "grace.hopper",
        "CPATH": f"{home}/include:/scratch/grace.hopper/include",
    }
    environ = {**os.environ, **secrets, "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "axletree", "facts", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=environ,
        cwd=home,
    )
    told = result_of(done.stdout)
    assert not re.search(r"hunter2|grace.hopper", done.stdout)
    values = {variable["name"]: variable["value"] for variable in told["variables"]}
    assert values["CPATH"] == "~/include:/scratch/<user>/include"
    assert values["CMAKE_ARGS"] == "-DX=https://****@git.example/x.git"
    assert values["USE_TOKEN"] == "****"


def test_an_empty_host_has_facts(tmp_path: Path) -> None:
    facts = gather_facts(FakeHost(tmp_path / "root").access, taken=NOW, version="1")
    assert not [source for source in facts.sources.values() if "failed" in source]
    assert facts.toolchain.compilers == ()
    assert facts.taken == "2026-01-02T03:04:05Z"


GARBAGE = (
    "\0\xff no numbers",
    "1:2\n: - :\n= =\n\n",
    "x " * 5000,
    "0-\n-1,,\n",
    '{"a": [}',
    "9" * 40,
    "lib.so => /\n",
    "a b c d e f - g h i\n",
    "some avg10=x total=\nflags : \nMemTotal: x kB\n",
)
FILES = (
    "/etc/os-release /etc/pip.conf /proc/1/cgroup /proc/cpuinfo /proc/driver/nvidia/version /proc/meminfo "
    "/proc/pressure/memory /proc/self/cgroup /proc/self/limits /proc/self/mountinfo /proc/self/status "
    "/proc/sys/kernel/osrelease /proc/sys/vm/overcommit_memory /proc/vmstat /run/systemd/container "
    "/sys/class/kfd/kfd/topology/nodes/0/properties /sys/class/kfd/kfd/topology/nodes/0/mem_banks/0/properties "
    "/sys/devices/system/cpu/online /sys/devices/system/cpu/cpu0/topology/thread_siblings_list "
    "/sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.stat /sys/fs/cgroup/memory.events "
    "/opt/rocm/.info/version /opt/rocm/include/hip/hip_version.h /usr/local/cuda/include/cuda.h "
    "/usr/local/cuda/version.json /usr/local/cuda/include/crt/host_config.h /usr/lib/libcudnn.so.9 "
    "/project/.python-version /home/someone/.pyenv/versions/x /home/someone/.pyenv/version"
)
PROGRAMS = (
    "gcc g++ clang nvcc hipcc python3 pip git ld cmake ninja make conda ldconfig ldd locale rocm_agent_enumerator"
)


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_breaks_no_probe(tmp_path: Path, garbage: str) -> None:
    """Whatever files hold and programs say, also where each comes instead of the other."""
    host = FakeHost(tmp_path / "root")
    for name in FILES.split():
        host.write(name, garbage)
    for name in PROGRAMS.split():
        host.program(f"/usr/bin/{name}", {"": Answer(code=0, out=garbage, err=garbage)})
    host.environ |= {"CONDA_PREFIX": garbage, "CONDA_SHLVL": garbage, "LD_LIBRARY_PATH": garbage, "CC": garbage}
    facts = gather_facts(host.access, taken=NOW, version="1")
    assert not [source for source in facts.sources.values() if "failed" in source]
    assert decode_facts(msgspec.json.encode(facts), file="host.json") == facts


def test_a_probe_that_breaks_takes_only_itself_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError("a surprise")

    monkeypatch.setattr(gather, "memory_facts", broken)
    monkeypatch.setattr(gather, "toolchain_facts", broken)
    facts = gather_facts(FakeHost(tmp_path / "root").access, taken=NOW, version="1")
    assert facts.sources["memory"] == "the probe failed: ZeroDivisionError: a surprise"
    assert facts.memory.total is None
    assert facts.cuda.toolkits == ()


def test_a_probe_that_never_answers_takes_only_itself_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network disk whose server is gone."""
    until = threading.Event()
    monkeypatch.setattr(gather, "disk_facts", lambda _: until.wait())
    monkeypatch.setattr(gather, "_SECONDS", 5.0)
    try:
        facts = gather_facts(FakeHost(tmp_path / "root").access, taken=NOW, version="1")
    finally:
        until.set()
    assert facts.sources["disks"] == "the probe failed: no response within 5 s"
    assert facts.disks is None
    assert facts.toolchain.compilers == ()


def test_a_working_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    script = f"import os; os.chdir({str(folder)!r}); os.rmdir({str(folder)!r}); from axletree.cli.main import main; "
    done = subprocess.run(
        [sys.executable, "-c", f"{script}main(['facts'])"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "the working folder was removed" in done.stderr


def test_a_file_that_holds_no_facts_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_facts(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/ada/src", "~/src"),
        ("-I/home/ada/include", "-I~/include"),
        ("/home/adamant/src", "/home/adamant/src"),
        ("/home/ada", "~"),
        ("PATH=/home/ada/bin:/usr/bin:/home/ada", "PATH=~/bin:/usr/bin:~"),
        ("/mnt/ada/x and ada's adapter", "/mnt/<user>/x and <user>'s adapter"),
        ("built on enigma-1", "built on <host>"),
        ("cpu.ada of ada-lib, ada_1", "cpu.ada of ada-lib, ada_1"),
    ],
)
def test_names_are_taken_out(text: str, expected: str) -> None:
    assert scrubber(home="/home/ada", user="ada", machine="enigma-1")(text) == expected


def test_names_that_are_common_words_stay_outside_of_home() -> None:
    scrub = scrubber(home="/", user="conda", machine=None)
    assert scrub("/opt/conda/bin and /home/conda/x") == "/opt/conda/bin and /home/<user>/x"


def test_all_texts_of_a_value_are_scrubbed() -> None:
    facts = HostFacts(
        sources={"/home/ada": "of ada"}, python=msgspec.convert({"venv": "/home/ada/v"}, type(HostFacts().python))
    )
    found = scrubbed(facts, scrubber(home="/home/ada", user="ada", machine=None))
    assert found.sources == {"~": "of <user>"}
    assert found.python.venv == "~/v"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://u:p@h/x?y=1", "https://****@h/x?y=1"),
        ("git+ssh://git@h/x", "git+ssh://****@h/x"),
        ("https://h/simple?access_token=abc&b=2", "https://h/simple?access_token=****&b=2"),
        ("a@b.example", "a@b.example"),
        ("ghp_0123456789abcdefghijABCDEF", "****"),
        ("-O2 -DKEY=1", "-O2 -DKEY=1"),
    ],
)
def test_credentials_are_taken_out(text: str, expected: str) -> None:
    assert without_credentials(text) == expected


def test_names_of_secrets() -> None:
    secret = "HF_TOKEN AWS_SECRET_ACCESS_KEY SCCACHE_REDIS_PASSWORD API_KEY"
    plain = "TORCH_CUDA_ARCH_LIST KEYBOARD USE_MONKEY CMAKE_BUILD_TYPE GIT_AUTHOR_DATE OMP_PLACES"
    assert all(looks_secret(name) for name in secret.split())
    assert not any(looks_secret(name) for name in plain.split())


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("CC", "compiler"),
        ("LD_LIBRARY_PATH", "loader"),
        ("CMAKE_CUDA_COMPILER_LAUNCHER", "cache"),
        ("TORCH_CUDA_ARCH_LIST", "cuda"),
        ("NCCL_ROOT", "cuda"),
        ("HSA_OVERRIDE_GFX_VERSION", "rocm"),
        ("USE_CUDA", "pytorch"),
        ("PYENV_ROOT", "python"),
        ("CMAKE_PREFIX_PATH", "cmake"),
        ("SOME_EXITCODE__TRYRUN_OUTPUT", "pytorch"),
        ("MAX_JOBS", "jobs"),
        ("OMP_NUM_THREADS", "threads"),
        ("SSH_AUTH_SOCK", None),
        ("HOME", None),
    ],
)
def test_variables_that_change_builds(name: str, group: str | None) -> None:
    assert group_of(name) == group
    assert [variable.name for variable in variable_facts({name: "x"})] == ([name] if group else [])
