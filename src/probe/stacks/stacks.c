#include "stacks/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/thread_reader.h"
#include "process/python_frames.h"
#include "process/remote_memory.h"
#include "stacks/unwinder.h"

enum { attempt_max = 5 };

/* Reads the threads of one process. */
struct reader {
    bp_unwinder unwinder;
    const bp_stacks_plan *plan;
    bp_stop_helper helper; /* of our own process, once it is needed */
    bool was_helper_started;
    bp_python_layout python;
    bp_python_thread *python_threads; /* NULL: not a program of Python */
    size_t python_thread_count, python_capacity;
    char *text; /* of one file, BP_THREAD_TEXT_BYTES; likewise */
};

/* A bp_memory_reader. */
static bool read_python_memory(void *context, uint64_t address, void *out, size_t bytes) {
    const bp_unwinder *unwinder = context;
    return bp_remote_read_one(unwinder->files.pid, address, out, bytes) == 0;
}

/* libpython3.11.so.1.0, python3.11, or an executable that has Python in it. */
static bool may_be_python(const char *path, const char *executable) {
    const char *name = bp_file_base_name(path);
    return strncmp(name, "libpython", 9) == 0 || strncmp(name, "python", 6) == 0 ||
           strcmp(path, executable) == 0;
}

static bp_python_support read_python_layout(struct reader *reader, bp_mapped_file *file) {
    bp_elf_object object;
    uint64_t code;
    bool is_there;
    int fd = bp_mapped_file_open(reader->unwinder.files.process_fd, file, &is_there);
    bp_python_support support = BP_PYTHON_NONE;
    if (fd >= 0 && bp_elf_object_read(fd, &object) == BP_ELF_OK &&
        bp_elf_code_address(&object, &code) &&
        bp_python_layout_find(&object, file->code_start - code, &reader->python)) {
        support = bp_python_layout_read(&reader->python);
    }
    bp_file_close(fd);
    return support;
}

static void list_python_threads(struct reader *reader) {
    reader->text = malloc(BP_THREAD_TEXT_BYTES);
    reader->python_threads = calloc(BP_STACKS_THREAD_MAX, sizeof *reader->python_threads);
    if (reader->python_threads != NULL && reader->text != NULL) {
        reader->python_thread_count =
            bp_python_list_threads(&reader->python, reader->python_threads, BP_STACKS_THREAD_MAX);
    }
}

/* Finds the interpreter, if there is one, and its threads. */
static void find_python(struct reader *reader) {
    bp_stack_files *files = &reader->unwinder.files;
    bp_stacks *out = &reader->unwinder.out;
    bp_python_support support = BP_PYTHON_NONE;
    char executable[BP_STACK_NAME_MAX] = "";
    ssize_t length = readlinkat(files->process_fd, "exe", executable, sizeof executable - 1);
    executable[length > 0 ? length : 0] = '\0';
    reader->python.read = read_python_memory;
    reader->python.context = &reader->unwinder;
    for (size_t i = 0; support == BP_PYTHON_NONE && i < files->count; i++) {
        if (may_be_python(files->items[i].mapped.path, executable)) {
            support = read_python_layout(reader, &files->items[i].mapped);
        }
    }
    if (support == BP_PYTHON_NONE) {
        return;
    }
    if (reader->python.version != 0) {
        bp_python_print_version(reader->python.version, out->python_version);
    }
    if (support == BP_PYTHON_KNOWN) {
        list_python_threads(reader);
    }
    if (support == BP_PYTHON_UNREAD ||
        (support == BP_PYTHON_KNOWN && reader->python_thread_count == 0)) {
        (void)snprintf(out->python_reason, sizeof out->python_reason,
                       "the memory of its interpreter could not be read");
    } else if (support == BP_PYTHON_UNKNOWN) {
        bool has_version = out->python_version[0] != '\0';
        (void)snprintf(out->python_reason, sizeof out->python_reason, "bugpack does not know %s%s",
                       has_version ? "this build of Python " : "",
                       has_version ? out->python_version : "Python before 3.11");
    }
}

/* The state of a thread in Python; 0: it never ran Python. */
static uint64_t find_python_state(const struct reader *reader, uint64_t tid) {
    const bp_thread_reader files = {.dir_fd = reader->unwinder.task_fd,
                                    .task = "",
                                    .text = reader->text,
                                    .text_bytes = BP_THREAD_TEXT_BYTES};
    bp_thread_reading reading;
    uint64_t state = 0;
    if (reader->python_thread_count == 0) {
        return 0;
    }
    bp_thread_read(&files, tid, 1u << BP_GROUP_STATUS, &reading);
    tid = reading.own_tid != 0 ? reading.own_tid : tid;
    bp_thread_reading_release(&reading);
    for (size_t i = 0; state == 0 && i < reader->python_thread_count; i++) {
        state = reader->python_threads[i].tid == tid ? reader->python_threads[i].state : 0;
    }
    return state;
}

static void forget_python(bp_stacks *out, bp_stack_thread *thread) {
    while (thread->python_count > 0) {
        bp_python_frame *frame = &out->python_frames[--out->python_frame_count];
        free(frame->function);
        free(frame->source);
        thread->python_count--;
    }
    thread->python_reason = NULL;
}

/* Reads the frames of Python of the thread, whose frames are the last, once more. */
static void read_python(struct reader *reader, uint64_t state, bp_stack_thread *thread) {
    bp_stacks *out = &reader->unwinder.out;
    bp_python_stack *stack = state != 0 ? malloc(sizeof *stack) : NULL;
    forget_python(out, thread);
    thread->first_python = out->python_frame_count;
    if (stack == NULL || !bp_python_read_stack(&reader->python, state, stack)) {
        free(stack);
        return;
    }
    bp_python_move_frames(stack, out, &reader->python_capacity);
    thread->python_count = out->python_frame_count - thread->first_python;
    thread->python_reason = stack->reason[0] != '\0' ? stack->reason : NULL;
    free(stack);
}

static void set_reason(bp_stack_thread *thread, bp_stack_state state, const char *reason) {
    thread->state = state;
    (void)snprintf(thread->reason, sizeof thread->reason, "%s", reason);
}

/*
 * Copies the stack of a blocked thread between two readings of where it is, and unwinds the copy.
 * 0; EAGAIN when it ran meanwhile; or another errno.
 */
static int unwind_blocked(struct reader *reader, uint64_t python_state, bp_stack_thread *thread) {
    /* One that woke up meanwhile and waits in the same place again has another schedstat. Kernels
     * without it have no such file. */
    static const uint32_t groups = 1u << BP_GROUP_SYSCALL | 1u << BP_GROUP_SCHEDSTAT;
    bp_unwinder *unwinder = &reader->unwinder;
    bp_thread_copy *copy = &unwinder->copy;
    char text[512];
    const bp_thread_reader files = {
        .dir_fd = unwinder->task_fd, .task = "", .text = text, .text_bytes = sizeof text};
    bp_thread_reading before;
    unwinder->thread = thread;
    thread->state = BP_STACK_UNREAD;
    bp_thread_read(&files, thread->tid, groups, &before);
    int result = before.errnos[BP_GROUP_SYSCALL];
    if (result != 0) {
        return result;
    }
    if (before.syscall.place == BP_THREAD_RUNS) {
        set_reason(thread, BP_STACK_RUNNING, "it has no stack without stopping it");
        return 0;
    }
    if (before.syscall.stack_pointer == 0) { /* a kernel thread, or one that is ending */
        set_reason(thread, BP_STACK_UNREAD, "it has no stack of its own");
        return 0;
    }
    copy->stack_pointer = before.syscall.stack_pointer;
    copy->program_counter = before.syscall.program_counter;
    copy->register_count = 0;
    copy->pid = unwinder->files.pid;
    result = bp_thread_copy_stack(copy, unwinder->files.pid);
    read_python(reader, python_state, thread);
    if (!bp_thread_reader_has_stayed(&files, &before)) {
        return EAGAIN;
    }
    if (result != 0) {
        return result;
    }
    thread->state = BP_STACK_BLOCKED;
    bp_unwinder_unwind(unwinder, thread);
    return !copy->has_read_more || bp_thread_reader_has_stayed(&files, &before) ? 0 : EAGAIN;
}

/*
 * Appends the frames of a thread whose tid is set, and sets its state and reason. 0, also when it
 * has no stack, or an errno: then its state is BP_STACK_UNREAD.
 */
static int unwind_thread(struct reader *reader, uint64_t python_state, bp_stack_thread *thread) {
    bp_unwinder *unwinder = &reader->unwinder;
    int result = EAGAIN;
    char text[sizeof thread->reason];
    char message[BP_ERRNO_BYTES];
    if (thread->tid == (uint64_t)gettid()) { /* the kernel shows this thread the read it is in */
        set_reason(thread, BP_STACK_RUNNING, "it has read these stacks");
        return 0;
    }
    for (unsigned i = 0; result == EAGAIN && i < attempt_max; i++) {
        bp_unwinder_forget(unwinder, thread);
        result = unwind_blocked(reader, python_state, thread);
    }
    if (result == 0) {
        return 0;
    }
    bp_unwinder_forget(unwinder, thread);
    if (result == EAGAIN) {
        (void)snprintf(text, sizeof text, "it ran meanwhile, at each of %d attempts", attempt_max);
        set_reason(thread, BP_STACK_MOVED, text);
        return 0;
    }
    bp_describe_errno(result, message);
    (void)snprintf(text, sizeof text, "it may not be read: %s", message);
    set_reason(thread, BP_STACK_UNREAD, text);
    return result;
}

/* A processor gives a thread its turn in far less; one in a deeper sleep is not waited for. */
static const uint32_t stop_timeout_ms = 200;

static int ask_helper(struct reader *reader, pid_t tid, uint64_t *ret_pause_ns) {
    const bp_stacks_plan *plan = reader->plan;
    if (!reader->was_helper_started) {
        reader->was_helper_started = true;
        int result =
            bp_stop_helper_start(plan->helper_path, plan->is_helper_ptracer, &reader->helper);
        if (result != 0) {
            return result;
        }
    }
    return bp_stop_helper_copy(&reader->helper, tid, &reader->unwinder.copy, ret_pause_ns);
}

/* Replaces what is known of the thread without a stop; or adds to the reason why it was not. */
static void stop_thread(struct reader *reader, int thread_fd, bp_stack_thread *thread) {
    pid_t tid = (pid_t)thread->tid;
    uint64_t pause_ns = 0;
    int result = reader->unwinder.pid == getpid()
                     ? ask_helper(reader, tid, &pause_ns)
                     : bp_thread_stop_copy(reader->unwinder.files.pid, tid, stop_timeout_ms,
                                           &reader->unwinder.copy, &pause_ns);
    bp_proc_stat stat;
    if (result != 0) {
        size_t length = strlen(thread->reason);
        char message[BP_ERRNO_BYTES];
        bp_describe_errno(result, message);
        (void)snprintf(thread->reason + length, sizeof thread->reason - length,
                       "; it could not be stopped: %s", message);
    } else if (bp_proc_read_stat(thread_fd, &stat, "stat") == 0) {
        /* While the thread is there, its id is no other's. */
        thread->state = BP_STACK_STOPPED;
        thread->stopped_ns = pause_ns;
        bp_unwinder_unwind(&reader->unwinder, thread);
    }
}

static bool is_to_be_stopped(const struct reader *reader, const bp_stack_thread *thread) {
    return reader->plan->stops_threads && thread->tid != (uint64_t)gettid() &&
           (thread->state == BP_STACK_RUNNING || thread->state == BP_STACK_MOVED ||
            (thread->state == BP_STACK_BLOCKED && reader->unwinder.lacks_register));
}

/* A thread that has ended is only counted. An errno where none can be read. */
static int add_thread(struct reader *reader, uint64_t tid) {
    bp_stacks *out = &reader->unwinder.out;
    bp_proc_stat stat;
    bp_stack_thread thread = {.tid = tid, .first_frame = out->frame_count};
    int fd = bp_proc_open_at(reader->unwinder.task_fd, O_PATH | O_DIRECTORY, "%" PRIu64, tid);
    int result = fd < 0 ? errno : bp_proc_read_stat(fd, &stat, "stat");
    if (result == 0 && bp_proc_has_thread_ended(&stat)) {
        result = ESRCH;
    } else if (result == 0) {
        memcpy(thread.name, stat.name, sizeof thread.name);
        uint64_t python_state = find_python_state(reader, tid);
        result = unwind_thread(reader, python_state, &thread);
        if (result == 0 && is_to_be_stopped(reader, &thread)) {
            stop_thread(reader, fd, &thread);
        }
        if (thread.state != BP_STACK_BLOCKED) {
            read_python(reader, python_state, &thread);
        }
        if (bp_proc_is_gone(result)) {
            forget_python(out, &thread);
        } else {
            out->threads[out->thread_count++] = thread;
        }
    }
    bp_file_close(fd);
    out->vanished_count += bp_proc_is_gone(result);
    return bp_proc_is_gone(result) ? 0 : result;
}

/* Our own threads, and those of others that may be read. The first errno of a refusal. */
static bugpack_status read_threads(struct reader *reader, bugpack_error *error) {
    bp_stacks *out = &reader->unwinder.out;
    bp_proc_list list;
    bugpack_status status = BUGPACK_OK;
    int first_errno = bp_proc_list_read(reader->unwinder.task_fd, NULL, &list);
    if (first_errno != 0) {
        status = bp_fail_process_errno(error, first_errno, "cannot list threads");
        goto out;
    }
    out->threads = calloc(list.count < BP_STACKS_THREAD_MAX ? list.count + 1 : BP_STACKS_THREAD_MAX,
                          sizeof *out->threads);
    if (out->threads == NULL) {
        status = bp_fail_memory(error, "read stacks");
        goto out;
    }
    for (size_t i = 0; i < list.count && !reader->unwinder.has_failed; i++) {
        if (out->thread_count == BP_STACKS_THREAD_MAX ||
            bp_stacks_is_over(&reader->unwinder.files, reader->plan->deadline_ns)) {
            break;
        }
        int result = add_thread(reader, list.items[i].id);
        first_errno = first_errno == 0 ? result : first_errno;
    }
    out->passed_over_count = list.count - out->thread_count - out->vanished_count;
    if (reader->unwinder.has_failed) {
        status = bp_fail_memory(error, "read stacks");
    } else if (first_errno != 0 && bp_stacks_count(out, BP_STACK_UNREAD) == out->thread_count) {
        status = bp_fail_process_errno(error, first_errno, "cannot read where threads are");
    }
out:
    bp_proc_list_release(&list);
    return status;
}

/* Hands the result over if all went well. */
static bugpack_status finish(bp_unwinder *unwinder, bugpack_status status, bp_stacks *ret_stacks) {
    if (status == BUGPACK_OK) {
        *ret_stacks = unwinder->out;
        unwinder->out = (bp_stacks){.threads = NULL};
    }
    bp_unwinder_release(unwinder);
    return status;
}

bugpack_status bp_stacks_read(pid_t pid, const bp_stacks_plan *plan, bp_stacks *ret_stacks,
                              bugpack_error *error) {
    pid = pid != 0 ? pid : getpid();
    struct reader reader = {
        .unwinder = {.deadline_ns = plan->deadline_ns,
                     .pid = pid,
                     .files = {.pid = pid, .stop = plan->stop},
                     .out = {.pid = (uint64_t)pid, .is_of_all = plan->stops_threads}},
        .plan = plan,
        .helper = {.fd = -1}};
    bp_unwinder *unwinder = &reader.unwinder;
    bugpack_status status = bp_unwinder_init(unwinder, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_unwinder_open(unwinder, plan->birth, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    find_python(&reader);
    status = read_threads(&reader, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_unwinder_check(unwinder, error);
    if (status == BUGPACK_OK &&
        !bp_stacks_describe(&unwinder->files, plan->symbols_until_ns, &unwinder->out)) {
        status = bp_fail_memory(error, "read stacks");
    }
    if (unwinder->out.language == NULL && reader.python_thread_count > 0) {
        unwinder->out.language = "Python"; /* in an executable of another name */
    }
out:
    bp_stop_helper_end(&reader.helper);
    free(reader.python_threads);
    free(reader.text);
    return finish(unwinder, status, ret_stacks);
}

static bugpack_status open_dead(bp_unwinder *unwinder, bugpack_error *error) {
    bp_stack_files *files = &unwinder->files;
    files->process_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (files->process_fd < 0) {
        return bp_fail_errno(error, errno, "cannot read files of the process");
    }
    int result = bp_stack_files_open(files);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot read what the process ran");
    }
    if (files->count == 0) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "the files that the process ran are not known");
    }
    return bp_unwinder_attach(unwinder, error);
}

/* The thread that crashed. */
static void unwind_crashed(bp_unwinder *unwinder, bp_stack_thread *thread) {
    const bp_crash_page *page = unwinder->files.dead;
    bp_thread_copy *copy = &unwinder->copy;
    bp_stack_state state = page->signal != 0 ? BP_STACK_CRASHED : BP_STACK_STOPPED;
    *thread = (bp_stack_thread){.tid = (uint64_t)page->tid, .state = state};
    memcpy(thread->name, page->thread_name, sizeof page->thread_name);
    copy->register_count = BP_CRASH_COUNTER_NUMBER;
    memcpy(copy->registers, page->registers, copy->register_count * sizeof copy->registers[0]);
    copy->program_counter = page->registers[BP_CRASH_COUNTER_NUMBER];
    copy->stack_pointer = page->stack_start;
    copy->stack_bytes = (size_t)page->stack_bytes;
    memcpy(copy->stack, page->stack, copy->stack_bytes);
    bp_unwinder_unwind(unwinder, thread);
}

/* Another one. Of one that nothing stopped no register but two is known. */
static void unwind_copied(bp_unwinder *unwinder, const bp_crash_thread *copied,
                          bp_stack_thread *thread) {
    static const struct {
        bp_stack_state state;
        const char *reason;
    } rows[] = {
        [BP_CRASH_THREAD_UNREAD] = {BP_STACK_UNREAD,
                                    "there was no time or no room for it, or it may not be read"},
        [BP_CRASH_THREAD_RUNNING] = {BP_STACK_RUNNING, "it ran as the process crashed"},
        [BP_CRASH_THREAD_MOVED] = {BP_STACK_MOVED, "it ran while its stack was copied"},
        [BP_CRASH_THREAD_BLOCKED] = {BP_STACK_BLOCKED, ""},
        [BP_CRASH_THREAD_STOPPED] = {BP_STACK_STOPPED, ""}};
    const bp_crash_page *page = unwinder->files.dead;
    uint32_t row = copied->state <= BP_CRASH_THREAD_STOPPED ? copied->state : 0;
    *thread =
        (bp_stack_thread){.tid = (uint64_t)copied->tid, .first_frame = unwinder->out.frame_count};
    memcpy(thread->name, copied->name, sizeof copied->name);
    set_reason(thread, rows[row].state, rows[row].reason);
    if (row == BP_CRASH_THREAD_BLOCKED || row == BP_CRASH_THREAD_STOPPED) {
        bp_thread_copy *copy = &unwinder->copy;
        size_t register_bytes = copied->register_count * sizeof copy->registers[0];
        bool has_all = copied->register_count >= BP_CRASH_COUNTER_NUMBER;
        copy->register_count = has_all ? BP_CRASH_COUNTER_NUMBER : 0;
        memcpy(copy->registers, page->stacks + copied->stack_at - register_bytes,
               copy->register_count * sizeof copy->registers[0]);
        copy->has_read_more = false;
        copy->program_counter = copied->program_counter;
        copy->stack_pointer = copied->stack_pointer;
        copy->stack_bytes = copied->stack_bytes;
        memcpy(copy->stack, page->stacks + copied->stack_at, copy->stack_bytes);
        bp_unwinder_unwind(unwinder, thread);
    }
}

static bugpack_status unwind_dead(bp_unwinder *unwinder, const bp_stacks_plan *plan,
                                  bugpack_error *error) {
    const bp_crash_page *page = unwinder->files.dead;
    bp_stacks *out = &unwinder->out;
    out->threads = calloc((size_t)page->thread_count + 1, sizeof *out->threads);
    if (out->threads == NULL) {
        return bp_fail_memory(error, "read a stack");
    }
    unwind_crashed(unwinder, &out->threads[out->thread_count++]);
    for (uint32_t i = 0; i < page->thread_count && !unwinder->has_failed; i++) {
        if (bp_stacks_is_over(&unwinder->files, plan->deadline_ns)) {
            out->passed_over_count = page->thread_count - i;
            break;
        }
        unwind_copied(unwinder, &page->threads[i], &out->threads[out->thread_count++]);
    }
    qsort(out->threads, out->thread_count, sizeof *out->threads, bp_array_compare_u64);
    return !unwinder->has_failed &&
                   bp_stacks_describe(&unwinder->files, plan->symbols_until_ns, &unwinder->out)
               ? BUGPACK_OK
               : bp_fail_memory(error, "read a stack");
}

bugpack_status bp_stacks_read_crash(const bp_crash_page *page, const bp_stacks_plan *plan,
                                    bool is_host, bp_stacks *ret_stacks, bugpack_error *error) {
    bp_unwinder unwinder = {.deadline_ns = plan->deadline_ns,
                            .pid = (pid_t)page->pid,
                            .files = {.dead = page,
                                      .is_host = is_host,
                                      .stop = plan->stop,
                                      .is_of_report = page->is_of_core != 0},
                            .out = {.pid = (uint64_t)page->pid, .is_of_crash = true}};
    bugpack_status status = bp_unwinder_init(&unwinder, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    if (page->arch != BP_CRASH_ARCH_OWN || page->register_count <= BP_CRASH_COUNTER_NUMBER ||
        page->pid <= 0 || page->pid > INT32_MAX || page->tid <= 0 || page->tid > INT32_MAX) {
        status = bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the process ran on another processor");
        goto out;
    }
    status = open_dead(&unwinder, error);
    if (status == BUGPACK_OK) {
        status = unwind_dead(&unwinder, plan, error);
    }
out:
    return finish(&unwinder, status, ret_stacks);
}
