"""A backup of the space is restored on another server: nothing is lost, and cursors of the old one do no harm."""

from __future__ import annotations

from contextlib import closing

from core.team.decisions import first_head, verify
from core.team.server import Space
from tests.core.team.working_copy import PATTERN, join, make_decision, make_text, make_use
from tests.team_server import KEEPER, Cluster, Team

TRANSACTIONS = 3_000
"""Transactions on the old server before the backup, so that its numbers are far ahead of those of the new one."""


def test_restored_space_continues_on_another_server(team: Team) -> None:
    team.connect("postgres").execute(
        f"do $$ begin for i in 1..{TRANSACTIONS} loop perform pg_current_xact_id(); commit; end loop; end $$".encode()
    )
    rita = team.space("rita")
    project = join(rita)
    rita.add_events(project, [make_use(1), make_use(2, pattern_id="b")])
    rita.put_patterns([make_text()])
    rita.decide(project, make_decision(1), [PATTERN], seen=0)
    old = rita.sums()
    with closing(Cluster.create()) as fresh:
        socket, folder = str(team.cluster.folder), fresh.folder
        source = ("-h", socket, "-p", str(team.cluster.port), "-U", "postgres")
        target = ("-h", str(folder), "-p", str(fresh.port), "-U", "postgres", "-d", "postgres", "-v", "ON_ERROR_STOP=0")
        fresh.run("pg_dumpall", *source, "--roles-only", "-f", str(folder / "roles.sql"))
        fresh.run("psql", "-q", *target, "-f", str(folder / "roles.sql"))
        fresh.run("pg_dump", *source, "--create", "-f", str(folder / "space.sql"), team.database)
        fresh.run("psql", "-q", *target, "-f", str(folder / "space.sql"))
        with closing(Space.connect(fresh.url("rita", team.database))) as restored:
            assert restored.server != rita.server
            first = restored.sums()
            assert first.sums == old.sums
            assert verify(first_head(restored.info.id), restored.decisions(0)) == restored.head() == rita.head()
            assert int(first.cursor) < int(old.cursor)
            assert restored.sums(first.cursor).sums == {}
            assert restored.changed_patterns(first.cursor).ids == set()
            assert restored.add_events(project, [make_use(1), make_use(3)]).new == {make_use(3).id}
            assert restored.sums(first.cursor).sums.keys() == {PATTERN}
            assert restored.decide(project, make_decision(1), [PATTERN], seen=0).seq == 1
            assert restored.decide(project, make_decision(2), [PATTERN], seen=1).seq == 2
        with closing(fresh.connect(KEEPER, team.database)) as connection:
            owned = connection.execute("select pg_has_role('ralphdeck_owner', 'member')").fetchone()
        assert owned == (True,)
