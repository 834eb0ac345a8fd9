"""clang-format 14 decides how C looks; other versions decide otherwise."""

import os
import re
import shutil
import subprocess

from tree import MissingTool

STYLE = os.path.join(os.path.dirname(__file__), "../../../.clang-format")


def _clang_format():
    for name in ("clang-format-14", "clang-format"):
        if shutil.which(name):
            said = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
            if re.search(r"version 14\.", said.stdout):
                return name
    raise MissingTool("clang-format 14")


def check(tree):
    files = tree.select("src", "include", "tests", suffixes=(".c", ".h", ".cpp"))
    if not files:
        return
    done = subprocess.run(
        [_clang_format(), "--dry-run", "-Werror", f"--style=file:{STYLE}"]
        + [tree.full(path) for path in files], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        wrong = sorted(set(re.findall(r"^(.+?):\d+:\d+: error", done.stderr, re.MULTILINE)))
        yield done.stderr[:4000] if not wrong else "not formatted: " + ", ".join(
            os.path.relpath(path, tree.root) for path in wrong)


BAD = [{"src/core/base/a.c": "int f( void ){\n  return 1;\n}\n"}]
GOOD = [{"src/core/base/a.c": "int f(void) {\n    return 1;\n}\n"}]
