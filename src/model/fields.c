#include "model/fields.h"

#include <string.h>

#include "base/clock.h"

void bp_model_add_time(bp_json *json, const char *key, uint64_t wall_ns) {
    char text[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(wall_ns, text);
    bp_json_add_text(json, key, text);
}

void bp_model_add_name(bp_json *json, const char *key, const char *name, size_t capacity) {
    bp_json_add_bytes(json, key, name, strnlen(name, capacity));
}

void bp_model_add_known_text(bp_json *json, const char *key, const char *text) {
    bp_json_add_text(json, key, text != NULL && text[0] != '\0' ? text : NULL);
}
