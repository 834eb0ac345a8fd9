#include "inspect/html_charts.h"

#include <inttypes.h>

#include "base/clock.h"

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

static time_span span_of(const bp_summary *summary) {
    time_span span = {summary->samples[0].wall_ns, summary->samples[0].wall_ns};
    for (size_t i = 0; i < summary->sample_count; i++) {
        uint64_t wall_ns = summary->samples[i].wall_ns;
        span.from_ns = wall_ns < span.from_ns ? wall_ns : span.from_ns;
        span.to_ns = wall_ns > span.to_ns ? wall_ns : span.to_ns;
    }
    if (summary->triggered_wall_ns > span.to_ns &&
        summary->triggered_wall_ns - span.to_ns < 3600 * BP_NS_PER_SEC) {
        span.to_ns = summary->triggered_wall_ns;
    }
    span.to_ns += span.to_ns == span.from_ns;
    return span;
}

static double place_of(const time_span *span, uint64_t wall_ns) {
    return left + (right - left) *
                      ((double)(wall_ns - span->from_ns) / (double)(span->to_ns - span->from_ns));
}

static void draw_line(bp_html *html, const bp_summary *summary, const time_span *span, double most,
                      double (*value_of)(const bp_summary_sample *sample)) {
    double columns[column_max];
    for (size_t i = 0; i < column_max; i++) {
        columns[i] = -1;
    }
    for (size_t i = 0; i < summary->sample_count; i++) {
        double share = (place_of(span, summary->samples[i].wall_ns) - left) / (right - left);
        double value = value_of(&summary->samples[i]);
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

static void draw_chart(bp_html *html, const bp_summary *summary, const char *title,
                       const char *unit, double (*value_of)(const bp_summary_sample *sample)) {
    double highest = -1;
    for (size_t i = 0; i < summary->sample_count; i++) {
        double value = value_of(&summary->samples[i]);
        highest = value > highest ? value : highest;
    }
    if (highest < 0) {
        return;
    }
    time_span span = span_of(summary);
    double most = round_up(highest), secs = (double)(span.to_ns - span.from_ns) / 1e9;
    uint64_t trigger_ns = summary->triggered_wall_ns;
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
    draw_line(html, summary, &span, most, value_of);
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

void bp_html_history(bp_html *html, const bp_summary *summary) {
    if (summary->sample_count > 0) {
        draw_chart(html, summary, "CPU", "%", bp_summary_sample_cpu);
        draw_chart(html, summary, "Resident memory", "MiB", bp_summary_sample_memory);
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
