/*
 * The sections of a report below its findings: what the screen and the page both print, each with
 * its own pattern (print/fill.h) for a line. A section that is more than lines, as a chart, has a
 * function of its printer.
 */
#ifndef BP_PRINT_SECTIONS_H
#define BP_PRINT_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "json/tree.h"

/* In the order of the page. */
typedef enum bp_section_id {
    BP_SECTION_FINDINGS,
    BP_SECTION_CRASH,
    BP_SECTION_OUTPUT,
    BP_SECTION_WAITS,
    BP_SECTION_PICTURES,
    BP_SECTION_METRICS,
    BP_SECTION_PROCESSES,
    BP_SECTION_PROFILE,
    BP_SECTION_THREADS,
    BP_SECTION_MACHINE,
    BP_SECTION_STACKS,
    BP_SECTION_TRIGGERS,
    BP_SECTION_LOG,
    BP_SECTION_NOTIFICATIONS,
    BP_SECTION_TRAFFIC,
    BP_SECTION_ENTRIES,
    BP_SECTION_DOCUMENTS,
    BP_SECTION_COUNT
} bp_section_id;

/* `show` prints a line always, only with --all, or only without it. */
typedef enum bp_section_when { BP_ALWAYS, BP_IF_ALL, BP_UNLESS_ALL } bp_section_when;

/* A line, or one for each element of a list. The last one of a section has no pattern. */
typedef struct bp_section_line {
    const char *list;  /* a member of the object of the section; NULL: the object itself */
    const char *title; /* a pattern, above a list that is not empty; NULL: none */
    const char *screen, *page;
    bp_section_when when;
    size_t indent;       /* of what the screen wraps; 0: it cuts the line */
    const char *columns; /* of a table on the page: "Thread|CPU" */
} bp_section_line;

typedef struct bp_section {
    const char *id, *title;       /* of the page; the screen has the same title */
    const char *note;             /* behind the title on the screen */
    const char *path;             /* of its object in the document; "" for the document */
    const char *list;             /* without an element of this one there is no section */
    const bp_section_line *lines; /* NULL: it is not made of lines */
} bp_section;
extern const bp_section bp_sections[BP_SECTION_COUNT];

bool bp_section_is_end(const bp_section_line *line);

/* The object of a section; NULL where there is no section. */
const bp_json_tree *bp_section_facts(const bp_section *section, const bp_json_tree *document);

#endif
