"""The table of faults: what a client does with each, against a foreign server."""

from __future__ import annotations

import functools

import pytest

from clientlab import strategies
from clientlab.conformance.fault_table import find_reactions

pytestmark = pytest.mark.real


@functools.cache
def reactions_of(name):
    found = find_reactions(strategies.find(name))
    return {reaction.fault: reaction for reaction in found}


def test_a_session_notices_faults_and_keeps_connections_after_statuses():
    reactions = reactions_of("requests-session")
    assert reactions["used connection reset"].kind == "reset"
    assert reactions["truncated body"].kind == "protocol"
    assert reactions["answer 503"].kind == "status-5xx"
    assert reactions["answer 503"].keeps_connection
    assert not reactions["used connection reset"].keeps_connection
    assert 0.5 <= reactions["no answer"].seconds < 2.5
    assert not any(reaction.sent_again for reaction in reactions.values())


def test_a_timeout_of_each_wait_does_not_limit_a_body_that_drips():
    drip = reactions_of("requests-session")["body drips for 2 s"]
    assert drip.kind == "none"
    assert drip.seconds == pytest.approx(2, abs=0.5)


def test_libcurl_sends_a_request_again_after_a_lost_connection():
    reaction = reactions_of("pycurl")["used connection closed"]
    assert reaction.sent_again
    assert "sent again" in reaction.text
