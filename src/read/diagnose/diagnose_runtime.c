/* Diagnoses of databases, whose locks the kernel does not know. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "diagnose/evidence.h"

/* The part of a title behind this word, and the word itself in `out`. */
static const char *take_word(const char *title, char *out, size_t out_bytes) {
    size_t length = strcspn(title, " ");
    (void)snprintf(out, out_bytes, "%.*s", (int)length, title);
    return title + length + strspn(title + length, " ");
}

/*
 * A session of PostgreSQL writes into its title who it is and what it does ("Standard Unix Tools"
 * in its manual): "postgres: [cluster: ]user database client activity", with " waiting" behind it
 * while another session holds the lock it needs.
 */
static bool read_title(const char *title, bp_database_session *ret_session) {
    static const char begin[] = "postgres: ", end[] = " waiting", idle[] = "idle in transaction";
    char word[64];
    bp_database_session session = {.pid = 0};
    if (title == NULL || strncmp(title, begin, sizeof begin - 1) != 0) {
        return false;
    }
    const char *at = take_word(title + sizeof begin - 1, word, sizeof word);
    if (strchr(word, ':') != NULL) { /* of the cluster */
        at = take_word(at, word, sizeof word);
    }
    at = take_word(at, session.database, sizeof session.database);
    at = take_word(at, word, sizeof word);
    size_t length = strlen(at), tail = sizeof end - 1;
    session.waits = length > tail && strcmp(at + length - tail, end) == 0;
    bp_utf8_copy(session.activity, sizeof session.activity, at);
    if (session.waits && length - tail < sizeof session.activity) {
        session.activity[length - tail] = '\0';
    }
    *ret_session = session;
    return session.waits || strncmp(at, idle, sizeof idle - 1) == 0;
}

/* Takes one that did not run in the window: what its title says held for all of it. */
void bp_database_add(bp_database *database, const bp_evidence *evidence) {
    const bp_json_tree *argument = bp_json_tree_rows(evidence->process, "command_line");
    bp_database_session session;
    if (!read_title(argument != NULL ? bp_json_tree_value_text(argument) : NULL, &session) ||
        evidence->thread_count != 1 || !bp_thread_waited(evidence, &evidence->threads[0]) ||
        !bp_json_tree_uint(evidence->process, "pid", &session.pid)) {
        return;
    }
    if (database->count == BP_DATABASE_SESSION_MAX) {
        database->has_more = true;
        return;
    }
    session.window_ms = evidence->window_ms;
    bp_utf8_copy(session.folder, sizeof session.folder, evidence->folder);
    database->sessions[database->count++] = session;
}

/* "4711 (UPDATE), 4712 (DELETE) and 3 more": the sessions of a database that wait, or those that
 * are idle in a transaction. Their number, and the place of the first. */
static size_t list_sessions(const bp_database *database, const char *name, bool waits,
                            size_t *ret_first, char out[BP_SENTENCE_TEXT_BYTES]) {
    enum { named_max = 4 };
    size_t count = 0, used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < database->count; i++) {
        const bp_database_session *session = &database->sessions[i];
        if (session->waits != waits || strcmp(session->database, name) != 0) {
            continue;
        }
        *ret_first = count == 0 ? i : *ret_first;
        if (count++ >= named_max) {
            continue;
        }
        used += (size_t)snprintf(out + used, BP_SENTENCE_TEXT_BYTES - used, "%s%" PRIu64,
                                 count > 1 ? ", " : "", session->pid);
        if (waits) {
            used += (size_t)snprintf(out + used, BP_SENTENCE_TEXT_BYTES - used, " (%s)",
                                     session->activity);
        }
    }
    if (count > named_max) {
        (void)snprintf(out + used, BP_SENTENCE_TEXT_BYTES - used, " and %zu more",
                       count - named_max);
    }
    return count;
}

/* One finding for each database, however many of its sessions wait. */
void bp_database_find(const bp_database *database, bp_evidence *evidence) {
    for (size_t i = 0; i < database->count; i++) {
        const bp_database_session *session = &database->sessions[i];
        char waiting[BP_SENTENCE_TEXT_BYTES], idle[BP_SENTENCE_TEXT_BYTES];
        size_t first, first_idle;
        size_t count = list_sessions(database, session->database, true, &first, waiting);
        size_t idle_count = list_sessions(database, session->database, false, &first_idle, idle);
        if (count == 0 || first != i) {
            continue; /* or said already */
        }
        evidence->folder = session->folder;
        bp_find_as(
            evidence, BP_DIAGNOSIS_DATABASE_LOCK, "process.json",
            "{}{} session{|s} of the database \"{}\" wait{s|} for a lock that another one holds, "
            "by "
            "{}: {}; {} ran in the {} measured{[; {} is idle in a transaction, and probably holds "
            "it]}{[; one of {}, which are idle in a transaction, probably holds it]}",
            BP_ARGUMENTS(BP_TEXT(database->has_more ? "at least " : ""), BP_COUNT(count),
                         BP_TEXT(session->database),
                         BP_TEXT(count == 1 ? "its title" : "their titles"), BP_TEXT(waiting),
                         BP_TEXT(count == 1 ? "it never" : "none of them"),
                         BP_SECS(session->window_ms), BP_TEXT(idle_count == 1 ? idle : ""),
                         BP_TEXT(idle_count > 1 ? idle : "")));
    }
}
