"""An issuer of tokens for tests: real keys, a real HTTP server, and every forgery that the service must refuse."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "meshwright"
ISSUER = "https://login.example.org"


class Signer:
    """One private key; signs what it is told to."""

    def __init__(self, kid: str, *, curve: bool = False, bits: int = 2048) -> None:
        self.kid = kid
        self.algorithm = "ES256" if curve else "RS256"
        self.private: Any = (
            ec.generate_private_key(ec.SECP256R1()) if curve else rsa.generate_private_key(65_537, key_size=bits)
        )

    @property
    def jwk(self) -> dict[str, Any]:
        """The public key, as the issuer publishes it."""
        kind: Any = ECAlgorithm if self.algorithm == "ES256" else RSAAlgorithm
        found: dict[str, Any] = kind.to_jwk(self.private.public_key(), as_dict=True)
        return {**found, "kid": self.kid, "use": "sig"}

    @property
    def public_pem(self) -> bytes:
        """The public key in the form that libraries have mistaken for an HMAC secret."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        content: bytes = self.private.public_key().public_bytes(serialization.Encoding.PEM, form)
        return content

    def token(self, *, headers: dict[str, Any] | None = None, drop: tuple[str, ...] = (), **claims: Any) -> str:
        """A token that is good but for what is changed."""
        now = int(time.time())
        said = {
            "iss": ISSUER, "aud": AUDIENCE, "sub": "ann@example.org", "iat": now, "exp": now + 600,
            "scope": "openid meshwright:admin", **claims,
        }  # fmt: skip
        said = {name: value for name, value in said.items() if name not in drop}
        return jwt.encode(said, self.private, self.algorithm, headers={"kid": self.kid, **(headers or {})})


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """A token put together by hand."""
    parts = [json.dumps(each).encode() for each in (header, claims)]
    return ".".join(base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in (*parts, signature))


def forgeries(signer: Signer) -> dict[str, list[str]]:
    """Name of an attack -> the Authorization headers that it sends.  Every one must be answered 401."""
    good = signer.token()
    tokens = {**_wrong_claims(signer), **_wrong_keys(signer), **_wrong_forms(signer, good)}
    return {
        **{name: [f"Bearer {token}"] for name, token in tokens.items()},
        "two headers, both good": [f"Bearer {good}", f"Bearer {good}"],
        "two headers, one good": ["Bearer x", f"Bearer {good}"],
        "two tokens in one header": [f"Bearer {good}, Bearer {good}"],
        "another scheme": [f"Basic {good}"],
        "no scheme": [good],
        "only the scheme": ["Bearer "],
    }


def _claims() -> dict[str, Any]:
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": int(time.time()) + 600, "scope": "meshwright:admin"}


def _wrong_claims(signer: Signer) -> dict[str, str]:
    """Signed by the issuer, but not for us, not now, or for nobody."""
    now = int(time.time())
    return {
        "expired": signer.token(exp=now - 3600, iat=now - 7200),
        "without exp": signer.token(drop=("exp",)),
        "exp is text": signer.token(exp="never"),
        "exp is infinite": signer.token(exp=float("inf")),
        "not yet valid": signer.token(nbf=now + 3600),
        "issued in the future": signer.token(iat=now + 3600),
        "another audience": signer.token(aud="payroll"),
        "audience that contains ours": signer.token(aud=f"{AUDIENCE}-staging"),
        "without audience": signer.token(drop=("aud",)),
        "another issuer": signer.token(iss="https://evil.example"),
        "issuer with a slash more": signer.token(iss=ISSUER + "/"),
        "without issuer": signer.token(drop=("iss",)),
        "without subject": signer.token(drop=("sub",)),
        "subject is empty": signer.token(sub=""),
        "subject with a line break": signer.token(sub="ann\nadmin"),
        "subject without end": signer.token(sub="a" * 300),
        "a logout token": signer.token(headers={"typ": "logout+jwt"}),
        "unknown critical header": signer.token(headers={"crit": ["x"], "x": 1}),
        "huge": signer.token(padding="a" * 10_000),
    }


def _wrong_keys(signer: Signer) -> dict[str, str]:
    """Signed by somebody else, by nobody, or in another way."""
    stranger, claims = Signer(signer.kid), _claims()
    hs_header = {"alg": "HS256", "typ": "JWT", "kid": signer.kid}
    hs_input = unsigned(hs_header, claims).rpartition(".")[0]
    with_public_key = hmac.new(signer.public_pem, hs_input.encode(), hashlib.sha256).digest()
    with_jwk = hmac.new(json.dumps(signer.jwk).encode(), hs_input.encode(), hashlib.sha256).digest()
    evil = {"kid": signer.kid, "jku": "https://evil.example/keys", "x5u": "https://evil.example/cert"}
    return {
        "alg none": unsigned({"alg": "none", "kid": signer.kid}, claims),
        "alg None in capitals": unsigned({"alg": "nOnE", "kid": signer.kid}, claims),
        "HS256 signed with the public key": unsigned(hs_header, claims, with_public_key),
        "HS256 signed with the JWK": unsigned(hs_header, claims, with_jwk),
        "another algorithm of the same key": jwt.encode(claims, signer.private, "RS512", headers={"kid": signer.kid}),
        "unknown kid": signer.token(headers={"kid": "nobody"}),
        "kid climbs": signer.token(headers={"kid": "../../../../dev/null"}),
        "kid injects": signer.token(headers={"kid": "' UNION SELECT 'x"}),
        "kid is a list": unsigned({"alg": "RS256", "kid": ["a"]}, claims, b"x"),
        "without kid": jwt.encode(claims, signer.private, "RS256"),
        "signed by a stranger": stranger.token(),
        "jku and x5u of the stranger": stranger.token(headers=evil),
        "own key inside": stranger.token(headers={"jwk": stranger.jwk}),
    }


def _wrong_forms(signer: Signer, good: str) -> dict[str, str]:
    """No token at all, or one that was changed."""
    head, body, signature = good.split(".")
    exchanged = unsigned({}, _claims()).split(".")[1]
    return {
        "claims exchanged": f"{head}.{exchanged}.{signature}",
        "signature cut": f"{head}.{body}.{signature[:-8]}",
        "no signature": f"{head}.{body}.",
        "two parts": f"{head}.{body}",
        "five parts": f"{good}.a.b",
        "detached payload": signer.token(headers={"b64": False, "crit": ["b64"]}),
        "no base64": f"{head}.%%%.{signature}",
        "no JSON": ".".join(["bm90IGpzb24", body, signature]),
        "claims are a list": f"{head}.{base64.urlsafe_b64encode(b'[]').decode()}.{signature}",
        "deep header": f"{base64.urlsafe_b64encode(b'[' * 3000).decode()}.{body}.{signature}",
        "empty parts": "..",
        "a word": "token",
    }


class Issuer:
    """What a real issuer of OpenID Connect publishes; counts who asks."""

    def __init__(self, *signers: Signer) -> None:
        self.signers = list(signers)
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.url = ""

    def answer(self, path: str) -> tuple[int, bytes]:
        """Status and body of a path; ``answers`` may say something else."""
        if path in self.answers:
            return self.answers[path]
        pages = {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": [each.jwk for each in self.signers]},
        }
        return (200, json.dumps(pages[path]).encode()) if path in pages else (404, b"")


@contextmanager
def issuing(*signers: Signer) -> Iterator[Issuer]:
    """A running issuer on this machine."""
    issuer = Issuer(*signers)

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the base class's own name
            issuer.asked.append(self.path)
            status, content = issuer.answer(self.path)
            self.send_response(status)
            if status == 302:
                self.send_header("location", f"{issuer.url}/elsewhere")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
