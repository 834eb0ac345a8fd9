/*
 * The sentence of a finding: a pattern with typed arguments, printed once, with the places of the
 * threads that it names. A link to a thread needs no search in the text.
 */
#ifndef BP_DIAGNOSE_SENTENCE_H
#define BP_DIAGNOSE_SENTENCE_H

#include <stddef.h>
#include <stdint.h>

typedef enum bp_argument_kind {
    BP_ARGUMENT_END,
    BP_ARGUMENT_TEXT,    /* at most `max_bytes` of it, cut in its middle */
    BP_ARGUMENT_NUMBER,  /* with so many decimals, and its unit */
    BP_ARGUMENT_TID,     /* behind the first `max_bytes` of its text */
    BP_ARGUMENT_THREAD,  /* 12 "decoder" */
    BP_ARGUMENT_PROCESS, /* make (12), which is stopped: `rest` is the state, or "" */
    BP_ARGUMENT_WAIT     /* pipe 3 of make (12) and 2 more: `rest` is all behind the id */
} bp_argument_kind;

/* All texts are borrowed; NULL is an empty one. */
typedef struct bp_argument {
    bp_argument_kind kind;
    const char *text, *rest;
    size_t max_bytes;
    uint64_t id; /* of a thread, or of the first one of a process */
    double number;
    int decimals;
    const char *unit;
} bp_argument;

#define BP_CUT_TEXT(value, bytes)                                                                  \
    ((bp_argument){.kind = BP_ARGUMENT_TEXT, .text = (value), .max_bytes = (bytes)})
#define BP_TEXT(value) BP_CUT_TEXT(value, BP_SENTENCE_TEXT_BYTES)
#define BP_NUMBER(value, places, name)                                                             \
    ((bp_argument){                                                                                \
        .kind = BP_ARGUMENT_NUMBER, .number = (value), .decimals = (places), .unit = (name)})
#define BP_COUNT(value) BP_NUMBER((double)(value), 0, "")
#define BP_SECS(ms) BP_NUMBER((ms) / 1000, 1, " s")
#define BP_TID(value) ((bp_argument){.kind = BP_ARGUMENT_TID, .id = (value)})

/* A list of arguments, of which BP_END is none. */
#define BP_END ((bp_argument){.kind = BP_ARGUMENT_END})
#define BP_ARGUMENTS(...) ((const bp_argument[]){__VA_ARGS__, BP_END})

/* Of a sentence, and of a text in it. */
enum { BP_SENTENCE_BYTES = 1280, BP_SENTENCE_TEXT_BYTES = 640, BP_SENTENCE_THREAD_MAX = 12 };

typedef struct bp_sentence {
    char text[BP_SENTENCE_BYTES];
    size_t length, thread_count;
    struct {
        uint64_t id;
        size_t at, byte_count; /* of its id in the text */
    } threads[BP_SENTENCE_THREAD_MAX];
} bp_sentence;

/*
 * Prints a pattern; what does not fit is cut, and an ellipsis says so. It has a field for each
 * argument, in their order:
 *
 *   {}              the argument
 *   thread{|s}      the first word where the last number was 1, and else the second
 *   {} holds{,} it  a comma where the last process has a clause: "cat (7), which is stopped,"
 *   {[, in {}]}     left out where the argument in it is an empty text, or a number not above 0
 */
void bp_sentence_print(bp_sentence *ret_sentence, const char *pattern,
                       const bp_argument *arguments);

#endif
