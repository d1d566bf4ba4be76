"""Makes the certificates that the conformance tries TLS with: `.venv/bin/python` and the path of this file.

They are shipped, so that `clientlab conform` needs no library for it. The keys of their CAs are thrown away: nobody
can sign anything else with them.
"""

from __future__ import annotations

import datetime as dt
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from clientlab.conformance.tls import CERTIFICATES

BEGIN, END = dt.datetime(2020, 1, 1), dt.datetime(2120, 1, 1)  # noqa: DTZ001 - of UTC, as they are written
HERE = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
ELSEWHERE = x509.DNSName("elsewhere.test")


class Signer:
    """A CA that can sign for as long as this program runs."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = named(name)
        allowed = dict.fromkeys(("key_cert_sign", "crl_sign"), True)
        self.certificate = self._sign(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0), allowed)

    def server(self, name: str, alternative: x509.GeneralName) -> bytes:
        """A server's certificate for one name, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        allowed = {"digital_signature": True}
        plain = x509.BasicConstraints(ca=False, path_length=None)
        more = (x509.SubjectAlternativeName([alternative]), x509.ExtendedKeyUsage([x509.OID_SERVER_AUTH]))
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return self._sign(named(name), key, plain, allowed, *more) + private

    def _sign(self, subject, key, constraints, allowed, *more) -> bytes:
        usage = dict.fromkeys(
            ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"), False,
        )  # fmt: skip
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(BEGIN).not_valid_after(END)
        builder = builder.add_extension(constraints, critical=True)
        builder = builder.add_extension(x509.KeyUsage(**usage | allowed), critical=True)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        owner = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        for extension in (signer, owner, *more):
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def named(name: str) -> x509.Name:
    """A subject."""
    return x509.Name(
        [
            x509.NameAttribute(x509.OID_ORGANIZATION_NAME, "clientlab conformance"),
            x509.NameAttribute(x509.OID_COMMON_NAME, name),
        ]
    )


if __name__ == "__main__":
    ours, foreign = Signer("ca"), Signer("other-ca")
    CERTIFICATES.mkdir(exist_ok=True)
    (CERTIFICATES / "ca.pem").write_bytes(ours.certificate)
    (CERTIFICATES / "server.pem").write_bytes(ours.server("server", HERE))
    (CERTIFICATES / "other-name.pem").write_bytes(ours.server("other-name", ELSEWHERE))
    (CERTIFICATES / "other-ca.pem").write_bytes(foreign.server("server", HERE))
