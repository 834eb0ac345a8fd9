#include "entries/frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/utf8.h"

/* A text such as "0x7f3c"; 0 for any other. */
static uint64_t read_hex(const bp_json_tree *frame, const char *key) {
    return strtoull(bp_json_tree_text_or(frame, key, "0"), NULL, 16);
}

/* It borrows from the tree. */
static bp_frame_text read_frame(const bp_json_tree *frame) {
    bool is_fixed = bp_json_tree_text(frame, "file_address") != NULL;
    return (bp_frame_text){
        .symbol = bp_json_tree_text(frame, "symbol"),
        .demangled = bp_json_tree_text(frame, "demangled"),
        .module = bp_json_tree_text(frame, "module"),
        .address = read_hex(frame, "address"),
        .file_address = read_hex(frame, is_fixed ? "file_address" : "offset"),
        .source = bp_json_tree_text(frame, "source"),
        .line = bp_json_tree_uint_or(frame, "line", 0),
        .is_inlined = bp_json_tree_is_true(frame, "inlined"),
        .is_signal = bp_json_tree_is_true(frame, "signal_frame"),
        .is_by_frame_pointer = bp_json_tree_is_true(frame, "by_frame_pointer"),
    };
}

typedef struct frame_passing {
    bp_frame_taker *take;
    void *context;
} frame_passing;

/* The frame with what is known of its place, and before it the functions that were inlined there.
 */
static void pass_on(void *context, const bp_json_tree *element, const bp_stack_place *place) {
    const frame_passing *to = context;
    const bp_frame_text frame = read_frame(element);
    bp_frame_text text = frame;
    for (size_t i = 0; place != NULL && i < place->inlined_count; i++) {
        const bp_stack_inlined *inlined = &place->inlined[i];
        text.symbol = inlined->symbol;
        text.demangled = inlined->demangled;
        text.source = inlined->source;
        text.line = (uint64_t)inlined->line;
        text.is_inlined = true;
        to->take(to->context, &text);
    }
    text = frame;
    if (place != NULL && place->symbol != NULL) {
        text.symbol = place->symbol;
        text.demangled = place->demangled;
    }
    if (place != NULL) {
        text.source = place->source;
        text.line = (uint64_t)place->line;
    }
    to->take(to->context, &text);
}

void bp_frames_each(const bp_json_tree *frames, const bp_frame_finder *finder, bp_frame_taker *take,
                    void *context) {
    frame_passing to = {take, context};
    bp_frames_each_place(frames, finder, pass_on, &to);
}

void bp_frames_each_place(const bp_json_tree *frames, const bp_frame_finder *finder,
                          bp_frame_place_taker *take, void *context) {
    bool is_call = false, is_described = false;
    BP_JSON_EACH (frame, bp_json_tree_first(frames)) {
        const bp_frame_text text = read_frame(frame);
        const char *build_id = bp_json_tree_text(frame, "build_id");
        bp_stack_place place = {.address = text.address};
        is_described = is_described || text.is_inlined || text.source != NULL;
        bool is_found = !is_described && !text.is_signal && finder->find != NULL &&
                        text.module != NULL && build_id != NULL &&
                        finder->find(finder->self, text.module, build_id, read_hex(frame, "offset"),
                                     is_call, &place);
        take(context, frame, is_found ? &place : NULL);
        if (is_found) {
            bp_stack_place_release(&place);
        }
        if (!text.is_inlined) {
            is_call = !text.is_signal; /* the next one is a caller, or was interrupted */
            is_described = false;
        }
    }
}

void bp_frames_each_python(const bp_json_tree *stack, bp_frame_taker *take, void *context) {
    BP_JSON_EACH (frame, bp_json_tree_rows(stack, "python_frames")) {
        const bp_frame_text text = {.symbol = bp_json_tree_text_or(frame, "function", "?"),
                                    .source = bp_json_tree_text(frame, "source"),
                                    .line = bp_json_tree_uint_or(frame, "line", 0),
                                    .is_python = true};
        take(context, &text);
    }
}

static const char *keep(char *out, size_t out_bytes, const char *text) {
    if (text == NULL) {
        return NULL;
    }
    bp_utf8_copy(out, out_bytes, text);
    return out;
}

static void add_pending(bp_frame_fold *folded) {
    char word[BP_FRAME_NAME_BYTES + sizeof "\u2026"];
    if (folded->pending_count == 0) {
        return;
    }
    if (folded->call != NULL && !folded->has_own) {
        char name[BP_FRAME_NAME_BYTES];
        bp_frame_short_name(&folded->pending, name);
        const char *call = folded->call[0] != '\0' ? folded->call : name;
        bool is_whole = folded->pending_count == 1 &&
                        strcmp(name + strspn(name, "_"), call + strspn(call, "_")) == 0;
        (void)snprintf(word, sizeof word, "%.63s%s", call, is_whole ? "" : "\u2026");
        folded->pending = (bp_frame_text){.symbol = word, .module = folded->pending.module};
    }
    folded->take(folded->context, &folded->pending);
    folded->pending = (bp_frame_text){.module = NULL};
    folded->pending_count = 0;
}

void bp_frame_fold_add(void *context, const bp_frame_text *frame) {
    bp_frame_fold *folded = context;
    static const char start[] = "__libc_start_"; /* it called `main`, and _start called it */
    if (folded->is_over) {
        return;
    }
    if (bp_frame_is_of_library(frame) && !frame->is_signal) {
        folded->is_over =
            frame->symbol != NULL && strncmp(frame->symbol, start, sizeof start - 1) == 0;
        folded->pending_count++;
        folded->pending = *frame;
        folded->pending.symbol = keep(folded->symbol, sizeof folded->symbol, frame->symbol);
        folded->pending.demangled =
            keep(folded->demangled, sizeof folded->demangled, frame->demangled);
        folded->pending.module = keep(folded->module, sizeof folded->module, frame->module);
        folded->pending.source = NULL;
        folded->pending.is_python = false; /* without a place, which is a line of the library's */
    } else {
        add_pending(folded);
        folded->take(folded->context, frame);
        folded->has_own = true;
    }
}

void bp_frame_fold_end(bp_frame_fold *folded) {
    if (!folded->has_own) {
        add_pending(folded);
    }
}

/* Passes on the frames of both kinds as one list. */
typedef struct joined_frames {
    bp_frame_taker *take;
    void *context;
    bool has_python, has_own, is_in_interpreter;
} joined_frames;

/* A bp_frame_taker. */
static void find_own_python(void *context, const bp_frame_text *frame) {
    joined_frames *joined = context;
    joined->has_python = true;
    joined->has_own = joined->has_own || !bp_frame_is_of_library(frame);
}

static void take_native(void *context, const bp_frame_text *frame) {
    joined_frames *joined = context;
    joined->is_in_interpreter = joined->is_in_interpreter || bp_frame_is_of_interpreter(frame);
    if (!joined->has_python || !joined->is_in_interpreter) {
        joined->take(joined->context, frame);
    }
}

/* All functions of a thread that has none but those of modules are shown. */
static void take_python(void *context, const bp_frame_text *frame) {
    joined_frames *joined = context;
    bp_frame_fold *folded = joined->context;
    if (joined->has_own) {
        bp_frame_fold_add(folded, frame);
    } else {
        add_pending(folded);
        folded->take(folded->context, frame);
        folded->has_own = true;
    }
}

static void fold(const bp_json_tree *stack, const bp_frame_finder *finder, const char *call,
                 bp_frame_taker *take, void *context) {
    bp_frame_fold folded = {.take = take, .context = context, .call = call};
    joined_frames joined = {.take = bp_frame_fold_add, .context = &folded};
    bp_frames_each_python(stack, find_own_python, &joined);
    bp_frames_each(bp_json_tree_array(stack, "frames"), finder, take_native, &joined);
    folded.is_over = folded.is_over && !joined.has_python;
    bp_frames_each_python(stack, take_python, &joined);
    bp_frame_fold_end(&folded);
}

static void add_to_list(void *context, const bp_frame_text *frame) {
    bp_frame_list_add(context, frame);
}

void bp_frames_print(const bp_json_tree *stack, const bp_frame_finder *finder, const char *call,
                     char out[BP_FRAME_LIST_BYTES]) {
    bp_frame_list list = {.names_module_once = call != NULL};
    fold(stack, finder, call, add_to_list, &list);
    bool is_python = bp_json_tree_rows(stack, "python_frames") != NULL;
    bp_frame_list_end(&list,
                      bp_json_tree_text(stack, is_python ? "python_reason" : "reason") == NULL);
    memcpy(out, list.text, sizeof list.text);
}

/* Rows of an array; the last is not in it yet. */
struct frame_rows {
    bp_json_maker *maker;
    char name[BP_FRAME_NAME_BYTES], place[BP_FRAME_NAME_BYTES + 24];
    uint64_t count; /* in a row */
    uint64_t row_count, other_count;
};

static void end_row(struct frame_rows *rows) {
    enum { row_max = 24 };
    if (rows->count > 0 && rows->row_count++ < row_max) {
        bp_json_make_object(rows->maker, NULL);
        bp_json_make_text(rows->maker, "name", rows->name);
        bp_json_make_text(rows->maker, "place", rows->place[0] != '\0' ? rows->place : NULL);
        bp_json_make_uint(rows->maker, "count", rows->count > 1, rows->count);
        bp_json_make_end(rows->maker);
    } else {
        rows->other_count += rows->count;
    }
    rows->count = 0;
}

static void add_row(void *context, const bp_frame_text *frame) {
    struct frame_rows *rows = context;
    const char *file = frame->source != NULL ? frame->source : frame->module;
    char name[BP_FRAME_NAME_BYTES];
    bp_frame_short_name(frame, name);
    if (strcmp(name, rows->name) != 0) {
        end_row(rows);
    }
    if (rows->count++ > 0) {
        return;
    }
    memcpy(rows->name, name, sizeof name);
    rows->place[0] = '\0';
    file = file != NULL ? bp_file_base_name(file) : NULL;
    if (frame->source != NULL) {
        (void)snprintf(rows->place, sizeof rows->place, "%.60s:%" PRIu64, file, frame->line);
    } else if (file != NULL && frame->symbol != NULL) {
        bp_utf8_copy(rows->place, BP_FRAME_NAME_BYTES, file);
    }
}

void bp_make_frames(bp_json_maker *maker, const bp_json_tree *stack,
                    const bp_frame_finder *finder) {
    struct frame_rows rows = {.maker = maker};
    bp_json_make_array(maker, "frames");
    fold(stack, finder, "", add_row, &rows);
    end_row(&rows);
    bp_json_make_end(maker);
    bp_json_make_uint(maker, "other_frames", rows.other_count > 0, rows.other_count);
}

bool bp_frames_are_of_runtime(const bp_json_tree *stack) {
    static const char *const libraries[] = {"libjvm.so", "libnode.so", "libuv.so", "libcoreclr.so",
                                            NULL};
    static const char *const programs[] = {"node", "nodejs", NULL};
    bool has_any = false;
    BP_JSON_EACH (frame, bp_json_tree_rows(stack, "frames")) {
        const bp_frame_text text = read_frame(frame);
        const char *module = text.module != NULL ? bp_file_base_name(text.module) : "";
        bool is_of_go = text.symbol != NULL && strncmp(text.symbol, "runtime.", 8) == 0;
        bool is_of_runtime = is_of_go || bp_array_has_start(libraries, module) ||
                             bp_array_has_text(programs, module);
        if (!is_of_runtime && !bp_frame_is_of_library(&text)) {
            return false;
        }
        has_any = has_any || is_of_runtime;
    }
    return has_any && bp_json_tree_rows(stack, "python_frames") == NULL;
}

/* Code without a name, as where a jump went, says nothing. A template of the library that was made
 * in the program, or a function that was inlined from a header of the system, is the library's. */
static void take_own(void *context, const bp_frame_text *frame) {
    char *out = context, name[BP_FRAME_NAME_BYTES];
    bool is_of_header = frame->is_inlined && frame->source != NULL &&
                        strncmp(frame->source, "/usr/include/", 13) == 0;
    if (out[0] != '\0' || frame->symbol == NULL || frame->is_signal || is_of_header ||
        bp_frame_is_of_library(frame)) {
        return;
    }
    bp_frame_short_name(frame, name);
    if (strncmp(name, "std::", 5) != 0 && strncmp(name, "__gnu_cxx::", 11) != 0) {
        bp_utf8_copy(out, BP_FRAME_NAME_BYTES, name);
    }
}

static void take_first(void *context, const bp_frame_text *frame) {
    char *out = context;
    if (out[0] == '\0') {
        bp_frame_short_name(frame, out);
    }
}

void bp_frames_sign(const bp_json_tree *stack, bp_signature_stack *signed_stack) {
    static const bp_frame_finder knows_nothing = {.self = NULL};
    bp_frames_each(bp_json_tree_array(stack, "frames"), &knows_nothing, bp_signature_take,
                   signed_stack);
    bp_frames_each_python(stack, bp_signature_take, signed_stack);
}

void bp_frames_print_own(const bp_json_tree *stack, const bp_frame_finder *finder,
                         char out[BP_FRAME_NAME_BYTES]) {
    out[0] = '\0';
    bp_frames_each_python(stack, take_own, out);
    bp_frames_each_python(stack, take_first, out);
    if (out[0] == '\0') {
        bp_frames_each(bp_json_tree_array(stack, "frames"), finder, take_own, out);
    }
}
