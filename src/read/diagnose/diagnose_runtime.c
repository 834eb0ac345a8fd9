/* Diagnoses of databases, whose locks the kernel does not know. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
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
    static const char begin[] = "postgres: ", end[] = " waiting";
    char word[64];
    bp_database_session session = {.pid = 0};
    if (title == NULL || !bp_text_begins(title, begin)) {
        return false;
    }
    const char *at = take_word(title + sizeof begin - 1, word, sizeof word);
    if (strchr(word, ':') != NULL) { /* of the cluster */
        at = take_word(at, word, sizeof word);
    }
    at = take_word(at, session.database, sizeof session.database);
    at = take_word(at, word, sizeof word);
    bool is_idle = bp_text_begins(at, "idle");
    session.state = is_idle ? BP_DATABASE_IDLE : BP_DATABASE_WORKS;
    bp_utf8_copy(session.activity, sizeof session.activity, at);
    if (bp_text_ends(at, end)) {
        size_t bytes = strlen(at) - strlen(end);
        session.state = BP_DATABASE_WAITS;
        session.activity[bytes < sizeof session.activity ? bytes : 0] = '\0';
    }
    *ret_session = session;
    return at[0] != '\0' && strcmp(at, "idle") != 0;
}

/* One that waits or is idle did not run in the window: what its title says held for all of it. It
 * takes the place of one that works where there is no other. */
void bp_database_add(bp_database *database, const bp_evidence *evidence) {
    const bp_json_tree *argument = bp_json_tree_rows(evidence->process, "command_line");
    bp_database_session session;
    if (!read_title(argument != NULL ? bp_json_tree_value_text(argument) : NULL, &session) ||
        evidence->thread_count != 1 ||
        (session.state != BP_DATABASE_WORKS &&
         !bp_thread_waited(evidence, &evidence->threads[0])) ||
        !bp_json_tree_uint(evidence->process, "pid", &session.pid)) {
        return;
    }
    size_t at = database->count;
    if (at == BP_DATABASE_SESSION_MAX) {
        database->has_more = true;
        for (at = 0; at < database->count && database->sessions[at].state != BP_DATABASE_WORKS;) {
            at++;
        }
        if (at == database->count || session.state == BP_DATABASE_WORKS) {
            return;
        }
    }
    session.window_ms = evidence->window_ms;
    bp_utf8_copy(session.folder, sizeof session.folder, evidence->folder);
    database->sessions[at] = session;
    database->count += at == database->count;
}

/* "4711 (UPDATE), 4712 (DELETE) and 3 more": the sessions of a database in this state. Their
 * number, and the place of the first. */
static size_t list_sessions(const bp_database *database, const char *name, bp_database_state state,
                            size_t *ret_first, char out[BP_SENTENCE_TEXT_BYTES]) {
    enum { named_max = 4 };
    size_t count = 0, used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < database->count; i++) {
        const bp_database_session *session = &database->sessions[i];
        if (session->state != state || strcmp(session->database, name) != 0) {
            continue;
        }
        *ret_first = count == 0 ? i : *ret_first;
        if (count++ >= named_max) {
            continue;
        }
        used += (size_t)snprintf(out + used, BP_SENTENCE_TEXT_BYTES - used, "%s%" PRIu64,
                                 count > 1 ? ", " : "", session->pid);
        if (state != BP_DATABASE_IDLE) {
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
        char working[BP_SENTENCE_TEXT_BYTES];
        const char *name = session->database;
        size_t first, other;
        size_t count = list_sessions(database, name, BP_DATABASE_WAITS, &first, waiting);
        size_t idle_count = list_sessions(database, name, BP_DATABASE_IDLE, &other, idle);
        if (count == 0 || first != i) {
            continue; /* or said already */
        }
        (void)list_sessions(database, name, BP_DATABASE_WORKS, &other, working);
        evidence->folder = session->folder;
        bp_find_as(evidence, BP_DIAGNOSIS_DATABASE_LOCK, "process.json",
                   "{}{} session{|s} of the database \"{}\" wait{s|} for a lock, by {}: {}; {} ran "
                   "in the {} measured{[; {} is idle in a transaction, and may hold it]}"
                   "{[; one of {}, which are idle in a transaction, may hold it]}"
                   "{[; {} may hold it]}",
                   BP_ARGUMENTS(BP_TEXT(database->has_more ? "at least " : ""), BP_COUNT(count),
                                BP_TEXT(name), BP_TEXT(count == 1 ? "its title" : "their titles"),
                                BP_TEXT(waiting), BP_TEXT(count == 1 ? "it never" : "none of them"),
                                BP_SECS(session->window_ms), BP_TEXT(idle_count == 1 ? idle : ""),
                                BP_TEXT(idle_count > 1 ? idle : ""), BP_TEXT(working)));
    }
}
