#include "entries/symbolize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "entries/frames.h"
#include "json/tree_reader.h"
#include "model/entry.h"

/* The tree of stacks.json, which has 64 MiB at most. */
static const size_t tree_max_bytes = (size_t)1 << 30;
static const size_t text_max_bytes = (size_t)64 << 20;

/* The frames of one stack. */
typedef struct stack_change {
    bp_symbolizer *symbolizer;
    bp_json_tree *frames;
    bool lacks_memory;
} stack_change;

static bool set_text(bp_json_tree *frame, const char *key, const char *text) {
    return text == NULL || bp_json_tree_set_text(frame, key, text);
}

static bool set_line(bp_json_tree *frame, const char *source, int line) {
    return source == NULL || (bp_json_tree_set_text(frame, "source", source) &&
                              bp_json_tree_set_uint(frame, "line", line > 0 ? (uint64_t)line : 0));
}

/* A function that was inlined where the frame is. */
static bool add_inlined(bp_json_tree *frames, bp_json_tree *frame,
                        const bp_stack_inlined *inlined) {
    static const char *const keys[] = {"address", "module", "offset", "file_address", "build_id"};
    bp_json_tree *added = bp_json_tree_insert(frames, frame);
    bool is_set = added != NULL;
    for (size_t i = 0; is_set && i < sizeof keys / sizeof keys[0]; i++) {
        is_set = set_text(added, keys[i], bp_json_tree_text(frame, keys[i]));
    }
    return is_set && set_text(added, "symbol", inlined->symbol) &&
           set_text(added, "demangled", inlined->demangled) &&
           set_line(added, inlined->source, inlined->line) &&
           bp_json_tree_set_bool(added, "inlined", true);
}

static void note_unnamed(bp_symbolizer *symbolizer, const bp_json_tree *frame) {
    const char *path = bp_json_tree_text(frame, "module");
    const char *id = bp_json_tree_text(frame, "build_id");
    size_t i = 0;
    while (id != NULL && i < symbolizer->unnamed_count &&
           strcmp(symbolizer->unnamed[i].build_id, id) != 0) {
        i++;
    }
    if (path != NULL && id != NULL && i == symbolizer->unnamed_count &&
        i < BP_SYMBOLIZE_UNNAMED_MAX && (symbolizer->unnamed[i].path = strdup(path)) != NULL) {
        bp_utf8_copy(symbolizer->unnamed[i].build_id, sizeof symbolizer->unnamed[i].build_id, id);
        symbolizer->unnamed_count++;
    }
}

/* A bp_frame_place_taker. */
static void change_frame(void *context, const bp_json_tree *element, const bp_stack_place *place) {
    stack_change *self = context;
    bp_json_tree *frame = (bp_json_tree *)(uintptr_t)element; /* of a tree that is ours */
    const char *symbol = bp_json_tree_text(element, "symbol");
    bool has_line = place != NULL && (place->source != NULL || place->inlined_count > 0);
    bool has_name = place != NULL && place->symbol != NULL;
    bool is_better =
        has_line || (has_name && (symbol == NULL || strcmp(symbol, place->symbol) != 0));
    bool is_set = true;
    if (is_better) {
        for (size_t i = 0; is_set && i < place->inlined_count; i++) {
            is_set = add_inlined(self->frames, frame, &place->inlined[i]);
        }
        if (has_name) {
            bp_json_tree_remove(frame, "demangled");
            is_set = is_set && set_text(frame, "symbol", place->symbol) &&
                     set_text(frame, "demangled", place->demangled) &&
                     bp_json_tree_set_uint(frame, "symbol_offset", place->symbol_offset);
        }
        is_set = is_set && set_line(frame, place->source, place->line);
        self->symbolizer->named_count++;
    } else if (symbol == NULL) {
        note_unnamed(self->symbolizer, element);
    }
    self->lacks_memory = self->lacks_memory || !is_set;
}

static bool change_stack(bp_symbolizer *symbolizer, const bp_json_tree *stack) {
    const bp_json_tree *frames = bp_json_tree_array(stack, "frames");
    stack_change self = {symbolizer, (bp_json_tree *)(uintptr_t)frames, false};
    if (frames != NULL) {
        bp_frames_each_place(frames, &symbolizer->finder, change_frame, &self);
    }
    return !self.lacks_memory;
}

void bp_symbolizer_release(bp_symbolizer *symbolizer) {
    bp_json_tree_free(symbolizer->document);
    free(symbolizer->document_name);
    symbolizer->document = NULL;
    symbolizer->document_name = NULL;
}

/* Reads the document, unless it is the last one, and changes its frames. */
static bugpack_status change_document(bp_symbolizer *symbolizer, const bp_report_file *report,
                                      const char *name, bugpack_error *error) {
    uint64_t before = symbolizer->named_count;
    bp_buffer text;
    if (symbolizer->document != NULL && strcmp(symbolizer->document_name, name) == 0) {
        return BUGPACK_OK;
    }
    bp_symbolizer_release(symbolizer);
    symbolizer->document_name = strdup(name);
    if (symbolizer->document_name == NULL) {
        return bp_fail_memory(error, "add names to frames");
    }
    bp_buffer_init(&text, text_max_bytes);
    bugpack_status status = bp_report_file_read(report, name, &text, error);
    if (status == BUGPACK_OK) {
        status = bp_json_tree_read_within(bp_buffer_text(&text), text.size, tree_max_bytes,
                                          &symbolizer->document, error);
    }
    bp_buffer_release(&text);
    if (status != BUGPACK_OK) {
        return status;
    }
    const bp_json_tree *backtrace = bp_json_tree_object(symbolizer->document, "backtrace");
    bool is_done = backtrace == NULL || change_stack(symbolizer, backtrace);
    BP_JSON_EACH (thread, bp_json_tree_rows(symbolizer->document, "threads")) {
        is_done = is_done && change_stack(symbolizer, thread);
    }
    symbolizer->document_count = symbolizer->named_count - before;
    return is_done ? BUGPACK_OK : bp_fail_memory(error, "add names to frames");
}

/* The lines of one thread. */
typedef struct line_printing {
    bp_buffer *out;
    size_t number;
} line_printing;

/* A bp_frame_taker. */
static void print_line(void *context, const bp_frame_text *frame) {
    line_printing *lines = context;
    bp_frame_append_line(lines->out, frame, lines->number++);
}

/* stacks.txt has a thread for each of stacks.json, in the same order: the frames below each header
 * are printed again. */
static void change_text(const char *text, const bp_json_tree *stacks, bp_buffer *out) {
    static const bp_frame_finder knows_nothing = {NULL, NULL, NULL};
    const bp_json_tree *thread = bp_json_tree_rows(stacks, "threads");
    bool is_replaced = false;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n") + (strchr(text, '\n') != NULL);
        bool is_header = strncmp(text, "Thread ", 7) == 0;
        is_replaced = is_header || (is_replaced && text[0] == '#');
        if (is_header || !is_replaced) {
            (void)bp_buffer_append(out, text, length);
        }
        if (is_header && thread != NULL) {
            line_printing lines = {out, 0};
            bp_frames_each(bp_json_tree_array(thread, "frames"), &knows_nothing, print_line,
                           &lines);
            thread = bp_json_tree_next(thread);
        }
        text += length;
    }
}

/* Appends the new text of the entry `name`, beside which is a stacks.json. */
static bugpack_status print_text(bp_symbolizer *symbolizer, const bp_report_file *report,
                                 const char *name, bp_buffer *out, bugpack_error *error) {
    bp_buffer text;
    char *document = NULL;
    bugpack_status status = BUGPACK_OK;
    bp_buffer_init(&text, text_max_bytes);
    if (asprintf(&document, "%.*s.json", (int)strlen(name) - 4, name) < 0) {
        document = NULL;
        status = bp_fail_memory(error, "add names to frames");
    } else if (bp_report_file_has(report, document, NULL)) {
        status = change_document(symbolizer, report, document, error);
        status = status == BUGPACK_OK ? bp_report_file_read(report, name, &text, error) : status;
        if (status == BUGPACK_OK) {
            change_text(bp_buffer_text(&text), symbolizer->document, out);
            status = out->status == BUGPACK_OK ? BUGPACK_OK : bp_fail_memory(error, "print stacks");
        }
    }
    bp_buffer_release(&text);
    free(document);
    return status;
}

bugpack_status bp_symbolize_entry(void *context, const bp_report_file *report, const char *name,
                                  bp_buffer *out, uint64_t *ret_count, bugpack_error *error) {
    bp_symbolizer *symbolizer = context;
    const char *of_process = bp_entry_in_process(name);
    if (strcmp(of_process, "stacks.txt") == 0) {
        return print_text(symbolizer, report, name, out, error);
    }
    if (strcmp(of_process, "crash.json") != 0 && strcmp(of_process, "stacks.json") != 0) {
        return BUGPACK_OK;
    }
    bugpack_status status = change_document(symbolizer, report, name, error);
    *ret_count = status == BUGPACK_OK ? symbolizer->document_count : 0;
    return *ret_count > 0 ? bp_json_tree_print(symbolizer->document, out, error) : status;
}
