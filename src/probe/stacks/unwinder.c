#include "stacks/unwinder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/pages.h"
#include "base/status.h"
#include "platform/linux/files.h"

enum { bucket_count = 4096 };

/* The index of the place, or UINT32_MAX without memory. */
static uint32_t find_place(bp_unwinder *unwinder, uint64_t address, bool is_call) {
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
    unwinder->notes[count] = (bp_place_note){rule, *bucket};
    unwinder->out.place_count++;
    *bucket = (uint32_t)count + 1;
    return (uint32_t)count;
}

static int add_frame(bp_unwinder *unwinder, uint64_t address, bool is_call) {
    bp_stack_thread *thread = unwinder->thread;
    if (thread->frame_count == BP_STACKS_FRAME_MAX ||
        unwinder->out.frame_count == BP_STACKS_FRAMES_MAX ||
        bp_stacks_is_over(&unwinder->files, unwinder->deadline_ns)) {
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
    bp_unwinder *unwinder = context;
    Dwarf_Addr address;
    bool is_activation = false;
    bp_stack_files_note_errno(&unwinder->files);
    if (!unwinder->files.dw->dwfl_frame_pc(frame, &address, NULL)) {
        return DWARF_CB_ABORT;
    }
    bp_stack_file *file = bp_stack_files_find(&unwinder->files, address);
    if (file != NULL) {
        bp_stack_file_load_rules(file, address);
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
    bp_unwinder *unwinder = context;
    bp_stack_files_note_errno(&unwinder->files);
    return bp_thread_copy_read_word(&unwinder->copy, address, ret_word);
}

/* Registers that are not set stay unknown: a frame that needs one is the last. */
static bool set_registers(Dwfl_Thread *thread, void *context) {
    const bp_unwinder *unwinder = context;
    const bp_thread_copy *copy = &unwinder->copy;
    bool has_all = copy->register_count > 0;
    if (!unwinder->files.dw->dwfl_thread_state_registers(
            thread, has_all ? 0 : BP_STACK_POINTER_NUMBER, has_all ? copy->register_count : 1,
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
static void explain_end(bp_unwinder *unwinder, bp_stack_thread *thread) {
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

void bp_unwinder_forget(bp_unwinder *unwinder, bp_stack_thread *thread) {
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
        !bp_thread_copy_read_word(copy, copy->registers[BP_STACK_POINTER_NUMBER], &caller)) {
        return false;
    }
    copy->program_counter = caller;
    copy->registers[BP_STACK_POINTER_NUMBER] += sizeof caller;
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
static bool returned_from_handler(bp_unwinder *unwinder, uint64_t *at) {
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
static void add_frames(bp_unwinder *unwinder) {
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

void bp_unwinder_unwind(bp_unwinder *unwinder, bp_stack_thread *thread) {
    uint64_t at = unwinder->copy.stack_pointer;
    unwinder->thread = thread;
    unwinder->was_cut = false;
    bp_unwinder_forget(unwinder, thread);
    errno = 0;
    do {
        unwinder->begins_at_caller = false;
        add_frames(unwinder);
    } while (returned_from_handler(unwinder, &at));
    bp_stack_files_note_errno(&unwinder->files);
    explain_end(unwinder, thread);
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

bugpack_status bp_unwinder_init(bp_unwinder *unwinder, bugpack_error *error) {
    unwinder->task_fd = unwinder->memory_fd = unwinder->files.process_fd = -1;
    bugpack_error why = BUGPACK_ERROR_INIT;
    unwinder->files.dw = bp_libdw_get(&why);
    if (unwinder->files.dw == NULL) {
        return bp_fail(error, why.status, "%s", why.message);
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

bugpack_status bp_unwinder_attach(bp_unwinder *unwinder, bugpack_error *error) {
    const bp_libdw *dw = unwinder->files.dw;
    return dw->dwfl_attach_state(unwinder->files.dwfl, NULL, unwinder->pid, &thread_callbacks,
                                 unwinder)
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "process %ld cannot be unwound: %s",
                         (long)unwinder->pid, dw->dwfl_errmsg(-1));
}

void bp_unwinder_release(bp_unwinder *unwinder) {
    bp_file_close(unwinder->files.process_fd);
    bp_stack_files_close(&unwinder->files);
    bp_pages_free(unwinder->copy.stack);
    free(unwinder->buckets);
    free(unwinder->notes);
    bp_file_close(unwinder->memory_fd);
    bp_file_close(unwinder->task_fd);
    bp_stacks_release(&unwinder->out);
}

bugpack_status bp_unwinder_open(bp_unwinder *unwinder, uint64_t birth, bugpack_error *error) {
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
        (birth != 0 && stat.start_ticks != birth)) {
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
        return stat.is_kernel_thread
                   ? bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "process %ld is a kernel thread", pid)
                   : bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %ld has ended", pid);
    }
    return bp_unwinder_attach(unwinder, error);
}

/* Through the old memory nothing can be read after an exec, or the end (mem_rw in fs/proc/base.c).
 */
bugpack_status bp_unwinder_check(const bp_unwinder *unwinder, bugpack_error *error) {
    char byte;
    bp_proc_stat stat;
    off_t at = (off_t)unwinder->files.items[0].facts.start;
    if (unwinder->memory_fd < 0 || pread(unwinder->memory_fd, &byte, 1, at) != 0) {
        return BUGPACK_OK;
    }
    bool has_ended = bp_proc_read_stat(unwinder->files.process_fd, &stat, "stat") != 0 ||
                     bp_proc_has_thread_ended(&stat);
    return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %ld %s", (long)unwinder->pid,
                   has_ended ? "has ended" : "began another program");
}
