"""Starts the real binary for one test and talks to it; loopback only."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ASHLAR = os.environ.get("ASHLAR", "build/release/bin/ashlar")
SMOLLM2 = os.environ.get("SMOLLM2", "")
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """`ashlar serve` on a free port; a context manager. `spec` is YAML text without apiVersion and kind, or a whole document."""

    def __init__(self, spec, arguments=(), wait_ready=True, port=None, before_exec=None):
        """`port`: the spec's own; without it one is chosen and given as --port. `before_exec` is called in the new process."""
        self.folder = tempfile.TemporaryDirectory()
        self.port = port or free_port()
        arguments = [*arguments] if port else ["--port", str(self.port), *arguments]
        path = os.path.join(self.folder.name, "model.yaml")
        with open(path, "w") as file:
            file.write(spec if "kind:" in spec else "apiVersion: ashlar.dev/v1alpha1\nkind: ModelSpec\n" + spec)
        self.log_path = os.path.join(self.folder.name, "log")
        self.started = time.monotonic()
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen([ASHLAR, "serve", "-f", path, *arguments], stdout=subprocess.PIPE, stderr=log, preexec_fn=before_exec)
        self.ready_seconds = None
        if wait_ready:
            try:
                self.wait_ready()
            except BaseException:
                self.__exit__()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.folder.cleanup()

    def log(self):
        with open(self.log_path) as file:
            return file.read()

    def request(self, method, path, body=None, timeout=60, headers=None):
        """(status, headers, body text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, dict(response.getheaders()), text

    def post(self, path, body, **more):
        status, _, text = self.request("POST", path, body, **more)
        return status, json.loads(text)

    def status(self):
        return json.loads(self.request("GET", "/status")[2])

    def metrics(self):
        """Sample lines as {name{labels}: value}."""
        samples = {}
        for line in self.request("GET", "/metrics")[2].splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                samples[name] = float(value)
        return samples

    def _wait(self, what, seconds, done):
        """Until `done()`; fails at once, with the log, when the process has ended."""
        while time.monotonic() - self.started < seconds:
            if self.process.poll() is not None:
                raise AssertionError(f"ashlar ended with {self.process.returncode}:\n{self.log()}")
            try:
                if done():
                    return
            except OSError:
                pass
            time.sleep(0.01)
        raise AssertionError(f"{what} after {seconds} s:\n{self.log()}")

    def wait_ready(self, seconds=60):
        def ready():
            if self.request("GET", "/readyz", timeout=5)[0] == 200:
                return True
            if self.status()["phase"] == "rejected":
                raise AssertionError(f"the model was rejected:\n{self.log()}")
            return False
        self._wait("not ready", seconds, ready)
        self.ready_seconds = time.monotonic() - self.started

    def wait_phase(self, phase, seconds=20):
        self._wait(f"not {phase}", seconds, lambda: self.status()["phase"] == phase)

    def terminate(self, seconds=90):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def cpu_seconds(self):
        """Of all its threads so far; what others do on the machine does not count."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) * 1024


def rows_of(status):
    """{(group name, attention index): row} from /status."""
    return {(group["name"], attention["index"]): attention["backend"] for group in status["plan"]["kvGroups"] for attention in group["attention"]}


def skip(why):
    print("SKIPPED:", why, file=sys.stderr)
