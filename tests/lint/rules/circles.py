"""No circle between files: neither of calls, nor of headers that include each other.

A header that only takes a type from its caller's header makes no circle, so calls and includes are
looked at apart.
"""

import os
import re
import shutil
import subprocess
import tempfile

from tree import MissingTool, lines_matching, without_comments

INCLUDE = r'#[ \t]*include[ \t]*[<"]([^>"\n]*)[>"]'
# References to data count too: who puts another file's function into a table depends on that file.
DEFINED, UNDEFINED = set("ABCDGRSTVWu"), set("Uvw")


class Graph:
    """Which file needs which, and by what: {file: {file: {symbol or include}}}."""

    def __init__(self):
        self.edges = {}

    def add(self, origin, target, reason):
        if origin != target:
            self.edges.setdefault(origin, {}).setdefault(target, set()).add(reason)

    def circles(self):
        """The members of each strongly connected component of more than one file (Tarjan)."""
        index, low, stack = {}, {}, []
        found = []

        def visit(node):
            index[node] = low[node] = len(index)
            stack.append(node)
            for target in sorted(self.edges.get(node, ())):
                if target not in index:
                    visit(target)
                    low[node] = min(low[node], low[target])
                elif target in stack:
                    low[node] = min(low[node], index[target])
            if low[node] == index[node]:
                at = stack.index(node)
                members = stack[at:]
                del stack[at:]
                if len(members) > 1:
                    found.append(frozenset(members))

        for node in sorted(self.edges):
            if node not in index:
                visit(node)
        return found

    def shortest(self, members):
        """The shortest way round among these files, as [file, …, the first file again]."""
        best = None
        for start in sorted(members):
            ways = [[start]]
            seen = {start}
            while ways and (best is None or len(ways[0]) < len(best)):
                way = ways.pop(0)
                targets = self.edges.get(way[-1], {})
                if start in targets:
                    best = way + [start]
                    break
                for target in sorted(members & set(targets) - seen):
                    seen.add(target)
                    ways.append(way + [target])
        return best

    def describe(self, members):
        way = self.shortest(members)
        text = way[0]
        for origin, target in zip(way, way[1:]):
            reasons = sorted(self.edges[origin][target])
            more = f", {len(reasons) - 3} more" if len(reasons) > 3 else ""
            text += f" -> {target} ({', '.join(reasons[:3])}{more})"
        others = sorted(members - set(way))
        return text + (f"; in circles with these: {', '.join(others)}" if others else "")


def _includes(tree):
    graph = Graph()
    for path in tree.select("src"):
        text = without_comments(tree.text(path), keep_strings=True)
        for _, match in lines_matching(text, INCLUDE):
            target = tree.included(match.group(1))
            if target:
                graph.add(path, target, f'"{match.group(1)}"')
    return graph


def _symbols(objects):
    """Yields (path, type, symbol) for each symbol of {object file: path of its source}."""
    if not shutil.which("nm"):
        raise MissingTool("nm")
    if not objects:
        return
    listed = subprocess.run(["nm", "-A", "-P", *objects], capture_output=True, text=True,
                            check=True)
    for line in listed.stdout.splitlines():
        name, symbol, kind = re.match(r"(.*?): (\S+) (\S)", line).groups()
        yield objects[name], kind, symbol


def _calls(objects):
    graph = Graph()
    homes, references = {}, []
    for path, kind, symbol in _symbols(objects):
        if kind in DEFINED:
            homes.setdefault(symbol, set()).add(path)
        elif kind in UNDEFINED:
            references.append((path, symbol))
    for origin, symbol in references:
        for target in homes.get(symbol, ()):
            graph.add(origin, target, symbol)
    return graph


def _built(tree, build):
    """The product's objects in a build directory, as {system: {object: source}}.

    Only one system's objects are ever linked, so each is looked at by itself. Those of macOS are
    compiled by the tests of other systems.
    """
    common, systems = {}, {}
    for directory, _, names in os.walk(build):
        relative = os.path.relpath(directory, build)
        match = re.match(r"(src|tests)/((?:.*/)?)CMakeFiles/([^/]+)\.dir(.*)$", relative)
        for name in names if match else ():
            if not name.endswith(".c.o"):
                continue
            inner = f"{match.group(2)}{match.group(4).lstrip('/')}/{name[:-2]}"
            if match.group(1) == "tests":
                inner = re.sub(r"^.*__/src/|^.*/src/", "", inner)
                system = "darwin" if inner.startswith("core/platform/") else None
            else:
                of_system = re.fullmatch(r"bugpack_platform_(\w+)", match.group(3))
                system = of_system.group(1) if of_system else ""
            path = "src/" + re.sub(r"/+", "/", inner)
            if system is None or path not in tree.paths:
                continue
            target = systems.setdefault(system, {}) if system else common
            target[os.path.join(directory, name)] = path
    return {system: {**common, **objects} for system, objects in systems.items()} or {"": common}


def _compiled(tree, into):
    """The same for a sample, which is compiled here."""
    objects = {}
    for path in tree.select("src", suffixes=(".c",)):
        made = os.path.join(into, path.replace("/", "_") + ".o")
        subprocess.run([os.environ.get("BUGPACK_CC", "cc"), "-c", "-w", *tree.include_flags(),
                        "-o", made, tree.full(path)], check=True)
        objects[made] = path
    return {"": objects}


def circles(tree, groups):
    """Yields (members, description) of each circle."""
    said = set()
    for graph in [_includes(tree), *map(_calls, groups.values())]:
        for members in graph.circles():
            if members not in said:
                said.add(members)
                yield members, graph.describe(members)


def check(tree):
    build = os.environ.get("BUGPACK_BUILD", os.path.join(tree.root, "build"))
    if os.path.exists(os.path.join(tree.root, "CMakeLists.txt")):
        groups = _built(tree, build)
        if not any(groups.values()):
            yield f"{build}: holds no objects of the product"
        for members, description in circles(tree, groups):
            yield f"{len(members)} files in a circle: {description}"
    else:
        with tempfile.TemporaryDirectory(prefix="bugpack-lint.") as into:
            for members, description in circles(tree, _compiled(tree, into)):
                yield f"{len(members)} files in a circle: {description}"


CALLER = "void b(void);\nvoid a(void) { b(); }\n"
BAD = [
    # By calls, by calls over a third, by a function in a table, by data.
    {"src/core/base/a.c": CALLER, "src/core/base/b.c": "void a(void);\nvoid b(void) { a(); }\n"},
    {"src/core/base/a.c": CALLER, "src/core/ring/b.c": "void c(void);\nvoid b(void) { c(); }\n",
     "src/core/json/c.c": "void a(void);\nvoid c(void) { a(); }\n"},
    {"src/core/base/a.c": CALLER,
     "src/core/base/b.c": "void a(void);\nvoid (*const table[])(void) = {a};\nvoid b(void) {}\n"},
    {"src/core/base/a.c": "int x;\n" + CALLER,
     "src/core/base/b.c": "extern int x;\nvoid b(void) { x++; }\n"},
    # By includes.
    {"src/core/base/a.h": '#include "base/b.h"\n', "src/core/base/b.h": '# include <base/c.h>\n',
     "src/core/base/c.h": '#include "base/a.h"\n'},
]
GOOD = [{
    "src/core/base/a.c": '#include "base/a.h"\n#include "base/b.h"\nvoid a(void) { b(); }\n',
    "src/core/base/a.h": "void a(void);\n",
    "src/core/base/b.c": '#include "base/b.h"\n/* #include "base/a.h" */\nstatic void help(void) {}\n'
                    "void b(void) { help(); }\n",
    "src/core/base/b.h": '#include "base/a.h"\nvoid b(void);\n',
    "src/core/ring/a.c": '#include "base/a.h"\nstatic void b(void) {}\nvoid d(void) { b(); a(); }\n',
}]
