"""Tests and the processes that they start reach no other machine."""

import socket
import subprocess
import sys

import pytest

ASK = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"  # an address that nobody has


def test_no_other_machine_is_reached() -> None:
    for ask in (lambda: socket.create_connection(("192.0.2.1", 80), timeout=1), lambda: socket.getaddrinfo("a.b", 80)):
        with pytest.raises(RuntimeError, match="tests reach 127"):
            ask()
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True)
    assert "asks for 192.0.2.1: tests reach" in done.stderr
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1])).close()
