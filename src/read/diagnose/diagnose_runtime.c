/* Diagnoses of databases, whose locks the kernel does not know. */

#include <string.h>

#include "diagnose/evidence.h"

/*
 * The locks of a database are in its own memory. A session of PostgreSQL writes into its title what
 * it does, and " waiting" behind that while another session holds the lock it needs ("Standard Unix
 * Tools" in its manual). It is said of one that did not run in the window.
 */
void bp_diagnose_database_lock(bp_evidence *evidence) {
    static const char begin[] = "postgres: ", end[] = " waiting";
    static const double window_min_ms = 100;
    const bp_json_tree *argument = bp_json_tree_rows(evidence->process, "command_line");
    const char *title = argument != NULL ? bp_json_tree_value_text(argument) : NULL;
    size_t length = title != NULL ? strlen(title) : 0;
    uint64_t pid = 0;
    if (length < sizeof begin + sizeof end || strncmp(title, begin, sizeof begin - 1) != 0 ||
        strcmp(title + length - (sizeof end - 1), end) != 0 || evidence->thread_count != 1 ||
        evidence->window_ms < window_min_ms || !bp_thread_is_idle(&evidence->threads[0]) ||
        !bp_json_tree_uint(evidence->process, "pid", &pid)) {
        return;
    }
    bp_find(evidence,
            "this session waits for a lock of the database, as its title says: \"{}\"; it did not "
            "run for all of the {} measured; SELECT pg_blocking_pids({}) names the sessions that "
            "hold it",
            BP_CUT_TEXT(title, 160), BP_SECS(evidence->window_ms), BP_TID(pid));
}
