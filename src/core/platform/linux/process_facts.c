#include "platform/process_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/mapped_files.h"
#include "platform/linux/process_private.h"
#include "platform/linux/system_text.h"
#include "platform/linux/thread_reader.h"

static const size_t command_line_max_bytes = (size_t)1024 * 1024;
enum { LIMIT_MAX = 32, TEXT_BYTES = 16384 };

/* Reads a text; false, noted as denied where it is so, when it cannot be had. */
static bool read_text(const bp_task *process, bp_process_facts *facts, const char *path,
                      const char *what, char text[TEXT_BYTES], size_t *ret_length) {
    ssize_t length = bp_proc_read_small(process->directory_fd, path, text, TEXT_BYTES);
    if (length < 0) {
        bp_facts_deny(facts, what, errno);
        return false;
    }
    *ret_length = (size_t)length;
    return true;
}

static bp_known_uint known(uint64_t value) {
    return (bp_known_uint){.known = true, .value = value};
}

static void read_numbers(const bp_task *process, bp_process_facts *facts, const char *path,
                         const char *what) {
    const struct {
        const char *path, *key;
        size_t index; /* among the numbers of the line */
        bp_known_uint *number;
    } rows[] = {/* The effective ids, which are the second of four: what the process may do. */
                {"status", "Uid", 1, &facts->uid},
                {"status", "Gid", 1, &facts->gid},
                {"status", "VmRSS", 0, &facts->rss_kb},
                {"status", "VmHWM", 0, &facts->peak_rss_kb},
                {"status", "VmSize", 0, &facts->vm_size_kb},
                {"status", "VmData", 0, &facts->data_kb},
                {"status", "VmSwap", 0, &facts->swap_kb},
                {"io", "read_bytes", 0, &facts->read_bytes},
                {"io", "write_bytes", 0, &facts->written_bytes},
                {"io", "rchar", 0, &facts->read_chars},
                {"io", "wchar", 0, &facts->written_chars},
                {"io", "syscr", 0, &facts->read_calls},
                {"io", "syscw", 0, &facts->write_calls}};
    char text[TEXT_BYTES];
    size_t length;
    bool is_read = read_text(process, facts, path, what, text, &length);
    for (size_t i = 0; is_read && i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].path, path) == 0) {
            rows[i].number->known = bp_proc_find_number(text, length, rows[i].key, rows[i].index,
                                                        &rows[i].number->value);
        }
    }
}

static bool read_number(const bp_task *process, bp_process_facts *facts, const char *path,
                        int64_t *ret_number) {
    char text[TEXT_BYTES];
    size_t length;
    return read_text(process, facts, path, "OOM score", text, &length) &&
           bp_proc_parse_number(text, length, ret_number);
}

static bool read_cgroup(const bp_task *process, bp_process_facts *facts) {
    char text[TEXT_BYTES];
    size_t length, path_bytes;
    const char *path;
    if (!read_text(process, facts, "cgroup", "cgroup", text, &length) ||
        !bp_proc_find_cgroup(text, length, NULL, &path, &path_bytes)) {
        return true;
    }
    facts->cgroup = strndup(path, path_bytes);
    return facts->cgroup != NULL;
}

static bool read_limits(const bp_task *process, bp_process_facts *facts) {
    char text[TEXT_BYTES];
    size_t length;
    if (!read_text(process, facts, "limits", "limits", text, &length)) {
        return true;
    }
    facts->limits = calloc(LIMIT_MAX, sizeof *facts->limits);
    if (facts->limits == NULL) {
        return false;
    }
    facts->limit_count = bp_proc_parse_limits(text, length, facts->limits, LIMIT_MAX);
    return true;
}

/* The arguments as they are in memory; a program may overwrite them, and leave the last NUL off. */
static bool read_command_line(const bp_task *process, const bp_proc_stat *stat,
                              bp_process_facts *facts) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer *line = &facts->command_line;
    bugpack_status status = bp_file_read_at(process->directory_fd, "cmdline", line, &error);
    if (line->status == BUGPACK_ERR_NO_MEMORY) {
        return false;
    }
    if (status != BUGPACK_OK && line->size == 0) {
        bp_facts_deny(facts, "command line", error.system_errno);
        return true;
    }
    if (status == BUGPACK_ERR_LIMIT) {
        bp_facts_note(facts, "the rest of the command line", "over the limit of 1 MiB");
    } else if (status != BUGPACK_OK) {
        bp_facts_deny(facts, "the rest of the command line", error.system_errno);
    }
    line->size = status != BUGPACK_OK ? bp_proc_whole_words(line->data, line->size) : line->size;
    if (line->size > 0 && line->data[line->size - 1] != '\0') {
        if (line->size == command_line_max_bytes) {
            line->data[line->size - 1] = '\0';
            return true;
        }
        return bp_buffer_append_char(line, '\0') == BUGPACK_OK;
    }
    if (status == BUGPACK_OK) {
        uint64_t count = process->root.has_our_ids
                             ? bp_proc_read_argument_count(process->pid, stat->stack_start)
                             : 0;
        line->size = bp_proc_trim_title(line->data, line->size, count);
    }
    return true;
}

/* Reads a link; false when memory is short. */
static bool read_link(const bp_task *process, bp_process_facts *facts, const char *name,
                      const char *what, char **ret_target) {
    char target[PATH_MAX];
    ssize_t length = readlinkat(process->directory_fd, name, target, sizeof target - 1);
    if (length < 0) {
        bp_facts_deny(facts, what, errno);
        return true;
    }
    *ret_target = strndup(target, (size_t)length);
    return *ret_target != NULL;
}

/* Counts open files. Since Linux 6.2 the directory's size is their number (proc(5)). 0, or an
 * errno. */
static int count_fds(const bp_task *process, uint64_t *ret_count) {
    struct stat info;
    if (!process->root.is_recording && fstatat(process->directory_fd, "fd", &info, 0) == 0 &&
        info.st_size > 0) {
        *ret_count = (uint64_t)info.st_size;
        return 0;
    }
    bp_proc_list list;
    int result = bp_proc_list_read(process->directory_fd, "fd", &list);
    /* Our own include the one that lists them. */
    *ret_count = list.count - (process->is_own && list.count > 0);
    bp_proc_list_release(&list);
    return result;
}

bugpack_status bp_task_count_files(bp_task *process, uint64_t *ret_count, bugpack_error *error) {
    uint64_t count = 0;
    bugpack_status status = bp_process_hold(process, error);
    int result = status == BUGPACK_OK ? count_fds(process, &count) : 0;
    if (status == BUGPACK_OK && result != 0) {
        status = bp_process_fail(process, result, "count the open files of", error);
    }
    if (status == BUGPACK_OK) {
        *ret_count = count;
    }
    return status;
}

/* Adds to a sum, which is known once something was added. */
static void add(bp_known_uint *sum, uint64_t value) {
    if (value <= UINT64_MAX - sum->value) {
        *sum = known(sum->value + value);
    }
}

/* The status of another process counts the switches of its first thread only, so there all threads
 * are summed. */
static void read_switches(const bp_task *process, const bp_proc_list *threads,
                          bp_process_facts *facts) {
    char text[TEXT_BYTES];
    const bp_thread_reader reader = {
        .dir_fd = process->threads_fd, .task = "", .text = text, .text_bytes = sizeof text};
    for (size_t i = 0; i < threads->count; i++) {
        bp_thread_reading thread;
        bp_thread_read(&reader, threads->items[i].id, 1u << BP_GROUP_STATUS, &thread);
        int result = thread.errnos[BP_GROUP_STATUS];
        if (result == 0) {
            add(&facts->voluntary_switches, thread.counters[BP_COUNTER_VOLUNTARY_SWITCHES]);
            add(&facts->involuntary_switches, thread.counters[BP_COUNTER_INVOLUNTARY_SWITCHES]);
        } else if (result != EBADMSG && !bp_proc_is_gone(result)) {
            /* A sum without one of the threads is no sum. */
            bp_facts_deny(facts, "context switches", result);
            facts->voluntary_switches = facts->involuntary_switches = (bp_known_uint){0};
            return;
        }
    }
}

/* True if it is certain that each of our own children that has ended was waited for, by whichever
 * thread; an error other than "no children" makes nothing certain. */
static bool is_without_own_zombies(void) {
    siginfo_t child = {.si_pid = 0};
    int result = waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL);
    return result == 0 ? child.si_pid == 0 : errno == ECHILD;
}

/* The children that have ended, of the first threads: servers fork in few of them, and a report
 * must not cost more for a process of thousands. NO_MEMORY. */
static bugpack_status read_zombies(const bp_task *process, const bp_proc_list *threads,
                                   bp_process_facts *facts, bugpack_error *error) {
    enum { thread_max = 64, child_max = 4096 };
    bp_pid_list children = {.pids = NULL};
    bool has_memory = true;
    int trouble = 0;
    int64_t votes = 0;
    for (size_t i = 0; has_memory && i < threads->count && i < thread_max; i++) {
        int result = bp_proc_list_children(process->threads_fd, threads->items[i].id, &children);
        facts->zombie_count.known = facts->zombie_count.known || result == 0;
        has_memory = result != ENOMEM;
        trouble = result == 0 || bp_proc_is_gone(result) ? trouble : result;
    }
    for (size_t i = 0; has_memory && i < children.count && i < child_max; i++) {
        bp_proc_stat stat;
        int result =
            bp_proc_read_stat(process->directory_fd, &stat, "../%d/stat", (int)children.pids[i]);
        if (result == 0 && stat.state == 'Z' && stat.parent_pid == (uint64_t)process->pid) {
            /* A name that most of them have outvotes the others. */
            facts->zombie_count.value++;
            if (votes == 0) {
                memcpy(facts->zombie_name, stat.name, sizeof facts->zombie_name);
            }
            votes += strcmp(facts->zombie_name, stat.name) == 0 ? 1 : -1;
        }
        trouble = result == 0 || bp_proc_is_gone(result) ? trouble : result;
    }
    bp_facts_deny(facts, "children", trouble);
    free(children.pids);
    return has_memory ? BUGPACK_OK : bp_fail_memory(error, "read the children of a process");
}

/* The kernel limits all threads of a user together. They are counted where the machine has so many
 * that the limit may be near. NO_MEMORY. */
static bugpack_status read_user_threads(const bp_task *process, bp_process_facts *facts,
                                        bugpack_error *error) {
    enum { process_max = 16384 };
    char text[TEXT_BYTES];
    bp_load load;
    bp_proc_list pids = {0};
    uint64_t limit = 0;
    for (size_t i = 0; i < facts->limit_count; i++) {
        const bp_resource_limit *row = &facts->limits[i];
        limit = strcmp(row->name, "Max processes") == 0 && !row->soft_unlimited ? row->soft : limit;
    }
    ssize_t length = bp_proc_read_small(process->directory_fd, "../loadavg", text, sizeof text);
    bool may_be_near = limit > 0 && facts->uid.known && facts->uid.value != 0 && length > 0 &&
                       bp_load_parse(text, (size_t)length, &load) &&
                       load.thread_count >= limit - limit / 10;
    int result = may_be_near ? bp_proc_list_read(process->directory_fd, "..", &pids) : 0;
    for (size_t i = 0; i < pids.count && i < process_max; i++) {
        uint64_t uid, count;
        length = bp_proc_read_at(process->directory_fd, text, sizeof text, "../%" PRIu64 "/status",
                                 pids.items[i].id);
        if (length > 0 && bp_proc_find_number(text, (size_t)length, "Uid", 0, &uid) &&
            uid == facts->uid.value &&
            bp_proc_find_number(text, (size_t)length, "Threads", 0, &count)) {
            add(&facts->user_thread_count, count);
        }
    }
    bp_proc_list_release(&pids);
    return result == ENOMEM ? bp_fail_memory(error, "count the threads of a user") : BUGPACK_OK;
}

/* The context switches and the children that have ended, of all threads. Of our own process the
 * former are known without a file, and mostly the latter. */
static bugpack_status read_threads(const bp_task *process, bp_process_facts *facts,
                                   bugpack_error *error) {
    struct rusage usage;
    bp_proc_list threads = {0};
    if (process->is_own && getrusage(RUSAGE_SELF, &usage) == 0) {
        facts->voluntary_switches = known((uint64_t)usage.ru_nvcsw);
        facts->involuntary_switches = known((uint64_t)usage.ru_nivcsw);
    }
    if (process->is_own && is_without_own_zombies()) {
        facts->zombie_count = known(0);
        return BUGPACK_OK;
    }
    bugpack_status status = bp_process_list_threads(process, &threads, error);
    if (status == BUGPACK_OK && !process->is_own) {
        read_switches(process, &threads, facts);
    }
    if (status == BUGPACK_OK) {
        status = read_zombies(process, &threads, facts, error);
    }
    bp_proc_list_release(&threads);
    return status;
}

static void fill_object(const bp_task *process, bp_mapped_file *file, bp_process_facts *facts,
                        bp_loaded_object *object) {
    bool is_there = false;
    object->address = file->address;
    if (!process->root.is_recording) {
        int fd = bp_mapped_file_open(process->directory_fd, file, &is_there);
        int result = fd >= 0 ? bp_read_build_id(fd, object->build_id) : errno;
        bp_file_close(fd);
        bool is_lacking = fd >= 0 ? result != 0 : bp_mapped_file_is_unknown(result, is_there);
        if (is_lacking && !facts->lacks_build_ids) {
            facts->lacks_build_ids = true;
            bp_facts_deny(facts, "build ids", result);
        }
    }
    object->deleted = !is_there && bp_mapped_file_cut_deleted(file);
    object->path = file->path;
    file->path = NULL;
}

/* False when memory is short. */
static bool read_objects(const bp_task *process, bp_process_facts *facts) {
    bp_mapped_files files = {0};
    int result = bp_mapped_files_read(process->directory_fd, false, &files);
    if (result != 0) {
        bp_facts_deny(facts, "loaded objects", result);
        return result != ENOMEM;
    }
    facts->objects = calloc(files.count + 1, sizeof *facts->objects);
    facts->objects_known = files.is_known && facts->objects != NULL;
    facts->map_count = (bp_known_uint){files.is_known, files.map_count};
    facts->has_aio = files.has_aio;
    if (files.is_known && !process->root.is_recording) {
        facts->map_max = bp_proc_read_setting("/proc/sys/vm/max_map_count");
    }
    for (size_t i = 0; facts->objects != NULL && i < files.count; i++) {
        fill_object(process, &files.items[i], facts, &facts->objects[facts->object_count++]);
    }
    if (files.cut != NULL) {
        bp_facts_note(facts, "further loaded objects", files.cut);
    }
    bp_mapped_files_release(&files);
    return facts->objects != NULL;
}

/*
 * The files that only a running thread shows are read from the process, or, when its first thread
 * has ended before the others, from the directory of another thread. A zombie and a kernel thread
 * have none: then the directory is not open.
 */
static bp_task choose_witness(const bp_task *process, const bp_proc_stat *stat,
                              bp_process_facts *facts) {
    static const char *const lacking[] = {"executable", "working directory", "open files",
                                          "loaded objects"};
    bp_task witness = *process;
    if (!stat->is_kernel_thread && stat->state != 'Z') {
        return witness;
    }
    witness.directory_fd = -1;
    if (stat->thread_count > 1) {
        witness.directory_fd = bp_proc_open_living_thread(process->threads_fd, NULL);
        int open_errno = witness.directory_fd < 0 ? errno : 0;
        for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++) {
            bp_facts_deny(facts, lacking[i], open_errno);
        }
    }
    return witness;
}

/* False when memory is short. */
static bool read_groups(const bp_task *process, const bp_task *witness, const bp_proc_stat *stat,
                        bp_process_facts *facts) {
    bool has_files = witness->directory_fd >= 0;
    const bp_task *shown = has_files ? witness : process;
    read_numbers(shown, facts, "status", "status");
    char byte;
    /* Where its first thread has ended, its own user is refused, too. */
    if (stat->state != 'Z' || bp_proc_read_at(process->directory_fd, &byte, 1, "io") > 0) {
        read_numbers(process, facts, "io", "input and output");
    }
    facts->has_oom = read_number(process, facts, "oom_score", &facts->oom_score) &&
                     read_number(process, facts, "oom_score_adj", &facts->oom_score_adj);
    if (!read_cgroup(shown, facts) || !read_limits(shown, facts) ||
        !read_command_line(shown, stat, facts)) {
        return false;
    }
    uint64_t fd_count = 0;
    int result = has_files ? count_fds(shown, &fd_count) : 0;
    if (result != 0) {
        bp_facts_deny(facts, "open files", result);
    } else if (has_files) {
        facts->fd_count = known(fd_count);
    }
    return !has_files ||
           (read_link(shown, facts, "exe", "executable", &facts->executable) &&
            read_link(shown, facts, "cwd", "working directory", &facts->working_directory) &&
            read_objects(shown, facts));
}

/* Within execve(2), and when it exits, a process has no memory that shows arguments, a program or
 * objects (get_mm_cmdline, fs/proc/base.c). A zombie and a kernel thread never have; a first thread
 * that is one may have ended before the others, or with them. */
static bool is_between_programs(const bp_task *process, const bp_proc_stat *stat) {
    char byte;
    bool is_first_gone = stat->state == 'Z';
    if (process->is_own || process->root.is_recording || stat->is_kernel_thread ||
        (is_first_gone && stat->thread_count <= 1)) {
        return false;
    }
    if (!is_first_gone) {
        return bp_proc_read_small(process->directory_fd, "cmdline", &byte, 1) == 0;
    }
    int fd = bp_proc_open_living_thread(process->threads_fd, NULL);
    if (fd < 0) {
        return bp_proc_is_gone(errno);
    }
    bool is_between = bp_proc_read_small(fd, "cmdline", &byte, 1) == 0;
    (void)close(fd);
    return is_between;
}

static bugpack_status read_facts(bp_task *process, bool *ret_is_between,
                                 bp_process_facts *ret_facts, bugpack_error *error) {
    bp_process_facts facts = {0};
    bp_proc_stat stat;
    bp_buffer_init(&facts.command_line, command_line_max_bytes);
    bugpack_status status = bp_process_read_stat(process, &stat, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bool is_between = is_between_programs(process, &stat);
    facts.pid = process->pid;
    facts.parent_pid = known(stat.parent_pid);
    memcpy(facts.name, stat.name, sizeof facts.name);
    facts.state = stat.state;
    facts.is_kernel_thread = stat.is_kernel_thread;
    facts.thread_count = known(stat.thread_count);
    facts.start_ticks = known(stat.start_ticks);
    if (!process->root.is_recording) {
        bp_machine_identity machine;
        bp_machine_identify(&machine);
        memcpy(facts.boot_id, machine.boot_id, sizeof facts.boot_id);
    }
    facts.minor_faults = known(stat.minor_faults);
    facts.major_faults = known(stat.major_faults);
    uint64_t wall_ns = process->root.is_recording ? process->root.wall_ns : bp_clock_wall_ns();
    uint64_t age_ns;
    if (bp_task_uptime(process, &age_ns) && age_ns <= wall_ns) {
        facts.started_wall_ns = known(wall_ns - age_ns);
    }
    bp_task witness = choose_witness(process, &stat, &facts);
    if (!read_groups(process, &witness, &stat, &facts)) {
        status = bp_fail_memory(error, "read the facts of a process");
    }
    if (status == BUGPACK_OK) {
        status = read_threads(process, &facts, error);
    }
    if (status == BUGPACK_OK) {
        status = read_user_threads(process, &facts, error);
    }
    is_between = is_between || is_between_programs(process, &stat);
    if (status == BUGPACK_OK && !process->is_own) {
        status = bp_process_read_stat(process, &stat, error);
    }
    if (witness.directory_fd >= 0 && witness.directory_fd != process->directory_fd) {
        (void)close(witness.directory_fd);
    }
    if (status != BUGPACK_OK) {
        bp_process_facts_release(&facts);
        return status;
    }
    *ret_is_between = is_between;
    *ret_facts = facts;
    return BUGPACK_OK;
}

bugpack_status bp_process_facts_read(bp_task *process, bp_process_facts *ret_facts,
                                     bugpack_error *error) {
    enum { between_max_ms = 100 };
    bp_process_facts facts;
    bp_proc_stat stat;
    bool is_between = false;
    bugpack_status status = bp_process_hold(process, error);
    if (status == BUGPACK_OK) {
        status = read_facts(process, &is_between, &facts, error);
    }
    for (int waited_ms = 0; status == BUGPACK_OK && is_between && waited_ms < between_max_ms;
         waited_ms++) {
        bp_process_facts_release(&facts);
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
        status = read_facts(process, &is_between, &facts, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    if (is_between && bp_process_read_stat(process, &stat, NULL) == BUGPACK_OK && stat.is_exiting) {
        bp_process_facts_release(&facts);
        return bp_process_fail_ended(process, error);
    }
    *ret_facts = facts;
    return BUGPACK_OK;
}
