"""Includes point down the floors of docs/ARCHITECTURE.md, and the folders of a floor; never to a sibling."""

from tree import FLOORS, lines_matching, without_comments

# The folders of each floor from the bottom up. A folder includes itself and what is on a line above its own.
LAYERS = {
    "core": [
        ["base"],
        ["platform", "json", "archive", "image", "ring"],
        ["redact"],
        ["model"],
    ],
    "probe": [["process"], ["stacks"], ["heap", "profile"], ["machine"]],
    "record": [["recorder"], ["report"], ["trigger", "sources"], ["session"]],
    "read": [["entries"], ["diagnose"], ["facts"], ["print", "compare"]],
    "command": [["run", "send"], ["cli"]],
    "hosts": [],
}
BELOW = {
    "core": set(),
    "probe": {"core"},
    "record": {"core", "probe"},
    "read": {"core"},
    "command": {"core", "probe", "record", "read"},
    "hosts": set(),
}
PLACES = {folder: (floor, level) for floor, layers in LAYERS.items()
          for level, folders in enumerate(layers) for folder in folders}

INCLUDE = r'#[ \t]*include[ \t]*(?:"([^"\n]*)"|<([^>\n]*)>)'


def _includes(tree, path):
    """Yields (line number, target) of each include of ours; <folder/x.h> finds our folders too."""
    text = without_comments(tree.text(path), keep_strings=True)
    for line, match in lines_matching(text, INCLUDE):
        target = match.group(1) if match.group(1) is not None else match.group(2)
        if match.group(1) is not None or target.split("/")[0] in {*PLACES, *LAYERS}:
            yield line, target


def _may_include(floor, folder, target):
    other = target.split("/")[0]
    if floor == "hosts":
        return other == "hosts"
    if other == folder:
        return True
    if other not in PLACES:
        return False
    other_floor, level = PLACES[other]
    if other_floor != floor:
        return other_floor in BELOW[floor]
    # A file that lies in the floor itself is above its folders.
    return folder not in PLACES or level < PLACES[folder][1]


def check(tree):
    for path in tree.select("src"):
        floor, folder = path.split("/")[1:3]
        in_floor = len(path.split("/")) == 3
        if floor not in LAYERS:
            yield f"{path}: src/{floor} is no floor"
        elif floor != "hosts" and not in_floor and PLACES.get(folder, "?")[0] != floor:
            yield f"{path}: src/{floor}/{folder} has no place in the order of folders"
        else:
            for line, target in _includes(tree, path):
                if "/" not in target or ".." in target:
                    yield f'{path}:{line}: "{target}" does not begin with its folder'
                elif not _may_include(floor, folder, target):
                    yield f'{path}:{line}: {floor}/{folder} must not include "{target}"'
    for path in tree.select("include"):
        for line, target in _includes(tree, path):
            yield f'{path}:{line}: a public header includes "{target}" of ours'
    assert set(LAYERS) == {*FLOORS, "hosts"}


BAD = [
    {"src/core/base/a.c": '#include "ring/ring.h"\n'},
    {"src/core/ring/a.c": '#include "json/json.h"\n'},
    {"src/core/model/a.c": '#include "process/sampler.h"\n'},
    {"src/core/model/a.h": '#include "session/session.h"\n'},
    {"src/core/base/a.c": "#include <ring/ring.h>\n"},
    {"src/core/base/a.c": '#include"ring/ring.h"\n'},
    {"src/core/base/a.c": '#include "buffer.h"\n'},
    {"src/core/base/a.c": '#include "base/../ring/ring.h"\n'},
    {"src/core/attic/a.c": "int x;\n"},
    {"src/attic/a.c": "int x;\n"},
    {"src/core/process/a.c": "int x;\n"},
    {"src/probe/process/a.c": '#include "stacks/stacks.h"\n'},
    {"src/probe/heap/a.c": '#include "profile/profile.h"\n'},
    {"src/probe/heap/a.c": '# include "recorder/monitor.h"\n'},
    {"src/record/recorder/a.c": '#include "report/job.h"\n'},
    {"src/record/report/a.c": '#include "session/session.h"\n'},
    {"src/record/report/a.c": '#include "trigger/pedantic.h"\n'},
    {"src/record/trigger/a.c": '#include "session/session.h"\n'},
    {"src/record/trigger/a.c": '#include "sources/process.h"\n'},
    {"src/record/sources/a.c": '#include "session/session.h"\n'},
    {"src/record/session/a.c": '#include "entries/report_file.h"\n'},
    {"src/record/session/a.c": '#include "run/relay.h"\n'},
    {"src/read/facts/a.c": '#include "session/session.h"\n'},
    {"src/read/facts/a.c": '#include "process/sampler.h"\n'},
    {"src/read/print/a.c": '#include "compare/diff.h"\n'},
    {"src/command/run/a.c": '#include "cli/option.h"\n'},
    {"src/hosts/a.c": '#include "process/sampler.h"\n'},
    {"include/bugpack/a.h": '#include "base/buffer.h"\n'},
]
GOOD = [{
    "src/core/base/a.c": '#include <stdio.h>\n#include <bugpack/error.h>\n#include "base/buffer.h"\n'
                         '/* #include "ring/ring.h" */\n',
    "src/probe/machine/a.c": '#include "heap/thread_heap.h"\n#include "json/json.h"\n',
    "src/probe/a.c": '#include "machine/machine_capture.h"\n',
    "src/record/recorder/a.c": '#include "process/sampler.h"\n',
    "src/record/session/a.c": '#include "report/report.h"\n#include "trigger/gaps.h"\n',
    "src/record/trigger/a.c": '#include "report/job.h"\n#include "recorder/log.h"\n',
    "src/read/facts/a.c": '#include "diagnose/evidence.h"\n#include "base/file.h"\n',
    "src/command/cli/a.c": '#include "cli/input.h"\n#include "session/command.h"\n',
    "src/hosts/spice/a.c": '#include "hosts/spice/wire.h"\n',
}]
