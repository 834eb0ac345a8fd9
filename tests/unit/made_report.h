/*
 * Reports made member by member, so that the manifest can say anything of them: what the tests of
 * `bugpack verify` begin with. Within the fixture of unit/quick_session.h.
 */
#ifndef TESTS_UNIT_MADE_REPORT_H
#define TESTS_UNIT_MADE_REPORT_H

#include "support/made_zip.h"

extern const char made_report_id[33]; /* of each */

/* A report that is being made, with a manifest for its members. */
typedef struct made_report {
    made_member members[MADE_ZIP_MEMBER_MAX];
    size_t count;
    bp_buffer manifest; /* up to the last artefact */
} made_report;

/* With metadata.json, taken from a real report. */
void made_report_begin(made_report *report);
/* Adds a member, and its line to the manifest. */
void made_report_add(made_report *report, const char *name, const char *content);
void made_report_list(made_report *report, const char *name, const char *content);
/* Ends the manifest, and with it the report; the caller releases the zip. */
void made_report_end(made_report *report, made_zip *ret_zip);

/* A small sound report, whose members are stored; the caller releases the zip. */
void made_report_sound(made_zip *ret_zip);

/* What `bugpack verify` finds wrong with a file, into a text that the next call overwrites; "" for
 * nothing. */
const char *made_report_faults(const void *bytes, size_t byte_count, uint64_t max_bytes);

#endif
