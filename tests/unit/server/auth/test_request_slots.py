"""One person's requests do not take all the threads from everybody else."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest

from farthing.server.auth.login_sessions import COOKIE
from farthing.server.auth.permissions import RequestSlots
from unit.server.conftest import HERE, Served


def test_of_one_person_a_few_are_served_at_a_time_and_nothing_is_remembered() -> None:
    turns, inside, most = RequestSlots(at_a_time=3), 0, 0

    async def one(name: str) -> None:
        nonlocal inside, most
        async with turns.of(name):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    async def many() -> None:
        given_up = asyncio.create_task(one("bob"))
        await asyncio.gather(*(one("bob") for _ in range(20)))
        await given_up
        late = [asyncio.create_task(one("eve")) for _ in range(9)]
        await asyncio.sleep(0)
        for each in late:
            each.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    asyncio.run(many())
    assert most == 3 and len(turns) == 0


@pytest.mark.slow
def test_many_long_questions_of_one_analyst_hold_up_nobody_else(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slow(*_: Any) -> dict[str, Any]:
        assert go_on.wait(600)
        return {}

    monkeypatch.setattr(served.state.accountant, "ask", slow)
    bob, eve = served.signed_in("bob"), served.signed_in("eve")
    asked = {"k": 1, "epsilon": 1.0, "delta": 0.0, "at_delta": 0.1}

    async def race() -> int:
        transport = httpx.ASGITransport(served.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=HERE, timeout=600) as client:

            def headers(of: Any) -> dict[str, str]:
                return {**of.headers, "Cookie": f"{COOKIE}={of.cookies[COOKIE]}"}

            flood = [
                asyncio.create_task(client.post("/api/v1/regions", json=asked, headers=headers(bob)))
                for _ in range(100)
            ]
            await asyncio.sleep(0.5)
            try:
                answer = await asyncio.wait_for(client.get("/api/v1/me", headers=headers(eve)), 300)
            finally:
                go_on.set()
                await asyncio.gather(*flood, return_exceptions=True)
            return answer.status_code

    assert asyncio.run(race()) == 200
