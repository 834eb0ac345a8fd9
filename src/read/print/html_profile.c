/*
 * A profile on a page: a flame graph without scripts. Places and widths are percent, so that it is
 * as wide as the page while its texts keep their size.
 */
#include "print/html_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

/* In pixels: the page is that wide at most. A box that is thin has no text on a narrow screen. */
enum {
    page_width = 960,
    row_height = 18,
    text_height = 13,
    text_left = 3,
    box_max = 2000,
    top_max = 10
};
static const double character_width = 7.23; /* of the 12 pixels of a monospaced font */
static const double thin_percent = 8;

typedef struct flame_graph {
    bp_html *html; /* NULL: boxes are counted */
    const bp_call_tree *profile;
    double least_samples; /* fewer have no box of their own */
    size_t box_count, row_count;
} flame_graph;

/* A box, and all that is drawn below it. */
typedef struct flame_box {
    uint32_t node; /* 0: all threads */
    uint64_t first_sample;
    size_t row;
    bool is_hot; /* it is on the heaviest path of its thread */
    uint32_t thread;
} flame_box;

static double percent_of(const flame_graph *flame, uint64_t samples) {
    return 100 * (double)samples / (double)bp_call_tree_samples(flame->profile);
}

/* As much of a name as the box has room for. */
static void write_label(bp_html *html, const char *name, double percent) {
    double room = (percent / 100 * page_width - 2 * text_left) / character_width;
    size_t at = 0, fits = 0, count = 0;
    for (; name[at] != '\0'; at++) {
        count += ((unsigned char)name[at] & 0xC0) != 0x80;
        fits = (double)count <= room - 1 ? at + 1 : fits;
    }
    bool is_cut = (double)count > room;
    if (!is_cut || room >= 3) {
        bp_html_print(html, "<text x=\"%d\" y=\"%d\">", (int)text_left, (int)text_height);
        (void)bp_html_text(html, name, is_cut ? fits : at);
        bp_html_print(html, is_cut ? "\u2026</text>" : "</text>");
    }
}

/* One of the class `kind`, "" for none. */
static void draw(flame_graph *flame, const flame_box *box, uint64_t samples, const char *kind,
                 const char *title, const char *name) {
    bp_html *html = flame->html;
    double percent = percent_of(flame, samples);
    flame->box_count++;
    flame->row_count = box->row + 1 > flame->row_count ? box->row + 1 : flame->row_count;
    if (html == NULL) {
        return;
    }
    bp_html_print(html, "<svg x=\"%.2f%%\" y=\"%d\" width=\"%.2f%%\" height=\"%d\"",
                  percent_of(flame, box->first_sample), (int)(box->row * row_height), percent,
                  (int)row_height);
    bool is_thin = percent < thin_percent;
    if (kind[0] != '\0' || is_thin) {
        const char *blank = is_thin && kind[0] != '\0' ? " " : "";
        bp_html_print(html, " class=\"%s%s%s\"", kind, blank, is_thin ? "thin" : "");
    }
    bp_html_print(html,
                  "><title>%s: %" PRIu64 ", %.1f %%</title><rect width=\"100%%\" "
                  "height=\"%d\"/>",
                  title, samples, percent, (int)row_height);
    write_label(html, name, percent);
    bp_html_print(html, "</svg>\n");
}

/* Children that are too narrow share one box at the end. The depth is that of a stack. */
static void draw_children(flame_graph *flame, const flame_box *parent) {
    const bp_call_node *nodes = flame->profile->nodes;
    flame_box box = {.first_sample = parent->first_sample, .row = parent->row};
    uint64_t rest = 0;
    char title[BP_CALL_TREE_LABEL_BYTES], name[BP_FRAME_NAME_BYTES];
    for (uint32_t i = nodes[parent->node].first_child; i != 0; i = nodes[i].next) {
        if ((double)nodes[i].samples < flame->least_samples) {
            rest += nodes[i].samples;
            continue;
        }
        bool is_first = i == nodes[parent->node].first_child;
        box.node = i;
        box.thread = parent->node == 0 ? i : parent->thread;
        box.is_hot = parent->node == 0 || (parent->is_hot && is_first &&
                                           bp_call_tree_is_half(flame->profile, i, box.thread));
        bp_utf8_copy(title, sizeof title, bp_call_tree_node_name(flame->profile, i));
        bp_call_tree_short_name(flame->profile, i, name);
        draw(flame, &box, nodes[i].samples, box.is_hot ? "hot" : "", title, name);
        box.row = parent->row + 1;
        draw_children(flame, &box);
        box.row = parent->row;
        box.first_sample += nodes[i].samples;
    }
    if (rest > 0 && (double)rest >= flame->least_samples) {
        draw(flame, &box, rest, "rest", "narrower ones", "\u2026");
    }
}

static void write_flame(bp_html *html, const bp_call_tree *profile) {
    const flame_box all = {.node = 0};
    flame_graph picture = {.profile = profile,
                           .least_samples = (double)bp_call_tree_samples(profile) / page_width};
    draw_children(&picture, &all);
    while (picture.box_count > box_max) {
        picture.least_samples *= 1.25;
        picture.box_count = picture.row_count = 0;
        draw_children(&picture, &all);
    }
    bp_html_print(html,
                  "<figure><figcaption>A box is a function, as wide as its share of all samples, "
                  "below the one that called it, with the threads at the top. In a strong colour: "
                  "where most of a thread was.</figcaption><div class=\"scroll\" tabindex=\"0\" "
                  "role=\"region\" "
                  "aria-label=\"Flame graph\"><svg class=\"flame\" width=\"100%%\" height=\"%d\" "
                  "role=\"img\" aria-label=\"Samples by thread and function\">\n",
                  (int)(picture.row_count * row_height));
    picture.html = html;
    draw_children(&picture, &all);
    bp_html_print(html, "</svg></div></figure>");
}

static void write_top(bp_html *html, const bp_call_tree *profile) {
    const bp_call_name *top[top_max];
    size_t count = bp_call_tree_top(profile, top, top_max);
    double all = (double)bp_call_tree_samples(profile);
    bp_html_begin_table(html, "Function|Samples in itself|Share");
    for (size_t i = 0; i < count; i++) {
        char label[BP_CALL_TREE_LABEL_BYTES];
        bp_utf8_copy(label, sizeof label, bp_call_tree_text(profile, top[i]));
        bp_html_print(html,
                      "<tr><th scope=\"row\"><code>%s</code></th><td class=\"number\">%" PRIu64
                      "</td><td class=\"number\">%.1f %%</td></tr>",
                      label, top[i]->self_samples, 100 * (double)top[i]->self_samples / all);
    }
    bp_html_print(html, "</tbody></table>");
}

void bp_html_profile(bp_html *html, const bp_json_tree *document, const bp_call_tree *profile) {
    (void)bp_html_fill(html, "<p>" BP_FILL_PROFILE ".</p>", document);
    bp_html_print(html, "<ul>");
    BP_JSON_EACH (row, bp_json_tree_rows(document, "profile_threads")) {
        (void)bp_html_fill(html, "<li>{name}{[ of {pid:u}]} {percent:.0f %}" BP_FILL_PATH "</li>",
                           row);
    }
    (void)bp_html_fill(html, "<li>and {other_profile_threads:u} more</li>", document);
    bp_html_print(html, "</ul>");
    if (bp_call_tree_samples(profile) > 0) {
        write_flame(html, profile);
        write_top(html, profile);
    }
}
