#include "cli/event.h"

#include "base/clock.h"
#include "cli/output.h"
#include "model/fields.h"

static void add_member(bp_json *json, const bp_cli_member *member) {
    const char *const *texts = member->value;
    switch (member->kind) {
    case BP_CLI_TEXT:
        bp_model_add_known_text(json, member->key, member->value);
        break;
    case BP_CLI_TEXTS:
        bp_json_array_begin(json, member->key);
        for (uint64_t i = 0; i < member->number; i++) {
            bp_json_add_text(json, NULL, texts[i]);
        }
        bp_json_array_end(json);
        break;
    case BP_CLI_NUMBER:
        bp_json_add_uint(json, member->key, member->number);
        break;
    case BP_CLI_ID:
        bp_model_add_known_uint(json, member->key, member->number != 0, member->number);
        break;
    case BP_CLI_TRUTH:
        bp_json_add_bool(json, member->key, member->number != 0);
        break;
    }
}

void bp_cli_print_event(FILE *out, const char *event, uint64_t wall_ns,
                        const bp_cli_member *members) {
    bp_buffer line;
    bp_json json;
    bp_buffer_init(&line, BP_CLI_JSON_BYTES);
    bp_json_begin_as(&json, BP_JSON_RECORD, &line);
    bp_json_add_text(&json, "event", event);
    bp_model_add_time(&json, "time", wall_ns != 0 ? wall_ns : bp_clock_wall_ns());
    for (; members->key != NULL; members++) {
        add_member(&json, members);
    }
    bp_cli_print_json(out, &json);
    (void)fflush(out);
}

void bp_cli_print_written(FILE *out, const char *path, uint32_t missing_count,
                          const char *not_searched) {
    BP_CLI_PRINT_EVENT(out, "report", 0, {"path", BP_CLI_TEXT, path, 0},
                       {"complete", BP_CLI_TRUTH, NULL, missing_count == 0},
                       {"missing", BP_CLI_NUMBER, NULL, missing_count},
                       {"not_searched", BP_CLI_TEXT, not_searched, 0});
}

void bp_cli_print_failed(FILE *out, const char *event, const char *path, const char *error) {
    BP_CLI_PRINT_EVENT(out, event, 0, {"path", BP_CLI_TEXT, path, 0},
                       {"error", BP_CLI_TEXT, error, 0});
}
