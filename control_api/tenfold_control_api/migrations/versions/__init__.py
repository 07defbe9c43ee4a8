"""One file for each version. `upgrade` gets alembic's operations: alembic's own `op` is one for the whole process."""
