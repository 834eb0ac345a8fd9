"""Includes point down the house of docs/ARCHITECTURE.md, and never to a sibling."""

from tree import lines_matching, without_comments

LEVELS = {
    "base": 0,
    "ring": 1, "json": 1, "archive": 1, "image": 1, "platform": 1,
    "model": 2,
    "recorder": 3, "probe": 3, "report": 3, "trigger": 3, "inspect": 3,
    "session": 3.5,  # ties its level together, so it alone sees the siblings
}
# These see a few rooms by name, not all that lie below.
SEES = {"cli": {"inspect", "probe", "run"}, "hosts": set(),
        "run": {"base", "platform", "recorder"}}

INCLUDE = r'#[ \t]*include[ \t]*(?:"([^"\n]*)"|<([^>\n]*)>)'


def _includes(tree, path):
    """Yields (line number, target) of each include of ours; src/ is searched for <room/x.h> too."""
    text = without_comments(tree.text(path), keep_strings=True)
    for line, match in lines_matching(text, INCLUDE):
        target = match.group(1) if match.group(1) is not None else match.group(2)
        if match.group(1) is not None or target.split("/")[0] in {*LEVELS, *SEES}:
            yield line, target


def _may_include(room, other):
    if room == other:
        return True
    if room in SEES:
        return other in SEES[room]
    return other in LEVELS and LEVELS[other] < LEVELS[room]


def check(tree):
    for path in tree.select("src"):
        room = path.split("/")[1]
        if room not in LEVELS and room not in SEES:
            yield f"{path}: src/{room} is no room of the house"
            continue
        for line, target in _includes(tree, path):
            if "/" not in target or ".." in target:
                yield f'{path}:{line}: "{target}" does not begin with the room it is in'
            elif not _may_include(room, target.split("/")[0]):
                yield f'{path}:{line}: {room}/ must not include "{target}"'
    for path in tree.select("include"):
        for line, target in _includes(tree, path):
            yield f'{path}:{line}: a public header includes "{target}" of ours'


BAD = [
    {"src/base/a.c": '#include "ring/ring.h"\n'},
    {"src/ring/a.c": '#include "json/json.h"\n'},
    {"src/report/a.c": '# include "recorder/log.h"\n'},
    {"src/model/a.h": '#include "session/session.h"\n'},
    {"src/cli/a.c": '#include "base/buffer.h"\n'},
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
    "src/session/a.c": '#include "report/report.h"\n#include "recorder/log.h"\n',
    "src/report/a.c": '#include "model/manifest.h"\n#include "base/file.h"\n',
    "src/cli/a.c": '#include "cli/input.h"\n#include "probe/sampler.h"\n',
    "include/bugpack/a.h": "#include <bugpack/error.h>\n",
    "tests/unit/a.c": '#include "report/report.h"\n#include "support/temp_dir.h"\n',
}]
