#include "report/stacks_entries.h"

#include <inttypes.h>
#include <stdio.h>

static void note(const bp_stacks *stacks, bugpack_writer *writer) {
    size_t blocked_count = bp_stacks_count(stacks, BP_STACK_BLOCKED);
    size_t running_count = bp_stacks_count(stacks, BP_STACK_RUNNING);
    size_t stopped_count = bp_stacks_count(stacks, BP_STACK_STOPPED);
    size_t rest_count = stacks->thread_count - blocked_count - running_count - stopped_count -
                        bp_stacks_count(stacks, BP_STACK_CRASHED);
    char stopped[80] = "", running[64] = "", ended[32] = "", loss[BP_STACKS_LOSS_BYTES];
    if (stopped_count > 0 && stacks->is_of_crash) {
        (void)snprintf(stopped, sizeof stopped, "; %zu as the core has them", stopped_count);
    } else if (stopped_count > 0) {
        (void)snprintf(stopped, sizeof stopped, "; %zu stopped, for at most %" PRIu64 " us each",
                       stopped_count, bp_stacks_longest_stop_us(stacks));
    }
    if (running_count > 0) {
        (void)snprintf(running, sizeof running, "; %zu running, without a stack", running_count);
    }
    if (stacks->vanished_count > 0) {
        (void)snprintf(ended, sizeof ended, "; %zu had ended", stacks->vanished_count);
    }
    (void)snprintf(writer->line.note, sizeof writer->line.note, "threads: %zu blocked%s%s%s%s%s",
                   blocked_count, stopped, running, ended,
                   stacks->python_reason[0] != '\0' ? "; no functions of Python: " : "",
                   stacks->python_reason);
    if (bp_stacks_describe_loss(stacks, loss)) {
        bp_writer_truncate(writer, true, "%s", loss);
    } else if (stacks->passed_over_count > 0) {
        bp_writer_truncate(writer, true, "%zu thread%s passed over: no time, or over a limit",
                           stacks->passed_over_count,
                           stacks->passed_over_count == 1 ? " was" : "s were");
    } else if (rest_count > 0) {
        bp_writer_truncate(writer, false, "%zu thread%s ran meanwhile or could not be read",
                           rest_count, rest_count == 1 ? "" : "s");
    }
}

bugpack_status bp_stacks_write(const bp_stacks *stacks, bugpack_writer *json, bp_buffer *text,
                               bugpack_error *error) {
    note(stacks, json);
    bugpack_status status = bp_stacks_print_json(stacks, &json->content, error);
    return status == BUGPACK_OK ? bp_stacks_print_text(stacks, text, error) : status;
}
