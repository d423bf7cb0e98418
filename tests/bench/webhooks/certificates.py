"""A certificate authority for one run, and its certificate for `localhost`."""

import datetime
import ipaddress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


class Certificates(NamedTuple):
    """The files: the authority that clients trust, and the receiver's key with its certificate."""

    authority: Path
    pair: Path


def issue(folder: Path) -> Certificates:
    """Write an authority and a certificate for localhost, valid for a day."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _draft("Bench authority", "Bench authority", authority_key.public_key())
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = _draft("localhost", "Bench authority", key.public_key())
    server = server.add_extension(x509.SubjectAlternativeName(names), critical=False)
    files = Certificates(folder / "authority.pem", folder / "receiver.pem")
    files.authority.write_bytes(authority.sign(authority_key, hashes.SHA256()).public_bytes(PEM))
    secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files.pair.write_bytes(secret + server.sign(authority_key, hashes.SHA256()).public_bytes(PEM))
    files.pair.chmod(0o600)
    return files


def _draft(subject: str, issuer: str, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    subject_name, issuer_name = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (subject, issuer)
    )
    return x509.CertificateBuilder(
        subject_name=subject_name,
        issuer_name=issuer_name,
        public_key=public_key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - datetime.timedelta(hours=1),
        not_valid_after=now + datetime.timedelta(days=1),
    )
