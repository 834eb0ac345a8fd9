#include "report/redaction.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/lock.h"
#include "base/status.h"
#include "recorder/recorder.h"

/* The files in a session's directory. */
#define OFF_FILE "redaction-off"
#define TEXT_FILE_FORMAT "redaction-%u"
enum { file_name_bytes = 32 };

struct bp_redaction {
    bp_lock lock; /* of what follows */
    bool is_off;
    bp_recorder *recorder; /* NULL: nothing is saved */
    bp_at_call *at_call;   /* NULL: nothing is redacted where it is recorded */
    char *texts[BP_REDACTION_TEXTS_MAX];
    unsigned text_count;
    bp_rule_set *set; /* NULL: to be compiled */
};

bugpack_status bp_redaction_new(bool is_off, bp_recorder *recorder, bp_redaction **ret_redaction,
                                bugpack_error *error) {
    bp_redaction *redaction = calloc(1, sizeof *redaction);
    if (redaction == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    bp_lock_init(&redaction->lock, BP_LOCK_REDACTION);
    redaction->is_off = is_off;
    redaction->recorder = recorder;
    if (is_off && recorder != NULL) {
        /* Without the file, recovery redacts. */
        (void)bp_rings_write_file(recorder->rings, OFF_FILE, "", 0);
    }
    *ret_redaction = redaction;
    return BUGPACK_OK;
}

void bp_redaction_free(bp_redaction *redaction) {
    if (redaction != NULL) {
        for (unsigned i = 0; i < redaction->text_count; i++) {
            free(redaction->texts[i]);
        }
        bp_rule_set_drop(redaction->set);
        bp_lock_destroy(&redaction->lock);
        free(redaction);
    }
}

bugpack_status bp_redaction_add(bp_redaction *redaction, const char *name, const char *text,
                                size_t byte_count, bugpack_error *error) {
    bp_rule_set *set = NULL, *old = NULL;
    char file[file_name_bytes];
    char *copy = strndup(text, byte_count);
    if (copy == NULL) {
        return bp_fail_memory(error, "add redaction rules");
    }
    bp_lock_acquire(&redaction->lock);
    unsigned count = redaction->text_count;
    bugpack_status status = count < BP_REDACTION_TEXTS_MAX
                                ? BUGPACK_OK
                                : bp_fail(error, BUGPACK_ERR_LIMIT,
                                          "redaction rules were added %u times already", count);
    if (status == BUGPACK_OK) {
        redaction->texts[count] = copy;
        status = bp_rule_set_of_texts(name, redaction->texts, count + 1, &set, error);
    }
    if (status == BUGPACK_OK && redaction->at_call != NULL) {
        status = bp_at_call_use(redaction->at_call, set, error);
    }
    if (status == BUGPACK_OK) {
        redaction->text_count++;
        old = redaction->set;
        redaction->set = set;
        copy = NULL;
        set = NULL;
    }
    bp_lock_release(&redaction->lock);
    if (status == BUGPACK_OK && redaction->recorder != NULL) {
        (void)snprintf(file, sizeof file, TEXT_FILE_FORMAT, count);
        if (!bp_rings_write_file(redaction->recorder->rings, file, text, byte_count)) {
            bp_note_diagnose(redaction->recorder, BUGPACK_LEVEL_WARN,
                             "a recovery of this session will not have all of its redaction rules: "
                             "the file \"%s\" cannot be written",
                             file);
        }
    }
    bp_rule_set_drop(old);
    bp_rule_set_drop(set);
    free(copy);
    return status;
}

bugpack_status bp_redaction_use_at_call(bp_redaction *redaction, bp_at_call *at_call,
                                        bugpack_error *error) {
    bp_rule_set *set = NULL;
    bugpack_status status = bp_redaction_hold(redaction, &set, error);
    if (status == BUGPACK_OK) {
        status = bp_at_call_use(at_call, set, error);
        bp_rule_set_drop(set);
    }
    redaction->at_call = status == BUGPACK_OK ? at_call : NULL;
    return status;
}

const bp_tag_key *bp_redaction_key(const bp_redaction *redaction) {
    return redaction->at_call != NULL ? bp_at_call_key(redaction->at_call) : NULL;
}

bugpack_status bp_redaction_hold(bp_redaction *redaction, bp_rule_set **ret_set,
                                 bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    if (redaction->is_off) {
        *ret_set = NULL;
        return BUGPACK_OK;
    }
    bp_lock_acquire(&redaction->lock);
    if (redaction->set == NULL) {
        status = bp_rule_set_of_texts("the rules of this session", redaction->texts,
                                      redaction->text_count, &redaction->set, error);
    }
    if (status == BUGPACK_OK) {
        *ret_set = bp_rule_set_retain(redaction->set);
    }
    bp_lock_release(&redaction->lock);
    return status;
}

/* One text of a dead session; false where there is no more. */
static bool load_text(int dir_fd, unsigned number, bp_redaction *redaction,
                      bugpack_status *ret_status, bugpack_error *error) {
    char name[file_name_bytes];
    bp_buffer text;
    int fd = -1;
    (void)snprintf(name, sizeof name, TEXT_FILE_FORMAT, number);
    fd = bp_session_file_open(dir_fd, name);
    if (fd < 0 && errno == ENOENT) {
        return false;
    }
    bp_buffer_init(&text, BP_RULE_TEXT_MAX);
    *ret_status = fd < 0 ? bp_fail_errno(error, errno, "cannot read \"%s\"", name)
                         : bp_file_read_fd(fd, name, &text, error);
    bp_file_close(fd);
    if (*ret_status == BUGPACK_OK) {
        *ret_status = bp_redaction_add(redaction, "the rules of the dead session",
                                       bp_buffer_text(&text), text.size, error);
    }
    bp_buffer_release(&text);
    return *ret_status == BUGPACK_OK;
}

bugpack_status bp_redaction_load(int dir_fd, const bp_redaction *with, bp_redaction **ret_redaction,
                                 bugpack_error *error) {
    bp_redaction *redaction = NULL;
    int off_fd = bp_session_file_open(dir_fd, OFF_FILE);
    bool is_off = with != NULL ? with->is_off : off_fd >= 0;
    bp_file_close(off_fd);
    bugpack_status status = bp_redaction_new(is_off, NULL, &redaction, error);
    for (unsigned i = 0; status == BUGPACK_OK && i < BP_REDACTION_TEXTS_MAX; i++) {
        if (!load_text(dir_fd, i, redaction, &status, error)) {
            break;
        }
    }
    for (unsigned i = 0; status == BUGPACK_OK && with != NULL && i < with->text_count; i++) {
        status = bp_redaction_add(redaction, "the rules of this session", with->texts[i],
                                  strlen(with->texts[i]), error);
    }
    if (status != BUGPACK_OK) {
        bp_redaction_free(redaction);
        return status;
    }
    *ret_redaction = redaction;
    return BUGPACK_OK;
}
