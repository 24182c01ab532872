"""Operating system, processor, memory, disks, limits."""

from __future__ import annotations

from axletree.check.host.part import FactGroup


class Limit(FactGroup, frozen=True, kw_only=True):
    """A resource limit of this process; :data:`~axletree.check.host.part.UNLIMITED` where there is none."""

    soft: int
    hard: int


class System(FactGroup, frozen=True, kw_only=True):
    """Kernel, distribution, C library, and what kind of machine it is."""

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
    """Whether the superuser may write below ``/sys``; containers mount it read-only."""
    namespaces: bool | None = None
    """Whether this process may make user and PID namespaces, which stages are confined with."""
    locale: str | None = None
    """What decides the character set: the first of ``LC_ALL``, ``LC_CTYPE``, ``LANG`` that is set; ``C`` without."""
    charmap: str | None = None
    """``UTF-8`` or ``ANSI_X3.4-1968``: what ``locale charmap`` says programs take text as."""
    utf8_locale: str | None = None
    """A UTF-8 locale that exists here, ``C.UTF-8`` first; ``none`` where there is none."""
    clock_skew: float | None = None
    """Seconds by which a new file's time is ahead of the clock: on network disks it makes ninja build forever."""
    open_files: Limit | None = None
    processes: Limit | None = None
    stack: Limit | None = None
    address_space: Limit | None = None
    file_size: Limit | None = None
    locked_memory: Limit | None = None


class Cpu(FactGroup, frozen=True, kw_only=True):
    """The processor, and how much of it a build may use."""

    model: str | None = None
    vendor: str | None = None
    """``GenuineIntel``, ``AuthenticAMD``, ``ARM`` ..."""
    logical: int | None = None
    """Logical processors that are online."""
    affinity: int | None = None
    """Those that this process may run on."""
    quota: float | None = None
    """Cores' worth of time that the tightest control group above us allows; ``UNLIMITED`` as a float without one."""
    cores: int | None = None
    """What a build may use: the least of the two, at least 1."""
    threads_per_core: int | None = None
    numa_nodes: int | None = None
    flags: tuple[str, ...] | None = None
    """Instruction sets that PyTorch's kernels, oneDNN and compilers' sanity checks look at."""
    level: str | None = None
    """``x86-64-v3``: the highest of the psABI's levels that all flags fit; ``None`` on other machines."""


class Cgroup(FactGroup, frozen=True, kw_only=True):
    """Control groups: which version rules memory, and what this process may do. Tried, not guessed from a version."""

    version: str | None = None
    """``1``, ``2``, ``hybrid`` (both mounted), ``none``."""
    memory_controller: str | None = None
    """Version of the hierarchy that memory is limited in: ``1`` or ``2``; ``none``."""
    may_create: bool | None = None
    """A group could be made below ours."""
    may_limit_memory: bool | None = None
    """A memory limit could be set on that group and read back."""
    may_kill: bool | None = None
    """The group had ``cgroup.kill`` (version 2, Linux 5.14)."""
    may_freeze: bool | None = None
    """The group had ``cgroup.freeze`` or a freezer."""


class Memory(FactGroup, frozen=True, kw_only=True):
    """Memory, its limits, and the signs of its shortage."""

    total: int | None = None
    available: int | None = None
    """Without swap, for this process: also within the limits of control groups."""
    swap_total: int | None = None
    swap_free: int | None = None
    limit: int | None = None
    """The tightest memory limit of the control groups above us; ``UNLIMITED`` without one."""
    limit_used: int | None = None
    """Of that group, without caches that the kernel drops."""
    limit_left: int | None = None
    swap_limit: int | None = None
    """Swap beyond memory that the control groups allow; 0 forbids it, ``UNLIMITED`` without a limit."""
    shm: int | None = None
    """Size of ``/dev/shm``."""
    overcommit: int | None = None
    """``vm.overcommit_memory``: with 2 large maps fail although memory is free."""
    pressure_some: float | None = None
    """PSI: share of the last ten seconds (%) in which some process waited for memory."""
    pressure_trigger: bool | None = None
    """Whether a PSI trigger could be set on ``/proc/pressure/memory``."""
    oom_kills: int | None = None
    """Processes that the kernel killed for memory: in our control group, else since boot."""
    cgroup: Cgroup | None = None


class Disk(FactGroup, frozen=True, kw_only=True):
    """A file system that matters, and what it can do, tried in the folders named."""

    uses: dict[str, str]
    """``home``, ``tmp``, ``store``, ``cwd`` -> the folder."""
    mount: str | None = None
    filesystem: str | None = None
    """``ext4``, ``xfs``, ``btrfs``, ``overlay``, ``tmpfs``, ``nfs4``, ``9p`` (drives of Windows in WSL) ..."""
    network: bool | None = None
    size: int | None = None
    free: int | None = None
    """For this user: quotas of the file system's reserve counted."""
    inodes: int | None = None
    """``UNLIMITED`` where the file system makes them as needed."""
    inodes_free: int | None = None
    read_only: bool | None = None
    noexec: bool | None = None
    """Whether the mount forbids programs; ``executable`` says what happened."""
    writable: bool | None = None
    executable: bool | None = None
    hardlinks: bool | None = None
    symlinks: bool | None = None
    reflinks: bool | None = None
    case_sensitive: bool | None = None
