"""Public structs with a struct_size that hosts pass: each has an exported initialiser that takes the
host's size, and src/base/public_structs.c lists its members in order."""

import re

STRUCT = re.compile(r"typedef struct (bugpack_\w+) \{\s*size_t struct_size;(.*?)\n\} \1;", re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
LISTED = re.compile(r"#define TYPE (\w+)\n(.*?)#undef TYPE", re.DOTALL)
SET_BY_LIBRARY = re.compile(r"\s*/\* set by the library \*/")
TABLE = "src/base/public_structs.c"


def _members(body):
    names = []
    for statement in COMMENT.sub("", body).split(";")[:-1]:
        statement = re.sub(r"\[[^\]]*\]", "", statement)
        pointer = re.search(r"\(\*(\w+)\)", statement)
        names += [pointer.group(1)] if pointer else re.findall(r"(\w+)\s*(?=,|$)", statement)
    return names


def check(tree):
    table = tree.text(TABLE) if TABLE in tree.paths else ""
    listed = {name: re.findall(r"M\((\w+)\)", text) for name, text in LISTED.findall(table)}
    for path in tree.select("include", suffixes=(".h",)):
        text = tree.text(path)
        for name, body in STRUCT.findall(text):
            if SET_BY_LIBRARY.match(body):
                continue
            if f"BUGPACK_API void {name}_init({name} *fresh, size_t struct_size);" not in " ".join(text.split()):
                yield f"{path}: {name} has no exported {name}_init that takes its size"
            if listed.get(name) != _members(body):
                yield f"{TABLE}: the members of {name} are not those of {path}"


_STRUCT = "typedef struct bugpack_a {\n    size_t struct_size;\n    int b, c; /* d; */\n} bugpack_a;\n"
_INIT = "BUGPACK_API void bugpack_a_init(bugpack_a *fresh, size_t struct_size);\n"
_TABLE = "#define TYPE bugpack_a\nM(b), M(c)\n#undef TYPE\n"
BAD = [
    {"include/bugpack/a.h": _STRUCT, TABLE: _TABLE},
    {"include/bugpack/a.h": _STRUCT + _INIT},
    {"include/bugpack/a.h": _STRUCT + _INIT, TABLE: _TABLE.replace(", M(c)", "")},
]
GOOD = [
    {"include/bugpack/a.h": _STRUCT + _INIT, TABLE: _TABLE},
    {"include/bugpack/a.h": _STRUCT.replace("size;", "size; /* set by the library */")},
]
