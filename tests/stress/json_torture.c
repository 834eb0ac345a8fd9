/*
 * Lets each allocation of the JSON builder and reader fail in turn. The result is a failure that
 * left the output alone, or the whole document: never a shorter one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/failing_malloc.h"
#include "json/json.h"

typedef bugpack_status json_work(bp_buffer *out, bugpack_error *error);

static bugpack_status build(bp_buffer *out, bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_text(&json, "name", "net-rx \xff");
    bp_json_array_begin(&json, "threads");
    for (unsigned tid = 1; tid <= 20; tid++) {
        bp_json_object_begin(&json, NULL);
        bp_json_add_uint(&json, "tid", tid);
        bp_json_add_int(&json, "offset", -7);
        bp_json_add_number(&json, "cpu_percent", 3.25, 2);
        bp_json_add_bool(&json, "idle", false);
        bp_json_add_null(&json, "nothing");
        bp_json_object_end(&json);
    }
    bp_json_array_end(&json);
    return bp_json_finish(&json, error);
}

static bugpack_status build_bytes(bp_buffer *out, bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_object_begin(&json, "o");
    bp_json_add_bytes(&json, "bytes", "a\0b", 3);
    bp_json_object_end(&json);
    return bp_json_finish(&json, error);
}

/* Enough keys that the list of them grows more than once. */
static bugpack_status read_many_keys(bp_buffer *out, bugpack_error *error) {
    char text[2048] = "{\"k\": 0";
    size_t used = strlen(text);
    for (unsigned i = 0; i < 100; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, ", \"k%u\": 0", i);
    }
    text[used++] = '}';
    return bp_json_reformat(text, used, out, error);
}

static bugpack_status append_string(bp_buffer *out, bugpack_error *error) {
    (void)error;
    char text[500];
    memset(text, '"', sizeof text);
    return bp_json_append_string(out, text, sizeof text);
}

/* What one run with the nth allocation failing gave; NULL when that is as it must be. */
static const char *judge(bugpack_status status, const bp_buffer *out, const bp_buffer *good) {
    if (status == BUGPACK_OK) {
        bool same = out->size == good->size && memcmp(out->data, good->data, out->size) == 0;
        return same ? NULL : "succeeded with another document";
    }
    if (status != BUGPACK_ERR_NO_MEMORY) {
        return "failed for another reason";
    }
    return strcmp(bp_buffer_text(out), "") == 0 ? NULL : "failed and left something behind";
}

static bool torture(const char *name, json_work *work, bool and_all_later) {
    bp_buffer good;
    bp_buffer_init(&good, 1 << 20);
    bool passed = work(&good, NULL) == BUGPACK_OK && good.size > 10;
    unsigned long failures = 0;
    unsigned long nth = 1;
    for (;; nth++) {
        bp_buffer out;
        bp_buffer_init(&out, 1 << 20);
        bugpack_error error = BUGPACK_ERROR_INIT;
        failing_malloc_arm(nth, and_all_later);
        bugpack_status status = work(&out, &error);
        unsigned long tried = failing_malloc_disarm();
        const char *wrong = judge(status, &out, &good);
        if (wrong != NULL) {
            (void)fprintf(stderr, "%s, allocation %lu: %s\n", name, nth, wrong);
            passed = false;
        }
        failures += status != BUGPACK_OK;
        bp_buffer_release(&out);
        if (tried < nth) {
            break;
        }
    }
    bp_buffer_release(&good);
    (void)printf("%s: %lu of %lu allocations fail it\n", name, failures, nth - 1);
    return passed && failures > 0;
}

int main(void) {
    static const struct {
        const char *name;
        json_work *work;
    } works[] = {{"build", build},
                 {"build_bytes", build_bytes},
                 {"read_many_keys", read_many_keys},
                 {"append_string", append_string}};
    bool passed = true;
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        passed = torture(works[i].name, works[i].work, false) && passed;
        passed = torture(works[i].name, works[i].work, true) && passed;
    }
    return passed ? 0 : 1;
}
