"""pycurl over HTTP/2: an easy handle a thread, and so a connection a thread, with one request at a time on it."""

from __future__ import annotations

import pycurl

from clientlab.clients.pycurl_handle import PycurlHandle
from clientlab.clients.shape import Reply, Sink
from clientlab.errors import Fault
from clientlab.workload import Request

if not pycurl.version_info()[4] & pycurl.VERSION_HTTP2:
    raise ModuleNotFoundError(f"{pycurl.version} has no nghttp2", name="a libcurl with nghttp2")


class PycurlH2(PycurlHandle):
    """The same, that asks for HTTP/2 and takes no other."""

    version = pycurl.CURL_HTTP_VERSION_2TLS

    def send(self, request: Request) -> Reply:
        reply = super().send(request)
        self._check_version()
        return reply

    def stream(self, request: Request, sink: Sink) -> int:
        status = super().stream(request, sink)
        self._check_version()
        return status

    def _check_version(self) -> None:
        handle = self._mine.handle
        # Once a connection. libcurl falls back to HTTP/1.1 without a word, so a handle that did is thrown away.
        if (
            handle is not None
            and handle.getinfo(pycurl.NUM_CONNECTS)
            and handle.getinfo(pycurl.INFO_HTTP_VERSION) != pycurl.CURL_HTTP_VERSION_2_0
        ):
            self._all.remove(handle)
            handle.close()  # and with it the connection
            self._mine.handle = None
            raise Fault("protocol", "the server spoke HTTP/1 where HTTP/2 was asked for")
