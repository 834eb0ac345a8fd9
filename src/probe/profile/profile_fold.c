#include "profile/profile_fold.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/thread.h"

enum { thread_max = 4096, word_max = 4 << 20, line_max_bytes = 256 << 10, head_words = 2 };
static const uint32_t kernel_mark = (uint32_t)1 << 31, cut_mark = (uint32_t)1 << 30;

/* A process that maps code all the time, as one with a JIT, is not listed anew each time. */
static const uint64_t least_reopen_ns = 250 * BP_NS_PER_MS;

static bool fail(bp_profile_fold *fold, bugpack_status status) {
    fold->status = status;
    return false;
}

static bool open_fold(bp_profile_fold *fold) {
    if (fold->is_open || fold->status != BUGPACK_OK) {
        return fold->status == BUGPACK_OK;
    }
    fold->unwinder = (bp_unwinder){.deadline_ns = fold->deadline_ns,
                                   .pid = fold->pid,
                                   .files = {.pid = fold->pid, .stop = fold->stop},
                                   .out = {.pid = (uint64_t)fold->pid}};
    fold->is_open = true;
    fold->is_stale = false;
    fold->opened_ns = bp_clock_monotonic_ns();
    bugpack_status status = bp_unwinder_init(&fold->unwinder, &fold->error);
    if (status == BUGPACK_OK) {
        status = bp_unwinder_open(&fold->unwinder, fold->birth, &fold->error);
    }
    return status == BUGPACK_OK || fail(fold, status);
}

/* So that a function without a name is one frame, and not one for each of its instructions. */
static uint64_t bytes_into_function(const bp_profile_fold *fold, const bp_stack_place *place) {
    uint64_t address = place->address - (place->is_call ? 1 : 0);
    bp_stack_file *file = place->symbol == NULL && place->module != BP_STACK_NO_MODULE
                              ? bp_stack_files_find(&fold->unwinder.files, address)
                              : NULL;
    return file != NULL ? place->address - bp_stack_file_function(file, address) : 0;
}

/* The text of a place, which many samples share: its function, and those that were inlined there.
 */
static const char *place_text(const bp_profile_fold *fold, uint32_t place, char **texts,
                              bp_buffer *line) {
    const bp_stacks *stacks = &fold->unwinder.out;
    if (texts[place] == NULL) {
        const bp_stack_frame frame = {.place = place};
        bp_buffer_clear(line);
        for (size_t i = stacks->places[place].inlined_count + 1; i-- > 0;) {
            bp_frame_text text = bp_stacks_frame_text(stacks, &frame, i);
            text.file_address -= bytes_into_function(fold, &stacks->places[place]);
            bp_folded_append_frame(line, &text);
        }
        texts[place] = line->status == BUGPACK_OK ? strdup(bp_buffer_text(line)) : NULL;
    }
    return texts[place];
}

static bugpack_status add_line(bp_profile_fold *fold, const uint32_t *words, char **texts,
                               bp_buffer *one, bp_buffer *line) {
    const uint32_t count = words[1];
    const bp_sampled_thread *thread = &fold->threads[words[0] & ~(kernel_mark | cut_mark)];
    bp_buffer_clear(line);
    bp_folded_append_thread(line, thread->name, sizeof thread->name);
    if (words[0] & cut_mark) {
        (void)bp_buffer_append_text(line, ";" BP_PROFILE_CUT);
    }
    for (uint32_t i = count; i-- > 0;) {
        const char *text = place_text(fold, words[head_words + i], texts, one);
        if (text == NULL) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        (void)bp_buffer_append_text(line, text);
    }
    if (words[0] & kernel_mark) {
        (void)bp_buffer_append_text(line, ";" BP_PROFILE_KERNEL);
    }
    return line->status == BUGPACK_OK ? bp_folded_add(&fold->out->folded, line->data, line->size, 1)
                                      : line->status;
}

/* Turns the samples so far into lines, as the places that they name are of one list of files. */
static void end_unwinder(bp_profile_fold *fold, uint64_t symbols_until_ns) {
    bp_unwinder *unwinder = &fold->unwinder;
    bp_buffer one, line;
    bp_buffer_init(&one, line_max_bytes);
    bp_buffer_init(&line, line_max_bytes);
    char **texts = NULL;
    if (fold->status == BUGPACK_OK && fold->word_count > 0) {
        fold->status = bp_unwinder_check(unwinder, &fold->error);
        texts = calloc(unwinder->out.place_count + 1, sizeof *texts);
        if (fold->status == BUGPACK_OK &&
            (texts == NULL ||
             !bp_stacks_describe(&unwinder->files, symbols_until_ns, &unwinder->out))) {
            (void)fail(fold, BUGPACK_ERR_NO_MEMORY);
        }
    }
    for (size_t at = 0; fold->status == BUGPACK_OK && at < fold->word_count;
         at += head_words + fold->words[at + 1]) {
        bugpack_status status = add_line(fold, fold->words + at, texts, &one, &line);
        if (status == BUGPACK_OK) {
            fold->out->facts.sample_count++;
        } else if (status == BUGPACK_ERR_LIMIT) {
            fold->out->facts.lost_count++;
        } else {
            (void)fail(fold, status);
        }
    }
    for (size_t i = 0; texts != NULL && i < unwinder->out.place_count; i++) {
        free(texts[i]);
    }
    free(texts);
    bp_buffer_release(&one);
    bp_buffer_release(&line);
    bp_unwinder_release(unwinder);
    fold->word_count = 0;
    fold->is_open = false;
}

/* A name that cannot be read any more is said to be unknown. */
static void read_name(const bp_profile_fold *fold, bp_sampled_thread *thread) {
    ssize_t length = bp_proc_read_at(fold->unwinder.task_fd, thread->name, sizeof thread->name - 1,
                                     "%d/comm", (int)thread->tid);
    if (length <= 0) {
        memcpy(thread->name, BP_PROFILE_ENDED, sizeof BP_PROFILE_ENDED);
        return;
    }
    thread->name[length - (thread->name[length - 1] == '\n')] = '\0';
    thread->is_ours = fold->pid == getpid() && bp_thread_is_own(thread->name);
}

/* The index of the thread; SIZE_MAX without memory, or beyond the bound. */
static size_t find_thread(bp_profile_fold *fold, int32_t tid) {
    for (size_t i = 0; i < fold->thread_count; i++) {
        if (fold->threads[i].tid == tid) {
            return i;
        }
    }
    if (fold->thread_count == thread_max ||
        !bp_array_reserve(&fold->threads, fold->thread_count, &fold->thread_capacity)) {
        return SIZE_MAX;
    }
    bp_sampled_thread *thread = &fold->threads[fold->thread_count];
    *thread = (bp_sampled_thread){.tid = tid};
    read_name(fold, thread);
    fold->out->facts.thread_count += !thread->is_ours;
    return fold->thread_count++;
}

static bool push(bp_profile_fold *fold, uint32_t word) {
    if (fold->word_count == word_max ||
        !bp_array_reserve(&fold->words, fold->word_count, &fold->word_capacity)) {
        return false;
    }
    fold->words[fold->word_count++] = word;
    return true;
}

/* Unwinds a copy, and keeps the places. False where there is no room. */
static bool keep(bp_profile_fold *fold, size_t thread, bool has_stack, uint32_t marks) {
    bp_unwinder *unwinder = &fold->unwinder;
    bp_stack_thread unwound = {.tid = (uint64_t)fold->threads[thread].tid};
    const size_t before = fold->word_count;
    if (has_stack) {
        bp_unwinder_unwind(unwinder, &unwound);
    }
    if (has_stack ? unwound.reason[0] != '\0' : (marks & kernel_mark) == 0) {
        marks |= cut_mark;
    }
    bool is_kept = !unwinder->has_failed && push(fold, (uint32_t)thread | marks) &&
                   push(fold, (uint32_t)unwound.frame_count);
    for (size_t i = 0; is_kept && i < unwound.frame_count; i++) {
        is_kept = push(fold, unwinder->out.frames[i].place);
    }
    bp_unwinder_forget(unwinder, &unwound);
    fold->word_count = is_kept ? fold->word_count : before;
    return is_kept;
}

static void take_sample(bp_profile_fold *fold, const bp_perf_record *record) {
    const uint64_t now_ns = bp_clock_monotonic_ns();
    if (fold->is_open && fold->is_stale && now_ns - fold->opened_ns > least_reopen_ns) {
        end_unwinder(fold, fold->deadline_ns);
    }
    if (!open_fold(fold)) {
        return;
    }
    size_t thread = find_thread(fold, record->tid);
    if (thread != SIZE_MAX && fold->threads[thread].is_ours) {
        return;
    }
    bool has_stack = record->has_registers;
    if (has_stack) {
        const bp_perf_registers *set = bp_perf_registers_here();
        bp_thread_copy *copy = &fold->unwinder.copy;
        memcpy(copy->registers, record->registers, sizeof copy->registers);
        copy->register_count = set->count < BP_REGISTER_MAX ? set->count : BP_REGISTER_MAX;
        copy->stack_pointer = record->registers[set->stack_pointer];
        copy->program_counter = record->registers[set->program_counter];
        copy->stack_bytes = record->stack_bytes;
        memcpy(copy->stack, record->stack, record->stack_bytes);
        copy->pid = 0; /* the thread has run on since */
        copy->has_read_more = false;
    }
    if (thread == SIZE_MAX || now_ns > fold->deadline_ns ||
        !keep(fold, thread, has_stack, record->is_kernel ? kernel_mark : 0)) {
        fold->out->facts.lost_count++;
    }
}

void bp_profile_fold_take(bp_profile_fold *fold, const bp_perf_record *record) {
    if (record->kind == BP_PERF_LOST) {
        fold->out->facts.lost_count += record->lost;
    } else if (record->kind == BP_PERF_MAPPED) {
        fold->is_stale = true;
    } else if (record->kind == BP_PERF_SAMPLE && record->pid == fold->pid) {
        take_sample(fold, record);
    }
}

bugpack_status bp_profile_fold_end(bp_profile_fold *fold, uint64_t symbols_until_ns,
                                   bugpack_error *error) {
    if (fold->is_open) {
        end_unwinder(fold, symbols_until_ns);
    }
    free(fold->threads);
    free(fold->words);
    if (fold->status == BUGPACK_ERR_NO_MEMORY) {
        return bp_fail_memory(error, "profile a process");
    }
    if (fold->status != BUGPACK_OK && error != NULL) {
        *error = fold->error;
    }
    return fold->status;
}
