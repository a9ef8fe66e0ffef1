from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession, CookieJar, WSServerHandshakeError, web

from tui.serving import HOST, DeckServer, serve


@pytest.fixture
async def address(unused_tcp_port: int) -> AsyncIterator[str]:
    """A server whose dashboard is a program that ends at once."""
    user: list[str] = []
    server = DeckServer(["true"], port=unused_tcp_port, title="<shop>", announce=user.append)
    server.initialize_logging()
    runner = web.AppRunner(await server._make_app())
    await runner.setup()
    await web.TCPSite(runner, HOST, unused_tcp_port).start()
    yield user[0]
    await runner.cleanup()


async def asked(address: str, **headers: str) -> int:
    """The answer's code."""
    async with ClientSession() as session, session.get(address, headers=headers) as answer:
        return answer.status


async def test_the_page_needs_the_access_key_and_refuses_other_sites(address: str) -> None:
    page, _, _key = address.partition("?")
    assert await asked(address) == 200
    for wrong in (page, f"{page}?key=other", f"{page}?key=%F0%9F%91%8D"):
        assert await asked(wrong) == 403
    assert await asked(address, Host="evil.example") == 403, "a name that was made to mean this machine"
    assert await asked(address, Origin="http://evil.example") == 403


async def test_the_access_key_appears_nowhere_else(address: str) -> None:
    page, _, key = address.partition("/?key=")
    async with ClientSession() as stranger:
        for path in ("/", "/static/css/xterm.css", "/static/", "/ws", "/download/x", "/static/../x", "/other"):
            async with stranger.get(page + path) as answer:
                user = f"{answer.headers} {await answer.text()}"
                assert "Set-Cookie" not in answer.headers, path
                assert key not in user, path


async def test_the_page_loads_its_stylesheet_and_script_from_this_server_only(address: str) -> None:
    async with ClientSession() as session:
        async with session.get(address) as answer:
            page = await answer.text()
        links = [link for link in re.findall(r'(?:href|src)="([^"]*)"', page) if not link.startswith("data:")]
        assert [link.rpartition(".")[2] for link in links] == ["css", "js"]
        for link in links:
            assert link.startswith(address.partition("?")[0])
            async with session.get(link) as loaded:
                assert loaded.status == 200
    assert "://" not in re.sub(r"(http|ws)://127\.0\.0\.1:", "", page)
    assert "<title>&lt;shop&gt;</title>" in page and "<shop>" not in page


async def test_the_web_socket_needs_the_access_key(address: str) -> None:
    place = address.partition("/?")[0]
    socket = f"{place.replace('http', 'ws')}/ws"
    async with ClientSession() as stranger:
        with pytest.raises(WSServerHandshakeError, match="403"):
            await stranger.ws_connect(socket)
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        async with browser.get(address) as page:
            assert "evil" not in page.headers["Content-Security-Policy"]
        with pytest.raises(WSServerHandshakeError, match="403"):
            await browser.ws_connect(socket, origin="http://evil.example")
        async with browser.ws_connect(socket, origin=place) as opened:
            assert not opened.closed


async def test_a_size_that_no_terminal_has_is_refused(address: str) -> None:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        async with browser.get(address):
            pass
        for size in ("width=99999999&height=-4", "width=x", "height=0"):
            with pytest.raises(WSServerHandshakeError, match="400"):
                await browser.ws_connect(f"{address.partition('/?')[0].replace('http', 'ws')}/ws?{size}")


async def test_a_request_that_is_not_valid_is_not_logged(address: str, caplog: pytest.LogCaptureFixture) -> None:
    _, _, port = address.partition("/?")[0].rpartition(":")
    reader, writer = await asyncio.open_connection(HOST, int(port))
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    assert b" 400 " in await reader.readline()
    writer.close()
    assert "Traceback" not in caplog.text


def test_no_address_is_announced_on_a_port_that_is_taken() -> None:
    announced: list[str] = []
    with socket.create_server((HOST, 0)) as other, pytest.raises(OSError, match="in use"):
        serve(["true"], port=other.getsockname()[1], title="shop", announce=announced.append)
    assert announced == []
