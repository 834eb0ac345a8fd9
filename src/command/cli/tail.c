#include "cli/tail.h"

#include <string.h>

#include "base/utf8.h"

enum { piece_bytes = 16 * 1024 };

void bp_cli_tail_init(bp_cli_tail *newest, uint64_t limit_bytes, bool is_whole) {
    *newest = (bp_cli_tail){.limit_bytes = (size_t)limit_bytes, .is_whole = is_whole};
    bp_buffer_init(&newest->kept, 2 * newest->limit_bytes + 2 * piece_bytes);
}

void bp_cli_tail_release(bp_cli_tail *newest) {
    bp_buffer_release(&newest->kept);
}

bugpack_status bp_cli_tail_keep(void *context, const void *bytes, size_t byte_count) {
    bp_cli_tail *newest = context;
    bp_buffer *kept = &newest->kept;
    (void)bp_buffer_append(kept, bytes, byte_count);
    newest->total_bytes += byte_count;
    if (newest->is_whole && newest->total_bytes > newest->limit_bytes) {
        return BUGPACK_ERR_LIMIT;
    }
    if (kept->size > 2 * newest->limit_bytes + piece_bytes) {
        size_t rest_bytes = newest->limit_bytes + 1;
        memmove(kept->data, kept->data + kept->size - rest_bytes, rest_bytes);
        kept->size = rest_bytes;
    }
    return kept->status;
}

/* Where what is written begins: at a line, or where there is only one, at a character. */
static size_t find_begin(const bp_cli_tail *newest) {
    const bp_buffer *kept = &newest->kept;
    if (newest->total_bytes <= newest->limit_bytes) {
        return 0;
    }
    size_t cut = kept->size - newest->limit_bytes;
    const char *newline = memchr(kept->data + cut - 1, '\n', kept->size - cut);
    if (newline != NULL) {
        return (size_t)(newline + 1 - kept->data);
    }
    while (cut < kept->size && bp_utf8_cut(kept->data, kept->size, cut) != cut) {
        cut++;
    }
    return cut;
}

void bp_cli_tail_write(const bp_cli_tail *newest, bugpack_writer *writer) {
    size_t begin = find_begin(newest);
    (void)bugpack_write(writer, newest->kept.data + begin, newest->kept.size - begin);
    if (newest->total_bytes > newest->limit_bytes) {
        bugpack_truncate(writer, false, "the newest whole lines are kept, of %llu bytes",
                         (unsigned long long)newest->total_bytes);
    }
}
