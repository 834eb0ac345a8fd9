#include "probe/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/pages.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/thread_wait.h"
#include "probe/stack_files.h"
#include "probe/thread_stop.h"

enum { attempt_max = 5, bucket_count = 4096 };

/* The registers of a crash page, by their DWARF numbers. */
#if defined(__aarch64__)
enum {
    stack_pointer_number = 31,
    page_arch = BP_CRASH_ARCH_AARCH64,
    register_count = 32,
    counter_number = 32
};
#elif defined(__x86_64__)
enum {
    stack_pointer_number = 7,
    page_arch = BP_CRASH_ARCH_X86_64,
    register_count = 16,
    counter_number = 16
};
#else /* unsupported: no page has registers */
enum {
    stack_pointer_number,
    page_arch = BP_CRASH_ARCH_OTHER,
    register_count = 0,
    counter_number = BP_CRASH_REGISTER_MAX - 1
};
#endif

/* What is known of a place beyond what is printed. */
struct place_note {
    bp_stack_rule rule;
    uint32_t next; /* of its bucket: index + 1 */
};

/* Unwinds the threads of one process, one after the other, with libdwfl. */
struct unwinder {
    const bp_stacks_plan *plan;
    pid_t pid;
    int task_fd, memory_fd; /* of a process that runs */
    bp_stack_files files;   /* their process_fd is ours */
    bp_thread_copy copy;    /* of the thread; its stack is ours */
    bp_stacks out;
    size_t frame_capacity, place_capacity, note_capacity;
    struct place_note *notes; /* beside out.places */
    uint32_t *buckets;        /* index + 1 of a place */
    bp_stack_thread *thread;
    bool begins_at_caller; /* of an address that is no code: the next frame is a call */
    bool has_failed;       /* no memory */
    bool was_cut;          /* this thread has more frames */
    bool lacks_register;   /* likewise, and the registers would give them */
    bp_stop_helper helper; /* of our own process, once it is needed */
    bool was_helper_started;
};

/* The index of the place, or UINT32_MAX without memory. */
static uint32_t find_place(struct unwinder *unwinder, uint64_t address, bool is_call) {
    uint32_t *bucket = &unwinder->buckets[(address ^ address >> 12) % bucket_count];
    for (uint32_t at = *bucket; at != 0; at = unwinder->notes[at - 1].next) {
        const bp_stack_place *place = &unwinder->out.places[at - 1];
        if (place->address == address && (place->is_call == is_call || place->is_signal)) {
            return at - 1;
        }
    }
    size_t count = unwinder->out.place_count;
    if (!bp_array_reserve(&unwinder->out.places, count, &unwinder->place_capacity) ||
        !bp_array_reserve(&unwinder->notes, count, &unwinder->note_capacity)) {
        return UINT32_MAX;
    }
    const bp_stack_file *file = bp_stack_files_find(&unwinder->files, address);
    bp_stack_rule rule =
        file == NULL ? BP_STACK_RULE_NONE : bp_stack_file_rule(file, address - (is_call ? 1 : 0));
    unwinder->out.places[count] = (bp_stack_place){
        .address = address,
        .is_call = is_call && rule != BP_STACK_RULE_SIGNAL,
        .is_signal = rule == BP_STACK_RULE_SIGNAL,
        .module = file == NULL ? BP_STACK_NO_MODULE : (uint32_t)(file - unwinder->files.items)};
    unwinder->notes[count] = (struct place_note){rule, *bucket};
    unwinder->out.place_count++;
    *bucket = (uint32_t)count + 1;
    return (uint32_t)count;
}

static int add_frame(struct unwinder *unwinder, uint64_t address, bool is_call) {
    bp_stack_thread *thread = unwinder->thread;
    if (thread->frame_count == BP_STACKS_FRAME_MAX ||
        unwinder->out.frame_count == BP_STACKS_FRAMES_MAX ||
        bp_stacks_is_over(&unwinder->files, unwinder->plan->deadline_ns)) {
        unwinder->was_cut = true;
        return DWARF_CB_ABORT;
    }
    uint32_t place = find_place(unwinder, address, is_call);
    if (place == UINT32_MAX || !bp_array_reserve(&unwinder->out.frames, unwinder->out.frame_count,
                                                 &unwinder->frame_capacity)) {
        unwinder->has_failed = true;
        return DWARF_CB_ABORT;
    }
    bp_stack_frame *frames = unwinder->out.frames + thread->first_frame;
    bool is_guess =
        thread->frame_count > 0 && !unwinder->begins_at_caller &&
        unwinder->notes[frames[thread->frame_count - 1].place].rule == BP_STACK_RULE_NONE;
    frames[thread->frame_count++] = (bp_stack_frame){place, is_guess};
    unwinder->out.frame_count++;
    return DWARF_CB_OK;
}

static int take_frame(Dwfl_Frame *frame, void *context) {
    struct unwinder *unwinder = context;
    Dwarf_Addr address;
    bool is_activation = false;
    bp_stack_files_note_errno(&unwinder->files);
    if (!unwinder->files.dw->dwfl_frame_pc(frame, &address, NULL)) {
        return DWARF_CB_ABORT;
    }
    bp_stack_file *file = bp_stack_files_find(&unwinder->files, address);
    if (file != NULL) {
        bp_stack_file_load(file);
    }
    /* To know this, libdwfl unwinds. */
    if (!unwinder->files.lacked_memory) {
        (void)unwinder->files.dw->dwfl_frame_pc(frame, &address, &is_activation);
        bp_stack_files_note_errno(&unwinder->files);
    }
    int result = add_frame(unwinder, address, !is_activation || unwinder->begins_at_caller);
    unwinder->begins_at_caller = false;
    return unwinder->files.lacked_memory ? DWARF_CB_ABORT : result;
}

static bool find_thread(Dwfl *dwfl, pid_t tid, void *context, void **ret_context) {
    (void)dwfl;
    (void)tid;
    *ret_context = context;
    return true;
}

static pid_t no_next_thread(Dwfl *dwfl, void *context, void **ret_context) {
    (void)dwfl;
    (void)context;
    (void)ret_context;
    return 0; /* threads are asked for one by one */
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret_word, void *context) {
    (void)dwfl;
    struct unwinder *unwinder = context;
    bp_stack_files_note_errno(&unwinder->files);
    return bp_thread_copy_read_word(&unwinder->copy, address, ret_word);
}

/* Those that are not set stay unknown: a frame that needs one is the last. */
static bool set_registers(Dwfl_Thread *thread, void *context) {
    const struct unwinder *unwinder = context;
    const bp_thread_copy *copy = &unwinder->copy;
    bool has_all = copy->register_count > 0;
    if (!unwinder->files.dw->dwfl_thread_state_registers(
            thread, has_all ? 0 : stack_pointer_number, has_all ? copy->register_count : 1,
            has_all ? copy->registers : &copy->stack_pointer)) {
        return false;
    }
    unwinder->files.dw->dwfl_thread_state_register_pc(thread, copy->program_counter);
    return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = no_next_thread,
                                                       .get_thread = find_thread,
                                                       .memory_read = read_memory,
                                                       .set_initial_registers = set_registers};

static const char needs_register[] =
    "its caller is found with a register that no frame saved; only stopping the thread would give "
    "it";

/* Where a table says how to find the caller, and libdwfl does not. */
static const char *explain_loss(const bp_thread_copy *copy) {
    if (copy->pid == 0 && copy->has_read_more) {
        return "its caller is beyond the part of the stack that was copied";
    }
    return copy->register_count > 0 ? "its caller is not where the unwind table says"
                                    : needs_register;
}

/* libdwfl also ends without an error where it lacks a register, so the tables decide. */
static void explain_end(struct unwinder *unwinder, bp_stack_thread *thread) {
    const char *reason = "no unwind table reaches this address";
    bool has_rule = true;
    if (thread->frame_count > 0) {
        uint32_t last = unwinder->out.frames[thread->first_frame + thread->frame_count - 1].place;
        uint32_t module = unwinder->out.places[last].module;
        has_rule = unwinder->notes[last].rule != BP_STACK_RULE_NONE;
        if (unwinder->notes[last].rule == BP_STACK_RULE_OUTERMOST) {
            reason = "";
        } else if (has_rule) {
            reason = explain_loss(&unwinder->copy);
        } else if (module == BP_STACK_NO_MODULE) {
            reason = "this code was made at run time, or is the kernel's, and has no unwind table";
        } else if (unwinder->files.items[module].facts.trouble[0] != '\0') {
            reason = unwinder->files.items[module].facts.trouble;
        }
    }
    /* The caller of a frame without a table may be found by the frame pointer, as Go's. */
    unwinder->lacks_register =
        reason == needs_register || (!has_rule && unwinder->copy.register_count == 0);
    if (unwinder->files.lacked_memory && reason[0] != '\0') {
        reason = "there was not enough memory to find its caller";
    }
    if (unwinder->was_cut) {
        reason = "there are more frames than the limit or the time allows";
    }
    (void)snprintf(thread->reason, sizeof thread->reason, "%s", reason);
}

static void forget_frames(struct unwinder *unwinder, bp_stack_thread *thread) {
    unwinder->out.frame_count = thread->first_frame;
    thread->frame_count = 0;
}

/*
 * A call to where no code is has pushed its return address, or left it in the link register, and
 * nothing else. Makes the copy that of the caller.
 */
static bool return_from_nowhere(bp_thread_copy *copy) {
#if defined(__aarch64__)
    enum { link_number = 30 };
    copy->program_counter = copy->registers[link_number];
    return copy->register_count > link_number;
#elif defined(__x86_64__)
    uint64_t caller;
    if (copy->register_count == 0 ||
        !bp_thread_copy_read_word(copy, copy->registers[stack_pointer_number], &caller)) {
        return false;
    }
    copy->program_counter = caller;
    copy->registers[stack_pointer_number] += sizeof caller;
    return true;
#else /* unsupported */
    (void)copy;
    return false;
#endif
}

/*
 * Makes the copy that of the code which a signal interrupted: the kernel put its registers behind
 * the address that the handler returns to (arch/x86/include/asm/sigframe.h, struct rt_sigframe).
 * Begins at `*at`, an address in the stack, and moves it on.
 */
static bool return_from_handler(bp_thread_copy *copy, uint64_t trampoline, uint64_t *at) {
#if defined(__x86_64__)
    /* In the order of struct sigcontext, by their DWARF numbers; then the program counter. */
    static const unsigned char numbers[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7};
    enum {
        word = 8,
        registers_at = 6 * word, /* flags, link and the alternate stack are before */
        counter_at = registers_at + 16 * word,
        segments_at = counter_at + 2 * word,
        user_code_segment = 0x33
    };
    for (; *at + segments_at + word <= copy->stack_pointer + copy->stack_bytes; *at += word) {
        uint64_t found, segments;
        if (!bp_thread_copy_read_word(copy, *at, &found) || found != trampoline ||
            !bp_thread_copy_read_word(copy, *at + segments_at, &segments) ||
            (segments & UINT16_MAX) != user_code_segment) {
            continue;
        }
        for (unsigned i = 0; i < sizeof numbers; i++) {
            (void)bp_thread_copy_read_word(copy, *at + registers_at + i * word,
                                           &copy->registers[numbers[i]]);
        }
        (void)bp_thread_copy_read_word(copy, *at + counter_at, &copy->program_counter);
        copy->register_count = sizeof numbers;
        *at += word;
        return true;
    }
#else /* unsupported */
    (void)copy, (void)trampoline, (void)at;
#endif
    return false;
}

/* libdwfl ends at the frame of a signal handler, or one later, where the signal was raised by a
 * call to where no code is. Whether the copy is now that of this call, whose frame is to be added.
 */
static bool returned_from_handler(struct unwinder *unwinder, uint64_t *at) {
    bp_stacks *out = &unwinder->out;
    bp_stack_thread *thread = unwinder->thread;
    const bp_stack_frame *frames = out->frames + thread->first_frame;
    size_t count = thread->frame_count;
    if (unwinder->was_cut || unwinder->has_failed || count == 0) {
        return false;
    }
    count -=
        !bp_stack_files_have_code(&unwinder->files, out->places[frames[count - 1].place].address);
    if (count == 0 || !out->places[frames[count - 1].place].is_signal ||
        !return_from_handler(&unwinder->copy, out->places[frames[count - 1].place].address, at)) {
        return false;
    }
    out->frame_count -= thread->frame_count - count;
    thread->frame_count = count;
    return true;
}

/* From the registers of the copy outwards. */
static void add_frames(struct unwinder *unwinder) {
    bp_thread_copy *copy = &unwinder->copy;
    if (!bp_stack_files_have_code(&unwinder->files, copy->program_counter)) {
        if (add_frame(unwinder, copy->program_counter, false) != DWARF_CB_OK ||
            !return_from_nowhere(copy)) {
            return;
        }
        unwinder->begins_at_caller = true;
    }
    if (unwinder->files.lacked_memory) {
        return;
    }
    (void)unwinder->files.dw->dwfl_getthread_frames(
        unwinder->files.dwfl, (pid_t)unwinder->thread->tid, take_frame, unwinder);
}

static void unwind_copy(struct unwinder *unwinder, bp_stack_thread *thread) {
    uint64_t at = unwinder->copy.stack_pointer;
    unwinder->thread = thread;
    unwinder->was_cut = false;
    forget_frames(unwinder, thread);
    errno = 0;
    do {
        unwinder->begins_at_caller = false;
        add_frames(unwinder);
    } while (returned_from_handler(unwinder, &at));
    bp_stack_files_note_errno(&unwinder->files);
    explain_end(unwinder, thread);
}

/*
 * Where a thread is, for a comparison. One that woke up meanwhile and waits in the same place again
 * has another schedstat. Kernels without it have no such file.
 */
struct position {
    bp_thread_syscall at;
    char runs[96]; /* how long it has run and how often; "" where that is not known */
};

static int read_position(const struct unwinder *unwinder, struct position *ret_position) {
    unsigned long long tid = unwinder->thread->tid;
    *ret_position = (struct position){.runs = ""};
    (void)bp_proc_read_at(unwinder->task_fd, ret_position->runs, sizeof ret_position->runs,
                          "%llu/schedstat", tid);
    return bp_thread_syscall_read(unwinder->task_fd, tid, &ret_position->at);
}

static bool has_stayed(const struct unwinder *unwinder, const struct position *before) {
    struct position now;
    return read_position(unwinder, &now) == 0 && memcmp(&now.at, &before->at, sizeof now.at) == 0 &&
           memcmp(now.runs, before->runs, sizeof now.runs) == 0;
}

static void set_reason(bp_stack_thread *thread, bp_stack_state state, const char *reason) {
    thread->state = state;
    (void)snprintf(thread->reason, sizeof thread->reason, "%s", reason);
}

/*
 * Copies the stack of a blocked thread between two readings of where it is, and unwinds the copy.
 * 0; EAGAIN when it ran meanwhile; or another errno.
 */
static int unwind_blocked(struct unwinder *unwinder, bp_stack_thread *thread) {
    bp_thread_copy *copy = &unwinder->copy;
    struct position before;
    unwinder->thread = thread;
    thread->state = BP_STACK_UNREAD;
    int result = read_position(unwinder, &before);
    if (result != 0) {
        return result;
    }
    if (before.at.place == BP_THREAD_RUNS) {
        set_reason(thread, BP_STACK_RUNNING, "it has no stack without stopping it");
        return 0;
    }
    if (before.at.stack_pointer == 0) { /* a kernel thread, or one that is ending */
        set_reason(thread, BP_STACK_UNREAD, "it has no stack of its own");
        return 0;
    }
    copy->stack_pointer = before.at.stack_pointer;
    copy->program_counter = before.at.program_counter;
    copy->register_count = 0;
    copy->pid = unwinder->files.pid;
    result = bp_thread_copy_stack(copy, unwinder->files.pid);
    if (!has_stayed(unwinder, &before)) {
        return EAGAIN;
    }
    if (result != 0) {
        return result;
    }
    thread->state = BP_STACK_BLOCKED;
    unwind_copy(unwinder, thread);
    return !copy->has_read_more || has_stayed(unwinder, &before) ? 0 : EAGAIN;
}

/*
 * Appends the frames of a thread whose tid is set, and sets its state and reason. 0, also when it
 * has no stack, or an errno: then its state is BP_STACK_UNREAD.
 */
static int unwind_thread(struct unwinder *unwinder, bp_stack_thread *thread) {
    int result = EAGAIN;
    char text[sizeof thread->reason];
    char message[BP_ERRNO_BYTES];
    if (thread->tid == (uint64_t)gettid()) { /* the kernel shows this thread the read it is in */
        set_reason(thread, BP_STACK_RUNNING, "it has read these stacks");
        return 0;
    }
    for (unsigned i = 0; result == EAGAIN && i < attempt_max; i++) {
        forget_frames(unwinder, thread);
        result = unwind_blocked(unwinder, thread);
    }
    if (result == 0) {
        return 0;
    }
    forget_frames(unwinder, thread);
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

/*
 * libdw 0.188 crashes where an allocation of its own fails. So there must be room for all that it
 * may take, before it is called: what is left to RLIMIT_AS, and to a system that promises no more
 * memory than it has.
 */
static bool has_room(void) {
    static const size_t most_bytes = (size_t)128 << 20;
    void *room = mmap(NULL, most_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, most_bytes) == 0;
}

/* All zero but for the plan, and -1 for descriptors. UNSUPPORTED without libdw; NO_MEMORY. */
static bugpack_status init(struct unwinder *unwinder, bugpack_error *error) {
    unwinder->files.dw = bp_libdw_get(error);
    if (unwinder->files.dw == NULL) {
        return BUGPACK_ERR_UNSUPPORTED;
    }
    if (has_room()) {
        unwinder->buckets = calloc(bucket_count, sizeof *unwinder->buckets);
        unwinder->copy.stack = bp_pages_new(BP_STACK_COPY_BYTES);
    }
    return unwinder->buckets != NULL && unwinder->copy.stack != NULL
               ? BUGPACK_OK
               : bp_fail_memory(error,
                                unwinder->files.dead != NULL ? "read a stack" : "read stacks");
}

static bugpack_status attach(struct unwinder *unwinder, bugpack_error *error) {
    const bp_libdw *dw = unwinder->files.dw;
    return dw->dwfl_attach_state(unwinder->files.dwfl, NULL, unwinder->pid, &thread_callbacks,
                                 unwinder)
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "process %ld cannot be unwound: %s",
                         (long)unwinder->pid, dw->dwfl_errmsg(-1));
}

/* Hands the result over if all went well. */
static bugpack_status finish(struct unwinder *unwinder, bugpack_status status,
                             bp_stacks *ret_stacks) {
    bp_file_close(unwinder->files.process_fd);
    bp_stack_files_close(&unwinder->files);
    bp_pages_free(unwinder->copy.stack);
    free(unwinder->buckets);
    free(unwinder->notes);
    bp_stop_helper_end(&unwinder->helper);
    bp_file_close(unwinder->memory_fd);
    bp_file_close(unwinder->task_fd);
    if (status == BUGPACK_OK) {
        *ret_stacks = unwinder->out;
    } else {
        bp_stacks_release(&unwinder->out);
    }
    return status;
}

/* Of one thread: a processor gives it a turn in far less, and what sleeps deeper is not waited for.
 */
static const uint32_t stop_timeout_ms = 200;

static int ask_helper(struct unwinder *unwinder, pid_t tid, uint64_t *ret_pause_ns) {
    const bp_stacks_plan *plan = unwinder->plan;
    if (!unwinder->was_helper_started) {
        unwinder->was_helper_started = true;
        int result =
            bp_stop_helper_start(plan->helper_path, plan->is_helper_ptracer, &unwinder->helper);
        if (result != 0) {
            return result;
        }
    }
    return bp_stop_helper_copy(&unwinder->helper, tid, &unwinder->copy, ret_pause_ns);
}

/* Replaces what is known of the thread without a stop; or adds to the reason why it was not. */
static void stop_thread(struct unwinder *unwinder, int thread_fd, bp_stack_thread *thread) {
    pid_t tid = (pid_t)thread->tid;
    uint64_t pause_ns = 0;
    int result = unwinder->pid == getpid()
                     ? ask_helper(unwinder, tid, &pause_ns)
                     : bp_thread_stop_copy(unwinder->files.pid, tid, stop_timeout_ms,
                                           &unwinder->copy, &pause_ns);
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
        unwind_copy(unwinder, thread);
    }
}

static bool is_to_be_stopped(const struct unwinder *unwinder, const bp_stack_thread *thread) {
    return unwinder->plan->stops_threads && thread->tid != (uint64_t)gettid() &&
           (thread->state == BP_STACK_RUNNING || thread->state == BP_STACK_MOVED ||
            (thread->state == BP_STACK_BLOCKED && unwinder->lacks_register));
}

/* A thread that has ended is skipped. An errno where none can be read. */
static int add_thread(struct unwinder *unwinder, uint64_t tid) {
    bp_proc_stat stat;
    bp_stack_thread thread = {.tid = tid, .first_frame = unwinder->out.frame_count};
    int fd = bp_proc_open_at(unwinder->task_fd, O_PATH | O_DIRECTORY, "%" PRIu64, tid);
    if (fd < 0) {
        return bp_proc_is_gone(errno) ? 0 : errno;
    }
    int result = 0;
    if (bp_proc_read_stat(fd, &stat, "stat") == 0 && !bp_proc_has_thread_ended(&stat)) {
        memcpy(thread.name, stat.name, sizeof thread.name);
        result = unwind_thread(unwinder, &thread);
        if (result == 0 && is_to_be_stopped(unwinder, &thread)) {
            stop_thread(unwinder, fd, &thread);
        }
        if (!bp_proc_is_gone(result)) {
            unwinder->out.threads[unwinder->out.thread_count++] = thread;
        }
    }
    bp_file_close(fd);
    return bp_proc_is_gone(result) ? 0 : result;
}

/* Our own threads, and those of others that may be read. The first errno of a refusal. */
static bugpack_status read_threads(struct unwinder *unwinder, bugpack_error *error) {
    bp_stacks *out = &unwinder->out;
    bp_proc_list list;
    bugpack_status status = BUGPACK_OK;
    int first_errno = bp_proc_list_read(unwinder->task_fd, NULL, &list);
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
    for (size_t i = 0; i < list.count && !unwinder->has_failed; i++) {
        if (out->thread_count == BP_STACKS_THREAD_MAX ||
            bp_stacks_is_over(&unwinder->files, unwinder->plan->deadline_ns)) {
            out->passed_over_count = list.count - i;
            break;
        }
        int result = add_thread(unwinder, list.items[i].id);
        first_errno = first_errno == 0 ? result : first_errno;
    }
    if (unwinder->has_failed) {
        status = bp_fail_memory(error, "read stacks");
    } else if (first_errno != 0 && bp_stacks_count(out, BP_STACK_UNREAD) == out->thread_count) {
        status = bp_fail_process_errno(error, first_errno, "cannot read where threads are");
    }
out:
    bp_proc_list_release(&list);
    return status;
}

static bugpack_status open_process(struct unwinder *unwinder, bugpack_error *error) {
    bp_stack_files *files = &unwinder->files;
    bp_proc_stat stat;
    long pid = unwinder->pid;
    files->process_fd = bp_proc_open_at(AT_FDCWD, O_PATH | O_DIRECTORY, "/proc/%ld", pid);
    if (files->process_fd >= 0) {
        unwinder->task_fd = openat(files->process_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (unwinder->task_fd < 0) {
        return bp_fail_process_errno(error, errno, "cannot look at process %ld", pid);
    }
    if (bp_proc_read_stat(files->process_fd, &stat, "stat") != 0 ||
        (unwinder->plan->birth != 0 && stat.start_ticks != unwinder->plan->birth)) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %ld has ended", pid);
    }
    /* A first thread that has ended shows neither memory nor files; each other one does. */
    int fd = bp_proc_has_thread_ended(&stat)
                 ? bp_proc_open_living_thread(unwinder->task_fd, &files->pid)
                 : -1;
    if (fd >= 0) {
        bp_file_close(files->process_fd);
        files->process_fd = fd;
    } else if (bp_proc_has_thread_ended(&stat) && !bp_proc_is_gone(errno)) {
        return bp_fail_process_errno(error, errno, "cannot look at the threads of process %ld",
                                     pid);
    }
    unwinder->memory_fd = openat(files->process_fd, "mem", O_RDONLY | O_CLOEXEC);
    files->is_host = unwinder->pid == getpid();
    int result = bp_stack_files_open(files);
    if (result != 0) {
        return bp_fail_process_errno(error, result, "cannot read what process %ld runs", pid);
    }
    if (files->count == 0) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "process %ld runs no program: a kernel thread, or one that has ended", pid);
    }
    return attach(unwinder, error);
}

/* Through the old memory nothing can be read after an exec (mem_rw in fs/proc/base.c). */
static bugpack_status check_program(const struct unwinder *unwinder, bugpack_error *error) {
    char byte;
    off_t at = (off_t)unwinder->files.items[0].facts.start;
    return unwinder->memory_fd >= 0 && pread(unwinder->memory_fd, &byte, 1, at) == 0
               ? bp_fail(error, BUGPACK_ERR_NO_PROCESS,
                         "process %ld began another program meanwhile", (long)unwinder->pid)
               : BUGPACK_OK;
}

bugpack_status bp_stacks_read(pid_t pid, const bp_stacks_plan *plan, bp_stacks *ret_stacks,
                              bugpack_error *error) {
    pid = pid != 0 ? pid : getpid();
    struct unwinder unwinder = {.plan = plan,
                                .pid = pid,
                                .task_fd = -1,
                                .memory_fd = -1,
                                .files = {.pid = pid, .process_fd = -1, .stop = plan->stop},
                                .out = {.pid = (uint64_t)pid, .is_of_all = plan->stops_threads},
                                .helper = {.fd = -1}};
    bugpack_status status = init(&unwinder, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = open_process(&unwinder, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = read_threads(&unwinder, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = check_program(&unwinder, error);
    if (status == BUGPACK_OK &&
        !bp_stacks_describe(&unwinder.files, plan->symbols_until_ns, &unwinder.out)) {
        status = bp_fail_memory(error, "read stacks");
    }
out:
    return finish(&unwinder, status, ret_stacks);
}

static bugpack_status open_dead(struct unwinder *unwinder, bugpack_error *error) {
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
    return attach(unwinder, error);
}

static bugpack_status unwind_dead(struct unwinder *unwinder, bugpack_error *error) {
    const bp_crash_page *page = unwinder->files.dead;
    bp_thread_copy *copy = &unwinder->copy;
    bp_stack_thread *thread = calloc(1, sizeof *thread);
    unwinder->out.threads = thread;
    if (thread == NULL) {
        return bp_fail_memory(error, "read a stack");
    }
    unwinder->out.thread_count = 1;
    *thread = (bp_stack_thread){.tid = (uint64_t)page->tid, .state = BP_STACK_BLOCKED};
    memcpy(thread->name, page->thread_name, sizeof page->thread_name);
    memcpy(copy->registers, page->registers, register_count * sizeof copy->registers[0]);
    copy->register_count = register_count;
    copy->program_counter = page->registers[counter_number];
    copy->stack_pointer = page->stack_start;
    copy->stack_bytes = (size_t)page->stack_bytes;
    memcpy(copy->stack, page->stack, copy->stack_bytes);
    unwind_copy(unwinder, thread);
    return !unwinder->has_failed &&
                   bp_stacks_describe(&unwinder->files, unwinder->plan->symbols_until_ns,
                                      &unwinder->out)
               ? BUGPACK_OK
               : bp_fail_memory(error, "read a stack");
}

bugpack_status bp_stacks_read_crash(const bp_crash_page *page, const bp_stacks_plan *plan,
                                    bool is_host, bp_stacks *ret_stacks, bugpack_error *error) {
    struct unwinder unwinder = {
        .plan = plan,
        .pid = (pid_t)page->pid,
        .task_fd = -1,
        .memory_fd = -1,
        .files = {.dead = page, .is_host = is_host, .process_fd = -1, .stop = plan->stop},
        .out = {.pid = (uint64_t)page->pid},
        .helper = {.fd = -1}};
    bugpack_status status = init(&unwinder, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    if (page->arch != page_arch || page->register_count <= counter_number || page->pid <= 0 ||
        page->pid > INT32_MAX || page->tid <= 0 || page->tid > INT32_MAX) {
        status = bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the process ran on another processor");
        goto out;
    }
    status = open_dead(&unwinder, error);
    if (status == BUGPACK_OK) {
        status = unwind_dead(&unwinder, error);
    }
out:
    return finish(&unwinder, status, ret_stacks);
}
