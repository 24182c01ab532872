"""Operating system, processor, memory, disks, limits."""

from __future__ import annotations

from axletree.check.host.part import FactGroup


class Limit(FactGroup, frozen=True, kw_only=True):
    """A resource limit of this process; ``UNLIMITED`` without a limit."""

    soft: int
    hard: int


class System(FactGroup, frozen=True, kw_only=True):
    """Kernel, distribution, C library, and the kind of machine."""

    machine: str | None = None
    """``x86_64``, ``aarch64``."""
    kernel: str | None = None
    """``6.8.0-45-generic``."""
    distribution: str | None = None
    """``ID`` of os-release: ``debian``."""
    distribution_version: str | None = None
    """``VERSION_ID`` of os-release: ``12``."""
    libc: str | None = None
    """``glibc`` or ``musl``."""
    libc_version: str | None = None
    container: str | None = None
    """``docker``, ``podman``, ``lxc``, ``kubernetes``, ``apptainer``, ``container`` (of unknown kind); ``none``."""
    virtual: str | None = None
    """Hypervisor: ``kvm``, ``firecracker``, ``microsoft``, ``vmware`` ...; ``none`` on bare metal."""
    wsl: int | None = None
    """1 or 2 in the Windows Subsystem for Linux; 0 elsewhere."""
    root: bool | None = None
    """Whether the user is the superuser."""
    sys_writable: bool | None = None
    """Whether the superuser may write to ``/sys``; containers mount it read-only."""
    namespaces: bool | None = None
    """Whether this process may create user and PID namespaces, which confine stages."""
    locale: str | None = None
    """The setting of the character set: the first of ``LC_ALL``, ``LC_CTYPE``, ``LANG`` that is set; ``C`` without
    one."""
    charmap: str | None = None
    """``UTF-8`` or ``ANSI_X3.4-1968``: the output of ``locale charmap``."""
    utf8_locale: str | None = None
    """An existing UTF-8 locale, ``C.UTF-8`` first; ``none`` if there is none."""
    clock_skew: float | None = None
    """Seconds that the time of a new file is ahead of the clock; on network disks, this makes ninja build forever."""
    open_files: Limit | None = None
    processes: Limit | None = None
    stack: Limit | None = None
    address_space: Limit | None = None
    file_size: Limit | None = None
    locked_memory: Limit | None = None


class Cpu(FactGroup, frozen=True, kw_only=True):
    """The processor, and the cores that a build may use."""

    model: str | None = None
    vendor: str | None = None
    """``GenuineIntel``, ``AuthenticAMD``, ``ARM`` ..."""
    logical: int | None = None
    """Logical processors that are online."""
    affinity: int | None = None
    """Those that this process may run on."""
    quota: float | None = None
    """Number of cores that the tightest control group allows; ``UNLIMITED`` as a float without a limit."""
    cores: int | None = None
    """Cores that a build may use: the minimum of the two, at least 1."""
    threads_per_core: int | None = None
    numa_nodes: int | None = None
    flags: tuple[str, ...] | None = None
    """Instruction sets that PyTorch's kernels, oneDNN and compilers' sanity checks look at."""
    level: str | None = None
    """``x86-64-v3``: the highest level of the psABI that all flags support; ``None`` on other machines."""


class Cgroup(FactGroup, frozen=True, kw_only=True):
    """Control groups: the version that limits memory, and what this process may do, as tested."""

    version: str | None = None
    """``1``, ``2``, ``hybrid`` (both mounted), ``none``."""
    memory_controller: str | None = None
    """Version of the hierarchy that limits memory: ``1`` or ``2``; ``none``."""
    may_create: bool | None = None
    """Whether a group can be created below the current one."""
    may_limit_memory: bool | None = None
    """Whether a memory limit can be set on that group and read back."""
    may_kill: bool | None = None
    """Whether the group has ``cgroup.kill`` (version 2, Linux 5.14)."""
    may_freeze: bool | None = None
    """Whether the group has ``cgroup.freeze`` or a freezer."""


class Memory(FactGroup, frozen=True, kw_only=True):
    """Memory, its limits, and signs of shortage."""

    total: int | None = None
    available: int | None = None
    """Available memory without swap, within the limits of control groups."""
    swap_total: int | None = None
    swap_free: int | None = None
    limit: int | None = None
    """The tightest memory limit of the control groups; ``UNLIMITED`` without a limit."""
    limit_used: int | None = None
    """Memory use of that group, without caches that the kernel can drop."""
    limit_left: int | None = None
    swap_limit: int | None = None
    """Swap beyond memory that the control groups allow; 0 forbids it, ``UNLIMITED`` without a limit."""
    shm: int | None = None
    """Size of ``/dev/shm``."""
    overcommit: int | None = None
    """``vm.overcommit_memory``: with 2 large maps fail although memory is free."""
    pressure_some: float | None = None
    """PSI: share of the last ten seconds (%) during which a process waited for memory."""
    pressure_trigger: bool | None = None
    """Whether a PSI trigger can be set on ``/proc/pressure/memory``."""
    oom_kills: int | None = None
    """Processes that the kernel killed because memory ran out: in this control group, or since boot."""
    cgroup: Cgroup | None = None


class Disk(FactGroup, frozen=True, kw_only=True):
    """A file system that builds use, and its features, as tested in the named folders."""

    uses: dict[str, str]
    """``home``, ``tmp``, ``store``, ``cwd`` -> the folder."""
    mount: str | None = None
    filesystem: str | None = None
    """``ext4``, ``xfs``, ``btrfs``, ``overlay``, ``tmpfs``, ``nfs4``, ``9p`` (drives of Windows in WSL) ..."""
    network: bool | None = None
    size: int | None = None
    free: int | None = None
    """For this user, without the reserve of the file system."""
    inodes: int | None = None
    """``UNLIMITED`` if the file system creates them as needed."""
    inodes_free: int | None = None
    read_only: bool | None = None
    noexec: bool | None = None
    """Whether the mount forbids programs; ``executable`` is the result of the test."""
    writable: bool | None = None
    executable: bool | None = None
    hardlinks: bool | None = None
    symlinks: bool | None = None
    reflinks: bool | None = None
    case_sensitive: bool | None = None
