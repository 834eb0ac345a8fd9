/*
 * Where threads were while they ran: profile.folded, one line for each distinct stack, as
 * flamegraph.pl reads it, and what the manifest says of how it was taken.
 */
#ifndef BP_MODEL_PROFILE_H
#define BP_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "json/json.h"
#include "model/frame_text.h"

/* Limits of the entry. Samples beyond them are counted as lost. */
enum { BP_PROFILE_LINE_MAX = 20000, BP_PROFILE_BYTES_MAX = 32 << 20 };

/* Frames that stand for what has no name. */
#define BP_PROFILE_KERNEL "[kernel]" /* innermost: the thread ran in the kernel */
#define BP_PROFILE_CUT "[...]"       /* outermost: its callers were not found */
#define BP_PROFILE_MADE "[jit]"      /* code that was made at run time */
#define BP_PROFILE_ENDED "[ended]"   /* in place of the name of a thread that has ended */

typedef struct bp_profile_facts {
    bool is_known; /* there is a profile, or could have been one */
    bool excludes_kernel;
    uint64_t rate_hz, sample_count;
    uint64_t lost_count; /* taken, and not in the entry */
    uint64_t window_ns;
    uint64_t thread_count; /* that have samples */
} bp_profile_facts;

typedef struct bp_folded_line {
    char *text; /* without the count */
    size_t bytes;
    uint64_t count;
} bp_folded_line;

/* Distinct stacks with their counts. Starts zeroed. */
typedef struct bp_folded {
    bp_folded_line *lines;
    size_t count, capacity, text_bytes;
    uint32_t *slots; /* index + 1 of a line, by its hash; 0 is free */
    size_t slot_count;
} bp_folded;

void bp_folded_release(bp_folded *folded);

/* Counts a stack. LIMIT, NO_MEMORY: it was not counted. */
bugpack_status bp_folded_add(bp_folded *folded, const char *text, size_t byte_count,
                             uint64_t count);

/* Appends the lines, the most frequent first, and sorts them for that. NO_MEMORY, LIMIT. */
bugpack_status bp_folded_print(bp_folded *folded, bp_buffer *out, bugpack_error *error);

/* Appends the name of a thread, the root of a stack; `capacity` as for bp_model_add_name. What
 * would end a frame or a line is replaced here and below. */
void bp_folded_append_thread(bp_buffer *line, const char *name, size_t capacity);

/* Appends ';' and the name of a frame that is known from its file, or "[libfoo.so+0x1234]". */
void bp_folded_append_frame(bp_buffer *line, const bp_frame_text *frame);

/* Adds the member "profile". */
void bp_profile_add(const bp_profile_facts *facts, bp_json *json);

/* A sentence for the line of the manifest. */
void bp_profile_describe(const bp_profile_facts *facts, char *out, size_t out_bytes);

#endif
