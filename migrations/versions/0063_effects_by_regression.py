"""Effects of memories come from one regression: those that were estimated before go, and are estimated anew in an hour.

Locks: the tables of effects for a moment.
"""

from alembic import op

revision = "0063"
down_revision = "0062"
branch_labels = None
depends_on = None

breaks = "its estimates of effects may have a basis that is no longer stored, and fail"


def _allow(bases: str) -> None:
    op.execute("DELETE FROM effects")
    op.execute("DELETE FROM effect_estimates")
    op.execute("ALTER TABLE effects DROP CONSTRAINT effects_basis_ck")
    op.execute(f"ALTER TABLE effects ADD CONSTRAINT effects_basis_ck CHECK (basis IN ({bases}))")


def upgrade() -> None:
    _allow("'experimental', 'observational'")


def downgrade() -> None:
    _allow("'experimental', 'calibrated', 'observational'")
