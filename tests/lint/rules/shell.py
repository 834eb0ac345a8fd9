"""Shell scripts are clean for shellcheck."""

import re
import shutil
import subprocess

from tree import MissingTool


def check(tree):
    if not shutil.which("shellcheck"):
        raise MissingTool("shellcheck")
    scripts = [path for path in tree.paths
               if path.endswith(".sh") or (not path.startswith("fixtures/") and re.match(
                   r"#!\s*/(?:usr/)?bin/(?:env\s+)?(?:ba|da)?sh\b", tree.first_line(path)))]
    if not scripts:
        return
    done = subprocess.run(["shellcheck", "-x", "-P", "SCRIPTDIR", "-f", "gcc"] + scripts, cwd=tree.root,
                          capture_output=True, text=True, check=False)
    yield from (done.stdout + done.stderr).splitlines()


BAD = [
    {"src/scripts/a": "#!/bin/sh\nrm -r $1\n"},
    {"tests/a.sh": "# shellcheck shell=sh\n[[ $1 == 2 ]]\n"},
    {".ci/run": "#!/usr/bin/env bash\necho $1\n"},
]
GOOD = [{"src/scripts/a": '#!/bin/sh\nrm -r "$1"\n', "tests/b": "#!/usr/bin/env python3\nx = $1\n"}]
