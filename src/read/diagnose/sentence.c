#include "diagnose/sentence.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/export.h>

#include "base/utf8.h"

/* A sentence being printed, the next argument, and what the last ones were. */
typedef struct printing {
    bp_sentence *sentence;
    const bp_argument *argument;
    bool is_full, is_known, has_clause;
    double number;
} printing;

static const char ellipsis[] = "\u2026";
static const size_t text_max_bytes = BP_SENTENCE_BYTES - sizeof ellipsis; /* before it */

static void BUGPACK_PRINTF(2, 3) append(printing *state, const char *format, ...) {
    char text[2 * BP_SENTENCE_BYTES];
    bp_sentence *sentence = state->sentence;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t byte_count = strlen(text);
    size_t room = state->is_full ? 0 : text_max_bytes - sentence->length;
    size_t length = bp_utf8_cut(text, byte_count, room);
    memcpy(sentence->text + sentence->length, text, length);
    sentence->length += length;
    state->is_full = length < byte_count;
}

static void append_id(printing *state, uint64_t id) {
    bp_sentence *sentence = state->sentence;
    size_t at = sentence->length, count = sentence->thread_count;
    append(state, "%" PRIu64, id);
    if (!state->is_full && count < BP_SENTENCE_THREAD_MAX) {
        sentence->threads[count].id = id;
        sentence->threads[count].at = at;
        sentence->threads[count].byte_count = sentence->length - at;
        sentence->thread_count++;
    }
}

static void append_cut(printing *state, const char *text, size_t max_bytes) {
    char cut[BP_SENTENCE_TEXT_BYTES + 1];
    size_t out_bytes = max_bytes < sizeof cut ? max_bytes + 1 : sizeof cut;
    bp_utf8_copy_ends(cut, out_bytes, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
    append(state, "%s", cut);
    state->is_known = state->is_known && cut[0] != '\0';
}

static void print_argument(printing *state) {
    const bp_argument *argument = state->argument;
    state->argument += argument->kind != BP_ARGUMENT_END;
    switch (argument->kind) {
    case BP_ARGUMENT_END:
        break;
    case BP_ARGUMENT_TEXT:
        append_cut(state, argument->text, argument->max_bytes);
        break;
    case BP_ARGUMENT_NUMBER:
        append(state, "%.*f%s", argument->decimals, argument->number, argument->unit);
        state->number = argument->number;
        state->is_known = state->is_known && argument->number > 0;
        break;
    case BP_ARGUMENT_TID:
        append(state, "%.*s", (int)argument->max_bytes,
               argument->text != NULL ? argument->text : "");
        append_id(state, argument->id);
        break;
    case BP_ARGUMENT_THREAD:
        append_id(state, argument->id);
        append(state, " \"%s\"", argument->text);
        break;
    case BP_ARGUMENT_PROCESS:
    case BP_ARGUMENT_WAIT:
        append_cut(state, argument->text, argument->max_bytes);
        append(state, " (");
        append_id(state, argument->id);
        state->has_clause = argument->kind == BP_ARGUMENT_PROCESS && argument->rest[0] != '\0';
        append(state, ")%s%s", state->has_clause ? ", which is " : "", argument->rest);
    }
}

/* A field, from behind its '{'; returns what follows it. */
static const char *print_field(printing *state, const char *at) {
    int length = (int)strcspn(at, "}"), first = (int)strcspn(at, "|}");
    if (length == 0) {
        print_argument(state);
    } else if (first == length) {
        append(state, "%.*s", state->has_clause ? length : 0, at);
    } else if (state->number == 1) {
        append(state, "%.*s", first, at);
    } else {
        append(state, "%.*s", length - first - 1, at + first + 1);
    }
    return at + length + 1;
}

void bp_sentence_print(bp_sentence *ret_sentence, const char *pattern,
                       const bp_argument *arguments) {
    printing state = {.sentence = ret_sentence, .argument = arguments};
    size_t length = 0, thread_count = 0; /* before the group */
    bool was_full = false;
    ret_sentence->length = ret_sentence->thread_count = 0;
    for (const char *at = pattern; *at != '\0';) {
        int plain = (int)strcspn(at, "{]");
        if (plain > 0) {
            append(&state, "%.*s", plain, at);
            at += plain;
        } else if (strncmp(at, "{[", 2) == 0) {
            length = ret_sentence->length;
            thread_count = ret_sentence->thread_count;
            was_full = state.is_full;
            state.is_known = true;
            at += 2;
        } else if (*at == ']') {
            if (!state.is_known) {
                ret_sentence->length = length;
                ret_sentence->thread_count = thread_count;
                state.is_full = was_full;
            }
            at += 2;
        } else {
            at = print_field(&state, at + 1);
        }
    }
    memcpy(ret_sentence->text + ret_sentence->length, state.is_full ? ellipsis : "",
           state.is_full ? sizeof ellipsis : 1);
    ret_sentence->length += state.is_full ? sizeof ellipsis - 1 : 0;
}
