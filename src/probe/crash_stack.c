/*
 * The backtrace of a process that has died.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "probe/stack_unwind.h"

#if defined(__aarch64__)
enum { arch = BP_CRASH_ARCH_AARCH64, register_count = 32, counter_number = 32 };
#else
enum { arch = BP_CRASH_ARCH_X86_64, register_count = 16, counter_number = 16 };
#endif

static void take_registers(const bp_crash_page *page, bp_thread_copy *copy) {
    memcpy(copy->registers, page->registers, register_count * sizeof copy->registers[0]);
    copy->register_count = register_count;
    copy->program_counter = page->registers[counter_number];
    copy->stack_pointer = page->stack_start;
    copy->stack_bytes = (size_t)page->stack_bytes;
    memcpy(copy->stack, page->stack, copy->stack_bytes);
}

static bugpack_status open_files(bp_unwinder *unwinder, bugpack_error *error) {
    int result = bp_stack_files_open(unwinder->files);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot read what the process ran");
    }
    if (unwinder->files->count == 0) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "the files that the process ran are not known");
    }
    return bp_unwinder_open(unwinder, error);
}

static bugpack_status unwind(const bp_crash_page *page, bp_unwinder *unwinder,
                             bugpack_error *error) {
    bp_thread_copy *copy = &unwinder->blocked.copy;
    bp_stack_thread *thread = calloc(1, sizeof *thread);
    unwinder->out.threads = thread;
    if (thread == NULL) {
        return bp_fail_memory(error, "read a stack");
    }
    unwinder->out.thread_count = 1;
    unwinder->out.pid = (uint64_t)page->pid;
    *thread = (bp_stack_thread){.tid = (uint64_t)page->tid, .state = BP_STACK_BLOCKED};
    memcpy(thread->name, page->thread_name, sizeof page->thread_name);
    take_registers(page, copy);
    bp_unwind_copy(unwinder, thread);
    return !unwinder->has_failed && bp_unwinder_finish(unwinder)
               ? BUGPACK_OK
               : bp_fail_memory(error, "read a stack");
}

bugpack_status bp_stacks_read_crash(const bp_crash_page *page, const bp_stacks_plan *plan,
                                    bool is_host, bp_stacks *ret_stacks, bugpack_error *error) {
    bp_stack_files files = {.dw = bp_libdw_get(error), .dead = page, .is_host = is_host};
    bp_unwinder unwinder = {.dw = files.dw,
                            .plan = plan,
                            .files = &files,
                            .blocked = {.pid = (pid_t)page->pid, .threads_fd = -1}};
    if (files.dw == NULL) {
        return BUGPACK_ERR_UNSUPPORTED;
    }
    if (!bp_unwinder_has_room()) {
        return bp_fail_memory(error, "read a stack");
    }
    if (page->arch != arch || page->register_count <= counter_number || page->pid <= 0 ||
        page->pid > INT32_MAX || page->tid <= 0 || page->tid > INT32_MAX) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the process ran on another processor");
    }
    int process_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (process_fd < 0) {
        return bp_fail_errno(error, errno, "cannot read files of the process");
    }
    files.process_fd = process_fd;
    bugpack_status status = open_files(&unwinder, error);
    if (status == BUGPACK_OK) {
        status = unwind(page, &unwinder, error);
    }
    bp_stack_files_close(&files);
    bp_unwinder_release(&unwinder);
    bp_file_close(process_fd);
    if (status == BUGPACK_OK) {
        *ret_stacks = unwinder.out;
    } else {
        bp_stacks_release(&unwinder.out);
    }
    return status;
}
