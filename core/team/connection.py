"""Connections to a team's server: source of the address, time limits, errors.

The address never comes from a file in a project. TLS settings, passwords and services are libpq's. Which projects the
user has joined to a team is in the user's configuration folder, never in a project: a cloned project can never make
ralphdeck connect to a server.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput, RalphdeckError, Refused, Unwritable, install_hint
from core.base.text import visible_line
from core.files.atomic_write import put
from core.files.file_access import file_lock
from core.files.file_reader import RawFile, read_file
from core.files.user_files import team_file

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg import Error as DatabaseError


class TeamError(RalphdeckError):
    """Base class; the message names the server or the space, and what to do."""


class Offline(TeamError):
    """The server is unreachable, starting or too slow to answer; try again later."""


class ServerFull(Offline, Unwritable):
    """The server has no space left or accepts no writes; try again later."""


class AccessDenied(TeamError):
    """The server refuses credentials or connection; a person must change something."""


class NotMember(AccessDenied):
    """The role is not a member of the space, or the space does not exist."""


class SchemaMismatch(TeamError):
    """The schema in the database is newer or older than the one of this program."""


class LevelTooLow(TeamError, Refused):
    """The level of the member does not allow the call; nothing was written."""


class LimitReached(Offline):
    """The member reached the space's daily limit; send the rest tomorrow (UTC)."""


class InvalidCall(TeamError, BadInput):
    """The server refused a value; nothing was written."""


class TooLarge(InvalidCall):
    """The space takes no decision of this size; it was not sent."""


class ChainBroken(TeamError):
    """The decisions of the space are not those that its hash chain continues from."""


URL_VARIABLE: Final = "RALPHDECK_TEAM_URL"
FROM_ENVIRONMENT: Final = "env"
SERVICE: Final = "service="
FILE: Final = "file="
_MAX_URL_BYTES: Final = 4096
_OLDEST_SERVER: Final = 150_000
_REFUSALS: Final = (
    *("password authentication failed", "no password supplied", "not permitted to log in", "permission denied"),
    *("pg_hba.conf", "certificate", "SSL was required", "does not support SSL"),
)
"""Parts of messages about a refused connection."""
_NEXT_STEPS: Final = (
    ("password", "check the password in ~/.pgpass, PGPASSWORD or the file with the URL"),
    ('database "', "check the name of the database in the URL"),
    ("definition of service", "define it in ~/.pg_service.conf"),
)
"""What to do about messages with such a part."""


class Limits(Struct, frozen=True, kw_only=True):
    """Seconds to wait for a connection (>= 2 per host), statement, lost packets.

    A call ends after `statement` on the server, and after `statement + lost` on this machine.
    """

    connect: float = 5.0
    statement: float = 30.0
    lost: float = 10.0


def require_psycopg() -> None:
    """Raise TeamError if the extra `team` is not installed."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise TeamError(f"the extra 'team' is not installed; {install_hint('team')} ({error})") from None


def check_argument(url: str) -> str:
    """Return a command-line URL or conninfo; BadInput if invalid or with a password."""
    return _checked(url, "the URL", allow_password=False)


def read_conninfo(source: str) -> str:
    """Return the address of a source: `env`, `service=NAME` or `file=PATH`.

    It may contain a password. Raises BadInput if the source is unknown or unusable.
    """
    if source == FROM_ENVIRONMENT:
        url = os.environ.get(URL_VARIABLE, "").strip()
        if not url:
            raise BadInput(f"the variable {URL_VARIABLE} is not set; set it to the URL of the team's database")
        return _checked(url, URL_VARIABLE)
    if source.startswith(SERVICE):
        from psycopg.conninfo import make_conninfo

        return make_conninfo("", service=source.removeprefix(SERVICE))
    if source.startswith(FILE):
        path = Path(source.removeprefix(FILE))
        return _checked(_read_private(path), str(path))
    raise BadInput(f"unknown source {source!r} of the team's URL; use env, {SERVICE}NAME or {FILE}PATH")


def describe_server(conninfo: str) -> str:
    """Return database and host, or service, without secrets, in one visible line."""
    from psycopg.conninfo import conninfo_to_dict

    values = conninfo_to_dict(conninfo)
    if service := values.get("service"):
        return visible_line(f"the service {service}")
    database = values.get("dbname") or os.environ.get("PGDATABASE", "")
    host = values.get("host") or os.environ.get("PGHOST", "") or "the local server"
    return visible_line(f"{database or 'the default database'} on {host}")


def connect(conninfo: str, limits: Limits | None = None, *, client_schema: int | None = None) -> Connection[Any]:
    """Connect in autocommit mode; raises a TeamError that says what is wrong.

    A connection that is cut without notice ends after `limits.lost` seconds, on both sides: a client that is gone never
    keeps a lock. `client_schema` is the version of the schema that this program writes.
    """
    require_psycopg()
    limits = limits or Limits()
    lost = max(int(limits.lost), 1)
    with translate_errors(describe_server(conninfo)):
        connection: Connection[Any] = _bounded_class().connect(
            conninfo,
            autocommit=True,
            connect_timeout=max(int(limits.connect), 1),
            keepalives=1,
            keepalives_idle=lost,
            keepalives_interval=max(lost // 3, 1),
            keepalives_count=3,
            tcp_user_timeout=lost * 1000,
            fallback_application_name="ralphdeck",
        )
    if connection.info.server_version < _OLDEST_SERVER:
        connection.close()
        raise AccessDenied("the team's server is too old; it must be PostgreSQL 15 or newer")
    connection.seconds = limits.statement + limits.lost  # type: ignore[attr-defined]
    try:
        with translate_errors(describe_server(conninfo)):
            _set_limits(connection, limits, "" if client_schema is None else str(client_schema))
    except BaseException:
        connection.close()
        raise
    return connection


@cache
def _bounded_class() -> Any:
    """Return a connection class that stops waiting for a server that was cut off.

    The limits of the server do not help if it never gets the statement, and those of TCP not if a proxy still answers.
    """
    import psycopg

    class BoundedConnection(psycopg.Connection[Any]):
        seconds = 60.0

        def wait(self, gen: Any, *arguments: Any, **keys: Any) -> Any:
            return super().wait(self._bounded(gen), *arguments, **keys)

        def _bounded(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            """Run `gen` with a time limit; psycopg resumes it ten times a second, even idle."""
            end = monotonic() + self.seconds
            try:
                state = next(gen)
                while True:
                    ready = yield state
                    if monotonic() > end:
                        self.close()
                        raise psycopg.OperationalError(f"no answer within {self.seconds:.0f} seconds")
                    state = gen.send(ready)
            except StopIteration as result:
                return result.value

    return BoundedConnection


def _set_limits(connection: Connection[Any], limits: Limits, client_schema: str) -> None:
    """Limit statements, waits for locks, and the transactions of silent clients."""
    statement, lost = f"{int(limits.statement * 1000)}ms", f"{int(limits.lost * 1000)}ms"
    values = {
        "statement_timeout": statement,
        "lock_timeout": statement,
        "idle_in_transaction_session_timeout": lost,
        "client_connection_check_interval": lost,
        "ralphdeck.client_schema": client_schema,
        "TimeZone": "UTC",
        "search_path": "",  # no one's functions are called by mistake
    }
    calls = ", ".join(["pg_catalog.set_config(%s, %s, false)"] * len(values))
    connection.execute(f"select {calls}".encode(), [part for item in values.items() for part in item])


@contextmanager
def translate_errors(server: str = "") -> Iterator[None]:
    """Raise errors of psycopg as a TeamError whose message is one visible line."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise _translate(error, server) from error


def _translate(error: DatabaseError, server: str) -> TeamError:
    import psycopg

    code = error.sqlstate or ""
    text = error.diag.message_primary or str(error).strip() or type(error).__name__
    message = visible_line("; ".join(part.strip() for part in text.splitlines()))
    message = message.removeprefix("connection failed: ").removeprefix("connection is bad: ")
    own: dict[str, type[TeamError]] = {
        "RD001": LevelTooLow,
        "RD002": NotMember,
        "RD003": SchemaMismatch,
        "RD004": InvalidCall,
        "RD005": LimitReached,
    }
    if code in own:
        return own[code](message)
    if code in ("53100", "25006") or code == "58030":
        return ServerFull(f"the team's server cannot write: {message}")
    if code.startswith("28") or code in ("3D000", "42501") or _is_login_failure(code, text):
        reason = message.rpartition("FATAL:")[2].strip()
        return AccessDenied(f"the team's server refuses access: {reason}{_next_step(reason)}")
    is_temporary = code[:2] in ("08", "40", "53", "55", "57", "58", "XX")
    if is_temporary or isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        described = f"cannot reach {server or 'the team server'}: {message}{_next_step(message)}"
        return Offline(described if not code else message)
    if code in ("3F000", "42883", "42P01"):
        return SchemaMismatch(f"the team's database has no ralphdeck schema of this version: {message}")
    return InvalidCall(f"the team's server refused a value: {message}")


def _next_step(message: str) -> str:
    return next((f"; {step}" for part, step in _NEXT_STEPS if part in message), "")


def _is_login_failure(code: str, text: str) -> bool:
    """Whether libpq reports a refused login, for which it gives no code."""
    missing = ('database "', 'role "')
    return not code and (
        any(phrase in text for phrase in _REFUSALS)
        or any(phrase in text and "does not exist" in text for phrase in missing)
    )


def _checked(url: str, name: str, *, allow_password: bool = True) -> str:
    require_psycopg()
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        values = conninfo_to_dict(url)
    except ProgrammingError:  # its message would contain the password
        raise BadInput(f"{name} is invalid; use one such as postgresql://user@host/database") from None
    if not allow_password and (values.get("password") or values.get("sslpassword")):
        raise BadInput(
            "a password on the command line is visible to other users of this machine; "
            f"put it into ~/.pgpass, a service file, {URL_VARIABLE}, or a file given with --url-file"
        )
    return url


def _read_private(path: Path) -> str:
    """Read a file that only its owner can read; BadInput otherwise."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{path} is not a file")
        if status.st_mode & 0o077 or status.st_uid != os.geteuid():
            raise BadInput(f"{path} must belong to you and be readable by you alone; run: chmod 600 {path}")
        content = os.read(handle, _MAX_URL_BYTES + 1)
    finally:
        os.close(handle)
    if len(content) > _MAX_URL_BYTES:
        raise BadInput(f"{path} is longer than a URL")
    try:
        return content.decode().strip()
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8") from None


_MAX_BYTES: Final = 4 << 20
_URL: Final = "url="


class Joined(Struct, frozen=True, kw_only=True):
    """A joined project.

    `source` is where the address of the server comes from: `env`, `service=NAME`, `file=PATH`, or `url=URL` without a
    password. `id` is that of this working copy in the space, `name` the one that members see.
    """

    space: str
    source: str
    id: UUID
    name: str

    @property
    def conninfo(self) -> str:
        """Address of the server; raises BadInput if its source is not usable now."""
        if self.source.startswith(_URL):
            return check_argument(self.source.removeprefix(_URL))
        return read_conninfo(self.source)


class _File(Struct, frozen=True):
    projects: dict[str, Joined] = {}


def url_source(url: str) -> str:
    """Return the source of a command-line address; BadInput if it has a password."""
    return _URL + check_argument(url)


def consent_file() -> Path:
    return team_file()


def read_consent() -> Mapping[str, Joined]:
    """Return joined projects by resolved path; TeamError if the file is damaged."""
    file = consent_file()
    read = read_file(file, file.parent, _MAX_BYTES)
    if read is None:
        return {}
    try:
        if isinstance(read, RawFile):
            return msgspec.json.decode(read.data, type=_File).projects
        why = read.message
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = f"is damaged: {error}"
    raise TeamError(f"{file} {why}; repair it, or delete it and join again")


def find_joined(project: Path) -> Joined | None:
    """Return how a project has joined its team; None if it has not."""
    return read_consent().get(str(project.resolve()))


def save_joined(project: Path, joined: Joined | None) -> None:
    """Record that the user has joined a project to a space, or (None) left it."""
    with _changing() as projects:
        if joined is None:
            projects.pop(str(project.resolve()), None)
        else:
            projects[str(project.resolve())] = joined


@contextmanager
def _changing() -> Iterator[dict[str, Joined]]:
    file = consent_file()
    mask = os.umask(0o077)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(file.with_suffix(".lock")):
            projects = dict(read_consent())
            yield projects
            put(file, msgspec.json.format(msgspec.json.encode(replace(_File(), projects=projects))) + b"\n")
    except OSError as error:
        raise Unwritable(f"cannot write {file}: {error.strerror}") from None
    finally:
        os.umask(mask)
