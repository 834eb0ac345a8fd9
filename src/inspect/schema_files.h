/*
 * The files of docs/schema, as they are; src/inspect/CMakeLists.txt makes the source.
 */
#ifndef BP_INSPECT_SCHEMA_FILES_H
#define BP_INSPECT_SCHEMA_FILES_H

#include <stddef.h>

typedef struct bp_schema_file {
    const char *title; /* "process.json", "One line of logs.jsonl"; NULL of the last */
    const unsigned char *text;
    size_t byte_count;
} bp_schema_file;

extern const bp_schema_file bp_schema_files[];

#endif
