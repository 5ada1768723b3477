"""A link from a Dataverse is followed to an allowed server, to one call, without a token; nothing else is asked."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from dataverse_server import SIGNATURE, State, launch_link, serving
from farthing.errors import InvalidValue, RequestRefused
from farthing.publication.dataverse_launch import Launch, read_launch
from unit.publication.test_hostile_server import saying

CALL = "/api/v1/files/7/metadata/8/toolparams/1"


def link(address: str) -> str:
    return base64.b64encode(address.encode()).decode()


def test_the_file_is_the_one_that_the_server_names() -> None:
    state = State()
    with serving(state) as url:
        launch = read_launch(launch_link(url), ["https://other.example.org", url])
        assert launch == Launch(url, "doi:10.5072/FK2/ORIGINAL", 7, "birds & <b>people</b>.tab", restricted=True)
        # As a browser may hand it on: a plus is a blank in an address, and the padding may be lost.
        assert read_launch(launch_link(url).replace("+", " ").rstrip("="), [url]) == launch
    assert state.faults == []


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example.org" + CALL,
        "HERE@evil.example.org" + CALL,
        "HERE.evil.example.org" + CALL,
        "HERE0" + CALL,
        "HERE/api/v1/admin/settings",
        "HERE/api/v1/files/7/metadata/8/toolparams/1/../../../../../admin",
        "HERE/api/v1/files/../admin/metadata/8/toolparams/1",
        "HERE" + CALL + "#@evil.example.org",
        "HERE" + CALL + "?a=b\r\nX-Dataverse-key: x",
        "HERE" + CALL + "?" + "a" * 3_000,
        "HERE/" + CALL,
        "file:///etc/passwd",
        "//evil.example.org" + CALL,
        "",
    ],
)
def test_no_other_address_is_asked(address: str) -> None:
    state = State()
    with serving(state) as url, pytest.raises(InvalidValue, match="allowed Dataverse"):
        read_launch(link(address.replace("HERE", url)), [url])
    assert state.heard == 0


@pytest.mark.parametrize("callback", ["", "%%%", "é", "aGk=" * 5_000, "////"])
def test_what_is_no_base64_is_refused(callback: str) -> None:
    with pytest.raises(InvalidValue, match="allowed Dataverse"):
        read_launch(callback, ["https://demo.dataverse.org"])


def test_nothing_is_allowed_by_default() -> None:
    with pytest.raises(InvalidValue):
        read_launch(launch_link("https://demo.dataverse.org"), [])


def test_a_signature_that_is_too_old_is_not_shown() -> None:
    state = State()
    with serving(state) as url:
        stale = link(f"{url}{CALL}?{SIGNATURE.replace('5f1d0c2e', 'old-signature')}")
        with pytest.raises(RequestRefused, match="not valid, or has expired") as refused:
            read_launch(stale, [url])
    assert "old-signature" not in str(refused.value)


@pytest.mark.parametrize("told", [{"fileId": 8}, {"fileId": "x"}, {"datasetPid": 7}, {"datasetPid": "a\nb\nc\nd"}])
def test_another_file_than_that_of_the_address_is_refused(told: dict[str, Any]) -> None:
    with serving(State(told=told)) as url, pytest.raises(RequestRefused, match="not what a Dataverse sends"):
        read_launch(launch_link(url), [url])


@pytest.mark.parametrize("data", [None, [], 7, {"queryParameters": None}, {"queryParameters": {}, "signedUrls": 3}])
def test_an_answer_of_another_form_is_a_refusal(data: Any) -> None:
    with (
        saying(json.dumps({"status": "OK", "data": data}).encode()) as (url, _),
        pytest.raises(RequestRefused, match="not what a Dataverse sends"),
    ):
        read_launch(launch_link(url), [url])


@pytest.mark.parametrize("address", ["http://169.254.169.254/latest", "HERE/api/v1/admin", 7, None])
def test_a_second_address_of_the_server_is_followed_only_where_it_describes_the_file(address: Any) -> None:
    told = address.replace("HERE", "http://127.0.0.1:1") if isinstance(address, str) else address
    data = {
        "queryParameters": {"datasetPid": "doi:10.5072/FK2/A", "fileId": 7},
        "signedUrls": [{"name": "describeFile", "signedUrl": told}],
    }
    with saying(json.dumps({"status": "OK", "data": data}).encode()) as (url, _):
        launch = read_launch(launch_link(url), [url])
    assert (launch.name, launch.restricted) == ("", None)
