"""The role `caller` of a turn: an agent or a program that gives an agent its work, which is no person.

Locks: `messages` while the new check reads its rows, a second for some millions. Down, a caller's turns become those of
`system`, which no version takes for a person's.
"""

from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None

breaks = "it meets turns of the role `caller`, which it does not know"

BEFORE = "'user', 'assistant', 'tool', 'system'"


def _allow_roles(roles: str) -> None:
    op.execute("ALTER TABLE messages DROP CONSTRAINT messages_role_ck")
    op.execute(f"ALTER TABLE messages ADD CONSTRAINT messages_role_ck CHECK (role IN ({roles}))")


def upgrade() -> None:
    _allow_roles("'user', 'caller', 'assistant', 'tool', 'system'")


def downgrade() -> None:
    op.execute("UPDATE messages SET role = 'system' WHERE role = 'caller'")
    _allow_roles(BEFORE)
