# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Runs the unittest cases of a module and reports them by TAP."""

import sys
import unittest


class _Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.n = 0

    def _print(self, verdict, test, trace=""):
        self.n += 1
        print(f"{verdict} {self.n} - {test.id()}", flush=True)
        for line in trace.splitlines():
            print(f"# {line}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._print("ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self._print("not ok", test, self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._print("not ok", test, self.failures[-1][1])


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(
        sys.modules["__main__"])
    print(f"1..{suite.countTestCases()}", flush=True)
    result = _Result()
    suite.run(result)
    sys.exit(not result.wasSuccessful())
