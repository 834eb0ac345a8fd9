"""Every header compiles alone and twice, the public ones as C++ too."""

import os
import shlex
import shutil
import subprocess
import tempfile

from tree import MissingTool

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wno-unused", "-Werror", "-fsyntax-only"]


def _library_flags():
    flags = subprocess.run(["pkg-config", "--cflags", "libzip", "libcjson", "zlib", "libpng",
                            "libpcre2-8"],
                           capture_output=True, text=True, check=False)
    return shlex.split(flags.stdout)


def _compile(command, header, ending):
    with tempfile.NamedTemporaryFile("w", suffix=ending) as source:
        source.write(f"#include <{header}>\n" * 2 + "int bugpack_lint_is_not_empty;\n")
        source.flush()
        done = subprocess.run(command + [source.name], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode != 0 else None


def check(tree):
    compiler = os.environ.get("BUGPACK_CC", "cc")
    if not shutil.which(compiler):
        raise MissingTool(compiler)
    cxx_compilers = [name for name in ("g++", "clang++") if shutil.which(name)]
    include = ["-I", tree.full("include")]
    ours = include + tree.include_flags() + ["-D_GNU_SOURCE"] + _library_flags()
    for path in tree.select("include", "src", suffixes=(".h",)):
        if path.startswith("src/core/platform/darwin/"):
            continue
        header = path.split("/", 1)[1]
        flags = include if path.startswith("include/") else ours
        error = _compile([compiler, "-std=c11"] + STRICT + flags, header, ".c")
        if error:
            yield f"{path} does not compile alone:\n{error}"
        if not path.startswith("include/"):
            continue
        for cxx in cxx_compilers:
            error = _compile([cxx, "-std=c++17"] + STRICT + include, header, ".cpp")
            if error:
                yield f"{path} does not compile as C++:\n{error}"


BAD = [
    {"src/core/base/a.h": "size_t length(void);\n"},
    {"include/bugpack/a.h": "bool is_there(void);\n"},
    {"include/bugpack/a.h": "struct twice { int a; };\n"},
    {"include/bugpack/a.h": "#pragma once\nint take(int class);\n"},
]
GOOD = [{
    "include/bugpack/a.h": "#ifndef A\n#define A\n#include <stddef.h>\nsize_t length(void);\n#endif\n",
    "src/core/base/b.h": "#ifndef B\n#define B\n#include <bugpack/a.h>\n#endif\n",
}]
