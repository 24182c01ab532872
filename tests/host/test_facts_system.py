"""Facts of fake hosts: system, processor, memory, disks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.check.host.part import UNLIMITED
from axletree.host.facts.access import Answer
from axletree.host.facts.disks import disk_facts, find_mount, read_mounts
from axletree.host.facts.memory import memory_facts
from axletree.host.facts.processor import expand_list, processor_facts
from axletree.host.facts.system import system_facts
from support.fake_host import FakeHost

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
V3 = "fpu cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path / "root")


def mounts(*lines: str) -> str:
    return "".join(f"{number} 1 0:{number} {line}\n" for number, line in enumerate(lines, 20))


DISK = "/ / rw,relatime - ext4 /dev/vda rw"


def test_a_plain_system(host: FakeHost) -> None:
    host.write("/etc/os-release", 'ID=ubuntu\nVERSION_ID="24.04"\n# a comment\n')
    host.write("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n")
    host.write("/proc/self/mountinfo", mounts(DISK, "/ /sys rw - sysfs sysfs rw"))
    host.write("/proc/cpuinfo", "flags\t\t: fpu avx\n")
    host.programs["ldd --version"] = Answer(code=0, out="ldd (Ubuntu GLIBC 2.39-0ubuntu8) 2.39\nFree Software\n")
    host.write("/proc/self/limits", "Max open files            1024                 1048576              files\n")
    found = system_facts(host.access)
    assert (found.distribution, found.distribution_version, found.kernel) == ("ubuntu", "24.04", "6.8.0-45-generic")
    assert (found.libc, found.libc_version) == ("glibc", "2.39")
    assert (found.container, found.virtual, found.wsl, found.sys_writable) == ("none", "none", 0, True)
    assert found.open_files is not None
    assert (found.open_files.soft, found.open_files.hard) == (1024, 1048576)
    assert found.stack is None


def test_musl_tells_itself_on_the_error_stream(host: FakeHost) -> None:
    host.programs["ldd --version"] = Answer(code=1, err="musl libc (x86_64)\nVersion 1.2.4\nDynamic Program Loader\n")
    found = system_facts(host.access)
    assert (found.libc, found.libc_version) == ("musl", "1.2.4")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/run/.containerenv": ""}, "podman"),
        ({"/.dockerenv": "", "/proc/self/mountinfo": mounts("/ / rw - overlay overlay rw")}, "docker"),
        ({"/.dockerenv": "", "/proc/self/mountinfo": mounts(DISK)}, "none"),
        ({"/proc/1/cgroup": "0::/kubepods/besteffort/pod1\n"}, "kubernetes"),
        ({"/proc/1/cgroup": "12:memory:/docker/0123abcd\n"}, "docker"),
        ({"/proc/1/cgroup": "0::/\n", "/proc/self/mountinfo": mounts("/ / rw - overlay overlay rw")}, "container"),
        ({}, None),
    ],
)
def test_containers_are_told_apart(host: FakeHost, files: dict[str, str], expected: str | None) -> None:
    for name, text in files.items():
        host.write(name, text)
    assert system_facts(host.access).container == expected


def test_wsl(host: FakeHost) -> None:
    host.write("/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n")
    found = system_facts(host.access)
    assert (found.wsl, found.virtual) == (2, "microsoft")


def test_a_container_mounts_sys_read_only(host: FakeHost) -> None:
    host.write("/proc/self/mountinfo", mounts("/ / rw - overlay overlay rw", "/ /sys ro,nosuid - sysfs sysfs ro"))
    assert system_facts(host.access).sys_writable is False


def test_the_first_locale_variable_counts_and_the_character_set_is_asked(host: FakeHost) -> None:
    host.environ |= {"LANG": "de_DE.UTF-8", "LC_ALL": "C"}
    host.programs["locale charmap"] = Answer(code=0, out="ANSI_X3.4-1968\n")
    host.programs["locale -a"] = Answer(code=0, out="C\nde_DE.utf8\nC.utf8\nPOSIX\n")
    found = system_facts(host.access)
    assert (found.locale, found.charmap, found.utf8_locale) == ("C", "ANSI_X3.4-1968", "C.utf8")


def test_what_is_not_there_is_not_known_and_says_why(host: FakeHost) -> None:
    found = system_facts(host.access)
    assert found.kernel is None
    assert "No such file" in found.sources["kernel"]
    assert found.charmap is None
    assert "locale charmap" in found.sources["charmap"]


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ("fpu sse2", "x86-64"),
        (V3.partition(" avx ")[0], "x86-64-v2"),
        (V3, "x86-64-v3"),
        (V3.replace("avx2 ", ""), "x86-64-v2"),
    ],
)
def test_levels_need_all_their_flags(host: FakeHost, flags: str, level: str) -> None:
    host.write("/proc/cpuinfo", f"vendor_id : GenuineIntel\nmodel name : Some CPU @ 2 GHz\nflags : {flags}\n")
    found = processor_facts(host.access)
    assert found.level == level
    assert (found.model, found.vendor) == ("Some CPU @ 2 GHz", "GenuineIntel")


def test_an_arm_processor_has_features_and_no_level(host: FakeHost) -> None:
    host.write(
        "/proc/cpuinfo", "processor : 0\nFeatures : fp asimd sve i8mm\nCPU implementer : 0x41\nCPU part : 0xd40\n"
    )
    found = processor_facts(host.access)
    assert (found.vendor, found.level) == ("ARM", None)
    assert found.flags == ("asimd", "i8mm", "sve")


def test_cores_are_the_lesser_of_affinity_and_quota(host: FakeHost) -> None:
    host.write("/proc/self/status", "Name: x\nCpus_allowed_list:\t0-3,8\n")
    host.write("/proc/self/cgroup", "0::/pod\n")
    host.write("/sys/fs/cgroup/pod/cpu.max", "250000 100000\n")
    host.write("/sys/devices/system/cpu/online", "0-15\n")
    found = processor_facts(host.access)
    assert (found.logical, found.affinity, found.quota, found.cores) == (16, 5, 2.5, 3)


def test_a_list_of_processors_is_expanded() -> None:
    assert expand_list("0-2,5\n") == [0, 1, 2, 5]


def test_memory_in_a_container_of_version_2(host: FakeHost) -> None:
    host.write("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 50331648 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")
    host.write("/proc/self/mountinfo", mounts("/ /sys/fs/cgroup ro - cgroup2 cgroup rw"))
    host.write("/proc/self/cgroup", "0::/\n")
    host.write("/sys/fs/cgroup/memory.max", f"{8 * GIB}\n")
    host.write("/sys/fs/cgroup/memory.current", f"{3 * GIB}\n")
    host.write("/sys/fs/cgroup/memory.stat", f"anon {GIB}\ninactive_file {GIB}\n")
    host.write("/sys/fs/cgroup/memory.swap.max", "0\n")
    host.write("/sys/fs/cgroup/memory.events", "low 0\noom_kill 7\n")
    host.write("/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n")
    host.write("/proc/pressure/memory", "some avg10=12.50 avg60=1.00 avg300=0.10 total=1\nfull avg10=0.00 total=0\n")
    host.write("/proc/sys/vm/overcommit_memory", "2\n")
    found = memory_facts(host.access)
    assert (found.total, found.limit, found.limit_left, found.available) == (64 * GIB, 8 * GIB, 6 * GIB, 6 * GIB)
    assert (found.swap_limit, found.oom_kills, found.pressure_some, found.overcommit) == (0, 7, 12.5, 2)
    assert found.cgroup is not None
    assert (found.cgroup.version, found.cgroup.memory_controller) == ("2", "2")
    assert not list((host.root / "sys/fs/cgroup").glob("axletree-probe-*"))


def test_memory_without_limits(host: FakeHost) -> None:
    host.write("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n")
    found = memory_facts(host.access)
    assert (found.limit, found.available, found.limit_left) == (UNLIMITED, GIB // 2, None)
    assert found.cgroup is not None
    assert found.cgroup.may_limit_memory is False


def test_mounts_hide_each_other_and_names_have_escapes() -> None:
    listed = read_mounts(
        mounts(
            DISK,
            "/ /project rw - nfs4 server:/x rw",
            "/ /project ro,noexec - tmpfs none rw",
            r"/ /with\040blank rw - xfs x rw",
        )
    )
    found = find_mount("/project/tree", listed)
    assert found is not None
    assert (found.filesystem, "noexec" in found.options) == ("tmpfs", True)
    assert [mount.point for mount in listed][-1] == "/with blank"
    assert find_mount("/projectile", listed) == listed[0]


def test_disks_are_tried(host: FakeHost) -> None:
    host.write("/proc/self/mountinfo", mounts(DISK, "/ /project rw,noexec - nfs4 server:/work rw"))
    found = {disk.mount: disk for disk in disk_facts(host.access)}
    assert set(found) == {"/", "/project"}
    assert set(found["/"].uses) == {"home", "tmp", "store"}
    assert (found["/project"].network, found["/project"].noexec) == (True, True)
    assert found["/"].executable is True
    assert found["/"].hardlinks is True
    assert found["/"].case_sensitive is True
    assert not list(host.root.rglob(".axletree-probe-*"))
