/*
 * Lines of a report that mention a person or a machine: home directories, addresses, and names that
 * a caller knows. Nothing is replaced; somebody is shown what is about to be sent.
 */
#ifndef BP_INSPECT_PERSONS_H
#define BP_INSPECT_PERSONS_H

#include <stddef.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "inspect/report_file.h"

/* One of under three characters, or of other characters than those of login and host names, is not
 * looked for. */
typedef struct bp_person_names {
    const char *users[8];
    size_t count;
    const char *machine; /* looked for up to its first dot; NULL: none */
} bp_person_names;

/* Appends how many lines of each text mention somebody, or the machine that the report names, and
 * the first of them, escaped. Of an entry the first 64 MiB are looked at. NO_MEMORY; IO or CORRUPT
 * for an entry that cannot be read. */
bugpack_status bp_persons_list(const bp_report_file *report, const bp_person_names *names,
                               bp_buffer *out, bugpack_error *error);

#endif
