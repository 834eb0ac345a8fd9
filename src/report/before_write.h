/*
 * The host's last look at each entry: its callback of bugpack_before_write gets what would be
 * written, and may change or drop it.
 *
 * It is the host's code and may hang for ever. So it is called as a provider is, on a thread that
 * can be detached, under a time limit. What it does not let through is not written.
 */
#ifndef BP_REPORT_BEFORE_WRITE_H
#define BP_REPORT_BEFORE_WRITE_H

#include <bugpack/session.h>

#include "recorder/recorder.h"
#include "report/provider.h"

/* The callback of a session, if it has one. Every function may be called on any thread. */
typedef struct bp_before_write bp_before_write;

/* `recorder` is borrowed: its directory gets the fact that there is one. */
bugpack_status bp_before_write_new(const bugpack_options *settings, bp_recorder *recorder,
                                   bp_before_write **ret_before, bugpack_error *error);
/* Nobody is inside, nor comes later. Waits for a call that runs, until its time limit. NULL is
 * fine. */
void bp_before_write_free(bp_before_write *before);

/* Sets or, with NULL, removes the callback. TIMEOUT: done, and the one before still runs, beyond
 * its time limit. NO_MEMORY: nothing has changed. */
bugpack_status bp_before_write_set(bp_before_write *before, bugpack_before_write_callback *callback,
                                   void *context);

/* Makes a running call look at its cancel token again; and what is done then, as for a runner. */
void bp_before_write_wake(bp_before_write *before);
void bp_before_write_on_wake(bp_before_write *before, void (*on_wake)(void *context),
                             void *context);

/* Whether a dead session had a callback, from its directory. */
bool bp_before_write_was_set(int dir_fd);

/* What one report needs to call it. One thread. */
typedef struct bp_last_look bp_last_look;

/* `token` is borrowed; NULL for none. NULL without memory. */
bp_last_look *bp_last_look_new(bp_before_write *before, const bp_cancel_token *token);
void bp_last_look_free(bp_last_look *look);

/* Whether there was a callback for any entry. */
bool bp_last_look_was_used(const bp_last_look *look);

/* The next entry begins, for the callback that is set now. */
void bp_last_look_begin(bp_last_look *look);

/* Takes bytes of the entry; with NULL it ends. What is to be written is passed on. After a refusal
 * further bytes are ignored, and the end is refused. */
bugpack_status bp_last_look_write(bp_last_look *look, const char *entry, const void *bytes,
                                  size_t byte_count, bp_sink *pass_on, void *context);

/* What the manifest says of the entry that has ended: changes a line whose entry was refused, or
 * changed. True where it was refused. */
bool bp_last_look_tell(const bp_last_look *look, bugpack_writer *writer);

#endif
