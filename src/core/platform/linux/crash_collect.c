#include "platform/linux/crash_collect.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "platform/linux/build_id.h"
#include "platform/linux/proc_text.h"
#include "platform/linux/thread_wait.h"

/* The second one also gets what the kernel stores of the registers. */
enum { work_stack_bytes = 32 << 10, fault_stack_bytes = 64 << 10 };
_Static_assert(work_stack_bytes + fault_stack_bytes == BP_GUARD_STACKS_BYTES, "both stacks");

/* It belongs to the one thread that writes a crash page. */
static sigjmp_buf *volatile innermost;
static bp_guard_place *volatile current;

/* Calls `run`; false when it faulted, and the handler called bp_guard_escape. May be nested. */
static bool run_guarded(void (*run)(void *context), void *context) {
    sigjmp_buf place;
    sigjmp_buf *const volatile outer = innermost;
    /* bp_guard_escape sets the mask: a system call here would be one for each page of a stack. */
    if (sigsetjmp(place, 0) != 0) {
        innermost = outer;
        return false;
    }
    innermost = &place;
    run(context);
    innermost = outer;
    return true;
}

/* Signals raised by reading memory that is gone, and by a system call that a filter traps. */
static void let_faults_through(sigset_t *ret_before) {
    sigset_t faults;
    (void)sigemptyset(&faults);
    (void)sigaddset(&faults, SIGSEGV);
    (void)sigaddset(&faults, SIGBUS);
    (void)sigaddset(&faults, SIGSYS);
    (void)sigprocmask(SIG_UNBLOCK, &faults, ret_before);
}

/* With an alternate stack of its own, because a fault begins at the top of that, where the handler
 * still is. Where it cannot have one a fault ends the process. */
static void work(void) {
    bp_guard_place *place = current;
    const stack_t ours = {.ss_sp = (char *)place - work_stack_bytes - fault_stack_bytes,
                          .ss_size = fault_stack_bytes};
    stack_t theirs;
    sigset_t before;
    bool is_apart = sigaltstack(&ours, &theirs) == 0;
    atomic_store(&place->is_running, true);
    if (is_apart) {
        let_faults_through(&before);
    }
    (void)run_guarded(place->run, place->context);
    if (is_apart) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        (void)sigaltstack(&theirs, NULL);
    }
    atomic_store(&place->is_running, false);
}

void bp_guard_run_apart(bp_guard_place *place, void (*run)(void *context), void *context) {
    place->run = run;
    place->context = context;
    current = place;
#ifdef __GLIBC__
    if (getcontext(&place->inner) == 0) {
        place->inner.uc_stack =
            (stack_t){.ss_sp = (char *)place - work_stack_bytes, .ss_size = work_stack_bytes};
        place->inner.uc_link = &place->outer;
        makecontext(&place->inner, work, 0);
        if (swapcontext(&place->outer, &place->inner) == 0) {
            return;
        }
    }
#endif
    work();
}

bool bp_guard_is_running(const bp_guard_place *place) {
    return atomic_load(&place->is_running);
}

void bp_guard_escape(void) {
    if (innermost != NULL) {
        let_faults_through(NULL);
        siglongjmp(*innermost, 1);
    }
}

enum { page_bytes = 4096, red_zone_bytes = 128 };

/* A stack that overflowed by one large frame is at most so far above its pointer. */
static const uint64_t overflow_max_bytes = (uint64_t)8 << 20;

/* Not memcpy: a sanitizer replaces it, and what is copied is stacks. */
typedef struct copying {
    volatile unsigned char *to;
    const volatile unsigned char *from;
    size_t byte_count;
} copying;

__attribute__((no_sanitize("address", "thread"))) static void copy_bytes(void *context) {
    const copying *copy = context;
    size_t i = 0;
    if (((uintptr_t)copy->from | (uintptr_t)copy->to) % sizeof(uint64_t) == 0) {
        for (; i + sizeof(uint64_t) <= copy->byte_count; i += sizeof(uint64_t)) {
            *(volatile uint64_t *)(copy->to + i) = *(const volatile uint64_t *)(copy->from + i);
        }
    }
    for (; i < copy->byte_count; i++) {
        copy->to[i] = copy->from[i];
    }
}

static bool copy_memory(void *context, void *to, uint64_t from, size_t byte_count) {
    (void)context;
    copying copy = {to, (const volatile unsigned char *)(uintptr_t)from, byte_count};
    return run_guarded(copy_bytes, &copy);
}

#if defined(__x86_64__)

static uint64_t read_registers(bp_crash_page *page, const ucontext_t *context) {
    static const int numbers[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI,    REG_RDI, REG_RBP,
                                  REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,    REG_R12, REG_R13,
                                  REG_R14, REG_R15, REG_RIP, REG_EFL, REG_TRAPNO, REG_ERR, REG_CR2};
    page->arch = BP_CRASH_ARCH_X86_64;
    page->register_count = sizeof numbers / sizeof numbers[0];
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        page->registers[i] = (uint64_t)context->uc_mcontext.gregs[numbers[i]];
    }
    return (uint64_t)context->uc_mcontext.gregs[REG_RSP];
}

#elif defined(__aarch64__)

static uint64_t read_registers(bp_crash_page *page, const ucontext_t *context) {
    enum { general_count = 31 };
    page->arch = BP_CRASH_ARCH_AARCH64;
    page->register_count = general_count + 3;
    for (size_t i = 0; i < general_count; i++) {
        page->registers[i] = context->uc_mcontext.regs[i];
    }
    page->registers[general_count] = context->uc_mcontext.sp;
    page->registers[general_count + 1] = context->uc_mcontext.pc;
    page->registers[general_count + 2] = context->uc_mcontext.pstate;
    return context->uc_mcontext.sp;
}

#else /* unsupported: a crash has no registers */

static uint64_t read_registers(bp_crash_page *page, const ucontext_t *context) {
    (void)context;
    page->arch = BP_CRASH_ARCH_OTHER;
    page->register_count = 0;
    return (uint64_t)(uintptr_t)__builtin_frame_address(0);
}

#endif

void bp_crash_collect_signal(bp_crash_page *page, const siginfo_t *info) {
    bool was_sent = info->si_code <= 0; /* by kill, raise, abort and others; see sigaction(2) */
    page->signal = info->si_signo;
    page->code = info->si_code;
    page->sender_pid = was_sent ? info->si_pid : -1;
    page->sender_uid = was_sent ? (int64_t)info->si_uid : -1;
    page->address = 0;
    page->system_call = -1;
    if (!was_sent && info->si_signo == SIGSYS) {
        page->address = (uint64_t)(uintptr_t)info->si_call_addr;
        page->system_call = info->si_syscall;
    } else if (!was_sent) {
        page->address = (uint64_t)(uintptr_t)info->si_addr;
    }
}

static void read_maps(bp_crash_page *page, const bp_crash_source *source) {
    int opened_fd = open(source->maps_path, O_RDONLY | O_CLOEXEC);
    int fd = opened_fd;
    if (fd < 0 && source->maps_fd >= 0 && lseek(source->maps_fd, 0, SEEK_SET) == 0) {
        fd = source->maps_fd;
    }
    size_t used = 0;
    ssize_t count = fd >= 0 ? 1 : 0;
    while (count > 0 && used < sizeof page->maps) {
        count = read(fd, page->maps + used, sizeof page->maps - used);
        used += count > 0 ? (size_t)count : 0;
    }
    bp_file_close(opened_fd);
    page->are_maps_cut = count != 0 || fd < 0;
    while (used > 0 && page->maps[used - 1] != '\n') {
        used--;
    }
    page->maps_bytes = used;
}

/*
 * The part of the address space that the stack is in, from `at` on. A stack that overflowed begins
 * above its pointer, behind a guard that cannot be read. False where the maps do not say.
 */
static bool find_stack(const bp_crash_page *page, uint64_t at, uint64_t *ret_from,
                       uint64_t *ret_to) {
    bp_proc_scan scan = {page->maps, page->maps + page->maps_bytes};
    bp_proc_map map;
    while (bp_proc_take_map(&scan, &map)) {
        if (map.is_readable && map.end > at) {
            *ret_from = map.start > at ? map.start : at;
            *ret_to = map.end;
            return *ret_from - at < overflow_max_bytes;
        }
    }
    return false;
}

static void copy_stack(bp_crash_page *page, const bp_crash_source *source, uint64_t stack_pointer) {
    uint64_t from = (stack_pointer - red_zone_bytes) & ~(uint64_t)15;
    uint64_t to = from + BP_CRASH_STACK_BYTES;
    bool is_known = find_stack(page, from, &from, &to);
    page->stack_bytes = 0;
    page->stack_start = from;
    if (from > UINT64_MAX - BP_CRASH_STACK_BYTES || (!is_known && page->maps_bytes > 0)) {
        page->stack_start = 0;
        return;
    }
    to = to - from > BP_CRASH_STACK_BYTES ? from + BP_CRASH_STACK_BYTES : to;
    while (from < to) {
        uint64_t bytes = page_bytes - from % page_bytes;
        bytes = bytes < to - from ? bytes : to - from;
        if (!source->copy(source->context, page->stack + page->stack_bytes, from, (size_t)bytes)) {
            break;
        }
        page->stack_bytes += bytes;
        from += bytes;
    }
}

/* A file as it is in memory. */
typedef struct image {
    const bp_crash_source *source;
    uint64_t start, byte_count;
} image;

static bool read_image(void *context, uint64_t offset, void *out, size_t byte_count) {
    const image *file = context;
    return offset <= file->byte_count && byte_count <= file->byte_count - offset &&
           file->source->copy(file->source->context, out, file->start + offset, byte_count);
}

/* Its first mapping begins with the ELF header, and has the program headers and the notes, which
 * are read at their offset in the file. */
static void add_module(bp_crash_page *page, const bp_crash_source *source, const bp_proc_map *map) {
    bp_crash_module *module = &page->modules[page->module_count];
    image first = {source, map->start, map->end - map->start};
    if (bp_build_id_read(read_image, &first, module->build_id)) {
        module->start = map->start;
        page->module_count++;
    }
}

/* The dynamic linker maps files privately. What is shared may be a device, whose registers change
 * when they are read; and what cannot be read would raise a signal, which is first a handler's that
 * was put over ours. */
static bool may_be_module(const bp_proc_map *map) {
    return map->inode != 0 && map->path_bytes > 0 && map->path[0] == '/' && map->is_readable &&
           !map->is_shared;
}

static void read_modules(bp_crash_page *page, const bp_crash_source *source) {
    bp_proc_scan scan = {page->maps, page->maps + page->maps_bytes};
    bp_proc_map map;
    uint64_t inode = 0, device_minor = 0;
    while (page->module_count < BP_CRASH_MODULE_MAX && bp_proc_take_map(&scan, &map)) {
        if (may_be_module(&map) && (map.inode != inode || map.device_minor != device_minor)) {
            inode = map.inode;
            device_minor = map.device_minor;
            add_module(page, source, &map);
        }
    }
}

/* An entry as getdents64(2) gives it. */
typedef struct directory_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t byte_count;
    unsigned char type;
    char name[];
} directory_entry;

static int32_t number_of(const char *name) {
    int32_t number = 0;
    for (; *name >= '0' && *name <= '9' && number < INT32_MAX / 10; name++) {
        number = number * 10 + (*name - '0');
    }
    return *name == '\0' ? number : 0;
}

static void add_thread(bp_crash_page *page, const bp_crash_source *source, int32_t tid) {
    if (tid == 0 || tid == page->tid ||
        (source->has_thread_ended != NULL && source->has_thread_ended(source->context, tid))) {
        return;
    }
    if (page->thread_count == BP_CRASH_THREAD_MAX) {
        page->are_threads_cut = 1;
        return;
    }
    page->threads[page->thread_count++] = (bp_crash_thread){.tid = tid};
}

static void list_threads(bp_crash_page *page, const bp_crash_source *source, int fd) {
    static _Alignas(directory_entry) char entries[4096]; /* one thread is here at a time */
    long count = fd >= 0 ? 1 : 0;
    page->thread_count = 0;
    page->are_threads_cut = fd < 0;
    while (count > 0) {
        count = syscall(SYS_getdents64, fd, entries, sizeof entries);
        for (long at = 0; at < count;) {
            const directory_entry *entry = (const void *)(entries + at);
            add_thread(page, source, number_of(entry->name));
            at += entry->byte_count;
        }
    }
}

/* The most time for the stacks of all other threads together. */
static const uint64_t stacks_ns = 200 * BP_NS_PER_MS;
/* Of one of them, as its share of BP_CRASH_STACKS_BYTES allows. */
enum { thread_bytes_min = 1024, thread_bytes_max = 16384 };

/* Reads a file of a thread; not by snprintf, which is not safe in a signal handler. The bytes, 0
 * for a failure. */
static size_t read_thread_file(int threads_fd, int32_t tid, const char *name, char *out,
                               size_t out_bytes) {
    char room[32];
    size_t name_bytes = strlen(name) + 1;
    char *path = room + sizeof room - name_bytes;
    memcpy(path, name, name_bytes);
    do {
        *--path = (char)('0' + tid % 10);
        tid /= 10;
    } while (tid > 0);
    int fd = openat(threads_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd >= 0 ? read(fd, out, out_bytes) : 0;
    bp_file_close(fd);
    return count > 0 ? (size_t)count : 0;
}

static void read_thread_name(int threads_fd, bp_crash_thread *thread) {
    size_t bytes =
        read_thread_file(threads_fd, thread->tid, "/comm", thread->name, sizeof thread->name);
    if (bytes > 0 && thread->name[bytes - 1] == '\n') {
        thread->name[bytes - 1] = '\0';
    }
}

/* The system call that a thread is in, and how often it has run: a thread for which both have
 * stayed has not moved. */
typedef struct thread_place {
    char call[256], schedstat[64];
    size_t call_bytes, schedstat_bytes;
} thread_place;

static void read_place(int threads_fd, int32_t tid, thread_place *place) {
    place->call_bytes =
        read_thread_file(threads_fd, tid, "/syscall", place->call, sizeof place->call);
    place->schedstat_bytes =
        read_thread_file(threads_fd, tid, "/schedstat", place->schedstat, sizeof place->schedstat);
}

static bool has_stayed(int threads_fd, int32_t tid, const thread_place *before) {
    thread_place now;
    read_place(threads_fd, tid, &now);
    return now.call_bytes == before->call_bytes && now.schedstat_bytes == before->schedstat_bytes &&
           memcmp(now.call, before->call, now.call_bytes) == 0 &&
           memcmp(now.schedstat, before->schedstat, now.schedstat_bytes) == 0;
}

static bool read_call(int threads_fd, bp_crash_thread *thread, thread_place *place) {
    bp_thread_syscall call;
    read_place(threads_fd, thread->tid, place);
    if (!bp_thread_syscall_parse(place->call, place->call_bytes, &call)) {
        return false;
    }
    thread->state = call.place == BP_THREAD_RUNS ? BP_CRASH_THREAD_RUNNING : BP_CRASH_THREAD_UNREAD;
    thread->stack_pointer = call.stack_pointer;
    thread->program_counter = call.program_counter;
    return call.place != BP_THREAD_RUNS;
}

/* How much of each stack there is to copy, for all threads by one pass over the mappings: a process
 * with many threads has many. */
static void find_stacks(bp_crash_page *page) {
    bp_proc_scan scan = {page->maps, page->maps + page->maps_bytes};
    bp_proc_map map;
    while (bp_proc_take_map(&scan, &map)) {
        for (uint32_t i = 0; map.is_readable && i < page->thread_count; i++) {
            bp_crash_thread *thread = &page->threads[i];
            if (thread->stack_pointer >= map.start && thread->stack_pointer < map.end) {
                uint64_t bytes = map.end - thread->stack_pointer;
                thread->stack_bytes = bytes < thread_bytes_max ? (uint32_t)bytes : thread_bytes_max;
            }
        }
    }
}

/* Appends the top of its stack to `stacks`, `most` at most, unless it runs meanwhile. */
static void copy_thread(bp_crash_page *page, const bp_crash_source *source, int threads_fd,
                        bp_crash_thread *thread, uint64_t most) {
    thread_place place;
    uint64_t was_at = thread->stack_pointer;
    uint32_t bytes = thread->stack_bytes < most ? thread->stack_bytes : (uint32_t)most;
    thread->stack_bytes = 0;
    if (!read_call(threads_fd, thread, &place) || bytes == 0) {
        return;
    }
    thread->stack_at = (uint32_t)page->stacks_bytes;
    bool is_copied = thread->stack_pointer == was_at &&
                     source->copy(source->context, page->stacks + thread->stack_at, was_at, bytes);
    if (thread->stack_pointer != was_at || !has_stayed(threads_fd, thread->tid, &place)) {
        thread->state = BP_CRASH_THREAD_MOVED;
    } else if (is_copied) {
        thread->state = BP_CRASH_THREAD_BLOCKED;
        thread->stack_bytes = bytes;
        page->stacks_bytes += bytes;
    }
}

/* No thread is stopped: one that is blocked does not change its stack. */
static void copy_threads(bp_crash_page *page, const bp_crash_source *source, int threads_fd) {
    uint64_t until_ns = bp_clock_monotonic_ns() + stacks_ns;
    thread_place place;
    page->stacks_bytes = 0;
    for (uint32_t i = 0; i < page->thread_count && bp_clock_monotonic_ns() < until_ns; i++) {
        read_thread_name(threads_fd, &page->threads[i]);
        (void)read_call(threads_fd, &page->threads[i], &place);
    }
    find_stacks(page);
    for (uint32_t i = 0; i < page->thread_count && bp_clock_monotonic_ns() < until_ns; i++) {
        uint64_t room = BP_CRASH_STACKS_BYTES - page->stacks_bytes;
        uint64_t share = room / (page->thread_count - i) & ~(uint64_t)15;
        share = share > thread_bytes_min ? share : thread_bytes_min;
        copy_thread(page, source, threads_fd, &page->threads[i], share < room ? share : room);
    }
    for (uint32_t i = 0; i < page->thread_count; i++) { /* those that the time did not reach */
        bp_crash_thread *thread = &page->threads[i];
        thread->stack_bytes = thread->state == BP_CRASH_THREAD_BLOCKED ? thread->stack_bytes : 0;
    }
}

void bp_crash_collect_memory(bp_crash_page *page, const bp_crash_source *source,
                             uint64_t stack_pointer) {
    if (source->maps_path != NULL) {
        read_maps(page, source);
    }
    copy_stack(page, source, stack_pointer);
    bp_crash_collect_exception(page, source);
    if (source->threads_path != NULL) {
        int fd = open(source->threads_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        list_threads(page, source, fd);
        copy_threads(page, source, fd);
        bp_file_close(fd);
    }
    page->module_count = 0;
    read_modules(page, source);
    uint64_t check = bp_crash_page_check(page);
    atomic_thread_fence(memory_order_release);
    page->check = check;
}

/* Where glibc has the pointer to its message; NULL: another library. */
static _Atomic(uintptr_t) abort_message_at;

void bp_crash_collect_prepare(void) {
    atomic_store(&abort_message_at, (uintptr_t)dlsym(RTLD_DEFAULT, "__abort_msg"));
}

/* Copies the message of an assertion, a check of the heap and the like: struct abort_msg_s of
 * glibc's include/stdlib.h, whose size is that of its mapping. */
void bp_crash_collect_abort_message(bp_crash_page *page, const bp_crash_source *source,
                                    uint64_t place) {
    struct {
        unsigned int size;
        char text[BP_CRASH_ABORT_BYTES];
    } message = {.size = 0};
    uint64_t at = 0;
    page->abort_message[0] = '\0';
    if (page->signal != SIGABRT || place == 0 ||
        !source->copy(source->context, &at, place, sizeof at) || at == 0 ||
        !source->copy(source->context, &message.size, at, sizeof message.size) ||
        message.size <= sizeof message) {
        return;
    }
    if (source->copy(source->context, &message, at, sizeof message)) {
        memcpy(page->abort_message, message.text, sizeof page->abort_message - 1);
        page->abort_message[sizeof page->abort_message - 1] = '\0';
    }
}

void bp_crash_collect(bp_crash_page *page, const siginfo_t *info, const void *context, int maps_fd,
                      bool is_passed_to_host) {
    const bp_crash_source own = {.maps_path = BP_CRASH_MAPS_PATH,
                                 .threads_path = "/proc/self/task",
                                 .maps_fd = maps_fd,
                                 .copy = copy_memory};
    page->check = 0;
    atomic_signal_fence(memory_order_seq_cst);
    page->is_begun = 1;
    page->pid = getpid();
    page->tid = gettid();
    page->at = bp_clock_now();
    page->was_passed_to_host = is_passed_to_host;
    bp_crash_collect_signal(page, info);
    (void)prctl(PR_GET_NAME, page->thread_name, 0, 0, 0);
    bp_crash_collect_abort_message(page, &own, atomic_load(&abort_message_at));
    bp_crash_collect_memory(page, &own, read_registers(page, context));
}
