#!/usr/bin/python3
"""What psutil's Process.threads() costs: psutil_threads.py PID prints the median in microseconds.

psutil reads stat of every thread and no name, so it does less than a snapshot with names.
"""

import statistics
import sys
import time

import psutil

RUNS = 15

process = psutil.Process(int(sys.argv[1]))
process.threads()
times_ns = []
for _ in range(RUNS):
    begin = time.perf_counter_ns()
    process.threads()
    times_ns.append(time.perf_counter_ns() - begin)
print(f"{statistics.median(times_ns) / 1000:.0f}")
