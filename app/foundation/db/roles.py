"""The two roles of the database, one of which owns everything and the other serves, and the rows that a session sees.

Neither may log in, except on a Citus cluster, whose nodes ask each other as these roles. The role of the URL is a
member of both; a connection takes the service's as soon as it is opened, and the owner's only for work across
workspaces. migrations/security.sql makes both, and `priors store migrate` makes them again.
"""

from typing import NamedTuple, Protocol

OWNER = "priors_owner"
SERVICE = "priors_service"
LOGIN = "priors"
"""The role that the embedded Postgres' URL names for the service."""

DISTRIBUTED = "coalesce(current_setting('priors.distributed', true) = 'on', false)"
"""Tells if the tables are distributed over the nodes of a Citus cluster, as `priors store distribute` noted it."""

TAKE_SERVICE = f"""
SELECT set_config('role', '{SERVICE}', false), {DISTRIBUTED} AS distributed,
    -- A generic plan knows no workspace, so no node.
    CASE WHEN {DISTRIBUTED} THEN set_config('plan_cache_mode', 'auto', false) END
FROM pg_roles
WHERE rolname = '{SERVICE}'
    AND CASE WHEN current_setting('server_version_num')::int >= 160000 THEN pg_has_role(session_user, oid, 'SET') END
"""  # noqa: S608 - constants
"""Takes the service's role if it exists and may be taken, and tells whether the tables are distributed. A database
without this role is not migrated yet."""

LOGIN_POWERS = """
SELECT session_user AS login, rolsuper AS superuser, rolbypassrls AS bypasses, current_user AS role
FROM pg_roles WHERE rolname = session_user
"""
"""Reads the powers of the role that the URL names, as one row. Row-level security applies to a superuser, or to a
role with BYPASSRLS, only while it has taken the service's role: `doctor` warns of both."""

MAKE_LOGIN = f"""
DO $$
DECLARE role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['{OWNER}', '{SERVICE}'] LOOP
        IF to_regrole(role) IS NULL THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
    IF to_regrole('{LOGIN}') IS NULL THEN
        CREATE ROLE {LOGIN} LOGIN;
    END IF;
    GRANT {OWNER}, {SERVICE} TO {LOGIN} WITH INHERIT FALSE, SET TRUE;
END $$
"""
"""Makes the three roles of an embedded Postgres, run by its superuser at every start. Its login inherits nothing: a
connection that has not taken a role can read no table."""

EVERYONE, OWN_ROWS, SHARED = "", "own", "shared"
"""The rows that a session sees, by the policy `own_user`: those of all users and of nobody, only those of its user, or
those of its user and nobody's."""


class WorkspaceScope(Protocol):
    """The part of a tenant that a session needs."""

    @property
    def workspace_id(self) -> int:
        """The tenant's id; 0 if it does not exist yet, so that nothing is found."""

    @property
    def user(self) -> str:
        """The user for whom is written; "" for nobody."""

    @property
    def sees(self) -> str:
        """The users whose rows are seen: EVERYONE, OWN_ROWS or SHARED."""


def users_of(user: str, sees: str) -> tuple[str, ...] | None:
    """Returns the users whose rows are seen, "" for nobody; None for all."""
    if sees == EVERYONE:
        return None
    return (user,) if sees == OWN_ROWS else tuple(dict.fromkeys(("", user)))


class Scope(NamedTuple):
    """The rows that a session may see, and the way in which it puts statements into transactions."""

    workspace_id: int | None
    """The workspace whose rows are seen; None for all workspaces."""
    transaction: bool
    """True if all statements are one transaction; False if each statement is its own."""
    user: str = ""
    """The user for whom is written; "" for nobody."""
    sees: str = EVERYONE
    snapshot: bool = False
    """True if all statements of the transaction see the state at the first one."""
    quota: int = 0
    """The most memories of a workspace that has no quota of its own; 0 for no limit."""
