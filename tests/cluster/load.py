"""Constant load on a Service: every answer must come, whole and the same."""
import http.client
import json
import threading
import time
from typing import NamedTuple


class Failure(NamedTuple):
    started: float  # monotonic
    seconds: float
    error: str

    def refused(self):
        """By the network, before anything could take it."""
        return self.error.startswith(("ConnectionRefusedError", "ConnectionResetError", "RemoteDisconnected"))


class Load:
    """Half of the requests are streamed. A context manager; leaving it stops the load and waits for what runs."""

    def __init__(self, address, threads=4, max_tokens=24):
        self.address, self.max_tokens = address, max_tokens
        self.answered, self.failures = 0, []
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.expected = self._ask(False)
        self.threads = [threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(threads)]

    def _ask(self, stream):
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            connection.request("POST", "/v1/completions", json.dumps(
                {"model": "demo", "prompt": "an ashlar is", "max_tokens": self.max_tokens, "temperature": 0, "stream": stream}),
                {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status != 200:
            raise AssertionError(f"{response.status}: {text}")
        if not stream:
            return json.loads(text)["choices"][0]["text"]
        events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        if events[-1] != "[DONE]":
            raise AssertionError(f"the stream ended early: {text[-200:]}")
        return "".join(choice["text"] for event in events[:-1] for choice in json.loads(event)["choices"])

    def _run(self, number):
        while not self.stopping.is_set():
            started = time.monotonic()
            try:
                text = self._ask(stream=number % 2 == 0)
                if text != self.expected:
                    raise AssertionError(f"another answer: {text!r}")
                with self.lock:
                    self.answered += 1
            except Exception as error:  # whatever it is, a client has lost a request
                with self.lock:
                    self.failures.append(Failure(started, time.monotonic() - started, f"{type(error).__name__} {error}"))
            self.stopping.wait(0.02)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join(90)
