"""The state of the schema, and bringing it up to date. Alembic does the work; plain `alembic` does the same."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.db.engine import Database
from app.errors import DatabaseUnavailable

SCRIPTS = Path(__file__).parents[2] / "migrations"


def configuration(url: str = "") -> Config:
    """Alembic's configuration for the database at `url`."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["url"] = url
    return config


def head() -> str:
    """The revision that this version of Priors needs."""
    revision = ScriptDirectory.from_config(configuration()).get_current_head()
    assert revision is not None, "the project carries its migrations"  # noqa: S101
    return revision


async def current(database: Database) -> str | None:
    """The revision that the database is at; None for an empty database."""
    async with database.statements() as connection:
        known = text("SELECT to_regclass('alembic_version') IS NOT NULL")
        if not (await connection.execute(known)).scalar_one():
            return None
        return (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar_one_or_none()


def upgrade(url: str) -> None:
    """Apply every migration that the database lacks. Two at once wait for each other.

    Raises:
        DatabaseUnavailable: the database does not answer, or refuses a statement.
    """
    try:
        command.upgrade(configuration(url), "head")
    except DBAPIError as error:
        raise DatabaseUnavailable(f"the migrations were not applied: {str(error.orig).splitlines()[0]}") from error


def print_sql() -> None:
    """Print the SQL of every migration, without a database."""
    command.upgrade(configuration(), "head", sql=True)
