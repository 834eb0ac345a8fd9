"""Public structs with a struct_size that hosts pass: each has an exported initialiser for bindings that takes
the host's size."""

import re

STRUCT = re.compile(r"typedef struct (bugpack_\w+) \{\s*size_t struct_size;(.*?)\n\} \1;", re.DOTALL)
SET_BY_LIBRARY = re.compile(r"\s*/\* set by the library \*/")


def check(tree):
    bindings = "include/bugpack/bindings.h"
    declared = " ".join(tree.text(bindings).split()) if bindings in tree.paths else ""
    for path in tree.select("include", suffixes=(".h",)):
        text = tree.text(path)
        for name, body in STRUCT.findall(text):
            if SET_BY_LIBRARY.match(body):
                continue
            if f"BUGPACK_API void {name}_init({name} *fresh, size_t struct_size);" not in declared:
                yield f"{path}: {name} has no {name}_init in bindings.h that takes its size"


_STRUCT = "typedef struct bugpack_a {\n    size_t struct_size;\n    int b, c; /* d; */\n} bugpack_a;\n"
_INIT = "BUGPACK_API void bugpack_a_init(bugpack_a *fresh, size_t struct_size);\n"
BAD = [{"include/bugpack/a.h": _STRUCT}]
GOOD = [
    {"include/bugpack/a.h": _STRUCT, "include/bugpack/bindings.h": _INIT},
    {"include/bugpack/a.h": _STRUCT.replace("size;", "size; /* set by the library */")},
]
