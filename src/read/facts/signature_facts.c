#include "facts/signature_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "entries/frames.h"
#include "model/entry.h"

/* Stacks of stacks.json that are looked for. */
typedef struct wanted_stacks {
    const uint64_t *tids;
    size_t count;
    bp_signature_stack stacks[BP_SIGNATURE_STACK_MAX];
} wanted_stacks;

/* A bp_json_tree_taker. */
static bugpack_status take_stack(void *context, bp_json_tree *row, bugpack_error *error) {
    wanted_stacks *wanted = context;
    uint64_t tid = bp_json_tree_uint_or(row, "tid", 0);
    (void)error;
    for (size_t i = 0; i < wanted->count; i++) {
        if (wanted->tids[i] == tid) {
            wanted->stacks[i] = (bp_signature_stack){.is_over = false};
            bp_frames_sign(row, &wanted->stacks[i]);
        }
    }
    return BUGPACK_OK;
}

/* An entry that cannot be read leaves the signature weak; a finding says that it is not whole. */
static void read_stacks(const bp_report_file *report, const char *folder, uint64_t max_bytes,
                        wanted_stacks *wanted) {
    const bp_json_tree_list lists[] = {{"threads", take_stack, false}, {NULL, NULL, false}};
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t byte_count = 0;
    char path[128];
    (void)snprintf(path, sizeof path, "%sstacks.json", folder);
    if (wanted->count > 0 && bp_report_file_has(report, path, &byte_count) &&
        byte_count <= max_bytes) {
        (void)bp_report_file_each(report, path, lists, wanted, NULL, &error);
    }
}

static void sign_crash(const bp_evidence *evidence, bp_signature *ret_signature) {
    bp_signature_stack stack = {.is_over = false};
    bp_frames_sign(bp_json_tree_object(evidence->crash, "backtrace"), &stack);
    bp_signature_make(ret_signature, "crash", bp_json_tree_text_or(evidence->crash, "name", ""),
                      false, &stack, 1);
}

static void sign_hang(const bp_evidence *evidence, bp_signature *ret_signature) {
    const bp_json_tree *thread = bp_json_tree_object(evidence->hang, "thread");
    const uint64_t tid = bp_json_tree_uint_or(thread, "tid", 0);
    wanted_stacks wanted = {.tids = &tid, .count = 1};
    read_stacks(evidence->report, "", evidence->left_bytes, &wanted);
    bp_signature_make(ret_signature, "hang", bp_json_tree_text_or(evidence->hang, "name", ""),
                      false, wanted.stacks, 1);
}

static void sign_disconnect(const bp_evidence *evidence, bp_signature *ret_signature) {
    char detail[128];
    const char *kind = bp_json_tree_text_or(evidence->disconnect, "error_kind", "");
    (void)snprintf(detail, sizeof detail, "%.64s%s%.56s",
                   bp_json_tree_text_or(evidence->disconnect, "channel", ""),
                   kind[0] != '\0' ? " " : "", kind);
    bp_signature_make(ret_signature, "disconnect", detail, kind[0] != '\0', NULL, 0);
}

void bp_sign_trigger(const bp_evidence *evidence, bp_signature *ret_signature) {
    const bp_json_tree *metadata = evidence->metadata;
    const char *stored = bp_json_tree_text(metadata, "signature");
    const char *gap_key = bp_json_tree_text(metadata, "gap_key");
    const bp_json_tree *condition = bp_json_tree_object(metadata, "condition");
    if (stored != NULL) {
        bp_utf8_copy(ret_signature->text, sizeof ret_signature->text, stored);
        ret_signature->is_weak = bp_json_tree_is_true(metadata, "weak_signature");
    } else if (condition != NULL) {
        bp_signature_make(ret_signature, "condition", bp_json_tree_text_or(condition, "text", ""),
                          false, NULL, 0);
    } else if (evidence->crash != NULL) {
        sign_crash(evidence, ret_signature);
    } else if (evidence->hang != NULL) {
        sign_hang(evidence, ret_signature);
    } else if (evidence->disconnect != NULL) {
        sign_disconnect(evidence, ret_signature);
    } else if (gap_key != NULL) {
        bp_signature_make(ret_signature, "gap", gap_key, true, NULL, 0);
    } else {
        ret_signature->text[0] = '\0';
    }
}

/* --- diagnoses ---------------------------------------------------------------------------- */

/* False for what is about the machine or the report, and for what was found in the log, the history
 * or the stacks, which are not read in brief. */
static bool is_about_program(bp_diagnosis diagnosis) {
    static const bp_diagnosis others[] = {
        BP_DIAGNOSIS_NOT_FOUND,     BP_DIAGNOSIS_LIBRARY,        BP_DIAGNOSIS_CHILD_KILLED,
        BP_DIAGNOSIS_OOM_KILLED,    BP_DIAGNOSIS_LAST_WORDS,     BP_DIAGNOSIS_DISK_FULL,
        BP_DIAGNOSIS_LOG_DISK_FULL, BP_DIAGNOSIS_INODES_FULL,    BP_DIAGNOSIS_DISK_READ_ONLY,
        BP_DIAGNOSIS_TRIGGERS,      BP_DIAGNOSIS_FILE_LOCK_ASKED};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (diagnosis == others[i]) {
            return false;
        }
    }
    return diagnosis < BP_DIAGNOSIS_THROTTLED;
}

/* "worker-#" of "worker-12". */
static void print_name(const char *name, char out[64]) {
    size_t length = 0;
    for (const char *at = name; *at != '\0' && length < 63; at++) {
        bool is_digit = *at >= '0' && *at <= '9';
        if (!is_digit || length == 0 || out[length - 1] != '#') {
            out[length++] = is_digit ? '#' : *at;
        }
    }
    out[length] = '\0';
}

void bp_sign_findings(const bp_report_file *report, const bp_findings *findings, uint64_t max_bytes,
                      bp_signature *ret_signature) {
    const bp_finding *finding = findings->rows, *end = finding + findings->count;
    char folder[128] = "", detail[80] = "", name[64];
    while (finding < end && !is_about_program(finding->diagnosis)) {
        finding++;
    }
    if (finding == end) {
        ret_signature->text[0] = '\0';
        return;
    }
    bp_diagnosis diagnosis = finding->diagnosis;
    bool is_running = diagnosis == BP_DIAGNOSIS_SPIN || diagnosis == BP_DIAGNOSIS_SPIN_CALLS;
    wanted_stacks wanted = {.tids = finding->tids, .count = is_running ? 0 : finding->tid_count};
    size_t folder_bytes = bp_entry_folder_bytes(finding->entry);
    memcpy(folder, finding->entry, folder_bytes);
    folder[folder_bytes] = '\0';
    read_stacks(report, folder, max_bytes, &wanted);
    if (is_running && finding->thread_name[0] != '\0') {
        print_name(finding->thread_name, name);
        (void)snprintf(detail, sizeof detail, "of thread %s", name);
    }
    bp_signature_make(ret_signature, bp_diagnoses[diagnosis].id, detail, detail[0] != '\0',
                      wanted.stacks, wanted.count);
}
