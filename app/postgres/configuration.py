"""The configuration of the embedded Postgres: its settings for this machine, and who may connect."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from app.db.roles import LOGIN
from app.postgres.cluster import SUPERUSER, SYNC_METHOD, Cluster

MIB = 1 << 20
_HBA, _IDENT = "priors_hba.conf", "priors_ident.conf"


def settings_files(cluster: Cluster, socket_folder: Path) -> dict[str, str]:
    """Returns the server's files by name: its settings, and the rules of who may connect.

    Only the cluster's account can open the socket's folder (0700), and nothing listens on the network. A client is
    therefore that account or root, and `trust` suffices. A borrowed account is shared with other programs, and its
    server may have root's right to read; there the kernel must confirm that the client is root (`peer`).
    """
    settings = {**_FIXED_SETTINGS, **_machine_settings(_memory(), stored=_bytes_below(cluster.folder / "base"))}
    settings["unix_socket_directories"] = f'"{socket_folder}"'
    # Absolute paths: with relative ones, a reload reports that it cannot apply them.
    settings["hba_file"], settings["ident_file"] = (str(cluster.folder / name) for name in (_HBA, _IDENT))
    lines = [f"{name} = {_quoted(value)}" for name, value in settings.items()]
    who = "peer map=priors" if cluster.account.borrowed else "trust"
    return {
        "priors.conf": "\n".join(["# Written by Priors at every start. Use ALTER SYSTEM: it wins.", *lines, ""]),
        _HBA: f"local all all {who}\nlocal replication all {who}\n",
        _IDENT: f"priors root {SUPERUSER}\npriors root {LOGIN}\n",
    }


def _quoted(value: str) -> str:
    marks = str.maketrans({"\\": r"\\", "'": "''", "\n": r"\n", "\r": r"\r"})
    return f"'{value.translate(marks)}'"


_FIXED_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "work_mem": "32MB",
    # On solid-state disks a random page costs about as much as the next one.
    "random_page_cost": "1.1",
    # Compiling one of this service's statements takes longer than running it.
    "jit": "off",
    # This means pglz: the wheel is built without lz4 and zstd.
    "wal_compression": "on",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "checkpoint_completion_target": "0.9",
    # Ends the statement of a client that is gone, even if the postmaster was killed.
    "client_connection_check_interval": "2s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    # One file a weekday, overwritten a week later. Failing statements are not logged, because they contain memories.
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "server-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",
}


def _machine_settings(memory: int, *, stored: int) -> dict[str, str]:
    """Computes the settings that depend on the system, its memory and the size of the stored databases, both in bytes.

    Recalls read at random places, so their data should stay in the shared buffers: 112 MB of the vector index and
    400 MB of tables for each 100,000 memories. A gigabyte of buffers takes 25 MB before anything is read, so only a
    large store gets more. At 100,000 memories building the index takes 32 s within maintenance_work_mem, and 88 s at
    the default of 64 MB.
    """
    maintenance = _clamped(memory // 16, 256, 4096)
    return {
        "shared_buffers": f"{max(_clamped(memory // 8, 128, 1024), _clamped(min(memory // 4, stored), 128, 8192))}MB",
        "effective_cache_size": f"{_clamped(memory // 2, 256, 1 << 20)}MB",
        "maintenance_work_mem": f"{maintenance}MB",
        "autovacuum_work_mem": f"{min(maintenance, 1024)}MB",
        "recovery_init_sync_method": SYNC_METHOD,
        "dynamic_shared_memory_type": "mmap" if _shared_memory() < 2 * maintenance * MIB else "posix",
    }


def _bytes_below(folder: Path) -> int:
    """Adds up the sizes of the files below a folder; files that disappear meanwhile are left out."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(parent) / name).lstat().st_size
    return total


def _clamped(size: int, least: int, most: int) -> int:
    """Converts bytes to MiB, within bounds in MiB."""
    return max(least, min(size // MIB, most))


def _memory() -> int:
    """Returns the memory of this machine or the limit of its container, whichever is smaller, in bytes."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        with suppress(OSError, ValueError):
            return min(installed, int(limit.read_text()))
    return installed


def _shared_memory() -> float:
    """Returns the size of /dev/shm in bytes; a container's 64 MB are too few for a parallel index build."""
    if sys.platform != "linux":
        return float("inf")
    shared = Path("/dev/shm")  # noqa: S108 - only its size is read
    if not shared.exists():
        return 0.0
    found = os.statvfs(shared)
    return float(found.f_blocks * found.f_frsize)
