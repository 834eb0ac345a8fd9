/*
 * File names of reports, read back: whose report it is, of what kind, and of when.
 */
#ifndef BP_REPORT_NAME_PARSE_H
#define BP_REPORT_NAME_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/metadata.h"

typedef struct bp_report_name {
    size_t app_bytes; /* the name begins with so many bytes of the app's word */
    bp_report_kind kind;
    uint64_t wall_secs; /* of the trigger, since 1970 */
    unsigned number;    /* 1, or what stands before ".zip" where the name was taken */
} bp_report_name;

/*
 * Reads `<app>-<kind>[-<detail>]-YYYY-MM-DDTHH-MM-SSZ[-N].zip` as strictly as bp_name_report_stem
 * writes it: a detail just where the kind has one, a date that exists, no other byte. False for all
 * else, and also for a name that could be read in two ways: in `a-pedantic-b-crash-….zip` the app
 * may be `a` or `a-pedantic-b`, and nobody should remove another's report.
 */
bool bp_name_parse_report(const char *name, bp_report_name *ret_parsed);

#endif
