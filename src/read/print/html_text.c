#include "print/html_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "print/fill.h"

static const size_t piece_bytes = 64 * 1024;

void bp_html_init(bp_html *html, bp_sink *sink, void *context) {
    *html = (bp_html){.sink = sink, .context = context};
    bp_buffer_init(&html->out, SIZE_MAX / 4);
}

static void pass_on(bp_html *html, size_t least_bytes) {
    html->status = html->status != BUGPACK_OK ? html->status : html->out.status;
    if (html->status == BUGPACK_OK && html->out.size >= least_bytes && html->out.size > 0) {
        html->status = html->sink(html->context, html->out.data, html->out.size);
        bp_buffer_clear(&html->out);
    }
}

bugpack_status bp_html_finish(bp_html *html) {
    pass_on(html, 0);
    bp_buffer_release(&html->out);
    return html->status;
}

static void add_character(bp_buffer *out, const unsigned char *at, size_t length) {
    uint32_t code = at[0];
    bool is_control =
        length > 0 && at[0] != '\n' && at[0] != '\t' && bp_utf8_control(at, length, &code) > 0;
    if (at[0] == '&' || at[0] == '<' || at[0] == '>' || at[0] == '"' || at[0] == '\'') {
        (void)bp_buffer_printf(out, "&#%u;", at[0]);
    } else if (length == 0 || is_control) {
        (void)bp_buffer_printf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)code);
    } else {
        (void)bp_buffer_append(out, at, length);
    }
}

bugpack_status bp_html_text(void *context, const void *bytes, size_t byte_count) {
    bp_html *html = context;
    const unsigned char *at = bytes, *end = at + byte_count;
    while (at < end && html->status == BUGPACK_OK) {
        size_t length = bp_utf8_sequence_length(at, (size_t)(end - at));
        add_character(&html->out, at, length);
        at += length > 0 ? length : 1;
        pass_on(html, piece_bytes);
    }
    return html->status;
}

void bp_html_print(bp_html *html, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    for (const char *at = format; *at != '\0';) {
        size_t plain = strcspn(at, "%");
        (void)bp_buffer_append(&html->out, at, plain);
        at += plain;
        size_t length = *at == '%' ? strcspn(at + 1, "%sduf") + 2 : 0;
        if (length == 0) {
            break;
        }
        switch (at[length - 1]) {
        case 's': {
            const char *text = va_arg(arguments, const char *);
            (void)bp_html_text(html, text, strlen(text));
            break;
        }
        case '%':
            (void)bp_buffer_append_char(&html->out, '%');
            break;
        case 'f':
            (void)bp_buffer_printf(&html->out, "%.*f", at[2] - '0', va_arg(arguments, double));
            break;
        case 'u': /* the only one is PRIu64 */
            (void)bp_buffer_printf(&html->out, "%llu",
                                   (unsigned long long)va_arg(arguments, uint64_t));
            break;
        default:
            (void)bp_buffer_printf(&html->out, "%d", va_arg(arguments, int));
        }
        at += length;
    }
    va_end(arguments);
    pass_on(html, piece_bytes);
}

static void append(void *context, const char *text, size_t byte_count, bool is_fact) {
    bp_html *html = context;
    if (is_fact) {
        (void)bp_html_text(html, text, byte_count);
    } else {
        (void)bp_buffer_append(&html->out, text, byte_count);
    }
}

void bp_html_fill(bp_html *html, const char *pattern, const bp_json_tree *facts) {
    (void)bp_fill(pattern, facts, append, html);
    pass_on(html, piece_bytes);
}

bugpack_status bp_html_picture_write(void *context, const void *bytes, size_t byte_count) {
    bp_html_picture *picture = context;
    bp_html *html = picture->html;
    char *text = bp_buffer_reserve(&html->out, BASE64_ENCODE_LENGTH(byte_count));
    if (text != NULL) {
        size_t length = base64_encode_update(&picture->base64, text, byte_count, bytes);
        bp_buffer_commit(&html->out, length);
    }
    pass_on(html, piece_bytes);
    return html->status;
}

void bp_html_picture_end(bp_html_picture *picture) {
    char text[BASE64_ENCODE_FINAL_LENGTH];
    size_t length = base64_encode_final(&picture->base64, text);
    (void)bp_buffer_append(&picture->html->out, text, length);
}

void bp_html_begin_table(bp_html *html, const char *columns) {
    bp_html_print(html, "<table><thead><tr>");
    while (*columns != '\0') {
        char name[32];
        size_t length = strcspn(columns, "|");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, columns);
        bp_html_print(html, "<th scope=\"col\">%s</th>", name);
        columns += length + (columns[length] == '|');
    }
    bp_html_print(html, "</tr></thead><tbody>");
}

void bp_html_sentence(bp_html *html, const bp_sentence *sentence) {
    size_t done = 0;
    for (size_t i = 0; i < sentence->thread_count; i++) {
        uint64_t id = sentence->threads[i].id;
        (void)bp_html_text(html, sentence->text + done, sentence->threads[i].at - done);
        bp_html_print(html, "<a href=\"#stack-%" PRIu64 "\">%" PRIu64 "</a>", id, id);
        done = sentence->threads[i].at + sentence->threads[i].byte_count;
    }
    (void)bp_html_text(html, sentence->text + done, sentence->length - done);
}

/* --- charts, as SVG in the page ----------------------------------------------------------- */

/* The place of a chart in its picture. */
enum {
    width = 720,
    height = 150,
    left = 56,
    top = 12,
    bottom = 124,
    right = 712,
    column_max = 328
};

/* The smallest of 1, 2, 5, 10, 20 and so on that is not below a value. */
static double round_up(double value) {
    double scale = 1;
    while (scale * 10 < value) {
        scale *= 10;
    }
    return value <= scale       ? scale
           : value <= 2 * scale ? 2 * scale
           : value <= 5 * scale ? 5 * scale
                                : 10 * scale;
}

/* The time that a chart shows: the samples, and the trigger after them. */
typedef struct time_span {
    uint64_t from_ns, to_ns;
} time_span;

static time_span span_of(const bp_facts *facts) {
    time_span span = {facts->first.samples[0].wall_ns, facts->first.samples[0].wall_ns};
    for (size_t i = 0; i < facts->first.sample_count; i++) {
        uint64_t wall_ns = facts->first.samples[i].wall_ns;
        span.from_ns = wall_ns < span.from_ns ? wall_ns : span.from_ns;
        span.to_ns = wall_ns > span.to_ns ? wall_ns : span.to_ns;
    }
    if (facts->triggered_wall_ns > span.to_ns &&
        facts->triggered_wall_ns - span.to_ns < 3600 * BP_NS_PER_SEC) {
        span.to_ns = facts->triggered_wall_ns;
    }
    span.to_ns += span.to_ns == span.from_ns;
    return span;
}

static double place_of(const time_span *span, uint64_t wall_ns) {
    return left + (right - left) *
                      ((double)(wall_ns - span->from_ns) / (double)(span->to_ns - span->from_ns));
}

static void draw_line(bp_html *html, const bp_facts *facts, const time_span *span, double most,
                      double (*value_of)(const bp_sample *sample)) {
    double columns[column_max];
    for (size_t i = 0; i < column_max; i++) {
        columns[i] = -1;
    }
    for (size_t i = 0; i < facts->first.sample_count; i++) {
        double share = (place_of(span, facts->first.samples[i].wall_ns) - left) / (right - left);
        double value = value_of(&facts->first.samples[i]);
        double *column = &columns[(size_t)(share * (column_max - 1))];
        *column = value > *column ? value : *column;
    }
    bp_html_print(html, "<polyline class=\"line\" points=\"");
    for (size_t i = 0; i < column_max; i++) {
        if (columns[i] >= 0) {
            bp_html_print(html, "%.1f,%.1f ", left + (right - left) * (double)i / (column_max - 1),
                          bottom - (bottom - top) * columns[i] / most);
        }
    }
    bp_html_print(html, "\"/>");
}

static void draw_chart(bp_html *html, const bp_facts *facts, const char *title, const char *unit,
                       double (*value_of)(const bp_sample *sample)) {
    double highest = -1;
    for (size_t i = 0; i < facts->first.sample_count; i++) {
        double value = value_of(&facts->first.samples[i]);
        highest = value > highest ? value : highest;
    }
    if (highest < 0 || facts->first.sample_count < 2) { /* one sample is no line */
        return;
    }
    time_span span = span_of(facts);
    double most = round_up(highest), secs = (double)(span.to_ns - span.from_ns) / 1e9;
    uint64_t trigger_ns = facts->triggered_wall_ns;
    bp_html_print(html,
                  "<figure><figcaption>%s, at most %.1f %s</figcaption><svg viewBox=\"0 0 %d %d\" "
                  "role=\"img\" aria-label=\"%s over %.0f seconds, at most %.1f %s\">",
                  title, highest, unit, (int)width, (int)height, title, secs, highest, unit);
    for (int i = 0; i <= 2; i++) {
        double y = bottom - (bottom - top) * i / 2.0;
        bp_html_print(html,
                      "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"end\" x=\"%d\" "
                      "y=\"%.1f\">%.1f</text>",
                      (int)left, y, (int)right, (int)left - 4, y + 4, most * i / 2);
    }
    draw_line(html, facts, &span, most, value_of);
    if (trigger_ns >= span.from_ns && trigger_ns <= span.to_ns) {
        double x = place_of(&span, trigger_ns);
        bp_html_print(html,
                      "<path class=\"trigger\" d=\"M%.1f %dV%d\"/><text class=\"end\" x=\"%.1f\" "
                      "y=\"%d\">trigger</text>",
                      x, (int)top, (int)bottom, x - 4, (int)top + 10);
    }
    bp_html_print(html, "<text x=\"%d\" y=\"%d\">%.0f s before the end</text></svg></figure>",
                  (int)left, (int)height - 8, secs);
}

void bp_html_history(bp_html *html, const bp_facts *facts) {
    if (facts->first.sample_count > 0) {
        draw_chart(html, facts, "CPU", "%", bp_sample_cpu);
        draw_chart(html, facts, "Resident memory", "MiB", bp_sample_memory);
    }
}

void bp_html_bars(bp_html *html, const char *title, const uint64_t *values, size_t count) {
    static const int bar_height = 24;
    uint64_t most = 1;
    for (size_t i = 0; i < count; i++) {
        most = values[i] > most ? values[i] : most;
    }
    bp_html_print(html, "<svg class=\"bars\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">",
                  (int)count * 4, bar_height, title);
    for (size_t i = 0; i < count; i++) {
        double bar = bar_height * (double)values[i] / (double)most;
        if (values[i] > 0) {
            bp_html_print(html, "<rect x=\"%d\" y=\"%.1f\" width=\"3\" height=\"%.1f\"/>",
                          (int)i * 4, bar_height - bar, bar);
        }
    }
    bp_html_print(html, "</svg>");
}

/* --- who waits for whom ------------------------------------------------------------------- */

/* Sizes of a box, and of the lanes to its right for arrows that skip the next box. */
enum { box_width = 292, box_height = 42, box_step = 62, lane_width = 9, lane_max = 6 };

static void draw_box(bp_html *html, const bp_waits *waits, size_t place) {
    const bp_waits_node *node = &waits->nodes[place];
    int top_y = 4 + (int)place * box_step;
    bp_html_print(html,
                  node->is_cause
                      ? "<rect class=\"cause\" x=\"4\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
                      : "<rect x=\"4\" y=\"%d\" width=\"%d\" height=\"%d\"/>",
                  top_y, (int)box_width, (int)box_height);
    bp_html_print(html, "<text x=\"12\" y=\"%d\">", top_y + 17);
    if (node->count > 1) {
        bp_html_print(html, "%" PRIu64 " x %s", node->count, node->name);
    } else {
        bp_html_print(html, "%s (%" PRIu64 ")", node->name, node->id);
    }
    bp_html_print(html, "</text><text class=\"entry\" x=\"12\" y=\"%d\">%s", top_y + 33,
                  node->state);
    for (size_t i = 0; i < waits->edge_count; i++) {
        if (waits->edges[i].from == place) {
            bp_html_print(html, ", waits for %s", waits->edges[i].label);
            break;
        }
    }
    bp_html_print(html, "</text>");
}

/* To the next box straight down; to any other in the lane of that one. */
static void draw_arrow(bp_html *html, const bp_waits_edge *edge) {
    int from_y = 4 + (int)edge->from * box_step, to_y = 4 + (int)edge->to * box_step;
    if (edge->to == edge->from + 1) {
        int x = 4 + box_width / 2;
        bp_html_print(html, "<path d=\"M%d %dV%d\"/><path class=\"head\" d=\"M%d %dl-5 -8h10z\"/>",
                      x, from_y + box_height, to_y, x, to_y);
    } else {
        int lane = 4 + box_width + lane_width * (1 + (int)(edge->to % lane_max));
        int out_y = from_y + box_height - 12, in_y = to_y + 12;
        bp_html_print(html,
                      "<path d=\"M%d %dH%dV%dH%d\"/><path class=\"head\" d=\"M%d %dl8 -5v10z\"/>",
                      4 + box_width, out_y, lane, in_y, 4 + box_width, 4 + box_width, in_y);
    }
}

void bp_html_waits(bp_html *html, const bp_waits *waits) {
    bp_html_print(html,
                  "<svg class=\"waits\" viewBox=\"0 0 %d %d\" role=\"img\" "
                  "aria-label=\"Threads and processes that wait for each other\">",
                  8 + box_width + lane_width * (lane_max + 1), (int)waits->node_count * box_step);
    for (size_t i = 0; i < waits->edge_count; i++) {
        draw_arrow(html, &waits->edges[i]);
    }
    for (size_t i = 0; i < waits->node_count; i++) {
        draw_box(html, waits, i);
    }
    bp_html_print(
        html, "</svg><p>Arrows lead to what is waited for. A thick edge marks what does not wait "
              "itself, or waits in a circle.</p>");
    if (waits->is_cut) {
        bp_html_print(html, "<p>There are more.</p>");
    }
}
