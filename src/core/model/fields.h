/*
 * Members that several artefacts have in the same form.
 */
#ifndef BP_MODEL_FIELDS_H
#define BP_MODEL_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "json/json.h"
#include "platform/linux/proc_text.h"

/* A wall-clock time, in nanoseconds since 1970, as "2026-11-21T00:36:51.123456Z"; left out where it
 * is 0. */
void bp_model_add_time(bp_json *json, const char *key, uint64_t wall_ns);

/* A time span in milliseconds, to the microsecond; left out where it is not known. */
void bp_model_add_ms(bp_json *json, const char *key, uint64_t duration_ns);
void bp_model_add_known_ms(bp_json *json, const char *key, bool is_known, uint64_t duration_ns);

/* "0x7f3c" */
void bp_model_add_hex(bp_json *json, const char *key, uint64_t value);

/* A number, left out where it is not known. */
void bp_model_add_known(bp_json *json, const char *key, bp_known_uint number);
void bp_model_add_known_uint(bp_json *json, const char *key, bool is_known, uint64_t value);
/* The switches of a thread. */
void bp_model_add_switches(bp_json *json, bool are_known, uint64_t voluntary, uint64_t involuntary);

/* The word of proc(5) for the state of a thread; NULL for a letter that is not known. Static. */
const char *bp_model_state_word(char letter);

/* `true`, left out where it is not. */
void bp_model_add_flag(bp_json *json, const char *key, bool is_set);

/* A number that null replaces where there is no limit. */
void bp_model_add_limit(bp_json *json, const char *key, bool is_unlimited, uint64_t value);

/* A text in an array of `capacity` bytes, which may fill it without a NUL. */
void bp_model_add_name(bp_json *json, const char *key, const char *name, size_t capacity);

/* A text, left out when it is "" or NULL. */
void bp_model_add_known_text(bp_json *json, const char *key, const char *text);

/* `command_line`: arguments, each ended by NUL, which the last may lack; left out without any. */
void bp_model_add_command_line(bp_json *json, const char *line, size_t line_bytes);

/*
 * Appends a document of a process and its descendants: `add` adds the members of one of the `count`
 * items, at least one, to the open object. The first one's are those of the document, to which
 * `add_more`, if it is not NULL, adds further ones; the others are in the array `descendants`.
 */
typedef void bp_model_add_item(const void *item, bp_json *json);
bugpack_status bp_model_print_tree(const void *items, size_t item_bytes, size_t count,
                                   bp_model_add_item *add, bp_model_add_item *add_more,
                                   const void *more, bp_buffer *out, bugpack_error *error);

/* The program a report is about; NULL and "" are left out. */
void bp_model_add_app(bp_json *json, const char *name, const char *version, const char *build_id);

/* "SIGSEGV"; NULL for a number that has no name of its own, such as that of a realtime signal. */
const char *bp_model_signal_name(int number);

/* `policy`, the name of a scheduling policy in the kernel's include/uapi/linux/sched.h or its
 * number, the priorities and the processor. */
void bp_model_add_scheduling(bp_json *json, const bp_proc_stat *stat);

#endif
