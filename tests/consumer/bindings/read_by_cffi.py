"""Reads the preprocessed headers on standard input as docs/EMBEDDING.md says, and calls the library."""

import re
import sys

import cffi

ours, is_ours = ["typedef int pid_t; typedef ... *va_list;"], False
for line in sys.stdin:
    marker = re.match(r'# \d+ "(.*?)"', line)
    if marker:
        is_ours = "/bugpack/" in marker.group(1)
    elif is_ours:
        ours.append(line)
ffi = cffi.FFI()
ffi.cdef("".join(ours))
library = ffi.dlopen(sys.argv[1])
options = ffi.new("bugpack_options *")
library.bugpack_options_init(options, ffi.sizeof("bugpack_options"))
assert options.struct_size == ffi.sizeof("bugpack_options")
assert ffi.string(library.bugpack_status_name(library.BUGPACK_ERR_LIMIT))
