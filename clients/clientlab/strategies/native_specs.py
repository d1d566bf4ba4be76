"""The clients of libraries whose work is done in C or Rust, and of a program."""

from __future__ import annotations

from dataclasses import replace

from clientlab.strategies.specs import ClientSpec, Quirks

_CLIENTS = "clientlab.clients."

_LIBCURL = Quirks(
    resends_after=("used connection closed", "used connection reset"),
    resumes_tls=True,
    own_chunk_size=16_384,
    late_in_bodies=8.0,  # libcurl measures the speed of a body over the last seconds
)
_PYQWEST = Quirks(opens_ahead=True, resumes_tls=True, uncounted=True)


NATIVE = (
    ClientSpec(
        "pycurl",
        _CLIENTS + "pycurl_clients:PycurlHandle",
        "blocking",
        "pycurl",
        "per thread",
        "one libcurl handle per thread",
        executors=("threads", "multi"),
        native=True,
        quirks=_LIBCURL,
    ),
    ClientSpec(
        "pycurl-h2",
        _CLIENTS + "pycurl_clients:PycurlH2",
        "blocking",
        "pycurl",
        "per thread",
        "one libcurl handle per thread over HTTP/2, one request at a time on each",
        http="2",
        executors=("threads",),
        native=True,
        quirks=replace(_LIBCURL, one_request_per_connection=True),
    ),
    ClientSpec(
        "curl-cffi",
        _CLIENTS + "curl_cffi_session:CurlCffiSession",
        "blocking",
        "curl-cffi",
        "per thread",
        "one curl_cffi.Session without impersonation: a libcurl handle per thread",
        executors=("threads",),
        native=True,
        quirks=_LIBCURL,
    ),
    ClientSpec(
        "curl-cffi-async",
        _CLIENTS + "curl_cffi_session:CurlCffiAsync",
        "asyncio",
        "curl-cffi",
        "pool",
        "one curl_cffi.AsyncSession without impersonation, on libcurl's multi interface",
        executors=("workers",),
        native=True,
        quirks=_LIBCURL,
    ),
    ClientSpec(
        "pyqwest",
        _CLIENTS + "pyqwest_client:PyqwestClient",
        "blocking",
        "pyqwest",
        "pool",
        "one pyqwest SyncClient, on Rust's reqwest",
        extra="more",
        unlimited=True,
        executors=("threads",),
        native=True,
        own_threads=True,
        quirks=_PYQWEST,
    ),
    ClientSpec(
        "pyqwest-async",
        _CLIENTS + "pyqwest_client:PyqwestAsync",
        "asyncio",
        "pyqwest",
        "pool",
        "one pyqwest Client for asyncio, on Rust's reqwest",
        extra="more",
        unlimited=True,
        executors=("workers",),
        native=True,
        own_threads=True,
        quirks=_PYQWEST,
    ),
    ClientSpec(
        "geventhttpclient",
        _CLIENTS + "gevent_http:GeventHttp",
        "blocking",
        "geventhttpclient",
        "pool",
        "one geventhttpclient.HTTPClient: sockets of gevent, a parser in C",
        extra="more",
        executors=("gevent",),
        only=("serial", "gevent"),  # its pool belongs to one thread, and a process that gevent serves must not fork
    ),
    ClientSpec(
        "ab",
        _CLIENTS + "apache_bench:ApacheBench",
        "program",
        "python",
        "pool",
        "ApacheBench, a load generator and no library: HTTP/1.0 with keep-alive, timed by its own clock",
        program="ab",
        package="apache2-utils",
    ),
)
