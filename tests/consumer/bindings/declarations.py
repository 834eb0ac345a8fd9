"""Prints a C file that compiles only if the declarations of the Python module are those of the headers.
With an argument, one of them is wrong: "struct", "call" or "constant"."""

import ctypes
import enum
import re
import sys

import bugpack

C = {"int", "unsigned", "char", "bool", "void", "size_t", "pid_t", "uint16_t", "uint32_t", "uint64_t",
     "const"}


def c_type(words):
    names = {"self": "bugpack_session", "str": "const char *"}
    return re.sub(r"\w+", lambda word: word[0] if word[0] in C else
                  names.get(word[0], "bugpack_" + word[0]), words)


def is_true(what):
    print(f'_Static_assert({what}, "");')


wrong = sys.argv[1] if len(sys.argv) > 1 else None
print("#include <bugpack/bindings.h>\n#include <stddef.h>")
for name, kind in sorted(bugpack._TYPES.items()):
    if name not in C | {"str", "ptr"}:
        size = ctypes.sizeof(kind) + (name == "event" and wrong == "struct")
        is_true(f"sizeof(bugpack_{name}) == {size}")
        for member, _ in kind._fields_:
            field = getattr(kind, member)
            is_true(f"offsetof(bugpack_{name}, {member}) == {field.offset}")
            is_true(f"sizeof(((bugpack_{name} *)0)->{member}) == {field.size}")
for call, (result, parameters) in bugpack._PROTOTYPES.items():
    parameters = parameters[:1] if (call, wrong) == ("set_tag", "call") else parameters
    print(f"{c_type(result)} bugpack_{call}({', '.join(map(c_type, parameters))});")
enums = {"Status": "ERR_", "Level": "LEVEL_", "EventKind": "EVENT_"}
constants = {enums[name] + member.name: member.value for name in enums for member in getattr(bugpack, name)}
constants["OK"] = constants.pop("ERR_OK")
constants.update((name, value) for name, value in vars(bugpack).items()
                 if name.isupper() and isinstance(value, int) and not isinstance(value, enum.Enum))
assert len(constants) > 50
for name, value in constants.items():
    is_true(f"BUGPACK_{name} == {value + (name == 'OFF' and wrong == 'constant')}{'u' * (value >= 0)}")
