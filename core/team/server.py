"""Typed calls of the functions and tables on the team's server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from core.base.errors import BadInput
from core.base.steps import group_pairs
from core.base.text import visible_line
from core.records.team import (
    MAX_RECORD_BYTES,
    AddedTrials,
    AddedUses,
    ChainHead,
    DecisionReceipt,
    HeldUses,
    Level,
    Member,
    Online,
    PatternText,
    PooledTrials,
    ProjectUses,
    SpaceConflict,
    SpaceDecision,
    SpaceInfo,
    SpacePattern,
    TeamProject,
    TeamSums,
    TeamTrial,
    TeamUse,
)
from core.team.connection import InvalidCall, Limits, NotMember, Offline, ServerFull, connect, translate_errors
from core.team.migrations import check_version, latest_version, schema_version

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import Params
    from psycopg.errors import Diagnostic

_T = TypeVar("_T")
NO_CURSOR: Final = "0"
"""Cursor that reads all rows."""

# A row that is written while this is read has a number of at least the next cursor. Numbers above the newest
# transaction are those of another cluster, from which the database was restored: every first read contains them.
_CHANGED: Final = (
    "space_id = (select space_id from ralphdeck.spaces where id = %(space)s) and xid >= %(cursor)s::xid8"
    " and (%(cursor)s = '0' or xid < pg_snapshot_xmax(pg_current_snapshot()))"
)
_SUMS: Final = ", ".join(TeamSums.__struct_fields__)
_IS_SPACE: Final = "id = %s"
_OF_SPACE: Final = "space_id = (select space_id from ralphdeck.spaces where id = %s)"


MAX_PAGE_BYTES: Final = 16 << 20
"""Texts or decisions that are read at once; a client needs about six times as much memory for them."""


_MAX_ROW_BYTES: Final = MAX_RECORD_BYTES + 1_000  # of a pattern with its type and hash


class ChangedPatterns(NamedTuple):
    """Pattern IDs changed since a cursor, and the next cursor; some may be repeated.

    `pages` are to be read one after the other. `too_large` has the members by the IDs of patterns that are not read.
    """

    pages: tuple[tuple[str, ...], ...]
    too_large: Mapping[str, str]
    cursor: str

    @property
    def ids(self) -> set[str]:
        return {id for page in self.pages for id in page}


class ChangedSums(NamedTuple):
    """Sums changed since a cursor by pattern, and the next cursor; some may repeat."""

    sums: dict[str, TeamSums]
    cursor: str


def list_spaces(connection: Connection[Any]) -> tuple[SpaceInfo, ...]:
    """Return the spaces with the role as member; SchemaMismatch for another schema."""
    with translate_errors():
        check_version(schema_version(connection))
        row = connection.execute("select ralphdeck.my_spaces()::text").fetchone()
    with _understood():
        return msgspec.json.decode(row[0], type=tuple[SpaceInfo, ...]) if row else ()


def create_space(connection: Connection[Any], name: str, half_life_days: float, display_name: str) -> UUID:
    """Create a space whose first admin is the role of the connection; returns its ID."""
    with translate_errors():
        row = connection.execute(
            "select ralphdeck.create_space(%s, %s, %s)", (name, half_life_days, display_name)
        ).fetchone()
    assert row is not None
    return UUID(str(row[0]))


def create_login(connection: Connection[Any], role: str, password: str) -> None:
    """Create a login role; the server and its log get only the password's hash."""
    from psycopg.sql import SQL, Identifier, Literal

    encrypted = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    with translate_errors():
        connection.execute(SQL("create role {} login password {}").format(Identifier(role), Literal(encrypted)))


class Space:
    """One space, through an autocommit connection; each call is one transaction.

    A call that failed with `Offline` may have been executed. Sending it again is safe: nothing is added twice.
    """

    def __init__(self, connection: Connection[Any], info: SpaceInfo, server: str) -> None:
        self.connection = connection
        self.info = info
        self.server = server
        """Identity of cluster, database and timeline; with another one, cursors are not valid any more."""
        self._warnings: list[str] = []
        connection.add_notice_handler(self._note)

    @classmethod
    def connect(cls, conninfo: str, name: str = "", limits: Limits | None = None) -> Space:
        """Connect to a space; without a name, to the only one of the role."""
        connection = connect(conninfo, limits, client_schema=latest_version())
        try:
            return cls.open(connection, name)
        except BaseException:
            connection.close()
            raise

    @classmethod
    def open(cls, connection: Connection[Any], name: str = "") -> Space:
        """Open a space of which the role is a member; without a name, the only one."""
        spaces = list_spaces(connection)
        with translate_errors():
            row = connection.execute("select ralphdeck.server_identity(), session_user::text").fetchone()
        server, role = row or ("", "")
        if not server:
            raise ServerFull("the team's server is a standby, which is read-only; connect to the primary")
        found = [space for space in spaces if name in ("", space.name)]
        if not found:
            what = f"the space {name}" if name else "a space"
            raise NotMember(
                visible_line(f"the role {role} is not a member of {what}; an admin can add it: ralphdeck team member")
            )
        if len(found) > 1:
            raise BadInput(f"choose a space with --space: {', '.join(space.name for space in found)}")
        return cls(connection, found[0], server)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make several calls one transaction."""
        with translate_errors(), self.connection.transaction():
            yield
        self._check_confirmed()

    def _check_confirmed(self) -> None:
        """Raise Offline if a standby did not confirm: a crash now would lose the write."""
        if self._warnings:
            raise Offline(f"the team's server did not confirm: {self._warnings[0]}")

    def _note(self, notice: Diagnostic) -> None:
        """Collect warnings; functions of the schema make none."""
        if notice.severity_nonlocalized == "WARNING":
            self._warnings.append(visible_line(notice.message_primary or ""))

    def channel(self) -> str:
        """Return the LISTEN channel for changes; it changes once a member is removed."""
        rows = self._rows(f"select channel from ralphdeck.spaces where {_IS_SPACE}", (self.info.id,))
        if not rows:
            raise NotMember(f"the role is not a member of the space {self.info.name} any more")
        return f"ralphdeck_{rows[0][0].hex}"

    # ------------------------------------------------------------------ writing

    def join_project(self, project: UUID, name: str) -> None:
        """Register a project that sends data; rename it if it has joined before."""
        self._call("join_project", project, name)

    def add_events(self, project: UUID, uses: Iterable[TeamUse]) -> AddedUses:
        """Add uses and withdrawals of uses; all are recorded afterwards, each once."""
        return _convert(self._call("add_events", project, _json(uses)), AddedUses)

    def add_trials(self, project: UUID, trials: Iterable[TeamTrial]) -> AddedTrials:
        """Add trials of experiments; all but later ones are then recorded, each once."""
        return _convert(self._call("add_trials", project, _json(trials)), AddedTrials)

    def put_patterns(self, patterns: Iterable[PatternText]) -> tuple[SpaceConflict, ...]:
        """Add patterns; reviewers also change texts. Return the unchanged as conflicts."""
        return _convert(self._call("put_patterns", _json(patterns)), tuple[SpaceConflict, ...])

    def decide(
        self,
        project: UUID,
        payload: str,
        subjects: Sequence[str],
        *,
        seen: int,
        known: Sequence[str] = (),
        texts: Mapping[str, str] | None = None,
        records: Iterable[PatternText] = (),
    ) -> DecisionReceipt:
        """Record a decision, or return its conflicts; see the SQL function's comment.

        `payload` is its JSON, stored byte for byte. `seen` is the number of the last decision that the project has
        read, `known` are later ones that it made itself. `texts` are hashes of the texts that the reviewer saw,
        `records` the texts that the decision adds, changes or removes.
        """
        arguments = (project, payload, list(subjects), seen, list(known), _json(texts or {}), _json(records))
        return _convert(self._call("decide", *arguments), DecisionReceipt)

    def set_member(self, role: str, name: str, level: Level | None) -> None:
        """Add or change a member, or remove it (None); its role must exist."""
        self._call("set_member", role, name, level.value if level else None)

    def heartbeat(
        self, client: UUID, project: UUID | None = None, place: str = "", question: str = "", seconds: int = 60
    ) -> Online:
        """Report a client online, lease its open question; return who else is online."""
        return _convert(self._call("heartbeat", client, project, place, question, seconds), Online)

    def go_offline(self, client: UUID) -> None:
        """Release what a client has open."""
        self._call("go_offline", client)

    # ------------------------------------------------------------------ reading

    def now(self) -> datetime:
        """Return the time of the server's clock."""
        found: datetime = self._rows("select now()", ())[0][0]
        return found

    def head(self) -> ChainHead:
        """Return the number and hash of the last decision."""
        rows = self._rows(f"select head_seq, head_hash from ralphdeck.spaces where {_IS_SPACE}", (self.info.id,))
        if not rows:
            raise NotMember(f"the role is not a member of the space {self.info.name} any more")
        return ChainHead(seq=rows[0][0], hash=rows[0][1])

    def decisions(self, after: int, limit: int = 1000) -> tuple[SpaceDecision, ...]:
        """Return decisions after a number in order; see `core.team.decisions.verify`.

        Returns at most `limit` of them, and at most 16 MiB unless the first one alone is larger; none if there are no
        more.
        """
        rows = self._rows(
            "select d.seq, d.id, d.payload, d.member, p.name, d.recorded_at, d.hash from ("
            "select *, sum(octet_length(payload)) over (order by seq) - octet_length(payload) as before"
            f" from (select * from ralphdeck.decisions where {_OF_SPACE} and seq > %s order by seq limit %s) n) d"
            " join ralphdeck.projects p using (project_id)"
            " where d.before = 0 or d.before + octet_length(d.payload) <= %s order by d.seq",
            (self.info.id, after, limit, MAX_PAGE_BYTES),
        )
        return _convert(
            [dict(zip(SpaceDecision.__struct_fields__, row, strict=True)) for row in rows], tuple[SpaceDecision, ...]
        )

    def changed_patterns(self, cursor: str = NO_CURSOR) -> ChangedPatterns:
        """Return patterns changed since a server cursor; `patterns` reads their texts."""
        following = self._next_cursor()
        rows = self._rows(
            "select pattern_id, coalesce(octet_length(record), 0) + octet_length(type) + octet_length(content_hash),"
            " changed_by from ralphdeck.patterns"
            f" where {_CHANGED} order by pattern_id",
            {"space": self.info.id, "cursor": cursor},
        )
        pages: list[list[str]] = []
        size = 0
        for pattern_id, length, _ in rows:
            if length > _MAX_ROW_BYTES:
                continue
            if (size := size + length) > MAX_PAGE_BYTES or not pages:
                pages.append([])
                size = length
            pages[-1].append(pattern_id)
        too_large = {row[0]: row[2] for row in rows if row[1] > _MAX_ROW_BYTES}
        return ChangedPatterns(tuple(map(tuple, pages)), too_large, following)

    def patterns(self, ids: Iterable[str]) -> tuple[SpacePattern, ...]:
        """Return patterns of the space with their texts."""
        fields = SpacePattern.__struct_fields__
        rows = self._rows(
            f"select {', '.join(fields)} from ralphdeck.patterns where {_OF_SPACE} and pattern_id = any(%s)",
            (self.info.id, list(ids)),
        )
        return _convert([dict(zip(fields, row, strict=True)) for row in rows], tuple[SpacePattern, ...])

    def sums(self, cursor: str = NO_CURSOR) -> ChangedSums:
        """Return the sums that changed since a cursor of this server."""
        following = self._next_cursor()
        rows = self._rows(
            f"select {_SUMS} from ralphdeck.sums where {_CHANGED}",
            {"space": self.info.id, "cursor": cursor},
        )
        names = TeamSums.__struct_fields__
        return ChangedSums({row[0]: TeamSums(**dict(zip(names, row, strict=True))) for row in rows}, following)

    def patterns_of(self, member: str) -> tuple[str, ...]:
        """Return the IDs of the patterns that a member changed last."""
        rows = self._rows(
            f"select pattern_id from ralphdeck.patterns where {_OF_SPACE} and changed_by = %s and record is not null"
            " order by pattern_id",
            (self.info.id, member),
        )
        return tuple(row[0] for row in rows)

    def held_uses(self) -> tuple[HeldUses, ...]:
        """Return the results that do not count until a reviewer decides, by member."""
        rows = self._rows(
            "select m.display_name, c.pattern_id, c.held_successes, c.held_failures, c.held_first, c.held_last"
            " from ralphdeck.contributed c join ralphdeck.members m using (member_id)"
            f" where c.{_OF_SPACE} and c.held_successes + c.held_failures > 0 order by m.display_name, c.pattern_id",
            (self.info.id,),
        )
        with _understood():
            return tuple(
                HeldUses(
                    member=member,
                    patterns=tuple(row[1] for row in of_member),
                    successes=sum(row[2] for row in of_member),
                    failures=sum(row[3] for row in of_member),
                    first=min(row[4] for row in of_member),
                    last=max(row[5] for row in of_member),
                )
                for member, of_member in group_pairs((row[0], row) for row in rows).items()
            )

    def not_counted(self, project: UUID) -> tuple[UUID, ...]:
        """Return the uses of a project that are held or were discarded."""
        rows = self._rows(
            "select e.id from ralphdeck.events e join ralphdeck.projects p using (space_id, project_id)"
            f" where e.{_OF_SPACE} and p.id = %s and e.status <> 'counted'",
            (self.info.id, project),
        )
        return tuple(row[0] for row in rows)

    def members(self) -> tuple[Member, ...]:
        """Return all members, removed ones included, by name."""
        rows = self._rows(
            "select role_name::text, display_name, level::text, changed_by, changed_at from ralphdeck.members"
            f" where {_OF_SPACE} order by display_name",
            (self.info.id,),
        )
        return tuple(
            Member(role=role, name=name, level=Level(level) if level else None, changed_by=by, changed_at=at)
            for role, name, level, by, at in rows
        )

    def project_uses(self, weeks: Sequence[int]) -> tuple[ProjectUses, ...]:
        """Return the uses of each project in the last weeks, for each number of weeks."""
        rows = self._rows(
            "select p.project_id, p.name, w.weeks, coalesce(sum(s.successes), 0)::bigint,"
            " coalesce(sum(s.failures), 0)::bigint, coalesce(sum(s.uses), 0)::bigint"
            " from ralphdeck.projects p cross join unnest(%s::integer[]) w (weeks)"
            " left join ralphdeck.project_sums s on s.space_id = p.space_id and s.project_id = p.project_id"
            " and s.day > current_date - 7 * w.weeks"
            f" where p.{_OF_SPACE} group by p.project_id, p.name, w.weeks order by p.name, p.project_id, w.weeks",
            (list(weeks), self.info.id),
        )
        found: dict[int, tuple[str, dict[int, tuple[int, int, int]]]] = {}
        for number, name, length, *sums in rows:
            found.setdefault(number, (name, {}))[1][length] = (sums[0], sums[1], sums[2])
        return tuple(ProjectUses(name, lengths) for name, lengths in found.values())

    def pooled_trials(self, patterns: int) -> tuple[PooledTrials, ...]:
        """Return all projects' trials of the `patterns` patterns with most trials."""
        return _convert(self._call("pooled_trials", patterns), tuple[PooledTrials, ...])

    def uses_of(self, project: UUID) -> tuple[tuple[TeamUse, bool], ...]:
        """Return a project's uses, and whether withdrawn; reads all uses of the space."""
        found = self._rows(
            f"select project_id from ralphdeck.projects where {_OF_SPACE} and id = %s", (self.info.id, project)
        )
        if not found:
            return ()
        rows = self._rows(
            "select e.id, e.pattern_id, e.kind, nullif(e.at, '-infinity'), e.success, e.weight, e.count,"
            " exists (select from ralphdeck.events w"
            " where w.space_id = e.space_id and w.at = e.at and w.withdraws = e.id)"
            f" from ralphdeck.events e where e.{_OF_SPACE} and e.project_id = %s and e.withdraws is null",
            (self.info.id, found[0][0]),
        )
        names = TeamUse.__struct_fields__
        return tuple((TeamUse(**dict(zip(names, row[:-1], strict=False))), row[-1]) for row in rows)

    def projects(self) -> tuple[TeamProject, ...]:
        """Return all projects with the sums of their uses, by name."""
        rows = self._rows(
            "select p.id, p.name, m.display_name, p.joined_at, coalesce(sum(s.successes), 0)::bigint,"
            " coalesce(sum(s.failures), 0)::bigint, coalesce(sum(s.uses), 0)::bigint"
            " from ralphdeck.projects p join ralphdeck.members m on m.member_id = p.joined_by"
            " left join ralphdeck.project_sums s on s.project_id = p.project_id"
            f" where p.{_OF_SPACE} group by p.id, p.name, m.display_name, p.joined_at order by p.name, p.id",
            (self.info.id,),
        )
        return tuple(TeamProject(**dict(zip(TeamProject.__struct_fields__, row, strict=True))) for row in rows)

    def _next_cursor(self) -> str:
        """Return the oldest open transaction; read before the rows, so none is skipped."""
        return str(self._rows("select pg_snapshot_xmin(pg_current_snapshot())::text", ())[0][0])

    def _rows(self, query: str, values: Params) -> list[tuple[Any, ...]]:
        with translate_errors(), _understood(), self.connection.cursor(binary=True) as cursor:
            return cursor.execute(query.encode(), values).fetchall()

    def _call(self, function: str, *arguments: object) -> Any:
        """Call a function of the server with the space as first argument."""
        marks = ", ".join(["%s"] * (len(arguments) + 1))
        self._warnings.clear()
        with translate_errors(), _understood():
            row = self.connection.execute(
                f"select ralphdeck.{function}({marks})".encode(), (self.info.id, *arguments)
            ).fetchone()
        self._check_confirmed()
        if row is None:
            raise InvalidCall(f"the team's server did not answer {function}")
        return row[0]


@contextmanager
def _understood() -> Iterator[None]:
    """Raise Offline for an invalid answer, as of a damaged server or a proxy."""
    try:
        yield
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError) as error:
        raise Offline(visible_line(f"the team's server gave an answer that is not valid: {error}", 300)) from error


def _convert(answer: object, kind: type[_T]) -> _T:
    with _understood():
        return msgspec.convert(answer, kind)


def _json(values: object) -> str:
    items = values if isinstance(values, Mapping) else list(values)  # type: ignore[call-overload]
    return msgspec.json.encode(items).decode()
