#include "cli/event.h"

#include <inttypes.h>

#include "base/clock.h"
#include "cli/output.h"

static void print_value(FILE *out, const bp_cli_member *member) {
    const char *const *texts = member->value;
    switch (member->kind) {
    case BP_CLI_TEXT:
        bp_cli_write_json(out, member->value);
        break;
    case BP_CLI_TEXTS:
        for (uint64_t i = 0; i < member->number; i++) {
            (void)fputs(i > 0 ? "," : "[", out);
            bp_cli_write_json(out, texts[i]);
        }
        (void)fputs(member->number > 0 ? "]" : "[]", out);
        break;
    case BP_CLI_NUMBER:
    case BP_CLI_ID:
        (void)fprintf(out, "%" PRIu64, member->number);
        break;
    case BP_CLI_TRUTH:
        (void)fputs(member->number != 0 ? "true" : "false", out);
        break;
    }
}

static int is_left_out(const bp_cli_member *member) {
    const char *text = member->value;
    return (member->kind == BP_CLI_TEXT && (text == NULL || text[0] == '\0')) ||
           (member->kind == BP_CLI_ID && member->number == 0);
}

void bp_cli_print_event(FILE *out, const char *event, uint64_t wall_ns,
                        const bp_cli_member *members) {
    char time[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(wall_ns != 0 ? wall_ns : bp_clock_wall_ns(), time);
    (void)fprintf(out, "{\"event\":\"%s\",\"time\":\"%s\"", event, time);
    for (; members->key != NULL; members++) {
        if (!is_left_out(members)) {
            (void)fprintf(out, ",\"%s\":", members->key);
            print_value(out, members);
        }
    }
    (void)fputs("}\n", out);
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
