"""Starts the cluster, installs the chart and runs the tests:  main.py [test name...]"""
import importlib
import sys
import time
import unittest

import cluster

MODULES = ["test_install", "test_admission", "test_rollouts", "test_faults", "test_protocol", "test_chart"]


class TimedResult(unittest.TextTestResult):
    def startTest(self, test):
        self.started = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.stream.writeln(f"    {time.monotonic() - self.started:.1f} s")

    def addError(self, test, error):
        super().addError(test, error)
        self.stream.writeln(self.errors[-1][1])  # at once: later tests may take minutes

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.stream.writeln(self.failures[-1][1])


def main():
    loader = unittest.TestLoader()
    suite = unittest.TestSuite()
    for name in MODULES:
        suite.addTests(loader.loadTestsFromModule(importlib.import_module(name)))
    cluster.CLUSTER = cluster.Cluster()
    wanted = sys.argv[1:]
    if wanted:
        def chosen(tests):
            for test in tests:
                if isinstance(test, unittest.TestSuite):
                    yield from chosen(test)
                elif any(word in test.id() for word in wanted):
                    yield test
        suite = unittest.TestSuite(chosen(suite))
    result = unittest.TextTestRunner(verbosity=2, resultclass=TimedResult, failfast=False).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
