# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
"""Prints how many tests passed, failed and were skipped in a run of
`meson test`: count-results.py STATUS [TESTLOG.JSON]...

A program that prints the Test Anything Protocol counts once for each of its
cases, any other once. What was skipped is named on stderr. One that ran no
case has tested nothing, which is a failure. STATUS is what meson test
returned: a failure that no log tells of (the build, say) counts as one."""
import json
import re
import sys

CASE = re.compile (r'^(not )?ok\b([^#\n]*)(#[ \t]*(\w+))?', re.M)


def count_program (record):
    passed = failed = skipped = 0
    for not_ok, _, _, directive in CASE.findall (record.get ('stdout') or ''):
        if directive.upper ().startswith ('SKIP'):
            skipped += 1
        elif not_ok:
            failed += 1
        else:
            passed += 1
    result = record['result']
    if result in ('OK', 'EXPECTEDFAIL'):
        passed += passed + failed + skipped == 0
    elif result == 'SKIP':
        failed += passed + failed + skipped == 0
    else:
        failed += failed == 0
    return passed, failed, skipped


def main (status, *logs):
    totals = [0, 0, 0]
    for log in logs:
        try:
            lines = open (log, encoding = 'utf-8', errors = 'replace')
        except FileNotFoundError:
            continue
        with lines:
            for line in lines:
                record = json.loads (line)
                numbers = count_program (record)
                if record['result'] == 'SKIP' and numbers[1] > 0:
                    print (f"  {record['name']} ran no case",
                           file = sys.stderr)
                if numbers[2] > 0:
                    print (f"  skipped in {record['name']}: {numbers[2]}",
                           file = sys.stderr)
                totals = [a + b for a, b in zip (totals, numbers)]
    if int (status) != 0 and totals[1] == 0:
        totals[1] = 1
    print (*totals)


main (*sys.argv[1:])
