#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The twheel authors
"""tap.py MODULE...: run the tests of these modules, as unittest knows them, and print TAP.

Each test is a point, whose name is its docstring. The name also has the backend, BACKEND=.
"""
import os
import sys
import traceback
import unittest


class Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0

    def point(self, good, test, text="", reason=None):
        self.number += 1
        name = test.shortDescription() or test.id()
        print(f"{'ok' if good else 'not ok'} {self.number} - {name}" + (f" # SKIP {reason}" if reason else ""))
        for line in text.splitlines():
            print("#", line)
        sys.stdout.flush()

    def addSuccess(self, test):
        self.point(True, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.point(False, test, "".join(traceback.format_exception(*err)))

    def addError(self, test, err):
        super().addError(test, err)
        self.point(False, test, "".join(traceback.format_exception(*err)))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.point(True, test, reason=reason)


def main():
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName(name) for name in sys.argv[1:])
    print(f"1..{suite.countTestCases()}")
    print(f"# TWHEEL_BACKEND={os.environ.get('TWHEEL_BACKEND', '')}")
    result = Tap()
    suite.run(result)
    sys.exit(not result.wasSuccessful())


main()
