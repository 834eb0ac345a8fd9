#include "cli/log_print.h"

#include <stdio.h>
#include <string.h>

#include <bugpack/log.h>

#include "base/status.h"
#include "cli/output.h"

/* Appends a text escaped for a terminal, but for tabs, which become blanks. */
static void add_escaped(bp_buffer *out, const char *text, size_t byte_count) {
    const char *end = text + byte_count;
    while (text < end) {
        const char *safe = text;
        bool is_safe = true;
        size_t length = 0;
        while (safe < end && is_safe) {
            if (*safe >= ' ' && *safe <= '~') {
                safe++;
            } else {
                length = bp_cli_next_character(safe, &is_safe);
                safe += is_safe ? length : 0;
            }
        }
        (void)bp_buffer_append(out, text, (size_t)(safe - text));
        text = safe;
        for (size_t i = 0; text < end && i < length; i++, text++) {
            (void)bp_buffer_printf(out, *text == '\t' ? " " : "\\x%02x", (unsigned char)*text);
        }
    }
}

/* Appends blanks up to a width, and one. */
static void add_blanks(bp_buffer *out, size_t length, size_t width) {
    static const char blanks[] = "                                                ";
    (void)bp_buffer_append(out, blanks, length < width ? width - length + 1 : 1);
}

static void add_column(bp_buffer *out, const char *text, size_t width) {
    size_t length = strlen(text);
    (void)bp_buffer_append(out, text, length);
    add_blanks(out, length, width);
}

/* The seconds from the trigger, aligned to the right. */
static void add_distance(bp_buffer *out, uint64_t wall_ns, uint64_t trigger_ns) {
    char text[] = "                  .000 s";
    bool is_before = wall_ns < trigger_ns;
    uint64_t ms = (is_before ? trigger_ns - wall_ns : wall_ns - trigger_ns) / BP_NS_PER_MS;
    char *at = text + sizeof text - sizeof ".000 s";
    for (size_t digit = 0; digit < 3; digit++, ms /= 10) {
        at[3 - digit] = (char)('0' + ms % 10);
    }
    do {
        *--at = (char)('0' + ms % 10);
        ms /= 10;
    } while (ms > 0);
    *--at = is_before ? '-' : '+';
    size_t width = (size_t)(text + sizeof text - 1 - at);
    (void)bp_buffer_append_text(out, width < 14 ? text + sizeof text - 1 - 14 : at);
    (void)bp_buffer_append_char(out, ' ');
}

/* Lines of one second come together, so only the digits behind it are printed each time. */
static void add_time(bp_log_printer *printer, uint64_t wall_ns) {
    if (wall_ns / BP_NS_PER_SEC != printer->shown_secs) {
        bp_clock_format_iso(wall_ns, printer->shown_time);
        printer->shown_secs = wall_ns / BP_NS_PER_SEC;
    }
    uint64_t us = wall_ns % BP_NS_PER_SEC / 1000;
    for (size_t at = sizeof "2026-11-21T00:36:51.123456" - 1; us > 0 || at > 20; us /= 10) {
        printer->shown_time[--at] = (char)('0' + us % 10);
    }
    add_column(&printer->out, printer->shown_time, 27);
}

void bp_cli_print_log_text(bp_log_printer *printer, const bp_log_line *line) {
    static const char *const styles[] = {
        [BUGPACK_LEVEL_TRACE] = "\033[2m",  [BUGPACK_LEVEL_DEBUG] = "\033[2m",
        [BUGPACK_LEVEL_INFO] = NULL,        [BUGPACK_LEVEL_WARN] = "\033[33m",
        [BUGPACK_LEVEL_ERROR] = "\033[31m", [BUGPACK_LEVEL_FATAL] = "\033[1;31m"};
    const char *style = printer->has_colour ? styles[line->level] : NULL;
    bool has_time = line->wall_ns != 0 && !line->continues;
    bp_buffer *out = &printer->out;
    bp_buffer_clear(out);
    (void)bp_buffer_append_text(out, style != NULL ? style : "");
    if (has_time) {
        add_time(printer, line->wall_ns);
    } else {
        add_column(out, "", 27);
    }
    if (has_time && printer->trigger_ns != 0) {
        add_distance(out, line->wall_ns, printer->trigger_ns);
    } else if (printer->trigger_ns != 0) {
        add_column(out, "", 14);
    }
    add_column(out, has_time && line->level > 0 ? bp_level_name((uint8_t)line->level) : "", 5);
    if (printer->source_columns > 0) {
        size_t before = out->size;
        add_escaped(out, line->source->entry, strlen(line->source->entry));
        add_blanks(out, out->size - before, printer->source_columns);
    }
    if (line->channel[0] != '\0') {
        add_escaped(out, line->channel, strlen(line->channel));
        (void)bp_buffer_append_text(out, ": ");
    }
    add_escaped(out, line->message, line->message_bytes);
    (void)bp_buffer_append_text(out, style != NULL ? "\033[0m\n" : "\n");
    (void)fwrite(bp_buffer_text(out), 1, out->size, stdout);
}

void bp_cli_print_log_json(bp_log_printer *printer, const bp_log_line *line) {
    bp_buffer_clear(&printer->out);
    bp_log_line_print(line, printer->trigger_ns, &printer->out);
    (void)fwrite(bp_buffer_text(&printer->out), 1, printer->out.size, stdout);
}
