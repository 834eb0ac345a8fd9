#!/usr/bin/env python3
"""A sample of faults is another one in each run, unless its seed is set."""

import importlib.machinery
import importlib.util
import os
import sys

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run")
loader = importlib.machinery.SourceFileLoader("faults_run", path)
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("faults_run", loader))
loader.exec_module(run)


def seed(*options):
    sys.argv = ["run", "--build", ".", *options]
    return run.read_options().seed


os.environ.pop("FAULTS_SEED", None)
assert len({seed() for _ in range(10)}) > 1, "each run has the same seed"
os.environ["FAULTS_SEED"] = "7"
assert seed() == 7, "FAULTS_SEED is not heeded"
assert seed("--seed", "3") == 3, "--seed is not heeded"
