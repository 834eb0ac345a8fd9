"""Includes point down the folders of docs/ARCHITECTURE.md, and never to a sibling."""

from tree import lines_matching, without_comments

# From the bottom up. A folder includes itself and what is on a line above its own.
LAYERS = [
    ["base"],
    ["platform", "json", "archive", "image", "redact", "ring"],
    ["model"],
    ["recorder", "probe"],
    ["report"],
    ["trigger", "sources"],
    ["session"],
]
LEVELS = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}
# Programs, and what only they link: each includes the folders and headers named here, not all
# below it.
SEES = {
    "inspect": {"base", "platform", "json", "archive", "image", "redact", "ring", "model"},
    "run": {"base", "platform", "recorder"},
    "cli": {"base", "inspect", "model", "probe", "report", "run", "session/command.h"},
    "hosts": set(),
}

INCLUDE = r'#[ \t]*include[ \t]*(?:"([^"\n]*)"|<([^>\n]*)>)'


def _includes(tree, path):
    """Yields (line number, target) of each include of ours; src/ is searched for <folder/x.h> too."""
    text = without_comments(tree.text(path), keep_strings=True)
    for line, match in lines_matching(text, INCLUDE):
        target = match.group(1) if match.group(1) is not None else match.group(2)
        if match.group(1) is not None or target.split("/")[0] in {*LEVELS, *SEES}:
            yield line, target


def _may_include(folder, target):
    other = target.split("/")[0]
    if folder == other:
        return True
    if folder in SEES:
        return other in SEES[folder] or target in SEES[folder]
    return other in LEVELS and LEVELS[other] < LEVELS[folder]


def check(tree):
    for path in tree.select("src"):
        folder = path.split("/")[1]
        if folder not in LEVELS and folder not in SEES:
            yield f"{path}: src/{folder} has no place in the order of folders"
            continue
        for line, target in _includes(tree, path):
            if "/" not in target or ".." in target:
                yield f'{path}:{line}: "{target}" does not begin with its folder'
            elif not _may_include(folder, target):
                yield f'{path}:{line}: {folder}/ must not include "{target}"'
    for path in tree.select("include"):
        for line, target in _includes(tree, path):
            yield f'{path}:{line}: a public header includes "{target}" of ours'


BAD = [
    {"src/base/a.c": '#include "ring/ring.h"\n'},
    {"src/ring/a.c": '#include "json/json.h"\n'},
    {"src/recorder/a.c": '# include "probe/sampler.h"\n'},
    {"src/recorder/a.c": '#include "report/job.h"\n'},
    {"src/report/a.c": '#include "session/session.h"\n'},
    {"src/report/a.c": '#include "trigger/pedantic.h"\n'},
    {"src/trigger/a.c": '#include "session/session.h"\n'},
    {"src/trigger/a.c": '#include "sources/process.h"\n'},
    {"src/sources/a.c": '#include "session/session.h"\n'},
    {"src/inspect/a.c": '#include "session/session.h"\n'},
    {"src/session/a.c": '#include "inspect/report_file.h"\n'},
    {"src/model/a.h": '#include "session/session.h"\n'},
    {"src/cli/a.c": '#include "json/json.h"\n'},
    {"src/hosts/a.c": '#include "probe/sampler.h"\n'},
    {"src/run/a.c": '#include "session/session.h"\n'},
    {"src/session/a.c": '#include "run/relay.h"\n'},
    {"src/base/a.c": "#include <ring/ring.h>\n"},
    {"src/base/a.c": '#include"ring/ring.h"\n'},
    {"src/base/a.c": '#include "buffer.h"\n'},
    {"src/base/a.c": '#include "base/../ring/ring.h"\n'},
    {"src/attic/a.c": "int x;\n"},
    {"include/bugpack/a.h": '#include "base/buffer.h"\n'},
    {"include/bugpack/a.h": "#include <base/buffer.h>\n"},
]
GOOD = [{
    "src/base/a.c": '#include <stdio.h>\n#include <bugpack/error.h>\n#include "base/buffer.h"\n'
                    '/* #include "ring/ring.h" */\n',
    "src/session/a.c": '#include "report/report.h"\n#include "trigger/gaps.h"\n',
    "src/trigger/a.c": '#include "report/job.h"\n#include "recorder/log.h"\n',
    "src/sources/a.c": '#include "report/provider.h"\n#include "probe/sampler.h"\n',
    "src/report/a.c": '#include "model/manifest.h"\n#include "base/file.h"\n',
    "src/cli/a.c": '#include "cli/input.h"\n#include "probe/sampler.h"\n',
    "include/bugpack/a.h": "#include <bugpack/error.h>\n",
    "tests/unit/a.c": '#include "report/report.h"\n#include "support/temp_dir.h"\n',
}]
