#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "inspect/summary.h"

/* A name or an address takes so many bytes at most. */
enum { name_bytes_max = 47 };

static int cut_length(const char *text) {
    size_t length = strlen(text);
    return (int)(length <= name_bytes_max ? length : bp_utf8_cut(text, length, name_bytes_max));
}

/* "pipe 3 of cat (4711) and 2 more", "socket 4 of 10.0.0.9:5900", "socket 5": who is at the other
 * end, as far as it is known. */
static void print_file(const bp_json_tree *wait, const char *kind, char *out, size_t out_bytes) {
    const bp_json_tree *holder = bp_json_tree_first(bp_json_tree_array(wait, "other_end"));
    const bp_json_tree *socket = bp_json_tree_object(wait, "socket");
    const char *address =
        bp_json_tree_text_or(socket, "remote", bp_json_tree_text_or(socket, "local", ""));
    const char *name = bp_json_tree_text_or(holder, "name", "?");
    uint64_t fd = 0, pid = 0;
    size_t more = 0;
    char end[96] = "", others[32] = "";
    (void)bp_json_tree_uint(wait, "fd", &fd);
    for (const bp_json_tree *next = holder; next != NULL; next = bp_json_tree_next(next)) {
        more += next != holder ? 1 : 0;
    }
    if (more > 0) {
        (void)snprintf(others, sizeof others, " and %zu more", more);
    }
    if (bp_json_tree_uint(holder, "pid", &pid)) {
        (void)snprintf(end, sizeof end, " of %.*s (%" PRIu64 ")", cut_length(name), name, pid);
    } else if (address[0] != '\0') {
        (void)snprintf(end, sizeof end, " of %.*s", cut_length(address), address);
    }
    (void)snprintf(out, out_bytes, "%.16s %" PRIu64 "%s%s", kind, fd, end, others);
}

void bp_summary_read_wait(bp_summary_thread *thread, const bp_json_tree *wait) {
    const char *kind = bp_json_tree_text(wait, "kind");
    uint64_t tid;
    if (bp_json_tree_uint(wait, "tid", &tid)) {
        (void)snprintf(thread->waits_for, sizeof thread->waits_for, "%" PRIu64 " (%.32s)", tid,
                       kind != NULL ? kind : "?");
        thread->waits_for_thread = true;
    } else if (kind != NULL) {
        print_file(wait, kind, thread->waits_for, sizeof thread->waits_for);
    }
}

const char *bp_summary_born_words(const bp_summary_thread *thread) {
    const char *words = thread->state[0] != '\0' ? "born in the window, " : "born in the window";
    return thread->is_born ? words : "";
}

const char *bp_summary_wait_words(const bp_summary_thread *thread) {
    return thread->waits_for[0] == '\0' ? ""
           : thread->waits_for_thread   ? ", waits for thread "
                                        : ", waits on ";
}
