"""Certificates: everything a sceptic needs to judge a measurement, and to repeat it. `docs/verify.md` explains."""

from ksearch.certificate.checking import LIMITS, check
from ksearch.certificate.form import Certificate, canonical, digest, seal
from ksearch.certificate.making import Setup, Taken, make

__all__ = ["LIMITS", "Certificate", "Setup", "Taken", "canonical", "check", "digest", "make", "seal"]
