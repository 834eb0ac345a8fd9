#include "model/crash.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "model/fields.h"
#include "model/metadata.h"
#include "platform/linux/proc_text.h"
#include "platform/linux/thread_wait.h"

/* The codes of sigaction(2) and the kernel's include/uapi/asm-generic/siginfo.h. */
typedef struct code_name {
    int signal; /* 0: of each signal that is sent, and not raised by a fault */
    int code;
    const char *name, *meaning;
} code_name;

static const code_name codes[] = {
    {SIGSEGV, 1, "SEGV_MAPERR", "nothing is mapped there"},
    {SIGSEGV, 2, "SEGV_ACCERR", "what is mapped there may not be used so"},
    {SIGSEGV, 3, "SEGV_BNDERR", "it is out of bounds"},
    {SIGSEGV, 4, "SEGV_PKUERR", "a protection key forbids it"},
    {SIGSEGV, 128, "SI_KERNEL", "an address that cannot exist"},
    {SIGBUS, 1, "BUS_ADRALN", "it is not aligned"},
    {SIGBUS, 2, "BUS_ADRERR", "the file that is mapped there ends before it"},
    {SIGBUS, 3, "BUS_OBJERR", "its memory has failed"},
    {SIGBUS, 4, "BUS_MCEERR_AR", "its memory has failed"},
    {SIGBUS, 5, "BUS_MCEERR_AO", "its memory has failed"},
    {SIGILL, 1, "ILL_ILLOPC", "illegal instruction"},
    {SIGILL, 2, "ILL_ILLOPN", "illegal operand"},
    {SIGILL, 3, "ILL_ILLADR", "illegal addressing mode"},
    {SIGILL, 4, "ILL_ILLTRP", "illegal trap"},
    {SIGILL, 5, "ILL_PRVOPC", "privileged instruction"},
    {SIGILL, 6, "ILL_PRVREG", "privileged register"},
    {SIGILL, 7, "ILL_COPROC", "coprocessor error"},
    {SIGILL, 8, "ILL_BADSTK", "internal stack error"},
    {SIGFPE, 1, "FPE_INTDIV", "integer division by zero"},
    {SIGFPE, 2, "FPE_INTOVF", "integer overflow"},
    {SIGFPE, 3, "FPE_FLTDIV", "floating-point division by zero"},
    {SIGFPE, 4, "FPE_FLTOVF", "floating-point overflow"},
    {SIGFPE, 5, "FPE_FLTUND", "floating-point underflow"},
    {SIGFPE, 6, "FPE_FLTRES", "floating-point inexact result"},
    {SIGFPE, 7, "FPE_FLTINV", "invalid floating-point operation"},
    {SIGFPE, 8, "FPE_FLTSUB", "subscript out of range"},
    {SIGTRAP, 1, "TRAP_BRKPT", "breakpoint"},
    {SIGTRAP, 2, "TRAP_TRACE", "trace trap"},
    {SIGTRAP, 128, "SI_KERNEL", "breakpoint"},
    {SIGSYS, 1, "SYS_SECCOMP", "a filter of system calls refused it"},
    {0, 0, "SI_USER", "sent by kill"},
    {0, -1, "SI_QUEUE", "sent by sigqueue"},
    {0, -2, "SI_TIMER", "sent by a timer"},
    {0, -6, "SI_TKILL", "sent by a thread, as abort and raise do"},
    {0, 128, "SI_KERNEL", "sent by the kernel"}};

static bool is_fault(int signal) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
           signal == SIGTRAP || signal == SIGSYS;
}

static const code_name *find_code(const bp_crash_page *page) {
    int signal = page->code > 0 && is_fault(page->signal) ? page->signal : 0;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].signal == signal && codes[i].code == page->code) {
            return &codes[i];
        }
    }
    return NULL;
}

/* The kernel gives no address with SI_KERNEL: what is there is 0. */
static bool has_address(const bp_crash_page *page) {
    return page->code > 0 && page->code != 128 && is_fault(page->signal);
}

static const char *const x86_64_names[] = {"rax", "rdx", "rcx", "rbx",    "rsi",    "rdi", "rbp",
                                           "rsp", "r8",  "r9",  "r10",    "r11",    "r12", "r13",
                                           "r14", "r15", "rip", "eflags", "trapno", "err", "cr2"};

/* A register by its number on each processor; `otherwise` where the page does not have it. */
static uint64_t register_of(const bp_crash_page *page, uint32_t of_x86_64, uint32_t of_aarch64,
                            uint64_t otherwise) {
    uint32_t number = page->arch == BP_CRASH_ARCH_X86_64 ? of_x86_64 : of_aarch64;
    bool is_known = page->arch == BP_CRASH_ARCH_X86_64 || page->arch == BP_CRASH_ARCH_AARCH64;
    return is_known && number < page->register_count ? page->registers[number] : otherwise;
}

static uint64_t stack_pointer_of(const bp_crash_page *page) {
    return register_of(page, 7, 31, 0);
}

enum { stack_near_bytes = 65536 };

static bool is_at_stack_pointer(const bp_crash_page *page) {
    uint64_t pointer = stack_pointer_of(page);
    return pointer != 0 && page->address - pointer + stack_near_bytes < 2 * stack_near_bytes;
}

/* The fault is at the stack pointer, and what can be read of the stack begins above it. */
static bool is_stack_overflow(const bp_crash_page *page) {
    return page->signal == SIGSEGV && has_address(page) && page->stack_bytes > 0 &&
           page->address < page->stack_start &&
           page->stack_start - page->address < 2 * stack_near_bytes && is_at_stack_pointer(page);
}

/* "SIG37" for one of real time, which has no name of its own. */
static const char *name_signal(int number, char made[16]) {
    const char *name = bp_model_signal_name(number);
    (void)snprintf(made, 16, "SIG%d", number);
    return name != NULL ? name : made;
}

/* --- the cause in words ------------------------------------------------------------------- */

enum { cause_bytes = 896, path_shown_max = 120 };

/* Below it nothing can be mapped (vm.mmap_min_addr, proc_sys_vm(5)); a member of an object at null
 * may also be before it. */
static bool is_near_null(uint64_t address) {
    static const uint64_t reach = 65536, before = 4096;
    return address < reach || address >= (uint64_t)0 - before;
}

/* The mapping at an address; false where there is none, or where the maps were cut. */
static bool find_map(const bp_crash_page *page, uint64_t address, bp_proc_map *ret_map) {
    bp_proc_scan scan = {page->maps, page->maps + page->maps_bytes};
    bool is_found = false;
    while (!is_found && bp_proc_take_map(&scan, ret_map)) {
        is_found = ret_map->start <= address && address < ret_map->end;
    }
    return is_found;
}

/* By the error code of a page fault, which only a handler gets: arch/x86/include/asm/trap_pf.h. */
static const char *name_access(const bp_crash_page *page) {
    enum { error_number = 19, is_write = 2 };
    if (page->arch != BP_CRASH_ARCH_X86_64 || page->register_count <= error_number) {
        return "use";
    }
    return (page->registers[error_number] & is_write) != 0 ? "write" : "read";
}

static int path_shown_bytes(const bp_proc_map *map) {
    return map->path_bytes < path_shown_max ? (int)map->path_bytes : path_shown_max;
}

static void explain_segv(const bp_crash_page *page, char out[cause_bytes]) {
    char where[cause_bytes] = "";
    bp_proc_map map;
    bool is_jump = page->address == register_of(page, 16, 32, UINT64_MAX); /* where it was */
    bool is_mapped = find_map(page, page->address, &map);
    bool is_at_stack = (!is_mapped || !map.is_readable) && is_at_stack_pointer(page);
    const char *access = is_jump ? "call" : name_access(page);
    if (is_mapped && map.path_bytes > 0) {
        (void)snprintf(where, sizeof where, " (in %.*s)", path_shown_bytes(&map), map.path);
    }
    if (is_stack_overflow(page)) {
        (void)snprintf(out, cause_bytes, "stack overflow");
    } else if (is_at_stack) {
        (void)snprintf(out, cause_bytes,
                       "probably stack overflow: the stack pointer is outside of any stack");
    } else if (is_near_null(page->address) && !is_mapped) {
        int length = snprintf(out, cause_bytes, "%s through a null pointer", access);
        if (page->address != 0) {
            (void)snprintf(out + length, cause_bytes - (size_t)length,
                           " (address 0x%" PRIx64 ", near null)", page->address);
        }
    } else if (is_jump && page->code == 2) {
        (void)snprintf(out, cause_bytes, "jump to data, which may not be executed%s", where);
    } else if (is_jump) {
        (void)snprintf(out, cause_bytes, "jump to an address where nothing is mapped");
    } else if (page->code == 2 && is_mapped && map.is_readable && !map.is_writable) {
        (void)snprintf(out, cause_bytes, "write to read-only memory%s", where);
    } else if (page->code == 2 && is_mapped && !map.is_readable && !map.is_writable) {
        (void)snprintf(out, cause_bytes, "%s of memory that allows no access%s", access, where);
    } else if (page->code == 1) {
        (void)snprintf(out, cause_bytes, "%s of an address where nothing is mapped", access);
    }
}

/* For a fault without an address, names the register whose value no pointer can have (48 bits, or
 * 57 with five levels of pages). An operand that is not aligned as SSE needs it ends the same way.
 */
static void explain_protection(const bp_crash_page *page, char out[cause_bytes]) {
    enum { register_count = 17, address_bits = 57 };
    if (page->arch != BP_CRASH_ARCH_X86_64) {
        return;
    }
    for (uint32_t i = 0; i < register_count && i < page->register_count; i++) {
        uint64_t top = page->registers[i] >> (address_bits - 1);
        if (top != 0 && top != UINT64_MAX >> (address_bits - 1)) {
            (void)snprintf(out, cause_bytes,
                           "an address that cannot exist, probably from %s, which is 0x%" PRIx64,
                           x86_64_names[i], page->registers[i]);
            return;
        }
    }
    (void)snprintf(out, cause_bytes, "general protection, probably an operand that is not aligned");
}

static void explain_bus(const bp_crash_page *page, char out[cause_bytes]) {
    bp_proc_map map;
    if (page->code == 1) {
        (void)snprintf(out, cause_bytes, "misaligned address");
    } else if (page->code == 2 && find_map(page, page->address, &map) && map.path_bytes > 0) {
        bool is_shared_memory = strncmp(map.path, "/dev/shm/", sizeof "/dev/shm/" - 1) == 0;
        (void)snprintf(
            out, cause_bytes, "the mapped file \"%.*s\" has no byte %" PRIu64 ": probably %s",
            path_shown_bytes(&map), map.path, page->address - map.start + map.offset,
            is_shared_memory ? "it was cut short, or /dev/shm is full" : "it was cut short");
    }
}

static const bp_stack_thread *crashed_thread(const bp_crash_page *page, const bp_stacks *stacks) {
    const bp_stack_thread *thread = stacks->threads;
    while (thread->tid != (uint64_t)page->tid) {
        thread++;
    }
    return thread;
}

/* The plain name of its type, where that is known; NULL for none. */
static const char *exception_type(const bp_crash_page *page, const bp_crash_backtrace *backtrace) {
    const bp_stacks *stacks = backtrace->stacks;
    bool has_plain = stacks != NULL && stacks->exception_type != NULL;
    const char *type = has_plain ? stacks->exception_type : page->exception_type;
    return type[0] != '\0' ? type : NULL;
}

/* By std::terminate, or because the host says so: it may also abort while it handles one. */
static bool is_uncaught(const bp_crash_page *page, const bp_crash_backtrace *backtrace) {
    static const char *const enders[] = {"_ZSt9terminatev",        "__gxx_personality_v0",
                                         "__clang_call_terminate", "__cxa_throw",
                                         "__cxa_rethrow",          NULL};
    bool is_found = page->is_exception_told != 0;
    const bp_stacks *stacks = backtrace->stacks;
    const bp_stack_thread *thread = stacks != NULL ? crashed_thread(page, stacks) : NULL;
    for (size_t i = 0; thread != NULL && !is_found && i < thread->frame_count; i++) {
        const char *symbol = stacks->places[stacks->frames[thread->first_frame + i].place].symbol;
        is_found = symbol != NULL && bp_array_has_text(enders, symbol);
    }
    return is_found && exception_type(page, backtrace) != NULL;
}

static void explain_exception(const bp_crash_page *page, const bp_crash_backtrace *backtrace,
                              char out[cause_bytes]) {
    const char *what = is_uncaught(page, backtrace)
                           ? "uncaught exception"
                           : "the program aborted itself after the exception";
    (void)snprintf(out, cause_bytes, "%s %s%s%s", what, exception_type(page, backtrace),
                   page->exception_message[0] != '\0' ? ": " : "", page->exception_message);
}

/* By the function that called abort, where its message is not known, as in a core. The outer ones
 * of glibc are first. */
static const char *explain_abort(const bp_crash_page *page, const bp_crash_backtrace *backtrace) {
    static const struct {
        const char *symbol, *words;
    } callers[] = {{"__stack_chk_fail", "stack smashing detected"},
                   {"__chk_fail", "buffer overflow detected"},
                   {"__fortify_fail", "a check of FORTIFY failed"},
                   {"__assert_fail", "an assertion failed"},
                   {"_ZSt9terminatev", "std::terminate was called"}};
    const bp_stacks *stacks = backtrace->stacks;
    const bp_stack_thread *thread = stacks != NULL ? crashed_thread(page, stacks) : NULL;
    size_t frame_count = thread != NULL ? thread->frame_count : 0;
    for (size_t k = 0; k < sizeof callers / sizeof callers[0]; k++) {
        for (size_t i = 0; i < frame_count; i++) {
            const bp_stack_frame *frame = &stacks->frames[thread->first_frame + i];
            const char *symbol = stacks->places[frame->place].symbol;
            if (symbol != NULL && strcmp(symbol, callers[k].symbol) == 0) {
                return callers[k].words;
            }
        }
    }
    return "the program aborted itself";
}

static void explain_sent(const bp_crash_page *page, const bp_crash_backtrace *backtrace,
                         char out[cause_bytes]) {
    if (page->sender_pid == 1 && page->pid != 1 && page->signal == SIGABRT) {
        (void)snprintf(out, cause_bytes,
                       "sent by process 1: probably the watchdog of the service manager, as "
                       "WatchdogSec= of systemd, or its limit for a stop");
    } else if (page->sender_pid > 0 && page->sender_pid != page->pid) {
        (void)snprintf(out, cause_bytes, "sent by process %" PRId64 " of user %" PRId64,
                       page->sender_pid, page->sender_uid);
    } else if (page->sender_pid == page->pid && page->signal == SIGABRT) {
        (void)snprintf(out, cause_bytes, "%s", explain_abort(page, backtrace));
    }
}

static void explain_system_call(const bp_crash_page *page, char out[cause_bytes]) {
    static const bp_syscall_arch arches[] = {
        [BP_CRASH_ARCH_X86_64] = BP_SYSCALL_X86_64, [BP_CRASH_ARCH_AARCH64] = BP_SYSCALL_AARCH64};
    bp_syscall_arch arch =
        page->arch < sizeof arches / sizeof arches[0] ? arches[page->arch] : BP_SYSCALL_UNKNOWN;
    const char *name =
        page->system_call >= 0 ? bp_syscall_name(arch, (uint64_t)page->system_call) : NULL;
    if (name != NULL) {
        (void)snprintf(out, cause_bytes, "a filter (seccomp) refused the system call %s", name);
    } else if (page->system_call >= 0) {
        (void)snprintf(out, cause_bytes, "a filter (seccomp) refused the system call %" PRId64,
                       page->system_call);
    }
}

/* "" where the summary has all that is known. */
static void explain(const bp_crash_page *page, const bp_crash_backtrace *backtrace,
                    char out[cause_bytes]) {
    out[0] = '\0';
    if (exception_type(page, backtrace) != NULL) {
        explain_exception(page, backtrace, out);
    } else if (page->code <= 0) {
        explain_sent(page, backtrace, out);
    } else if (page->signal == SIGSEGV && page->code == 128) {
        explain_protection(page, out);
    } else if (page->signal == SIGSEGV) {
        explain_segv(page, out);
    } else if (page->signal == SIGBUS) {
        explain_bus(page, out);
    } else if (page->signal == SIGFPE && page->code == 1) {
        /* x86 raises it for the least number by -1 as well */
        (void)snprintf(out, cause_bytes, "integer division by zero, or one that overflows");
    } else if (page->signal == SIGILL && (page->code == 1 || page->code == 2)) {
        (void)snprintf(out, cause_bytes,
                       "illegal instruction: __builtin_trap, or one that this processor lacks");
    } else if (page->signal == SIGSYS) {
        explain_system_call(page, out);
    }
}

/* --- the document ------------------------------------------------------------------------- */

static void add_summary(const bp_crash_page *page, bp_json *json) {
    char text[300], made[16];
    const char *name = name_signal(page->signal, made);
    const code_name *code = find_code(page);
    /* The kernel does not say that it was the sender. */
    bool is_own_pipe = page->signal == SIGPIPE && page->code == 0 && page->sender_pid == page->pid;
    const char *meaning = is_stack_overflow(page) ? "the stack has overflowed"
                          : is_own_pipe  ? "nobody reads any more what it wrote to a pipe or socket"
                          : code != NULL ? code->meaning
                                         : "an unknown code";
    char address[24] = "";
    if (has_address(page)) {
        (void)snprintf(address, sizeof address, " at 0x%" PRIx64, page->address);
    }
    bool has_name = page->thread_name[0] != '\0';
    int length = snprintf(
        text, sizeof text,
        has_name ? "%s%s in thread %.*s (%" PRId64 "): %s" : "%s%s in thread %.*s%" PRId64 ": %s",
        name, address, (int)sizeof page->thread_name, page->thread_name, page->tid, meaning);
    bp_json_add_bytes(json, "summary", text, (size_t)length);
}

/* Both are another program's bytes. */
static void add_exception(const bp_crash_page *page, const bp_crash_backtrace *backtrace,
                          bp_json *json) {
    const char *type = exception_type(page, backtrace);
    if (type != NULL) {
        bp_json_object_begin(json, "exception");
        bp_json_add_bytes(json, "type", type, strlen(type));
        if (page->exception_message[0] != '\0') {
            bp_json_add_bytes(json, "message", page->exception_message,
                              strlen(page->exception_message));
        }
        bp_model_add_flag(json, "uncaught", is_uncaught(page, backtrace));
        bp_json_object_end(json);
    }
}

static void add_signal(const bp_crash_page *page, const bp_crash_backtrace *backtrace,
                       bp_json *json) {
    char made[16], cause[cause_bytes];
    const code_name *code = find_code(page);
    explain(page, backtrace, cause);
    bp_model_add_known_text(json, "cause", cause);
    size_t message_bytes = strlen(page->abort_message);
    while (message_bytes > 0 && page->abort_message[message_bytes - 1] == '\n') {
        message_bytes--;
    }
    if (message_bytes > 0) {
        bp_json_add_bytes(json, "abort_message", page->abort_message, message_bytes);
    }
    add_exception(page, backtrace, json);
    bp_json_add_int(json, "signal", page->signal);
    bp_json_add_text(json, "name", name_signal(page->signal, made));
    bp_json_add_int(json, "code", page->code);
    bp_json_add_text(json, "code_name", code != NULL ? code->name : NULL);
    if (has_address(page)) {
        bp_model_add_hex(json, "address", page->address);
    }
    if (page->system_call >= 0) {
        bp_json_add_int(json, "system_call", page->system_call);
    }
    if (page->sender_pid >= 0) {
        bp_json_object_begin(json, "sender");
        bp_json_add_int(json, "pid", page->sender_pid);
        bp_json_add_int(json, "uid", page->sender_uid);
        bp_json_object_end(json);
    }
}

static void add_registers(const bp_crash_page *page, bp_json *json) {
    enum { x86_64_count = sizeof x86_64_names / sizeof x86_64_names[0], general_count = 31 };
    static const char *const aarch64_last[] = {"sp", "pc", "pstate"};
    bp_json_object_begin(json, "registers");
    for (uint32_t i = 0; i < page->register_count; i++) {
        char name[16];
        if (page->arch == BP_CRASH_ARCH_X86_64 && i < x86_64_count) {
            bp_model_add_hex(json, x86_64_names[i], page->registers[i]);
        } else if (page->arch == BP_CRASH_ARCH_AARCH64 && i < general_count) {
            (void)snprintf(name, sizeof name, "x%u", (unsigned)i);
            bp_model_add_hex(json, name, page->registers[i]);
        } else if (page->arch == BP_CRASH_ARCH_AARCH64 && i < general_count + 3) {
            bp_model_add_hex(json, aarch64_last[i - general_count], page->registers[i]);
        }
    }
    bp_json_object_end(json);
}

/* Copied bytes are not in the report: only what was learned from them. */
static void add_stack(const bp_crash_page *page, bp_json *json) {
    bp_json_object_begin(json, "stack");
    if (stack_pointer_of(page) != 0) {
        bp_model_add_hex(json, "pointer", stack_pointer_of(page));
    }
    bp_model_add_hex(json, "copied_from", page->stack_start);
    bp_json_add_uint(json, "copied_bytes", page->stack_bytes);
    bp_json_object_end(json);
}

static const char *build_id_of(const bp_crash_page *page, uint64_t start) {
    for (uint32_t i = 0; i < page->module_count; i++) {
        if (page->modules[i].start == start) {
            return page->modules[i].build_id;
        }
    }
    return NULL;
}

static void add_mappings(const bp_crash_page *page, bp_json *json) {
    bp_proc_scan scan = {page->maps, page->maps + page->maps_bytes}, line;
    bp_json_array_begin(json, "mappings");
    while (bp_proc_take_line(&scan, &line)) {
        uint64_t start = 0;
        bp_json_object_begin(json, NULL);
        bp_json_add_bytes(json, "line", line.next, (size_t)(line.end - line.next));
        (void)bp_proc_take_number(&line, 16, &start);
        bp_json_add_text(json, "build_id", build_id_of(page, start));
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
    bp_model_add_flag(json, "mappings_are_cut", page->are_maps_cut != 0);
}

static void add_backtrace(const bp_crash_page *page, const bp_crash_backtrace *backtrace,
                          bp_json *json) {
    bp_json_object_begin(json, "backtrace");
    if (backtrace->stacks != NULL) {
        const bp_stack_thread *thread = crashed_thread(page, backtrace->stacks);
        bp_json_add_text(json, "interpreter", backtrace->stacks->language);
        bp_stacks_add_frames(backtrace->stacks, thread, json);
        bp_model_add_known_text(json, "reason", thread->reason);
        bp_stacks_add_python(backtrace->stacks, thread, json);
    } else {
        bp_json_add_bool(json, "complete", false);
        bp_json_array_begin(json, "frames");
        bp_json_array_end(json);
        bp_model_add_known_text(json, "reason", backtrace->reason);
    }
    bp_json_object_end(json);
}

bugpack_status bp_crash_print(const bp_crash_page *page, const bp_crash_backtrace *backtrace,
                              bp_buffer *out, bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_uint(&json, "schema", BP_SCHEMA_NUMBER);
    add_summary(page, &json);
    add_signal(page, backtrace, &json);
    bp_json_add_bool(&json, "passed_to_host", page->was_passed_to_host != 0);
    bp_model_add_time(&json, "crashed_at", page->at.wall_ns);
    bp_json_add_int(&json, "pid", page->pid);
    bp_json_object_begin(&json, "thread");
    bp_json_add_int(&json, "tid", page->tid);
    bp_model_add_name(&json, "name", page->thread_name, sizeof page->thread_name);
    bp_json_object_end(&json);
    add_backtrace(page, backtrace, &json);
    add_registers(page, &json);
    add_stack(page, &json);
    bp_json_array_begin(&json, "other_threads");
    for (uint32_t i = 0; i < page->thread_count; i++) {
        bp_json_add_int(&json, NULL, page->threads[i].tid);
    }
    bp_json_array_end(&json);
    bp_model_add_flag(&json, "other_threads_are_cut", page->are_threads_cut != 0);
    add_mappings(page, &json);
    return bp_json_finish(&json, error);
}
