/*
 * What --json prints of commands that do something: a line of JSON for each event
 * (docs/schema/event.schema.json).
 */
#ifndef BP_CLI_EVENT_H
#define BP_CLI_EVENT_H

#include <stdint.h>
#include <stdio.h>

typedef enum bp_cli_member_kind {
    BP_CLI_TEXT,   /* NULL and "" are left out */
    BP_CLI_TEXTS,  /* `value` is an array of `number` texts */
    BP_CLI_NUMBER, /* `number` */
    BP_CLI_ID,     /* `number`; 0 is left out */
    BP_CLI_TRUTH   /* whether `number` is not 0 */
} bp_cli_member_kind;

/* A row of an event. */
typedef struct bp_cli_member {
    const char *key;
    bp_cli_member_kind kind;
    const void *value;
    uint64_t number;
} bp_cli_member;

/* Prints the line and flushes it. `wall_ns` 0 is now. A key of NULL ends the rows. */
void bp_cli_print_event(FILE *out, const char *event, uint64_t wall_ns,
                        const bp_cli_member *members);

/* The same with the rows as the last arguments. */
#define BP_CLI_PRINT_EVENT(out, event, wall_ns, ...)                                               \
    bp_cli_print_event(out, event, wall_ns,                                                        \
                       (const bp_cli_member[]){__VA_ARGS__, {NULL, BP_CLI_TEXT, NULL, 0}})

/* The event of a report that is written. `not_searched` may be NULL. */
void bp_cli_print_written(FILE *out, const char *path, uint32_t missing_count,
                          const char *not_searched);

/* An event that has a subject and a sentence; each may be NULL. */
void bp_cli_print_failed(FILE *out, const char *event, const char *path, const char *error);

#endif
