/* Finds the processes at the other ends of pipes and sockets. */
#include "process/open_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/libc_calls.h"

enum { target_bytes_max = 4096 };
static const char event_link[] = "anon_inode:[eventfd]"; /* of all of them */

/* A pass over all processes must not cost a report more than this: of CPU time, as on a busy
 * machine it would look at a part of them alone. */
static const uint64_t search_max_ns = 250 * BP_NS_PER_MS;

/* How long processes of one report share a pass. A holder is looked at again before it is believed,
 * and that there is none is believed of a later pass alone, where one may have come since. */
static const uint64_t pass_max_age_ns = BP_NS_PER_SEC;

/* A descriptor of some process that may have to do with another one's. */
struct row {
    uint64_t hash; /* of the text that its link reads */
    uint32_t pid, number;
    bool can_read, can_write; /* of a pipe or FIFO; in a pass both are true of other files */
};

struct pass {
    uint64_t begun_ns;
    struct row *rows; /* ascending */
    size_t count, capacity;
    bp_fd_search found;
};

static struct pass *_Atomic kept; /* taken by whoever uses it; NULL: there is none */

/* The descriptors that are looked for, of one file. */
struct end {
    const char *text; /* their link */
    char text_bytes[target_bytes_max + 16];
    bool is_itself;            /* the socket of the file, that other processes have, too */
    bool by_reader, by_writer; /* of a pipe: which access they have */
};

struct search {
    struct pass *pass;
    uint64_t asked_ns, deadline_ns, cpu_end_ns;
    unsigned look_count;
    bool was_needed, is_cut, is_spent;
    int proc_fd, fds_fd; /* the second: of the process that is looked at */
    char target[target_bytes_max];
};

static void free_pass(struct pass *pass) {
    if (pass != NULL) {
        free(pass->rows);
        free(pass);
    }
}

void bp_open_files_forget_ends(void) {
    free_pass(atomic_exchange(&kept, NULL));
}

/* Reading the CPU time takes a call of the kernel: it is read once in 64 looks. */
static bool is_over(struct search *search) {
    if (search->look_count++ % 64 == 0) {
        search->is_spent = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) > search->cpu_end_ns;
    }
    return search->is_spent || bp_clock_monotonic_ns() > search->deadline_ns;
}

static bool open_process(struct search *search, uint64_t pid) {
    search->fds_fd =
        bp_proc_open_at(search->proc_fd, O_RDONLY | O_DIRECTORY, "%" PRIu64 "/fd", pid);
    return search->fds_fd >= 0;
}

/* Reads its link into `target`. The link's own mode says for what the descriptor is open
 * (tid_fd_update_inode, fs/proc/fd.c); in a pass, most of whose descriptors are files, it is read
 * of pipes alone. */
static void read_link(struct search *search, bool is_pass, struct row *row) {
    struct stat info;
    char name[24];
    (void)snprintf(name, sizeof name, "%" PRIu32, row->number);
    ssize_t length = readlinkat(search->fds_fd, name, search->target, target_bytes_max - 1);
    search->target[length < 0 ? 0 : length] = '\0';
    row->hash = XXH3_64bits(search->target, length < 0 ? 0 : (size_t)length);
    bool is_left = is_pass && strncmp(search->target, "pipe:", 5) != 0;
    bool is_known = !is_left && fstatat(search->fds_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    row->can_read = is_left || (is_known && (info.st_mode & S_IRUSR) != 0);
    row->can_write = is_left || (is_known && (info.st_mode & S_IWUSR) != 0);
}

static int compare_rows(const void *one, const void *other) {
    const struct row *left = one, *right = other;
    if (left->hash != right->hash) {
        return left->hash < right->hash ? -1 : 1;
    }
    return left->pid != right->pid
               ? (left->pid > right->pid) - (left->pid < right->pid)
               : (left->number > right->number) - (left->number < right->number);
}

static int compare_hash(const void *hash, const void *row) {
    return *(const uint64_t *)hash > ((const struct row *)row)->hash ? 1 : -1;
}

/* False without memory. */
static bool add_process(struct search *search, uint64_t pid) {
    struct pass *pass = search->pass;
    bp_proc_list list = {.count = 0};
    int result = open_process(search, pid) ? bp_proc_list_read(search->fds_fd, NULL, &list) : errno;
    bool has_memory = result != ENOMEM;
    size_t at = 0;
    while (has_memory && at < list.count && !is_over(search)) {
        struct row row = {.pid = (uint32_t)pid, .number = (uint32_t)list.items[at++].id};
        read_link(search, true, &row);
        bool is_anonymous = search->target[0] == 'a' && strcmp(search->target, event_link) != 0;
        if (!is_anonymous && search->target[0] != '\0') {
            has_memory = bp_array_reserve(&pass->rows, pass->count, &pass->capacity);
            if (has_memory) {
                pass->rows[pass->count++] = row;
            }
        }
    }
    pass->found.is_cut = pass->found.is_cut || at < list.count;
    pass->found.process_count += result == 0 && at == list.count ? 1 : 0;
    pass->found.denied_count += result == EACCES || result == EPERM ? 1 : 0;
    bp_proc_list_release(&list);
    bp_file_close(search->fds_fd);
    return has_memory;
}

/* A new one in place of the former; none without memory, which is false: one whose processes were
 * not all read would prove to the next report that nobody has an end. */
static bool read_pass(struct search *search) {
    bp_proc_list pids = {.count = 0};
    free_pass(search->pass);
    struct pass *pass = search->pass = calloc(1, sizeof *pass);
    int result = pass != NULL ? bp_proc_list_read(search->proc_fd, NULL, &pids) : ENOMEM;
    bool has_memory = result != ENOMEM;
    size_t at = 0;
    if (has_memory) {
        pass->begun_ns = bp_clock_monotonic_ns();
        pass->found = (bp_fd_search){.is_cut = result != 0};
    }
    for (; has_memory && at < pids.count && !is_over(search); at++) {
        has_memory = add_process(search, pids.items[at].id);
    }
    if (has_memory) {
        pass->found.is_cut = pass->found.is_cut || at < pids.count;
        if (pass->count > 0) { /* no array at all is not for qsort(3) */
            qsort(pass->rows, pass->count, sizeof *pass->rows, compare_rows);
        }
    } else {
        free_pass(pass);
        search->pass = NULL;
    }
    bp_proc_list_release(&pids);
    return has_memory;
}

/* False where a file has no other end. */
static bool make_end(const bp_open_file *file, struct end *ret_end) {
    const bp_socket *socket = file->socket;
    const char *access = file->info.has_flags ? bp_fd_access(file->info.flags) : NULL;
    *ret_end = (struct end){.text = file->target};
    if (file->kind == BP_OPEN_FILE_SOCKET) {
        uint64_t inode = socket->peer_inode != 0 ? socket->peer_inode : socket->listener_inode;
        (void)snprintf(ret_end->text_bytes, sizeof ret_end->text_bytes, "socket:[%" PRIu64 "]",
                       inode);
        ret_end->text = ret_end->text_bytes;
        return inode != 0;
    }
    if (file->kind == BP_OPEN_FILE_EVENTFD) {
        ret_end->by_reader = ret_end->by_writer = true;
        return file->info.has_event;
    }
    if (file->is_deleted) { /* which its link says behind the path */
        (void)snprintf(ret_end->text_bytes, sizeof ret_end->text_bytes, "%s (deleted)",
                       file->target);
        ret_end->text = ret_end->text_bytes;
    }
    bool is_pipe = file->kind == BP_OPEN_FILE_PIPE || file->kind == BP_OPEN_FILE_FIFO;
    if (!is_pipe || !file->has_inode || access == NULL) {
        return false;
    }
    ret_end->by_reader = strcmp(access, "write") == 0 || strcmp(access, "read_write") == 0;
    ret_end->by_writer = strcmp(access, "read") == 0 || strcmp(access, "read_write") == 0;
    return ret_end->by_reader || ret_end->by_writer;
}

/* True of a socket with something to read, which other processes may take. */
static bool make_itself(const bp_open_file *file, struct end *ret_end) {
    const bp_socket *socket = file->socket;
    *ret_end = (struct end){.text = file->target, .is_itself = true};
    return socket != NULL && socket->has_queues && socket->receive_queue > 0 &&
           (socket->is_listening || socket->is_accepted);
}

static bool is_same_fifo(const struct search *search, uint32_t number, const bp_open_file *file) {
    struct statx info;
    char link[24];
    (void)snprintf(link, sizeof link, "%" PRIu32, number);
    return statx(search->fds_fd, link, AT_STATX_DONT_SYNC, STATX_INO, &info) == 0 &&
           info.stx_ino == file->inode &&
           ((uint64_t)info.stx_dev_major << 32 | info.stx_dev_minor) == file->device;
}

static bool is_same_event(const struct search *search, uint32_t number, const bp_open_file *file) {
    char text[512];
    bp_fd_info info = {.has_event = false};
    ssize_t length =
        bp_proc_read_at(search->fds_fd, text, sizeof text, "../fdinfo/%" PRIu32, number);
    if (length > 0) {
        bp_fd_info_parse(text, (size_t)length, &info);
    }
    return info.has_event && info.event == file->info.event;
}

static bool is_same(const struct search *search, uint32_t number, const bp_open_file *file) {
    if (file->kind == BP_OPEN_FILE_FIFO) {
        return is_same_fifo(search, number, file);
    }
    return file->kind != BP_OPEN_FILE_EVENTFD || is_same_event(search, number, file);
}

/* False without memory. */
static bool take_holder(const struct search *search, const struct row *row, bp_open_file *file) {
    if (file->holder_count == BP_FD_HOLDER_MAX) {
        file->has_more_holders = true;
        return true;
    }
    if (file->holders == NULL) {
        file->holders = calloc(BP_FD_HOLDER_MAX, sizeof *file->holders);
    }
    if (file->holders == NULL) {
        return false;
    }
    bp_proc_stat stat;
    bp_fd_holder *holder = &file->holders[file->holder_count++];
    *holder = (bp_fd_holder){.pid = row->pid, .number = row->number};
    if (bp_proc_read_stat(search->fds_fd, &stat, "../stat") == 0) {
        memcpy(holder->name, stat.name, sizeof holder->name);
        holder->state = stat.state;
    }
    return true;
}

static bool has_access(const bp_open_file *file, const struct end *end, const struct row *row) {
    return file->kind == BP_OPEN_FILE_SOCKET || (end->by_reader && row->can_read) ||
           (end->by_writer && row->can_write);
}

/*
 * Takes who has such descriptors in the pass, and still has them. `ret_is_proven`: somebody has, or
 * nobody can have got one since. That is so of a pipe whose own end was seen: the other end can
 * only be inherited from who has it. An eventfd is its own other end, and proven by a pass of now
 * alone. False without memory.
 */
static bool take_holders(struct search *search, uint64_t pid, bp_open_file *file,
                         const struct end *end, bool *ret_is_proven) {
    const struct pass *pass = search->pass;
    uint64_t hash = XXH3_64bits(end->text, strlen(end->text));
    bool was_seen = false, has_left = false, has_memory = true;
    bool is_event = file->kind == BP_OPEN_FILE_EVENTFD;
    file->holder_count = is_event ? 0 : file->holder_count;
    file->has_more_holders = !is_event && file->has_more_holders;
    size_t at =
        bp_array_find_first(&hash, pass->rows, pass->count, sizeof *pass->rows, compare_hash);
    bool is_enough = false;
    for (; has_memory && !is_enough && at < pass->count && pass->rows[at].hash == hash; at++) {
        struct row row = pass->rows[at];
        bool is_itself = row.pid == pid && (row.number == file->number || end->is_itself);
        was_seen = was_seen || is_itself;
        if (is_event && is_over(search)) {
            search->is_cut = true;
            break;
        }
        if ((is_itself && !is_event) || !has_access(file, end, &row) ||
            (end->is_itself && file->is_shared)) {
            continue;
        }
        bool is_there = open_process(search, row.pid);
        if (is_there) {
            read_link(search, false, &row);
            is_there = strcmp(search->target, end->text) == 0;
        }
        has_left = has_left || !is_there;
        if (is_there && end->is_itself) {
            file->is_shared = true;
        } else if (is_there && has_access(file, end, &row) && is_same(search, row.number, file)) {
            has_memory = take_holder(search, &row, file);
        }
        is_enough = file->has_more_holders && !end->is_itself;
        bp_file_close(search->fds_fd);
    }
    *ret_is_proven = !is_event && ((end->is_itself ? file->is_shared : file->holder_count > 0) ||
                                   (file->kind == BP_OPEN_FILE_PIPE && was_seen && !has_left));
    return has_memory;
}

/* In the pass of before and, where that proves nothing, in a new one. False without memory. */
static bool find_end(struct search *search, uint64_t pid, bp_open_file *file,
                     const struct end *end) {
    bool is_proven = false;
    search->was_needed = true;
    if (is_over(search)) {
        search->is_cut = true;
        return true;
    }
    if (search->pass != NULL && !take_holders(search, pid, file, end, &is_proven)) {
        return false;
    }
    return is_proven || (search->pass != NULL && search->pass->begun_ns >= search->asked_ns) ||
           (read_pass(search) && take_holders(search, pid, file, end, &is_proven));
}

/* False without memory. */
static bool find_ends(struct search *search, bp_open_files *process) {
    bool has_memory = true;
    for (size_t i = 0; has_memory && i < process->file_count; i++) {
        bp_open_file *file = &process->files[i];
        struct end end;
        file->has_other_end = make_end(file, &end);
        if (file->has_other_end) {
            has_memory = find_end(search, process->pid, file, &end);
        }
        if (has_memory && make_itself(file, &end)) {
            has_memory = find_end(search, process->pid, file, &end);
        }
    }
    return has_memory;
}

bugpack_status bp_open_files_find_ends(bp_open_files *processes, size_t count, uint64_t deadline_ns,
                                       bp_fd_search *ret_search, bugpack_error *error) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    struct search *search = calloc(1, sizeof *search);
    if (search == NULL) {
        return bp_fail_memory(error, "find the other ends of pipes");
    }
    search->pass = atomic_exchange(&kept, NULL);
    search->asked_ns = now_ns;
    search->deadline_ns = deadline_ns;
    search->cpu_end_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + search_max_ns;
    search->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (search->pass != NULL && search->pass->begun_ns + pass_max_age_ns < now_ns) {
        free_pass(search->pass);
        search->pass = NULL;
    }
    bool has_memory = true;
    for (size_t i = 0; has_memory && i < count; i++) {
        has_memory = find_ends(search, &processes[i]);
    }
    if (has_memory) {
        *ret_search = (bp_fd_search){.is_cut = false};
        if (search->was_needed && search->pass != NULL) {
            *ret_search = search->pass->found;
        }
        ret_search->was_needed = search->was_needed;
        ret_search->is_cut |= search->is_cut;
    }
    free_pass(atomic_exchange(&kept, search->pass));
    bp_file_close(search->proc_fd);
    free(search);
    return has_memory ? BUGPACK_OK : bp_fail_memory(error, "find the other ends of pipes");
}
