"""Bare loops of blocking libraries: one request after the other, with the options of the lab's clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.bare import (
    HEADERS,
    TIMEOUT,
    Run,
    empty_jar,
    expect,
    niquests_options,
    no_cookies,
)


@contextmanager
def requests_per_call(url: str) -> Iterator[Run]:
    """A session and a connection a call."""
    import requests

    headers = {**HEADERS, "Connection": None}

    def run(count: int) -> None:
        for _ in range(count):
            response = requests.request(
                "GET", url, headers=headers, data=None, timeout=TIMEOUT, verify=True, allow_redirects=False
            )
            expect(response.status_code, response.content)

    yield run


@contextmanager
def requests_session(url: str) -> Iterator[Run]:
    """One session."""
    import requests
    from requests.adapters import HTTPAdapter

    with requests.Session() as session:
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=1)
        session.cookies.set_policy(no_cookies())
        session.headers.clear()
        session.mount("http://", adapter)
        session.mount("https://", adapter)

        def run(count: int) -> None:
            for _ in range(count):
                response = session.request(
                    "GET", url, headers=HEADERS, data=None, timeout=TIMEOUT, verify=True, allow_redirects=False
                )
                expect(response.status_code, response.content)

        yield run


@contextmanager
def httpx_per_call(url: str) -> Iterator[Run]:
    """A client, its TLS set-up and a connection a call."""
    import httpx

    def run(count: int) -> None:
        for _ in range(count):
            response = httpx.request("GET", url, headers=HEADERS, content=None, timeout=TIMEOUT)
            expect(response.status_code, response.content)

    yield run


@contextmanager
def httpx_client(url: str) -> Iterator[Run]:
    """One client."""
    import httpx

    limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=75.0)
    with httpx.Client(limits=limits, timeout=httpx.Timeout(TIMEOUT, pool=None), cookies=empty_jar()) as client:
        del client.headers["Connection"]

        def run(count: int) -> None:
            for _ in range(count):
                response = client.request("GET", url, headers=HEADERS, content=None)
                expect(response.status_code, response.content)

        yield run


@contextmanager
def urllib3_pool(url: str) -> Iterator[Run]:
    """One pool manager."""
    import urllib3

    timeout = urllib3.Timeout(connect=TIMEOUT, read=TIMEOUT)
    with urllib3.PoolManager(num_pools=1, maxsize=1, block=True, retries=False, timeout=timeout) as manager:

        def run(count: int) -> None:
            for _ in range(count):
                response = manager.request("GET", url, headers=HEADERS, body=None, redirect=False)
                expect(response.status, response.data)

        yield run


@contextmanager
def niquests_session(url: str) -> Iterator[Run]:
    """One session of niquests."""
    import niquests

    with niquests.Session(**niquests_options(1)) as session:
        session.cookies.set_policy(no_cookies())
        session.headers.clear()

        def run(count: int) -> None:
            for _ in range(count):
                response = session.request(
                    "GET",
                    url,
                    headers=HEADERS,
                    data=None,
                    timeout=TIMEOUT,
                    verify=True,
                    allow_redirects=False,
                )
                expect(response.status_code or 0, response.content or b"")

        yield run


@contextmanager
def http_client(url: str) -> Iterator[Run]:
    """One connection of the standard library."""
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)

    def run(count: int) -> None:
        for _ in range(count):
            connection.request("GET", parts.path, None, HEADERS)
            response = connection.getresponse()
            expect(response.status, response.read())

    yield run
    connection.close()


@contextmanager
def pycurl_handle(url: str) -> Iterator[Run]:
    """One handle."""
    import pycurl

    handle = pycurl.Curl()
    handle.setopt(pycurl.NOSIGNAL, 1)
    handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    handle.setopt(pycurl.CONNECTTIMEOUT_MS, int(TIMEOUT * 1000))
    handle.setopt(pycurl.LOW_SPEED_LIMIT, 1)
    handle.setopt(pycurl.LOW_SPEED_TIME, int(TIMEOUT))
    handle.setopt(pycurl.HTTPHEADER, [*(f"{name}: {value}" for name, value in HEADERS.items()), "Expect:"])
    handle.setopt(pycurl.URL, url)

    def run(count: int) -> None:
        for _ in range(count):
            body = handle.perform_rb()
            expect(handle.getinfo(pycurl.RESPONSE_CODE), body)

    yield run
    handle.close()


@contextmanager
def curl_cffi_session(url: str) -> Iterator[Run]:
    """One session of curl-cffi."""
    from curl_cffi import CurlInfo, CurlOpt, Session

    limits = {
        CurlOpt.CONNECTTIMEOUT_MS: int(TIMEOUT * 1000),
        CurlOpt.LOW_SPEED_LIMIT: 1,
        CurlOpt.LOW_SPEED_TIME: int(TIMEOUT),
    }
    with Session[Any](
        http_version="v1",
        allow_redirects=False,
        discard_cookies=True,
        trust_env=False,
        curl_options=limits,
        curl_infos=[CurlInfo.NUM_CONNECTS],
    ) as session:

        def run(count: int) -> None:
            for _ in range(count):
                response = session.request(
                    "GET",
                    url,
                    headers=HEADERS,
                    content=None,
                    timeout=None,
                    verify=True,
                    accept_encoding=None,
                    quote=False,
                    content_callback=None,
                )
                expect(response.status_code, response.content)

        yield run


@contextmanager
def httplib2_http(url: str) -> Iterator[Run]:
    """One `Http` object."""
    import httplib2

    http = httplib2.Http(timeout=TIMEOUT, proxy_info=None)
    http.follow_redirects = False

    def run(count: int) -> None:
        for _ in range(count):
            response, body = http.request(url, "GET", None, HEADERS)
            expect(response.status, body)

    yield run
    http.close()
