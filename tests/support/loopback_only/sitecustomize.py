"""Imported by the tests and, by PYTHONPATH, by every Python that they start: none reaches the network but for loopback.

pip is left out: one test installs the oldest transformers that a saved folder runs under.
"""

import ipaddress
import socket
import sys
from contextlib import suppress
from typing import Any


class NetworkAccessError(RuntimeError):
    """A test asked for another machine. It is no OSError, which the libraries under test take for a bad connection."""


def _is_here(host: Any) -> bool:
    if isinstance(host, bytes):
        host = host.decode()
    if not host or host in ("localhost", socket.gethostname()):
        return True
    with suppress(ValueError):
        address = ipaddress.ip_address(host.partition("%")[0])
        return address.is_loopback or address.is_unspecified or _is_own(address)
    return bool(host == socket.getfqdn())  # torch's launcher looks itself up


def _is_own(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether it is this machine's, by which a cluster's workers find each other: only such a one can be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True


def _refuse_others(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):  # a Unix socket has a name
        host = arguments[1][0]
    else:
        return
    if not _is_here(host):
        raise NetworkAccessError(f"{event} asks for {host}: tests reach 127.0.0.1 alone.")


# pip starts itself again, as a file, where it builds a package.
if sys.orig_argv[1:3] != ["-m", "pip"] and not any("__pip-runner__" in word for word in sys.orig_argv[:4]):
    sys.addaudithook(_refuse_others)
