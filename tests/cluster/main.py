"""Starts the cluster, installs the chart and runs the tests:  main.py [part of a test's name...]"""
import concurrent.futures
import importlib
import sys
import time
import unittest

import case
import cluster

MODULES = ["test_install", "test_admission", "test_loading", "test_rollouts", "test_faults", "test_protocol",
           "test_operator", "test_webhook", "test_chart", "test_rights", "test_uninstall"]
SIDE_BY_SIDE = 6


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def run(test):
    """Runs one test and prints what became of it. True unless it failed."""
    result = unittest.TestResult()
    started = time.monotonic()
    test.run(result)
    seconds = time.monotonic() - started
    word = "ok" if result.wasSuccessful() else "FAILED"
    if result.skipped:
        word = "SKIPPED: " + result.skipped[0][1]
    figures = "; ".join(test.figures)
    details = "".join(text for _, text in result.failures + result.errors)
    print(f"{seconds:6.1f} s  {test.id()}: {word}{' (' + figures + ')' if figures else ''}\n{details}", end="", flush=True)
    return result.wasSuccessful()


def in_lanes(tests):
    """Lists of tests, one to run after another; the named lanes, which take longest, first."""
    lanes = {}
    for test in tests:
        lanes.setdefault(case.mark(test, "lane") or test.id(), []).append(test)
    return sorted(lanes.values(), key=lambda lane: case.mark(lane[0], "lane") is None)


def main():
    started = time.monotonic()
    load = unittest.defaultTestLoader.loadTestsFromModule
    tests = [test for name in MODULES for test in tests_of(load(importlib.import_module(name)))
             if not sys.argv[1:] or any(word in test.id() for word in sys.argv[1:])]
    case.ClusterTest.c = cluster.Cluster()
    print(f"helm install --wait: {case.install_operator(case.ClusterTest.c):.1f} s", flush=True)
    together = [test for test in tests if not case.mark(test, "alone")]
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        done = list(pool.map(lambda lane: [run(test) for test in lane], in_lanes(together)))
    print(f"{time.monotonic() - started:6.1f} s  until here, side by side", flush=True)
    done.append([run(test) for test in tests if case.mark(test, "alone")])
    failed = sum(not ok for lane in done for ok in lane)
    print(f"cluster: {len(tests)} tests in {time.monotonic() - started:.0f} s, {failed} failed", flush=True)
    return 0 if tests and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
