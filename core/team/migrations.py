"""The schema in the team's database: versions, roles and their creation."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.team.connection import AccessDenied, NotMember, SchemaMismatch, translate_errors

if TYPE_CHECKING:
    from psycopg import Connection

OWNER: Final = "ralphdeck_owner"
"""Role without login that owns the schema; its members create spaces and upgrade the schema."""
MEMBERS: Final = "ralphdeck_member"
"""Role without login of the members of all spaces; what each sees depends on its level in a space."""
_LOCK: Final = "select pg_advisory_xact_lock(hashtext('ralphdeck.schema'))"
_SET_OPTION: Final = 160_000  # version of the server since which membership and `set role` are separate rights


class Migration(NamedTuple):
    """SQL from one schema version to the next; the first makes the whole schema."""

    version: int
    name: str
    sql: str


@cache
def read_migrations() -> tuple[Migration, ...]:
    """Return all migrations in order: files `VERSION_NAME.sql`, joined by version."""
    migrations: dict[int, Migration] = {}
    for file in sorted(files(__package__).joinpath("migrations").iterdir(), key=lambda file: file.name):
        number, _, name = file.name.removesuffix(".sql").partition("_")
        if number.isdecimal():
            version = int(number)
            start = migrations.get(version, Migration(version, name, ""))
            migrations[version] = start._replace(sql=start.sql + file.read_text())
    return tuple(migrations.values())


def latest_version() -> int:
    """Return the version of the schema that this program needs."""
    return read_migrations()[-1].version


def schema_version(connection: Connection[Any]) -> int:
    """Return the schema version, 0 if none; NotMember if the role may not read it."""
    row = connection.execute(
        "select has_schema_privilege(oid, 'usage'), session_user::text from pg_namespace where nspname = 'ralphdeck'"
    ).fetchone()
    if row is None:
        return 0
    if not row[0]:
        raise NotMember(f"the role {row[1]} is not a member of a space; an admin can add it: ralphdeck team member")
    if not _flag(connection, "select to_regclass('ralphdeck.schema_version') is not null"):
        return 0
    version = connection.execute("select coalesce(max(version), 0) from ralphdeck.schema_version").fetchone()
    return int(version[0]) if version else 0


def check_version(version: int) -> None:
    """Raise SchemaMismatch unless this is the version that this program needs."""
    latest = latest_version()
    if version > latest:
        raise SchemaMismatch(
            f"the team's database has schema {version}, but this ralphdeck knows only {latest}; upgrade ralphdeck"
        )
    if not version:
        raise SchemaMismatch(
            "the database is not prepared for a team; an administrator must run: ralphdeck team join URL --create"
        )
    if version < latest:
        raise SchemaMismatch(
            f"the team's database has schema {version}, but this ralphdeck needs {latest}; "
            f"a member of the role {OWNER} must run: ralphdeck team join --create"
        )


def migrate(connection: Connection[Any]) -> tuple[Migration, ...]:
    """Create or upgrade the schema; returns what was applied.

    Processes that do this at once wait for each other. Needs no superuser: the role must be able to create roles, or be
    a member of the role `ralphdeck_owner`, and to create schemas in the database. Raises AccessDenied if it cannot, and
    SchemaMismatch if the schema is newer than this program, or older than the first migration.
    """
    with translate_errors(), connection.transaction():
        connection.execute("set local search_path = ralphdeck, pg_catalog, pg_temp")
        connection.execute(_LOCK)
        _ensure_roles(connection)
        version = _owned_version(connection)
        migrations = read_migrations()
        if version > migrations[-1].version:
            check_version(version)
        if 0 < version < migrations[0].version:
            raise SchemaMismatch(
                f"the team's database has schema {version}; this ralphdeck upgrades from {migrations[0].version} only. "
                "Upgrade it with a ralphdeck before 0.2.0, or use a new database"
            )
        pending = [migration for migration in migrations if migration.version > version]
        for migration in pending:
            connection.execute(migration.sql.encode())
            connection.execute(
                "insert into ralphdeck.schema_version (version, name) values (%s, %s)",
                (migration.version, migration.name),
            )
        connection.execute(files(__package__).joinpath("migrations", "access.sql").read_text().encode())
        return tuple(pending)


def _owned_version(connection: Connection[Any]) -> int:
    """Become the owner of the schema, create it if missing; return its version."""
    if not connection.execute("select 1 from pg_namespace where nspname = 'ralphdeck'").fetchone():
        connection.execute(f"create schema ralphdeck authorization {OWNER}".encode())
    connection.execute(f"set local role {OWNER}".encode())
    return schema_version(connection)


def _ensure_roles(connection: Connection[Any]) -> None:
    """Create the roles that are missing, and become a member of the owner."""
    row = connection.execute(
        "select rolcreaterole or rolsuper, current_user::text from pg_roles where rolname = current_user"
    ).fetchone()
    can_create, user = row or (False, "")
    for role in (OWNER, MEMBERS):
        if connection.execute("select 1 from pg_roles where rolname = %s", (role,)).fetchone():
            continue
        if not can_create:
            raise AccessDenied(
                f"the role {user} cannot create roles; ask the administrator of the server to run: create role {OWNER} "
                f"nologin; create role {MEMBERS} nologin; grant {MEMBERS} to {OWNER} with admin option; "
                f'grant {OWNER} to "{user}"'
            )
        _execute_unless_done(connection, f"create role {role} nologin")
    is_member = "set" if connection.info.server_version >= _SET_OPTION else "member"
    if not _flag(connection, "select pg_has_role(current_user, %s, %s)", OWNER, is_member):
        if not can_create:
            raise AccessDenied(
                f"the role {user} is not a member of {OWNER}; ask the administrator of the server to run: "
                f'grant {OWNER} to "{user}"'
            )
        connection.execute(f"grant {OWNER} to current_user".encode())
    has_admin = "select pg_has_role(%s, %s, 'member with admin option')"
    if not _flag(connection, has_admin, OWNER, MEMBERS):
        _execute_unless_done(connection, f"grant {MEMBERS} to {OWNER} with admin option")


def _flag(connection: Connection[Any], query: str, *values: object) -> bool:
    row = connection.execute(query.encode(), values).fetchone()
    return bool(row and row[0])


def _execute_unless_done(connection: Connection[Any], statement: str) -> None:
    """Execute a statement about shared roles; another database may do the same."""
    from psycopg import errors

    with suppress(errors.DuplicateObject, errors.UniqueViolation), connection.transaction():
        connection.execute(statement.encode())
