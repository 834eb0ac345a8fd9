#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "inspect/summary.h"
#include "inspect/summary_names.h"

static void take_over(bp_summary *summary, const bp_summary *of_process, bp_summary_process *row) {
    row->pid = of_process->pid;
    memcpy(row->name, of_process->process_name, sizeof row->name);
    row->has_metrics = of_process->has_metrics;
    row->has_rss = of_process->has_rss;
    row->cpu_percent = of_process->cpu_percent;
    row->rss_kb = of_process->rss_kb;
    row->thread_count = of_process->thread_count;
    bp_summary_take_findings(summary, of_process);
    bp_summary_join_deadlocked(summary, of_process);
    summary->left_bytes = of_process->left_bytes;
}

/*
 * Reads the documents of the further processes of a report, and takes what is found in them over
 * into its summary.
 */
static bugpack_status read_processes(bp_summary *summary, bugpack_error *error) {
    const char *last = "";
    bp_summary *of_process = NULL;
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < bp_report_file_count(summary->report); i++) {
        const char *entry = bp_report_file_name(summary->report, i);
        size_t length = bp_report_folder_bytes(entry);
        if (length == 0 || strncmp(entry, last, length) == 0) {
            continue; /* the entries of a process follow each other */
        }
        last = entry;
        bp_summary_process *row = &summary->processes[summary->process_count];
        if (length >= sizeof row->folder || summary->process_count == BP_SUMMARY_PROCESS_MAX) {
            summary->other_process_count++;
            continue;
        }
        *row = (bp_summary_process){.pid = 0};
        memcpy(row->folder, entry, length);
        of_process = of_process != NULL ? of_process : malloc(sizeof *of_process);
        status = of_process == NULL
                     ? bp_fail_memory(error, "read a report")
                     : bp_summary_read_documents(summary->report, summary->path, row->folder,
                                                 &summary->finder, summary->left_bytes, of_process,
                                                 error);
        if (status == BUGPACK_OK) {
            bp_summary_judge(of_process);
            take_over(summary, of_process, row);
            bp_summary_release(of_process);
            summary->process_count++;
        }
    }
    free(of_process);
    return status;
}

static void free_finder(const bp_frame_finder *finder) {
    if (finder->free != NULL) {
        finder->free(finder->self);
    }
}

bugpack_status bp_summary_open(const char *path, uint64_t max_bytes, bool is_brief,
                               bp_frame_finder finder, bp_summary **ret_summary,
                               bugpack_error *error) {
    bp_report_file *report = NULL;
    bp_summary *summary = malloc(sizeof *summary);
    bugpack_status status = summary == NULL ? bp_fail_memory(error, "read a report")
                                            : bp_report_file_open_any(path, &report, error);
    if (status == BUGPACK_OK) {
        status = is_brief ? bp_summary_read_documents(report, path, "", &finder, max_bytes, summary,
                                                      error)
                          : bp_summary_read(report, path, &finder, max_bytes, summary, error);
    }
    if (status == BUGPACK_OK) {
        status = read_processes(summary, error);
        if (status != BUGPACK_OK) {
            bp_summary_release(summary);
        }
    }
    if (status != BUGPACK_OK) {
        free_finder(&finder);
        bp_report_file_close(report);
        free(summary);
        return status;
    }
    bp_summary_judge(summary);
    *ret_summary = summary;
    return BUGPACK_OK;
}

void bp_summary_close(bp_summary *summary) {
    if (summary != NULL) {
        bp_report_file *report = summary->report;
        free_finder(&summary->finder);
        bp_summary_release(summary);
        bp_report_file_close(report);
        free(summary);
    }
}
