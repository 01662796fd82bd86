"""The verbs that back up the whole store and restore it: a copy of the embedded server, or a dump of another."""

import asyncio
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec

from app.errors import ConfigurationError, DatabaseUnavailable, InvalidInput, StorageFull
from app.foundation.db.database import Database
from app.foundation.db.migrations import current, upgrade
from app.foundation.db.pool import DISTRIBUTED, OWNER, libpq_url
from app.foundation.db.session import Session
from app.foundation.postgres.cluster import SYNC_METHOD, binary, environment, reason
from app.foundation.values import frozen
from app.settings import VERSION, Settings
from app.wiring import opened_database

CLUSTER, DUMP, LABEL = "postgres", "priors.dump", "priors-backup.json"
"""The parts of a backup: the embedded server's data, or a dump; and its description."""
_MANIFEST = "backup_manifest"
"""The server's list of the files of a copy, with their checksums."""
_RESTORED = """
# Written by `priors store restore`: two servers must not write into one archive.
archive_mode = off
"""
_RECOVERY = """
# Written by `priors store restore`: the end of the recovery.
hot_standby = off
restore_command = '{command}'
recovery_target_time = '{until}'
recovery_target_action = 'promote'
"""


@frozen
class Backup:
    """The description of a backup, as its folder has it."""

    kind: Literal["embedded", "dump"]
    version: str
    """The version of Priors that wrote it."""
    revision: str | None
    """The revision of its schema."""
    began_at: datetime
    sha256: str = ""
    """The digest of a dump, or of a copy's WAL, which the server's manifest does not list."""


@frozen
class Replay:
    """The later changes that a restored copy takes in, from archived WAL."""

    archive: Path
    """The folder of the archive."""
    until: datetime
    """The moment at which it ends."""


class _File(msgspec.Struct, rename="pascal"):
    """A file of a copy, with its SHA-256."""

    path: str
    checksum: str


class _Manifest(msgspec.Struct, rename="pascal"):
    """The part of a manifest that is checked."""

    files: list[_File]


async def back_up(settings: Settings, folder: Path) -> Backup:
    """Writes a backup of the whole store into a new folder, while the service runs, and verifies it.

    Raises:
        InvalidInput: the folder holds something already.
        ConfigurationError: the store is distributed.
        DatabaseUnavailable: the backup could not be written, or is not sound; nothing is left of it.
    """
    _check_free(folder)
    async with opened_database(settings, pool_size=1) as (database, _):
        revision = await current(database)
        async with database.across() as session:
            await _check_undistributed(session)
        # A full disk needs a backup, though it has no room for the entry.
        with suppress(StorageFull):
            async with database.across() as session:
                await _note(session)
        begun = Backup(kind=_kind(settings), version=VERSION, revision=revision, began_at=datetime.now(UTC))
        return await asyncio.to_thread(_write, begun, libpq_url(database.admin_url), folder)


async def _check_undistributed(session: Session) -> None:
    """Refuses a distributed store: pg_dump reads each table at another moment there, so that rows lack their others."""
    if await session.value(f"SELECT {DISTRIBUTED}"):
        raise ConfigurationError(
            "the store is distributed over the nodes of a cluster: copy each node by pg_basebackup, or each"
            " workspace by `priors workspace dump` (docs/how-to/deployment.md)"
        )


async def _note(session: Session) -> None:
    """Notes the export in the audit log, if the schema has one."""
    if await session.value("SELECT to_regclass('audit') IS NOT NULL"):
        session.changes.note_export("store", 1)


async def restore(settings: Settings, folder: Path, replay: Replay | None = None) -> Backup:
    """Restores a backup into a data directory without a store, or into an empty database.

    Raises:
        InvalidInput: the folder holds no backup, or a damaged one, or there is a store already, or no archive.
        ConfigurationError: the settings name another kind of database.
        DatabaseUnavailable: the database does not take it.
    """
    backup = await asyncio.to_thread(_read, folder)
    if backup.kind != _kind(settings):
        remedy = "leave PRIORS_DATABASE_URL out" if backup.kind == "embedded" else "set PRIORS_DATABASE_URL"
        raise ConfigurationError(f"{folder} holds a backup of the other kind of database: {remedy}")
    if replay is not None and replay.until < backup.began_at:
        raise InvalidInput("until", f"is before the backup, which began at {backup.began_at:%Y-%m-%dT%H:%M:%S%z}")
    if replay is not None and not replay.archive.is_dir():
        raise InvalidInput("archive", f"{replay.archive} is no folder; name the one that archive_command writes into")
    if backup.kind == "embedded":
        await asyncio.to_thread(_copy_back, settings.data_dir, folder / CLUSTER, replay)
        return backup
    if replay is not None:
        raise InvalidInput("until", "is for a backup of the embedded server: a dump has no WAL")
    database = Database(settings.database_url, pool_size=1)
    try:
        if await current(database) is not None:
            raise InvalidInput("", "the database holds a store already; restore into an empty one")
    finally:
        await database.close()
    await asyncio.to_thread(_load, libpq_url(settings.database_url), folder / DUMP)
    return backup


def _kind(settings: Settings) -> Literal["embedded", "dump"]:
    return "dump" if settings.database_url else "embedded"


def _write(backup: Backup, url: str, folder: Path) -> Backup:
    with _whole_or_not(folder) as fresh:
        if backup.kind == "embedded":
            wal = ("--wal-method", "stream", "--checkpoint", "fast", "--manifest-checksums", "SHA256")
            to = ("--pgdata", str(fresh / CLUSTER), "--sync-method", SYNC_METHOD)
            _run("pg_basebackup", *to, *wal, "--dbname", url=url)
            if damage := _damaged_file(fresh / CLUSTER):
                raise DatabaseUnavailable(f"the backup is not what the server sent: {damage}")
        else:
            # As the owner of the tables a login sees all workspaces without being a superuser.
            how = ("--role", OWNER, "--enable-row-security", "--format", "custom")
            _run("pg_dump", *how, "--file", str(fresh / DUMP), "--dbname", url=url)
            _run("pg_restore", "--file", os.devnull, str(fresh / DUMP))
        backup = replace(backup, sha256=_digest(*_sealed_files(backup, fresh)))
        (fresh / LABEL).write_bytes(msgspec.json.encode(backup))
    return backup


@contextmanager
def _whole_or_not(folder: Path) -> Iterator[Path]:
    """Yields a folder that takes the place of a missing or an empty one in the end, or is removed.

    Raises:
        InvalidInput: something is there already.
        ConfigurationError: the folder cannot be made there.
    """
    _check_free(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}.new-", dir=folder.parent))
        try:
            yield fresh
            with suppress(FileNotFoundError):
                folder.rmdir()
            fresh.rename(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be made: {error}; name another folder, or make room") from error


def _check_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput("", f"{folder} holds something already, and nothing is overwritten; name a new folder")


def _read(folder: Path) -> Backup:
    try:
        backup = msgspec.json.decode((folder / LABEL).read_bytes(), type=Backup)
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidInput("", f"{folder} holds no backup of Priors: {error}") from error
    if damage := _damage(backup, folder):
        raise InvalidInput("", f"the backup in {folder} is damaged: {damage}")
    return backup


def _damage(backup: Backup, folder: Path) -> str:
    """Returns how a backup differs from what was written; "" if it does not."""
    try:
        if backup.kind == "embedded" and (damage := _damaged_file(folder / CLUSTER)):
            return damage
        sealed = _sealed_files(backup, folder)
        return "" if _digest(*sealed) == backup.sha256 else f"{sealed[0].name} is not as it was written"
    except (OSError, msgspec.DecodeError) as error:
        return str(error)


def _sealed_files(backup: Backup, folder: Path) -> list[Path]:
    """Returns the files whose digest is in the description of a backup.

    Raises:
        FileNotFoundError: none of them is there.
    """
    if backup.kind == "dump":
        return [folder / DUMP]
    wal = folder / CLUSTER / "pg_wal"
    if not (segments := sorted(path for path in wal.iterdir() if path.is_file())):
        raise FileNotFoundError(f"{wal} is empty")
    return segments


def _damaged_file(copy: Path) -> str:
    """Returns the first file of a copy that differs from the server's manifest; "" if none does.

    The wheel's own pg_verifybackup (18.4) ends with a segmentation fault.
    """
    for file in msgspec.json.decode((copy / _MANIFEST).read_bytes(), type=_Manifest).files:
        if _digest(copy / file.path) != file.checksum:
            return f"{file.path} has another checksum"
    return ""


def _copy_back(data_dir: Path, copy: Path, replay: Replay | None) -> None:
    with _whole_or_not(data_dir / CLUSTER) as fresh:
        shutil.copytree(copy, fresh, dirs_exist_ok=True, ignore=shutil.ignore_patterns(_MANIFEST))
        with (fresh / "postgresql.auto.conf").open("a") as settings:
            settings.write(_RESTORED)
            if replay is not None:
                until = replay.until.astimezone(UTC).isoformat(sep=" ")
                settings.write(_RECOVERY.format(command=_restore_command(replay.archive.resolve()), until=until))
                (fresh / "recovery.signal").touch()


def _restore_command(archive: Path) -> str:
    """Returns the command that fetches a file of an archive, quoted for the shell and for the server's settings."""
    folder = shlex.quote(str(archive)).replace("%", "%%")
    return f'cp {folder}/%f "%p"'.replace("\\", "\\\\").replace("'", "''")


def _load(url: str, dump: Path) -> None:
    how = ("--no-owner", "--no-privileges", "--no-policies", "--exit-on-error", "--single-transaction")
    _run("pg_restore", *how, str(dump), "--dbname", url=url)
    # It makes the roles, grants and policies, and what a later version added.
    upgrade(url)


def _run(program: str, *arguments: str, url: str = "") -> None:
    """Runs a program of Postgres; the URL is its last argument. A list of processes shows no password.

    Raises:
        DatabaseUnavailable: it failed; the message has its reason.
    """
    parts = urlsplit(url)
    shown = url.replace(f":{parts.password}@", "@", 1) if parts.password else url
    secret = {"PGPASSWORD": unquote(parts.password)} if parts.password else {}
    done = subprocess.run(  # noqa: S603 - the wheel's programs
        [str(binary(program)), *arguments, *([shown] if url else [])],
        env={**environment(), **secret},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise DatabaseUnavailable(f"{program} failed: {reason(done.stderr)}")


def _digest(*files: Path) -> str:
    """Returns the SHA-256 of the contents of files, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            hashlib.file_digest(opened, lambda: digest)
    return digest.hexdigest()
