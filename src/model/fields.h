/*
 * Members that several artefacts have in the same form.
 */
#ifndef BP_MODEL_FIELDS_H
#define BP_MODEL_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "json/json.h"

/* A wall-clock time, in nanoseconds since 1970, as "2026-11-21T00:36:51.123456Z". */
void bp_model_add_time(bp_json *json, const char *key, uint64_t wall_ns);

/* A text in an array of `capacity` bytes, which may fill it without a NUL; "" is added too. */
void bp_model_add_name(bp_json *json, const char *key, const char *name, size_t capacity);

/* A text of which "" says as little as NULL: both are left out. */
void bp_model_add_known_text(bp_json *json, const char *key, const char *text);

#endif
