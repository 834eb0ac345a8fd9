#include "report/python_traceback.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "platform/linux/proc_text.h"

static const size_t frame_max = 10000; /* far above 100 threads with 100 functions each */

/* A thread's number is the address of glibc's struct pthread, which is in the mapping of the stack
 * that glibc made; the first thread's is elsewhere. */
static bool is_in_same_mapping(const bp_crash_page *page, uint64_t one, uint64_t other) {
    bp_proc_scan scan = {page->maps, page->maps + page->maps_bytes};
    bp_proc_map map;
    while (bp_proc_take_map(&scan, &map)) {
        if (one >= map.start && one < map.end) {
            return other >= map.start && other < map.end;
        }
    }
    return false;
}

/* 0 where it is not known. */
static int64_t find_tid(const bp_crash_page *page, uint64_t number) {
    int64_t first = page->pid != page->tid ? page->pid : 0;
    for (uint32_t i = 0; i < page->thread_count; i++) {
        const bp_crash_thread *thread = &page->threads[i];
        if (thread->stack_pointer == 0) { /* it may be that one */
            first = 0;
        } else if (is_in_same_mapping(page, number, thread->stack_pointer)) {
            return thread->tid;
        }
    }
    return first;
}

/* NULL for a thread that is not known, or has its functions. */
static bp_stack_thread *find_thread(bp_stacks *stacks, int64_t tid) {
    for (size_t i = 0; tid != 0 && i < stacks->thread_count; i++) {
        if (stacks->threads[i].tid == (uint64_t)tid && stacks->threads[i].python_count == 0) {
            stacks->threads[i].first_python = stacks->python_frame_count;
            return &stacks->threads[i];
        }
    }
    return NULL;
}

/* `line` is behind "  File \"": a path, "\", line ", a number or "???", " in ", and the function.
 */
static void add_frame(bp_stacks *stacks, size_t *capacity, bp_stack_thread *thread,
                      bp_proc_scan line) {
    static const char number_mark[] = "\", line ", name_mark[] = " in ";
    size_t left = (size_t)(line.end - line.next);
    const char *path_end = memmem(line.next, left, number_mark, sizeof number_mark - 1);
    bp_proc_scan rest = {path_end != NULL ? path_end + sizeof number_mark - 1 : line.end, line.end};
    const char *name =
        memmem(rest.next, (size_t)(rest.end - rest.next), name_mark, sizeof name_mark - 1);
    uint64_t number = 0;
    if (name == NULL || stacks->python_frame_count == frame_max ||
        !bp_array_reserve(&stacks->python_frames, stacks->python_frame_count, capacity)) {
        return;
    }
    name += sizeof name_mark - 1;
    bool has_number = bp_proc_take_number(&rest, 10, &number) && number <= INT32_MAX;
    bp_python_frame frame = {.function = strndup(name, (size_t)(line.end - name)),
                             .source = strndup(line.next, (size_t)(path_end - line.next)),
                             .line = has_number ? (int)number : 0};
    if (frame.function == NULL) {
        free(frame.source);
        return;
    }
    stacks->python_frames[stacks->python_frame_count++] = frame;
    thread->python_count++;
}

void bp_python_traceback_add(const char *text, size_t text_bytes, const bp_crash_page *page,
                             bp_stacks *stacks) {
    bp_proc_scan scan = {text, text + text_bytes}, line;
    bp_stack_thread *thread = NULL;
    size_t capacity = stacks->python_frame_count;
    while (bp_proc_take_line(&scan, &line)) {
        uint64_t number;
        bool is_current = bp_proc_take_text(&line, "Current thread 0x");
        if ((is_current || bp_proc_take_text(&line, "Thread 0x")) &&
            bp_proc_take_number(&line, 16, &number)) {
            thread = find_thread(stacks, is_current ? page->tid : find_tid(page, number));
        } else if (thread != NULL && bp_proc_take_text(&line, "  File \"")) {
            add_frame(stacks, &capacity, thread, line);
        } else if (thread != NULL && bp_proc_take_text(&line, "  ...")) {
            thread->python_reason = "faulthandler lists no more functions";
        } else if (line.next < line.end && line.next[0] != ' ') {
            thread = NULL;
        }
    }
}
