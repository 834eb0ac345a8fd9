#include "probe/stack_unwind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/status.h"

enum { attempt_max = 5, bucket_count = 4096 };

/* The DWARF numbers of the stack pointer. */
#if defined(__aarch64__)
static const int stack_pointer_number = 31;
#else
static const int stack_pointer_number = 7;
#endif

bool bp_unwinder_is_over(const bp_unwinder *unwinder, uint64_t deadline_ns) {
    return bp_clock_monotonic_ns() > deadline_ns ||
           (unwinder->plan->stop != NULL &&
            atomic_load_explicit(unwinder->plan->stop, memory_order_relaxed));
}

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
    const bp_stack_file *file = bp_stack_files_find(unwinder->files, address);
    bp_stack_rule rule =
        file == NULL ? BP_STACK_RULE_NONE : bp_stack_file_rule(file, address - (is_call ? 1 : 0));
    unwinder->out.places[count] = (bp_stack_place){
        .address = address,
        .is_call = is_call && rule != BP_STACK_RULE_SIGNAL,
        .is_signal = rule == BP_STACK_RULE_SIGNAL,
        .module = file == NULL ? BP_STACK_NO_MODULE : (uint32_t)(file - unwinder->files->items)};
    unwinder->notes[count] = (bp_place_note){rule, *bucket};
    unwinder->out.place_count++;
    return *bucket = (uint32_t)count + 1, (uint32_t)count;
}

static int add_frame(bp_unwinder *unwinder, uint64_t address, bool is_call) {
    bp_stack_thread *thread = unwinder->thread;
    if (thread->frame_count == BP_STACKS_FRAME_MAX ||
        unwinder->out.frame_count == BP_STACKS_FRAMES_MAX ||
        bp_unwinder_is_over(unwinder, unwinder->plan->deadline_ns)) {
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
    bp_stack_files_note_errno(unwinder->files);
    if (!unwinder->dw->dwfl_frame_pc(frame, &address, NULL)) {
        return DWARF_CB_ABORT;
    }
    bp_stack_file *file = bp_stack_files_find(unwinder->files, address);
    if (file != NULL) {
        bp_stack_file_load(file);
    }
    /* To know this, libdwfl unwinds. */
    if (!unwinder->files->lacked_memory) {
        (void)unwinder->dw->dwfl_frame_pc(frame, &address, &is_activation);
        bp_stack_files_note_errno(unwinder->files);
    }
    int result = add_frame(unwinder, address, !is_activation || unwinder->begins_at_caller);
    unwinder->begins_at_caller = false;
    return unwinder->files->lacked_memory ? DWARF_CB_ABORT : result;
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
    bp_stack_files_note_errno(unwinder->files);
    return bp_thread_copy_read_word(&unwinder->blocked.copy, address, ret_word);
}

/* Those that are not set stay unknown: a frame that needs one is the last. */
static bool set_registers(Dwfl_Thread *thread, void *context) {
    const bp_unwinder *unwinder = context;
    const bp_thread_copy *copy = &unwinder->blocked.copy;
    bool has_all = copy->register_count > 0;
    if (!unwinder->dw->dwfl_thread_state_registers(
            thread, has_all ? 0 : stack_pointer_number, has_all ? copy->register_count : 1,
            has_all ? copy->registers : &copy->stack_pointer)) {
        return false;
    }
    unwinder->dw->dwfl_thread_state_register_pc(thread, copy->program_counter);
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
    return copy->pid == 0 && copy->has_read_more
               ? "its caller is beyond the part of the stack that was copied"
           : copy->register_count > 0 ? "its caller is not where the unwind table says"
                                      : needs_register;
}

/* libdwfl also ends without an error where it lacks a register, so the tables decide. */
static void explain_end(bp_unwinder *unwinder, bp_stack_thread *thread) {
    const char *reason = "no unwind table reaches this address";
    bool has_rule = true;
    if (thread->frame_count > 0) {
        uint32_t last = unwinder->out.frames[thread->first_frame + thread->frame_count - 1].place;
        const bp_stack_place *place = &unwinder->out.places[last];
        has_rule = unwinder->notes[last].rule != BP_STACK_RULE_NONE;
        reason = unwinder->notes[last].rule == BP_STACK_RULE_OUTERMOST ? ""
                 : has_rule ? explain_loss(&unwinder->blocked.copy)
                 : place->module == BP_STACK_NO_MODULE
                     ? "this code was made at run time, or is the kernel's, and has no unwind table"
                 : unwinder->files->items[place->module].facts.trouble[0] != '\0'
                     ? unwinder->files->items[place->module].facts.trouble
                     : reason;
    }
    /* The caller of a frame without a table may be found by the frame pointer, as Go's. */
    unwinder->lacks_register =
        reason == needs_register || (!has_rule && unwinder->blocked.copy.register_count == 0);
    if (unwinder->files->lacked_memory && reason[0] != '\0') {
        reason = "there was not enough memory to find its caller";
    }
    if (unwinder->was_cut) {
        reason = "there are more frames than the limit or the time allows";
    }
    (void)snprintf(thread->reason, sizeof thread->reason, "%s", reason);
}

static void forget_frames(bp_unwinder *unwinder, bp_stack_thread *thread) {
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
#else
    uint64_t caller;
    if (copy->register_count == 0 ||
        !bp_thread_copy_read_word(copy, copy->registers[stack_pointer_number], &caller)) {
        return false;
    }
    copy->program_counter = caller;
    copy->registers[stack_pointer_number] += sizeof caller;
    return true;
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
#else
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
        !bp_stack_files_have_code(unwinder->files, out->places[frames[count - 1].place].address);
    if (count == 0 || !out->places[frames[count - 1].place].is_signal ||
        !return_from_handler(&unwinder->blocked.copy, out->places[frames[count - 1].place].address,
                             at)) {
        return false;
    }
    out->frame_count -= thread->frame_count - count;
    thread->frame_count = count;
    return true;
}

/* From the registers of the copy outwards. */
static void add_frames(bp_unwinder *unwinder) {
    bp_thread_copy *copy = &unwinder->blocked.copy;
    if (!bp_stack_files_have_code(unwinder->files, copy->program_counter)) {
        if (add_frame(unwinder, copy->program_counter, false) != DWARF_CB_OK ||
            !return_from_nowhere(copy)) {
            return;
        }
        unwinder->begins_at_caller = true;
    }
    if (unwinder->files->lacked_memory) {
        return;
    }
    (void)unwinder->dw->dwfl_getthread_frames(unwinder->files->dwfl, (pid_t)unwinder->thread->tid,
                                              take_frame, unwinder);
}

void bp_unwind_copy(bp_unwinder *unwinder, bp_stack_thread *thread) {
    uint64_t at = unwinder->blocked.copy.stack_pointer;
    unwinder->thread = thread;
    unwinder->was_cut = false;
    forget_frames(unwinder, thread);
    errno = 0;
    do {
        unwinder->begins_at_caller = false;
        add_frames(unwinder);
    } while (returned_from_handler(unwinder, &at));
    bp_stack_files_note_errno(unwinder->files);
    explain_end(unwinder, thread);
}

/* One attempt: 0, or EAGAIN when it moved, or another errno. */
static int unwind(bp_unwinder *unwinder, bp_stack_thread *thread) {
    bp_blocked_status status;
    int result = bp_blocked_take(&unwinder->blocked, &status);
    thread->state = BP_STACK_UNREAD;
    if (result != 0) {
        return result;
    }
    if (status != BP_BLOCKED_OK) {
        bool is_running = status == BP_BLOCKED_RUNNING;
        thread->state = is_running ? BP_STACK_RUNNING : BP_STACK_UNREAD;
        (void)snprintf(thread->reason, sizeof thread->reason, "%s",
                       is_running ? "it has no stack without stopping it"
                                  : "it has no stack of its own");
        return 0;
    }
    thread->state = BP_STACK_BLOCKED;
    bp_unwind_copy(unwinder, thread);
    return bp_blocked_is_unmoved(&unwinder->blocked) ? 0 : EAGAIN;
}

int bp_unwind_thread(bp_unwinder *unwinder, bp_stack_thread *thread) {
    int result = EAGAIN;
    if (thread->tid == (uint64_t)gettid()) { /* the kernel shows this thread the read it is in */
        thread->state = BP_STACK_RUNNING;
        (void)snprintf(thread->reason, sizeof thread->reason, "it has read these stacks");
        return 0;
    }
    unwinder->blocked.tid = thread->tid;
    for (unsigned i = 0; result == EAGAIN && i < attempt_max; i++) {
        forget_frames(unwinder, thread);
        result = unwind(unwinder, thread);
    }
    if (result == 0) {
        return 0;
    }
    forget_frames(unwinder, thread);
    if (result == EAGAIN) {
        thread->state = BP_STACK_MOVED;
        (void)snprintf(thread->reason, sizeof thread->reason,
                       "it ran meanwhile, at each of %d attempts", attempt_max);
        return 0;
    }
    char message[BP_ERRNO_BYTES];
    bp_describe_errno(result, message);
    thread->state = BP_STACK_UNREAD;
    (void)snprintf(thread->reason, sizeof thread->reason, "it may not be read: %s", message);
    return result;
}

bool bp_unwinder_has_room(void) {
    static const size_t most_bytes = (size_t)128 << 20;
    void *room = mmap(NULL, most_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, most_bytes) == 0;
}

bugpack_status bp_unwinder_open(bp_unwinder *unwinder, bugpack_error *error) {
    unwinder->buckets = calloc(bucket_count, sizeof *unwinder->buckets);
    unwinder->blocked.copy.stack = malloc(BP_STACK_COPY_BYTES);
    if (unwinder->buckets == NULL || unwinder->blocked.copy.stack == NULL) {
        return bp_fail_memory(error, "read stacks");
    }
    if (!unwinder->dw->dwfl_attach_state(unwinder->files->dwfl, NULL, unwinder->blocked.pid,
                                         &thread_callbacks, unwinder)) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "process %ld cannot be unwound: %s",
                       (long)unwinder->blocked.pid, unwinder->dw->dwfl_errmsg(-1));
    }
    return BUGPACK_OK;
}

void bp_unwinder_release(bp_unwinder *unwinder) {
    free(unwinder->blocked.copy.stack);
    free(unwinder->buckets);
    free(unwinder->notes);
}
