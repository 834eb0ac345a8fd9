#include "cli/diff_unit.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/output.h"

typedef enum unit_kind { BYTES, SECONDS, PERCENT, PLAIN } unit_kind;

/* How a path ends, or what is in it: the name of a limit is in brackets. */
static const struct {
    const char *part;
    bool is_end;
    unit_kind kind;
    double scale;
} units[] = {
    {"_kb", true, BYTES, 1024},     {"_bytes", true, BYTES, 1},     {"_chars", true, BYTES, 1},
    {"_ns", true, SECONDS, 1e-9},   {"_us", true, SECONDS, 1e-6},   {"_ms", true, SECONDS, 1e-3},
    {"_secs", true, SECONDS, 1},    {"_percent", true, PERCENT, 1}, {" size].", false, BYTES, 1},
    {" memory].", false, BYTES, 1}, {" set].", false, BYTES, 1},    {" space].", false, BYTES, 1}};

static bool has_part(const char *path, size_t index) {
    size_t length = strlen(path), part_bytes = strlen(units[index].part);
    return units[index].is_end
               ? length >= part_bytes && strcmp(path + length - part_bytes, units[index].part) == 0
               : strncmp(path, "limits[", 7) == 0 && strstr(path, units[index].part) != NULL;
}

static void format_plain(uint64_t value, unsigned decimals, char out[BP_CLI_AMOUNT_BYTES]) {
    uint64_t scale = 1;
    for (unsigned i = 0; i < decimals; i++) {
        scale *= 10;
    }
    int length = snprintf(out, BP_CLI_AMOUNT_BYTES, "%" PRIu64, value / scale);
    if (decimals > 0) {
        (void)snprintf(out + length, BP_CLI_AMOUNT_BYTES - (size_t)length, ".%0*" PRIu64,
                       (int)decimals, value % scale);
    }
}

const char *bp_cli_format_amount(const char *path, uint64_t value, unsigned decimals, bool is_raw,
                                 char out[BP_CLI_AMOUNT_BYTES]) {
    unit_kind kind = PLAIN;
    double amount = (double)value;
    for (unsigned i = 0; i < decimals; i++) {
        amount /= 10;
    }
    for (size_t i = 0; kind == PLAIN && !is_raw && i < sizeof units / sizeof units[0]; i++) {
        if (has_part(path, i)) {
            kind = units[i].kind;
            amount *= units[i].scale;
        }
    }
    if (kind == BYTES && amount < 18e18) {
        char text[BP_CLI_BYTES_BYTES];
        (void)snprintf(out, BP_CLI_AMOUNT_BYTES, "%s", bp_cli_format_bytes((uint64_t)amount, text));
    } else if (kind == SECONDS) {
        bool is_small = amount > 0 && amount < 1e-3;
        (void)snprintf(out, BP_CLI_AMOUNT_BYTES, "%.3f %s",
                       amount >= 1 ? amount : amount * (is_small ? 1e6 : 1e3),
                       amount >= 1 ? "s"
                       : is_small  ? "us"
                                   : "ms");
    } else {
        format_plain(value, decimals, out);
        if (kind == PERCENT) {
            size_t length = strlen(out);
            (void)snprintf(out + length, BP_CLI_AMOUNT_BYTES - length, " %%");
        }
    }
    return out;
}

void bp_cli_format_delta(const char *path, int64_t delta, unsigned decimals, bool is_raw,
                         char out[BP_CLI_AMOUNT_BYTES]) {
    static const char percent[] = " %", points[] = " points";
    char amount[BP_CLI_AMOUNT_BYTES];
    uint64_t size = delta < 0 ? (uint64_t) - (delta + 1) + 1 : (uint64_t)delta;
    char *end = strstr(bp_cli_format_amount(path, size, decimals, is_raw, amount), percent);
    if (end != NULL) {
        *end = '\0';
    }
    (void)snprintf(out, BP_CLI_AMOUNT_BYTES, "%s%.50s%s",
                   delta < 0  ? "-"
                   : size > 0 ? "+"
                              : "",
                   amount, end != NULL ? points : "");
}
