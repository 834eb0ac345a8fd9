/*
 * Names of report files.
 */
#ifndef BP_REPORT_NAME_H
#define BP_REPORT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/metadata.h"

/* Enough for every stem with its NUL, and with "-9999.zip" after it within NAME_MAX (255). */
#define BP_NAME_STEM_BYTES 224

/*
 * Composes `<app>-<kind>[-<detail>]-YYYY-MM-DDTHH-MM-SSZ`. In `app` and `detail` (NULL for none)
 * ':', '/', '\' and space become '-', every other byte outside [A-Za-z0-9_.-] becomes '_', and so
 * does a '.' or '-' in front; app is cut at 64 bytes, detail at 96.
 */
void bp_name_report_stem(const char *app, bp_report_kind kind, const char *detail, uint64_t wall_ns,
                         char ret_stem[BP_NAME_STEM_BYTES]);

typedef struct bp_report_name {
    size_t app_bytes; /* the name begins with so many bytes of the app's word */
    bp_report_kind kind;
    uint64_t wall_secs; /* of the trigger, since 1970 */
    unsigned number;    /* 1, or N of "-N" where the name was taken */
} bp_report_name;

/*
 * Reads `<app>-<kind>[-<detail>]-YYYY-MM-DDTHH-MM-SSZ[-N].zip` as strictly as bp_name_report_stem
 * writes it: a detail just where the kind has one, a date that exists, no other byte. False for all
 * else, and also for a name that could be read in two ways: in `a-pedantic-b-crash-….zip` the app
 * may be `a` or `a-pedantic-b`, and nobody should remove another's report.
 */
bool bp_name_parse_report(const char *name, bp_report_name *ret_parsed);

/* The word that an app's name becomes there. */
#define BP_NAME_APP_BYTES 65
void bp_name_app_word(const char *app, char ret_word[BP_NAME_APP_BYTES]);

#endif
