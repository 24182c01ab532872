"""Python, environments, package settings, git."""

from __future__ import annotations

from axletree.check.host.part import FactGroup, HostTool


class Torch(FactGroup, frozen=True, kw_only=True):
    """An installed torch, read from its files, because importing it would take seconds and may crash."""

    path: str
    version: str | None = None
    """``2.8.0+cu128``."""
    cuda: str | None = None
    """``12.8``; ``none`` in a build without CUDA."""
    hip: str | None = None
    """``6.4.43483``; ``none`` in a build without ROCm."""
    debug: bool | None = None
    cxx11_abi: bool | None = None
    """Whether it was built with libstdc++'s new ABI."""


class Interpreter(FactGroup, frozen=True, kw_only=True):
    """A Python that commands of a build may start."""

    names: tuple[str, ...]
    """Its name on PATH: ``python``, ``python3``; ``pip`` if only pip runs it; ``axletree`` for Axletree's own."""
    path: str
    """The first target of the name, such as a shim or the link of a virtual environment."""
    version: str | None = None
    """``3.11.7``; ``None`` if it does not start."""
    implementation: str | None = None
    free_threaded: bool | None = None
    soabi: str | None = None
    prefix: str | None = None
    base_prefix: str | None = None
    virtual: bool | None = None
    """Whether it is in a virtual environment."""
    conda: bool | None = None
    """Whether it belongs to a conda environment."""
    externally_managed: bool | None = None
    """Whether installers must not change it (PEP 668)."""
    include: str | None = None
    headers: bool | None = None
    """Whether it has ``Python.h``."""
    library: str | None = None
    """``libpython``, shared or static; ``none`` if there is none to link."""
    site_packages: str | None = None
    isolated: bool | None = None
    """False if ``PYTHONPATH`` or ``PYTHONHOME`` puts other folders first."""
    packages: dict[str, str] | None = None
    """Version of each installed distribution that builds or GPU libraries depend on, by normalised name."""
    torch: Torch | None = None


class Conda(FactGroup, frozen=True, kw_only=True):
    """The active conda environment."""

    prefix: str | None = None
    """``none`` if no environment is active."""
    level: int | None = None
    """``CONDA_SHLVL``: number of stacked environments."""
    stack: tuple[str, ...] | None = None
    """The prefixes below, outermost first: ``CONDA_PREFIX_1`` ..."""
    on_path: tuple[str, ...] | None = None
    """Folders of PATH that are the ``bin`` of a conda environment, in order; one that occurs twice was activated
    twice."""
    client: HostTool | None = None
    """``conda``, ``mamba``, ``micromamba`` or ``pixi``."""
    packages: dict[str, str] | None = None
    """Package of the prefix -> version and build string, for compilers, sysroot, CUDA, BLAS, OpenMP, Python."""
    scripts: tuple[str, ...] | None = None
    """Names of the scripts that activation ran (``etc/conda/activate.d``)."""


class Pyenv(FactGroup, frozen=True, kw_only=True):
    """The state of pyenv."""

    root: str | None = None
    """``none`` without pyenv."""
    shims_first: bool | None = None
    """Whether ``python3`` on PATH is one of its shims."""
    selected: tuple[str, ...] | None = None
    """Versions that a shim starts here: from ``PYENV_VERSION``, ``.python-version`` or the global file."""
    selected_by: str | None = None
    missing: tuple[str, ...] | None = None
    """Those that are not installed."""


class Packaging(FactGroup, frozen=True, kw_only=True):
    """How pip and uv find packages. Addresses have no credentials."""

    index_url: str | None = None
    """``none`` if the user wants no index."""
    extra_index_urls: tuple[str, ...] | None = None
    find_links: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None
    """Configuration files of pip and uv that exist."""
    options: dict[str, str] | None = None
    """Other settings of pip and uv that affect builds: ``PIP_NO_BUILD_ISOLATION``, ``no-binary`` ..."""
    pip: HostTool | None = None
    pip_python: str | None = None
    """Version of the Python that ``pip`` on PATH installs into: ``3.11``."""
    pip_folder: str | None = None
    """Path of that pip."""
    uv: HostTool | None = None
    proxy: bool | None = None
    """Whether a proxy is set for https."""


class Git(FactGroup, frozen=True, kw_only=True):
    """git."""

    path: str | None = None
    """``none`` if there is none."""
    version: str | None = None
    lfs: str | None = None
    """Version of git-lfs; ``none``."""
    config: dict[str, str] | None = None
    """Settings that affect checkouts, by lower-case key."""


class Pythons(FactGroup, frozen=True, kw_only=True):
    """Python."""

    interpreters: tuple[Interpreter, ...] | None = None
    """The one that ``python3`` starts comes first, then those of ``python`` and pip, and Axletree's own."""
    venv: str | None = None
    """``VIRTUAL_ENV``; ``none``."""
    venv_on_path: bool | None = None
    """Whether PATH finds the ``python`` of that environment."""
    conda: Conda | None = None
    pyenv: Pyenv | None = None
    packaging: Packaging | None = None
