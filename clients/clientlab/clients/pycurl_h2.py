"""pycurl over HTTP/2: one easy handle, and so one connection, per thread; one request at a time on each."""

from __future__ import annotations

import pycurl

from clientlab.clients.interfaces import Sink, StatusAndBody
from clientlab.clients.pycurl_handle import PycurlHandle
from clientlab.errors import Fault
from clientlab.workload.workload import Request

if not pycurl.version_info()[4] & pycurl.VERSION_HTTP2:
    raise ModuleNotFoundError(f"{pycurl.version} has no nghttp2", name="a libcurl with nghttp2")


class PycurlH2(PycurlHandle):
    """`PycurlHandle` that accepts HTTP/2 only."""

    version = pycurl.CURL_HTTP_VERSION_2TLS

    def send(self, request: Request) -> StatusAndBody:
        reply = super().send(request)
        self._check_version()
        return reply

    def stream(self, request: Request, sink: Sink) -> int:
        status = super().stream(request, sink)
        self._check_version()
        return status

    def _check_version(self) -> None:
        handle = self._of_thread.handle
        # Checked once per connection. libcurl falls back to HTTP/1.1 silently; such a handle is closed.
        if (
            handle is not None
            and handle.getinfo(pycurl.NUM_CONNECTS)
            and handle.getinfo(pycurl.INFO_HTTP_VERSION) != pycurl.CURL_HTTP_VERSION_2_0
        ):
            self._all.remove(handle)
            handle.close()  # closes its connection too
            self._of_thread.handle = None
            raise Fault("protocol", "the server spoke HTTP/1 where HTTP/2 was asked for")
