#include "platform/linux/perf_events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_list.h"
#include "platform/thread.h"

static const size_t least_ring_bytes = (size_t)64 << 10; /* has room for seven samples */

_Static_assert((int)BP_PERF_SAMPLE_TYPE == (PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                            PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER),
               "the parser expects what is asked for");

static struct perf_event_attr describe(const bp_perf_plan *plan, const bp_perf_registers *set) {
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(struct perf_event_attr),
        /* The clock of perf record where there is no counter. A period and not a frequency: that
         * is checked against perf_event_max_sample_rate, which a busy machine lowers. */
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = BP_NS_PER_SEC / plan->rate_hz,
        .sample_type = BP_PERF_SAMPLE_TYPE,
        .sample_regs_user = set->mask,
        .sample_stack_user = BP_PERF_STACK_BYTES,
        .inherit = 1,
        .mmap = !plan->is_backward, /* would push samples out */
        .comm = plan->is_followed,
        .comm_exec = plan->is_followed,
        .sample_id_all = plan->is_followed, /* with the time of an exec */
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .write_backward = plan->is_backward,
        /* Since Linux 5.13: no child processes, and no other program. */
        .inherit_thread = !plan->is_followed,
        .remove_on_exec = !plan->is_followed};
}

static int open_event(struct perf_event_attr *attributes, pid_t tid, size_t cpu) {
    return (int)syscall(SYS_perf_event_open, attributes, tid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Asks for less where that is refused. */
static int open_first(struct perf_event_attr *attributes, pid_t tid, size_t cpu) {
    for (;;) {
        int fd = open_event(attributes, tid, cpu);
        bool is_denied = errno == EACCES || errno == EPERM;
        if (fd < 0 && errno == EINVAL && attributes->inherit_thread) {
            attributes->inherit_thread = 0;
            attributes->remove_on_exec = 0;
        } else if (fd < 0 && is_denied && !attributes->exclude_kernel) {
            attributes->exclude_kernel = 1;
        } else {
            return fd;
        }
    }
}

/* Beforehand, so that nothing else runs out of descriptors meanwhile. */
static bugpack_status check_limit(size_t needed_count, bugpack_error *error) {
    enum { others_count = 128 };
    struct rlimit limit;
    bool is_enough = getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
                     needed_count + others_count <= limit.rlim_cur;
    return is_enough ? BUGPACK_OK
                     : bp_fail(error, BUGPACK_ERR_LIMIT,
                               "samples need %zu descriptors, one for each thread and processor, "
                               "and the limit is %llu (RLIMIT_NOFILE)",
                               needed_count, (unsigned long long)limit.rlim_cur);
}

static bugpack_status explain_open(int system_errno, pid_t pid, bugpack_error *error) {
    static const int paranoid_for_all = 2;
    char text[16] = "";
    ssize_t length =
        bp_proc_read_small(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", text, sizeof text - 1);
    long paranoid = length > 0 ? strtol(text, NULL, 10) : 0;
    switch (system_errno) {
    case EACCES:
        return paranoid > paranoid_for_all
                   ? bp_fail(error, BUGPACK_ERR_DENIED,
                             "the kernel takes no samples for this user: perf_event_paranoid is "
                             "%ld, and there is no CAP_PERFMON",
                             paranoid)
                   : bp_fail(error, BUGPACK_ERR_DENIED,
                             "this user may not sample process %ld (perf_event_paranoid is %ld)",
                             (long)pid, paranoid);
    case EPERM:
        return bp_fail(error, BUGPACK_ERR_DENIED,
                       "perf_event_open is refused, as a container's seccomp filter does");
    case ENOSYS:
    case ENOENT:
    case EOPNOTSUPP:
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this kernel has no such perf events");
    default:
        return bp_fail_process_errno(error, system_errno, "cannot sample process %ld", (long)pid);
    }
}

/* A smaller one where locked memory is short. False with errno. */
static bool map_ring(bp_perf_events *events, size_t cpu, int fd) {
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    int access = events->is_backward ? PROT_READ : PROT_READ | PROT_WRITE;
    for (size_t bytes = events->least_ring_bytes; bytes >= least_ring_bytes; bytes /= 2) {
        void *map = mmap(NULL, page_bytes + bytes, access, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED) {
            events->least_ring_bytes = bytes;
            events->rings[cpu] = (bp_perf_ring){map, bytes, fd};
            return true;
        }
        if (errno != EPERM && errno != ENOMEM) {
            break;
        }
    }
    return false;
}

/* musl's ioctl takes an int, the kernel an unsigned one. */
static int read_id(int fd, uint64_t *ret_id) {
    return ioctl(fd, (int)PERF_EVENT_IOC_ID, ret_id);
}

static bugpack_status add_event(bp_perf_events *events, size_t cpu, int fd, bugpack_error *error) {
    uint64_t id = 0;
    if (!bp_array_reserve(&events->items, events->count, &events->capacity)) {
        bp_file_close(fd);
        return bp_fail_memory(error, "sample a process");
    }
    (void)read_id(fd, &id);
    events->mark = events->count == 0 ? bp_fd_mark_of(fd) : events->mark;
    events->items[events->count++] = (bp_perf_event){fd, id};
    if (events->rings[cpu].map != NULL) {
        return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, events->rings[cpu].fd) == 0
                   ? BUGPACK_OK
                   : bp_fail_errno(error, errno, "cannot share a ring of samples");
    }
    if (map_ring(events, cpu, fd)) {
        return BUGPACK_OK;
    }
    return errno == EPERM ? bp_fail(error, BUGPACK_ERR_LIMIT,
                                    "no locked memory is left for samples (perf_event_mlock_kb, "
                                    "RLIMIT_MEMLOCK)")
                          : bp_fail_errno(error, errno, "cannot map a ring of samples");
}

/* On each processor. A thread that has ended, or a processor that is off, has none. */
static bugpack_status add_thread(bp_perf_events *events, struct perf_event_attr *attributes,
                                 const bp_perf_plan *plan, const bp_proc_list *threads, size_t at,
                                 bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t cpu = 0; cpu < events->ring_count && status == BUGPACK_OK; cpu++) {
        pid_t tid = (pid_t)threads->items[at].id;
        int fd = events->count == 0 ? open_first(attributes, tid, cpu)
                                    : open_event(attributes, tid, cpu);
        if (fd >= 0) {
            status = add_event(events, cpu, fd, error);
        } else if (errno != ENODEV && errno != ESRCH) {
            status = explain_open(errno, plan->pid, error);
        }
    }
    return status;
}

static bool is_thread_of_bugpack(uint64_t tid) {
    char name[BP_THREAD_NAME_BYTES];
    bp_thread_name_of(tid, name);
    return bp_thread_is_own(name);
}

/* The threads are listed before the first event, so that none is inherited and opened as well. */
bugpack_status bp_perf_events_open(bp_perf_events *events, const bp_perf_plan *plan,
                                   bugpack_error *error) {
    const bp_perf_registers *set = bp_perf_registers_here();
    bp_proc_list threads = {.items = NULL};
    long cpu_count = sysconf(_SC_NPROCESSORS_CONF);
    int process_fd = -1;
    if (set == NULL) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "samples are not unwound on this processor");
    }
    struct perf_event_attr attributes = describe(plan, set);
    bugpack_status status = BUGPACK_OK;
    events->is_backward = plan->is_backward;
    events->least_ring_bytes = plan->ring_bytes;
    events->ring_count = cpu_count > 0 ? (size_t)cpu_count : 1;
    events->rings = calloc(events->ring_count, sizeof *events->rings);
    if (events->rings == NULL) {
        events->ring_count = 0;
        return bp_fail_memory(error, "sample a process");
    }
    process_fd = bp_proc_open_process(plan->pid);
    int result = process_fd < 0 ? errno : bp_proc_list_read(process_fd, "task", &threads);
    if (result != 0) {
        status = bp_fail_process_errno(error, result, "cannot list the threads of process %ld",
                                       (long)plan->pid);
    } else if (threads.count * events->ring_count > BP_PERF_EVENT_MAX) {
        status = bp_fail(error, BUGPACK_ERR_LIMIT,
                         "%zu threads on %zu processors need more than the %d descriptors that a "
                         "profile may have",
                         threads.count, events->ring_count, BP_PERF_EVENT_MAX);
    }
    if (status == BUGPACK_OK) {
        status = check_limit(threads.count * events->ring_count, error);
    }
    for (size_t i = 0; status == BUGPACK_OK && i < threads.count; i++) {
        if (plan->pid == getpid() && is_thread_of_bugpack(threads.items[i].id)) {
            continue;
        }
        status = add_thread(events, &attributes, plan, &threads, i, error);
    }
    events->excludes_kernel = attributes.exclude_kernel;
    if (status == BUGPACK_OK && events->count == 0) {
        status = bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %ld has ended", (long)plan->pid);
    }
    bp_proc_list_release(&threads);
    bp_file_close(process_fd);
    return status;
}

static bool is_ours(const bp_perf_events *events, const bp_perf_event *event) {
    uint64_t id;
    return bp_fd_is_ours(event->fd, events->mark) && read_id(event->fd, &id) == 0 &&
           id == event->id;
}

bool bp_perf_events_are_ours(const bp_perf_events *events) {
    size_t count = 0;
    while (count < events->count && is_ours(events, &events->items[count])) {
        count++;
    }
    return count == events->count;
}

void bp_perf_events_close(bp_perf_events *events) {
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < events->ring_count; i++) {
        if (events->rings[i].map != NULL) {
            (void)munmap(events->rings[i].map, page_bytes + events->rings[i].data_bytes);
        }
    }
    for (size_t i = 0; i < events->count; i++) {
        if (is_ours(events, &events->items[i])) {
            bp_file_close(events->items[i].fd);
        }
    }
    free(events->rings);
    free(events->items);
    *events = (bp_perf_events){.rings = NULL};
}

void bp_perf_events_pause(const bp_perf_events *events, bool is_paused) {
    for (size_t i = 0; i < events->ring_count; i++) {
        if (events->rings[i].map != NULL) {
            (void)ioctl(events->rings[i].fd, PERF_EVENT_IOC_PAUSE_OUTPUT, (unsigned long)is_paused);
        }
    }
}

bp_perf_cursor bp_perf_events_read(const bp_perf_events *events, size_t ring) {
    const bp_perf_ring *one = &events->rings[ring];
    if (one->map == NULL) {
        return (bp_perf_cursor){.data = NULL};
    }
    struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)one->map;
    const void *data = one->map + sysconf(_SC_PAGESIZE);
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    return events->is_backward ? bp_perf_backward(data, one->data_bytes, head)
                               : bp_perf_forward(data, one->data_bytes, page->data_tail, head);
}

void bp_perf_events_release(const bp_perf_events *events, size_t ring, uint64_t end) {
    struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)events->rings[ring].map;
    if (page != NULL) {
        __atomic_store_n(&page->data_tail, end, __ATOMIC_RELEASE);
    }
}
