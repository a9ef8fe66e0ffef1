"""Two members of a team with a dashboard each, three loops at work, and a server that is killed and comes back."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from core.cli.demo.sample import copy_sample
from core.records.decisions import Decision
from tests.e2e.desk import AFTER_JUMP, at_question
from tests.e2e.terminal import ROOT, TIMEOUT_SECONDS, dashboard, environment, python
from tests.e2e.tmux import Tmux
from tests.team_server import KEEPER, Cluster, Team

pytestmark = [pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"), pytest.mark.slow]

SHARED: Final = "pat-error-null-check-015"
CONTESTED: Final = "pat-error-import-cycle-013"
OFFLINE: Final = "pat-error-type-mismatch-003"
USED: Final = "pat-error-decimal-json-016"
SIZE: Final = (150, 45)


class Member:
    """A member at a dashboard on a project of their own; `window` is that of tmux."""

    def __init__(self, role: str, project: Path, home: Path, team: Team) -> None:
        self.role, self.name, self.window, self.project = role, role.capitalize(), role, project
        self.env = environment(
            home, RALPHDECK_USER=self.name, RALPHDECK_TEAM_URL=team.url(role, host="127.0.0.1"), RALPHDECK_BELL="off"
        )
        home.mkdir(parents=True, exist_ok=True)

    def command(self, *arguments: str) -> str:
        """Run a command in the project; returns its output."""
        command = [*python("-m", "core.cli"), *arguments, "--project", str(self.project)]
        done = subprocess.run(command, env=self.env, cwd=ROOT, check=False, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def open(self, tmux: Tmux) -> None:
        variables = [f"{name}={value}" for name, value in self.env.items()]
        tmux.window(self.window)
        tmux.start(["env", *variables, *dashboard(self.project)], self.window)

    def decisions(self) -> list[Decision]:
        """Return the decisions in the log of the project."""
        lines = (self.project / ".aiwg/ralph/shared/curation/ledger.jsonl").read_bytes().splitlines()
        return [msgspec.json.decode(line, type=Decision) for line in lines if b'"kind":"decision"' in line]


@contextmanager
def loop_at_work(project: Path, name: str) -> Iterator[list[str]]:
    """Run a loop in the background; at the end, the list has the IDs of its uses."""
    uses: list[str] = []
    command = [sys.executable, "-m", "tests.e2e.play_uses", str(project), name, USED]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        try:
            yield uses
        finally:
            uses += process.communicate("\n", timeout=TIMEOUT_SECONDS)[0].split()


def show(tmux: Tmux, member: Member, pattern: str) -> None:
    """Filter the list of patterns to one pattern, ready for a decision."""
    tmux.keys("3", window=member.window)
    tmux.sees("by score", window=member.window)
    tmux.keys("/", f"id:{pattern}", window=member.window)
    tmux.sees("1 of ", window=member.window)
    tmux.keys("Enter", window=member.window)
    time.sleep(AFTER_JUMP)


def deprecate(tmux: Tmux, member: Member, reason: str) -> None:
    tmux.keys("d", window=member.window)
    tmux.sees("reason?", window=member.window)
    tmux.keys(reason, "Enter", window=member.window)


def plain(tmux: Tmux, member: Member) -> str:
    """Return the text of a window without frames and line ends."""
    return re.sub(r"[▌│\s]+", " ", tmux.text(member.window))


def leave(tmux: Tmux, member: Member) -> None:
    tmux.keys("q", window=member.window)
    tmux.until(lambda: tmux.flag("alternate_on", member.window) == "0", "the end", member.window)


def has_line(tmux: Tmux, member: Member, *words: str) -> bool:
    return any(all(word in line for word in words) for line in tmux.text(member.window).splitlines())


def top_shows(tmux: Tmux, member: Member, text: str) -> None:
    tmux.until(lambda: text in tmux.text(member.window).splitlines()[0], text, member.window)


def on_server(team: Team, query: str, *values: str) -> list[Any]:
    with closing(team.cluster.connect("postgres", team.database)) as connection:
        return connection.execute(query.encode(), values).fetchall()


def uses_on_server(team: Team) -> int:
    ((count,),) = on_server(team, "select uses from ralphdeck.sums where pattern_id = %s", USED)
    return int(count)


def decided_on_server(team: Team, pattern: str) -> list[tuple[str, str]]:
    """Return member and verb of each decision about a pattern since the projects have joined."""
    query = "select member, payload::json ->> 'verb' from ralphdeck.decisions where payload::json ->> 'subject' = %s"
    return on_server(team, f"{query} and recorded_at > (select max(joined_at) from ralphdeck.projects)", pattern)


@pytest.fixture
def team() -> Iterator[Team]:
    """A team on a server of its own, which the test kills."""
    cluster = Cluster.create(fsync="on")
    try:
        cluster.prepare()
        yield Team(cluster, cluster.create_database("template_team", KEEPER))
    finally:
        cluster.close()


@pytest.fixture
def members(tmp_path: Path, team: Team) -> tuple[Member, Member]:
    """Ada with the project shop, and Rita with a copy of it that is called api."""
    now = datetime.now(UTC)
    found = []
    for role, project in (("ada", "shop"), ("rita", "api")):
        folder = tmp_path / role / project
        copy_sample(folder, now)
        member = Member(role, folder, tmp_path / role / "home", team)
        member.command("team", "join", "--project-name", project, "--yes")
        found.append(member)
    return found[0], found[1]


def test_two_members_three_loops_and_a_killed_server(
    members: tuple[Member, Member], team: Team, tmp_path: Path
) -> None:
    ada, rita = members
    before = uses_on_server(team)
    with Tmux(tmp_path, ada.env, SIZE) as tmux, ExitStack() as stack:
        work = [(ada.project, "loop-a"), (ada.project, "loop-b"), (rita.project, "loop-c")]
        loops = [stack.enter_context(loop_at_work(project, name)) for project, name in work]
        for member in members:
            member.open(tmux)
        tmux.sees("team acme", "Rita here", window="ada")
        tmux.sees("team acme", "Ada here", window="rita")

        # A decision of Ada is in the list and in the log of Rita.
        for member in members:
            show(tmux, member, SHARED)
            tmux.sees("◐ estab", window=member.window)
        tmux.keys("p", window="ada")
        tmux.sees(f"promoted {SHARED}", "● prov", window="ada")
        tmux.sees("● prov", window="rita")
        tmux.keys("L", window="rita")
        tmux.until(
            lambda: has_line(tmux, rita, "Ada", "promote", SHARED[:20]), "the decision of Ada in the log", "rita"
        )

        # A question that Ada has open is marked for Rita, and skipped.
        tmux.keys("2", window="ada")
        tmux.until(lambda: at_question(tmux.text("ada")) != "", "a question", "ada")
        tmux.until(lambda: bool(on_server(team, "select from ralphdeck.leases")), "the lease of Ada", "ada")
        tmux.keys("2", window="rita")
        tmux.until(lambda: at_question(tmux.text("rita")) != "", "a question", "rita")

        def shows_mark() -> bool:
            if "open at Ada" in tmux.text("rita"):
                return True
            tmux.keys("N", window="rita")  # it was skipped at once, or the lease has not arrived yet
            return False

        tmux.until(shows_mark, "the mark of the question that Ada has open", "rita")
        tmux.keys("n", window="rita")
        tmux.until(lambda: "open at Ada" not in tmux.text("rita"), "another question", "rita")

        # Both decide on a pattern: Rita types her reason while Ada promotes it.
        for member in members:
            show(tmux, member, CONTESTED)
        tmux.keys("d", window="rita")
        tmux.sees("reason?", window="rita")
        tmux.keys("p", window="ada")
        tmux.sees("● proven", window="ada")
        tmux.until(lambda: decided_on_server(team, CONTESTED) == [("Ada", "promote")], "the decision of Ada", "ada")
        tmux.sees(f"Ada decided just now: promote {CONTESTED}", "this decision would be refused", window="rita")
        tmux.keys("Escape", window="rita")
        tmux.sees("● proven", window="rita")

        # The server is killed: both show since when, and decide from their files.
        team.cluster.kill()
        for member in members:
            top_shows(tmux, member, "offline since")
            show(tmux, member, OFFLINE)
        deprecate(tmux, ada, "hides the cause")
        tmux.sees("⊘ deprec", "not sent to the team yet", window="ada")
        tmux.keys("p", window="rita")
        tmux.sees("● prov  ⚑", "to send", window="rita")

        # It is back: the first decision to arrive is kept, and the author of the other one is notified.
        team.cluster.start()
        tmux.until(
            lambda: any("had decided on" in plain(tmux, member) for member in members), "the late conflict", "rita"
        )
        for member in members:
            top_shows(tmux, member, "team acme")
        (kept,) = decided_on_server(team, OFFLINE)
        assert kept in {("Ada", "deprecate"), ("Rita", "promote")}
        late = rita if kept[0] == "Ada" else ada
        state = "⊘ deprec" if kept[0] == "Ada" else "● proven"
        for member in members:
            tmux.sees(state, window=member.window)
        tmux.keys("L", window=late.window)
        tmux.until(lambda: has_line(tmux, late, "undo", "promote", "ralphde"), "the undo in the log", late.window)

        # What the loops did has arrived once.
        stack.close()
        written = sum(map(len, loops))
        assert written >= len(loops)
        tmux.until(lambda: uses_on_server(team) == before + written, f"{before} and {written} uses", "ada")
        for member in members:
            leave(tmux, member)

    for member in members:
        assert "in the order and with the content" in member.command("team", "status", "--verify")
        assert "sent" not in member.command("team", "sync")
    assert uses_on_server(team) == before + written
    ids = [row[0] for row in on_server(team, "select id from ralphdeck.decisions")]
    assert len(ids) == len(set(ids))
    for member in members:
        logged = Counter(decision.id for decision in member.decisions())
        assert set(ids) <= set(logged)
        assert set(logged.values()) == {1}
