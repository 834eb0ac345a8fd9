#include "platform/linux/machine_text.h"

#include "platform/linux/proc_text.h"

static const uint64_t ns_per_us = 1000;

/* "12.34" behind `key` and "=", as 1234. */
static bool take_share(bp_proc_scan *line, const char *key, uint64_t *ret_centi) {
    bp_proc_scan word;
    return bp_proc_take_word(line, &word) && bp_proc_take_text(&word, key) &&
           bp_proc_read_centi(word, ret_centi) && *ret_centi / 100 <= 100;
}

static bool parse_pressure_line(bp_proc_scan line, bp_pressure_line *ret_line) {
    bp_pressure_line read = {.is_known = true};
    bp_proc_scan word;
    if (!take_share(&line, "avg10=", &read.avg10_centi) ||
        !take_share(&line, "avg60=", &read.avg60_centi) ||
        !take_share(&line, "avg300=", &read.avg300_centi) || !bp_proc_take_word(&line, &word) ||
        !bp_proc_take_text(&word, "total=") || !bp_proc_take_number(&word, 10, &read.total_us) ||
        word.next != word.end) {
        return false;
    }
    *ret_line = read;
    return true;
}

bool bp_machine_parse_pressure(const char *text, size_t text_bytes, bp_pressure *ret_pressure) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, word;
    bp_pressure pressure = {.some = {.is_known = false}};
    while (bp_proc_take_line(&scan, &line)) {
        if (!bp_proc_take_word(&line, &word)) {
            continue;
        }
        if (bp_proc_is(word, "some")) {
            (void)parse_pressure_line(line, &pressure.some);
        } else if (bp_proc_is(word, "full")) {
            (void)parse_pressure_line(line, &pressure.full);
        }
    }
    if (!pressure.some.is_known && !pressure.full.is_known) {
        return false;
    }
    *ret_pressure = pressure;
    return true;
}

/* A number, or "max", times `scale`. */
static bool read_figure(const bp_proc_scan *word, uint64_t scale, bp_machine_figure *ret_figure) {
    bp_machine_figure figure = {.is_known = true};
    bp_proc_scan rest = *word;
    if (bp_proc_is(*word, "max")) {
        figure.is_unlimited = true;
    } else if (!bp_proc_take_number(&rest, 10, &figure.value) || rest.next != rest.end ||
               figure.value > UINT64_MAX / scale) {
        return false;
    }
    figure.value *= scale;
    *ret_figure = figure;
    return true;
}

bool bp_machine_parse_figure(const char *text, size_t text_bytes, bp_machine_figure *ret_figure) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, word;
    return bp_proc_take_line(&scan, &line) && scan.next == scan.end &&
           bp_proc_take_word(&line, &word) && line.next == line.end &&
           read_figure(&word, 1, ret_figure);
}

bool bp_machine_find_figure(const char *text, size_t text_bytes, const char *key, uint64_t scale,
                            bp_machine_figure *ret_figure) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, word;
    while (bp_proc_take_line(&scan, &line)) {
        if (bp_proc_take_word(&line, &word) && bp_proc_is(word, key)) {
            return bp_proc_take_word(&line, &word) && read_figure(&word, scale, ret_figure);
        }
    }
    return false;
}

bool bp_machine_parse_cpu_max(const char *text, size_t text_bytes, bp_machine_figure *ret_quota_ns,
                              bp_machine_figure *ret_period_ns) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, quota_word, period_word;
    bp_machine_figure quota, period;
    if (!bp_proc_take_line(&scan, &line) || !bp_proc_take_word(&line, &quota_word) ||
        !bp_proc_take_word(&line, &period_word) || !read_figure(&quota_word, ns_per_us, &quota) ||
        !read_figure(&period_word, ns_per_us, &period) || period.is_unlimited) {
        return false;
    }
    *ret_quota_ns = quota;
    *ret_period_ns = period;
    return true;
}
