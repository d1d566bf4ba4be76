"""What the clients of libcurl share, whichever Python package wraps it: kinds of errors
and time limits, by number.
"""

from __future__ import annotations

import math

_SSL_CONNECT_ERROR = 35
_RECV_ERROR = 56

_KINDS = {
    1: "protocol",  # UNSUPPORTED_PROTOCOL: the answer is not HTTP
    5: "connect",  # COULDNT_RESOLVE_PROXY
    6: "connect",  # COULDNT_RESOLVE_HOST
    7: "connect",  # COULDNT_CONNECT
    8: "protocol",  # WEIRD_SERVER_REPLY
    18: "protocol",  # PARTIAL_FILE
    28: "timeout-read",  # OPERATION_TIMEDOUT
    _SSL_CONNECT_ERROR: "tls",
    52: "reset",  # GOT_NOTHING
    55: "reset",  # SEND_ERROR
    _RECV_ERROR: "reset",
    60: "tls",  # PEER_FAILED_VERIFICATION
    61: "protocol",  # BAD_CONTENT_ENCODING
    # SEND_FAIL_REWIND: a streamed upload cannot be sent again after a dropped
    # connection.
    65: "reset",
    77: "tls",  # SSL_CACERT_BADFILE
    16: "protocol",  # HTTP2
    92: "protocol",  # HTTP2_STREAM
}
_LEFT = ("Connection reset by peer", "unexpected eof", "closed abruptly")
"""Messages when the peer left: during a handshake, or in a body over TLS, which is
truncated then.
"""

_TIMEOUT_MS, _CONNECTTIMEOUT_MS, _LOW_SPEED_LIMIT, _LOW_SPEED_TIME = 155, 156, 19, 20


def classify_error(
    code: int, message: str, *, has_head: bool, is_connecting: bool
) -> str:
    """Return the kind of a CURLcode.

    `has_head`: a response had begun. `is_connecting`: nothing was sent yet. libcurl
    reports a malformed chunk, and a truncated body over TLS, like a connection that was
    reset.
    """
    kind = _KINDS.get(code, f"other:curl-{code}")
    if kind == "timeout-read" and is_connecting:
        return "timeout-connect"
    if code == _SSL_CONNECT_ERROR and any(text in message for text in _LEFT):
        return "connect"
    is_cut = "chunk" in message or (
        has_head and any(text in message for text in _LEFT[1:])
    )
    return "protocol" if code == _RECV_ERROR and is_cut else kind


def make_limits(seconds: float, call_timeout: float | None) -> dict[int, int]:
    """Return the options that limit connecting, each wait for bytes, and a request.

    libcurl gives up after this time with less than one byte per second. It knows only
    whole seconds, and looks at the bytes of the last five: it notices silence in a body
    up to five seconds later. Below one second, its limit for the whole request has to
    do.
    """
    limits = {_CONNECTTIMEOUT_MS: int(seconds * 1000)}
    whole = math.inf if call_timeout is None else call_timeout
    if seconds < 1:
        whole = min(whole, seconds)
    else:
        limits[_LOW_SPEED_LIMIT] = 1
        limits[_LOW_SPEED_TIME] = math.ceil(seconds)
    if whole < math.inf:
        limits[_TIMEOUT_MS] = math.ceil(whole * 1000)  # 0 would be no limit
    return limits
