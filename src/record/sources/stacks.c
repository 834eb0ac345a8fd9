/*
 * stacks.json and stacks.txt: the stacks of the threads, read once for both.
 */
#include "stacks/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/file.h"
#include "base/status.h"
#include "report/stacks_entries.h"
#include "sources/source.h"

/* The shares of the provider's time after which no more threads are read, and no symbols sought. */
static const unsigned reading_share_percent = 40;
static const unsigned symbols_share_percent = 60;

/* The limit of either entry. */
static const size_t most_bytes = (size_t)64 << 20;

/* The stacks to read. */
struct reading {
    pid_t pid;
    const bp_crash_page *crash; /* those as it crashed; NULL: as they are now */
    bp_stacks_plan plan;
};

static bugpack_status plan_reading(const bp_source *source, const bugpack_writer *writer,
                                   struct reading *ret_reading, bugpack_error *error) {
    bp_subject_process *processes = NULL;
    size_t count;
    bp_stacks_plan plan = {.deadline_ns = bp_source_deadline_ns(source, reading_share_percent),
                           .symbols_until_ns = bp_source_deadline_ns(source, symbols_share_percent),
                           .stops_threads = source->stacks != BUGPACK_STACKS_BLOCKED,
                           .helper_path = source->helper_path,
                           .is_helper_ptracer = source->stacks == BUGPACK_STACKS_ALL_PTRACER,
                           .stop = &writer->is_abandoned};
    pid_t pid = source->subject->target.pid;
    bugpack_status status = BUGPACK_OK;
    const bp_crash_page *crash = atomic_load(&source->subject->crash);
    if (pid != 0 && crash == NULL) {
        status = bp_subject_list(source->subject, &processes, &count, error);
        plan.birth = status == BUGPACK_OK ? processes[0].birth : 0;
        free(processes);
    }
    *ret_reading = (struct reading){pid, crash, plan};
    return status == BUGPACK_OK && crash == NULL ? bp_subject_check_program(source->subject, error)
                                                 : status;
}

/* Takes no lock of ours, for the child. */
static bugpack_status print_stacks(const struct reading *reading, bugpack_writer *writer,
                                   bp_buffer *text, bugpack_error *error) {
    bp_stacks stacks = {.threads = NULL};
    bugpack_status status =
        reading->crash != NULL
            ? bp_stacks_read_crash(reading->crash, &reading->plan, false, &stacks, error)
            : bp_stacks_read(reading->pid, &reading->plan, &stacks, error);
    if (status == BUGPACK_OK) {
        status = bp_stacks_write(&stacks, writer, text, error);
    }
    bp_stacks_release(&stacks);
    return status;
}

/* The answer of a child process, beside the bytes of both entries. */
struct answer {
    bugpack_status status;
    bugpack_error error;
    bp_manifest_line line;
    size_t json_bytes;
};

static void print_in_child(const void *reading, void *ret_answer, int out_fd) {
    struct answer *answer = ret_answer;
    bugpack_writer writer;
    bp_buffer text;
    bp_writer_init(&writer, most_bytes);
    bp_buffer_init(&text, most_bytes);
    answer->error = (bugpack_error)BUGPACK_ERROR_INIT;
    answer->status = print_stacks(reading, &writer, &text, &answer->error);
    answer->line = writer.line;
    answer->json_bytes = writer.content.size;
    if (answer->status == BUGPACK_OK) {
        (void)bp_file_write_all(out_fd, writer.content.data, writer.content.size);
        (void)bp_file_write_all(out_fd, text.data, text.size);
    }
}

static bugpack_status describe_end(bugpack_status status, int wait_status, bugpack_error *error) {
    if (status == BUGPACK_ERR_IO && WIFSIGNALED(wait_status)) {
        return bp_fail(error, status, "the unwinder died by signal %d", WTERMSIG(wait_status));
    }
    if (status == BUGPACK_ERR_IO && WEXITSTATUS(wait_status) != 0) {
        return bp_fail(error, status, "the unwinder ended with status %d",
                       WEXITSTATUS(wait_status));
    }
    return bp_fail(error, status, "cannot read stacks: %s", bugpack_status_name(status));
}

/* libdw dies, or ends its process, where an allocation fails, and may on a broken file. */
static bugpack_status print_aside(bp_aside_runner *run_aside, const bp_source *source,
                                  const struct reading *reading, bugpack_writer *writer,
                                  bp_buffer *text, bugpack_error *error) {
    const bp_aside aside = {.work = print_in_child,
                            .context = reading,
                            .answer_bytes = sizeof(struct answer),
                            .stall_ms = source->timeout_ms,
                            .is_cancelled = bp_writer_is_abandoned,
                            .observed = writer};
    bp_child child = {.pid = 0};
    struct answer answer;
    bp_buffer both;
    bp_buffer_init(&both, 2 * most_bytes);
    bp_stacks_prepare_children();
    bugpack_status status = run_aside(&aside, bp_buffer_sink, &both, &answer, &child);
    if (status == BUGPACK_ERR_UNSUPPORTED) {
        status = print_stacks(reading, writer, text, error);
    } else if (status != BUGPACK_OK) {
        status = describe_end(status, child.wait_status, error);
    } else if (answer.status != BUGPACK_OK) {
        *error = answer.error;
        status = answer.status;
    } else {
        size_t json_bytes = answer.json_bytes;
        writer->line = answer.line;
        if (json_bytes > both.size ||
            bp_buffer_append(&writer->content, both.data, json_bytes) != BUGPACK_OK ||
            bp_buffer_append(text, both.data + json_bytes, both.size - json_bytes) != BUGPACK_OK) {
            status = bp_fail_memory(error, "read stacks");
        }
    }
    bp_buffer_release(&both);
    return status;
}

static bugpack_status new_stacks(const bp_source *source, bugpack_writer *writer,
                                 bp_stacks_text **ret_stacks, bugpack_error *error) {
    struct reading reading;
    bp_aside_runner *run_aside = source->subject->run_aside;
    bp_stacks_text *stacks = calloc(1, sizeof *stacks);
    if (stacks == NULL) {
        return bp_fail_memory(error, "read stacks");
    }
    bp_buffer_init(&stacks->text, most_bytes);
    bugpack_status status = plan_reading(source, writer, &reading, error);
    if (status == BUGPACK_OK && run_aside != NULL && reading.pid != getpid()) {
        status = print_aside(run_aside, source, &reading, writer, &stacks->text, error);
    } else if (status == BUGPACK_OK) {
        status = print_stacks(&reading, writer, &stacks->text, error);
    }
    stacks->line = writer->line;
    if (status == BUGPACK_OK) {
        *ret_stacks = stacks;
    } else {
        bp_source_free_stacks(stacks);
    }
    return status;
}

int bp_source_stacks_json(bugpack_writer *writer, void *context) {
    bp_source *source = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_stacks_text *stacks = NULL;
    bp_source_free_stacks(atomic_exchange(&source->stacks_left, NULL));
    bugpack_status status = new_stacks(source, writer, &stacks, &error);
    /* Once this call was given up, the second provider may have to do with a later report. */
    if (status == BUGPACK_OK && !atomic_load(&writer->is_abandoned)) {
        stacks = atomic_exchange(&source->stacks_left, stacks);
    }
    bp_source_free_stacks(stacks);
    return bp_source_end(writer, status, &error);
}

int bp_source_stacks_text(bugpack_writer *writer, void *context) {
    bp_source *source = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_stacks_text *stacks = atomic_exchange(&source->stacks_left, NULL);
    bugpack_status status =
        source->without_stacks_json ? new_stacks(source, writer, &stacks, &error) : BUGPACK_OK;
    if (status != BUGPACK_OK) {
        return bp_source_end(writer, status, &error);
    }
    if (stacks == NULL) {
        bp_writer_refuse(writer, BP_ARTEFACT_OMITTED, "stacks.json has no stacks either");
        writer->line.is_missing = false;
        return 0;
    }
    writer->line = stacks->line;
    bp_buffer_move(&writer->content, &stacks->text);
    bp_source_free_stacks(stacks);
    return 0;
}
