/* Who has the other ends of pipes and sockets. */
#include "process/open_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/libc_calls.h"

enum { target_bytes_max = 4096 };

/* A pass over all processes must not cost a report more than this, nor a busy machine more than
 * this many links. */
static const uint64_t search_max_ns = 250 * BP_NS_PER_MS;
static const size_t link_max = 200000;

/* The target of a descriptor that is the other end of `file`. */
struct end {
    bp_open_file_kind kind; /* a pipe, a socket, or a FIFO, which has a path for its name */
    uint64_t inode;
    bool by_reader, by_writer; /* of a pipe: which access the other end has */
    bool is_itself;            /* the socket, for other processes that have it */
    bp_open_file *file;
    uint64_t pid;
};

struct search {
    struct end *ends; /* ascending by kind and inode */
    size_t count;
    size_t fifo_count; /* the last ones */
    uint64_t deadline_ns;
    size_t link_count;
    bp_fd_search found;
    char target[target_bytes_max];
};

static bool make_end(const bp_open_files *process, bp_open_file *file, struct end *ret_end) {
    const char *access = file->info.has_flags ? bp_fd_access(file->info.flags) : NULL;
    struct end end = {.kind = file->kind, .inode = file->inode, .file = file, .pid = process->pid};
    if (file->kind == BP_OPEN_FILE_SOCKET) {
        end.inode =
            file->socket->peer_inode != 0 ? file->socket->peer_inode : file->socket->listener_inode;
        *ret_end = end;
        return end.inode != 0;
    }
    bool is_pipe = file->kind == BP_OPEN_FILE_PIPE || file->kind == BP_OPEN_FILE_FIFO;
    if (!is_pipe || !file->has_inode || access == NULL) {
        return false;
    }
    end.by_reader = strcmp(access, "write") == 0 || strcmp(access, "read_write") == 0;
    end.by_writer = strcmp(access, "read") == 0 || strcmp(access, "read_write") == 0;
    *ret_end = end;
    return end.by_reader || end.by_writer;
}

/* FIFOs last: they are compared by name, one by one. */
static int place_of(const struct end *end) {
    return end->kind == BP_OPEN_FILE_FIFO ? 2 : end->kind == BP_OPEN_FILE_PIPE;
}

static int compare_ends(const void *one, const void *other) {
    const struct end *left = one;
    const struct end *right = other;
    int left_place = place_of(left), right_place = place_of(right);
    return left_place != right_place ? left_place - right_place
                                     : (left->inode > right->inode) - (left->inode < right->inode);
}

static bool list_ends(bp_open_files *processes, size_t count, struct search *search) {
    size_t file_count = 0;
    for (size_t i = 0; i < count; i++) {
        file_count += processes[i].file_count;
    }
    search->ends = calloc(2 * file_count + 1, sizeof *search->ends);
    for (size_t i = 0; search->ends != NULL && i < count; i++) {
        for (size_t j = 0; j < processes[i].file_count; j++) {
            bp_open_file *file = &processes[i].files[j];
            file->has_other_end = make_end(&processes[i], file, &search->ends[search->count]);
            search->fifo_count += file->has_other_end && file->kind == BP_OPEN_FILE_FIFO ? 1 : 0;
            search->count += file->has_other_end ? 1 : 0;
            const bp_socket *socket = file->socket;
            if (socket != NULL && socket->has_queues && socket->receive_queue > 0 &&
                (socket->is_listening || socket->is_accepted)) {
                search->ends[search->count++] = (struct end){.kind = BP_OPEN_FILE_SOCKET,
                                                             .inode = socket->inode,
                                                             .is_itself = true,
                                                             .file = file,
                                                             .pid = processes[i].pid};
            }
        }
    }
    if (search->ends != NULL) {
        qsort(search->ends, search->count, sizeof *search->ends, compare_ends);
    }
    return search->ends != NULL;
}

/* A process that is being searched. */
struct place {
    int fds_fd;
    uint64_t pid;
    char name[64]; /* "": not yet read */
    char state;
};

/* The link's own mode says for what the descriptor is open (tid_fd_update_inode, fs/proc/fd.c). */
static bool has_access(const struct place *place, uint32_t number, const struct end *end) {
    char name[24];
    struct stat info;
    (void)snprintf(name, sizeof name, "%" PRIu32, number);
    bool is_known = fstatat(place->fds_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    return is_known && ((end->by_reader && (info.st_mode & S_IRUSR) != 0) ||
                        (end->by_writer && (info.st_mode & S_IWUSR) != 0));
}

/* False without memory. */
static bool take_holder(struct place *place, uint32_t number, const struct end *end) {
    bp_open_file *file = end->file;
    bool is_itself = end->pid == place->pid && file->number == number;
    if (end->is_itself) {
        file->is_shared = file->is_shared || end->pid != place->pid;
        return true;
    }
    if (is_itself || (end->kind != BP_OPEN_FILE_SOCKET && !has_access(place, number, end))) {
        return true;
    }
    if (file->holders == NULL) {
        file->holders = calloc(BP_FD_HOLDER_MAX, sizeof *file->holders);
    }
    if (file->holders == NULL) {
        return false;
    }
    if (file->holder_count == BP_FD_HOLDER_MAX) {
        file->has_more_holders = true;
        return true;
    }
    bp_proc_stat stat;
    if (place->name[0] == '\0' && bp_proc_read_stat(place->fds_fd, &stat, "../stat") == 0) {
        memcpy(place->name, stat.name, sizeof place->name);
        place->state = stat.state;
    }
    bp_fd_holder *holder = &file->holders[file->holder_count++];
    *holder = (bp_fd_holder){.pid = place->pid, .state = place->state, .number = number};
    memcpy(holder->name, place->name, sizeof holder->name);
    return true;
}

static bool is_same_fifo(const struct place *place, const char *link, const struct end *end) {
    struct statx info;
    return statx(place->fds_fd, link, AT_STATX_DONT_SYNC, STATX_INO, &info) == 0 &&
           info.stx_ino == end->file->inode &&
           ((uint64_t)info.stx_dev_major << 32 | info.stx_dev_minor) == end->file->device;
}

static bool check_link(struct search *search, struct place *place, uint32_t number) {
    char link[24];
    (void)snprintf(link, sizeof link, "%" PRIu32, number);
    ssize_t length = readlinkat(place->fds_fd, link, search->target, target_bytes_max - 1);
    search->target[length < 0 ? 0 : length] = '\0';
    struct end key = {.inode = 0};
    bool has_memory = true;
    bool is_pipe = bp_open_file_inode(search->target, "pipe", &key.inode);
    if (is_pipe || bp_open_file_inode(search->target, "socket", &key.inode)) {
        key.kind = is_pipe ? BP_OPEN_FILE_PIPE : BP_OPEN_FILE_SOCKET;
        for (size_t i =
                 bp_array_find_first(&key, search->ends, search->count, sizeof key, compare_ends);
             has_memory && i < search->count && compare_ends(&search->ends[i], &key) == 0; i++) {
            has_memory = take_holder(place, number, &search->ends[i]);
        }
        return has_memory;
    }
    for (size_t i = search->count - search->fifo_count; has_memory && i < search->count; i++) {
        const struct end *end = &search->ends[i];
        if (strcmp(search->target, end->file->target) == 0 && is_same_fifo(place, link, end)) {
            has_memory = take_holder(place, number, end);
        }
    }
    return has_memory;
}

/* False without memory. */
static bool search_process(struct search *search, int proc_fd, uint64_t pid) {
    bp_proc_list list = {.count = 0};
    struct place place = {.pid = pid};
    place.fds_fd = bp_proc_open_at(proc_fd, O_RDONLY | O_DIRECTORY, "%" PRIu64 "/fd", pid);
    int result = place.fds_fd < 0 ? errno : bp_proc_list_read(place.fds_fd, NULL, &list);
    bool has_memory = result != ENOMEM;
    size_t at = 0;
    while (has_memory && at < list.count && search->link_count < link_max &&
           bp_clock_monotonic_ns() <= search->deadline_ns) {
        has_memory = check_link(search, &place, (uint32_t)list.items[at++].id);
        search->link_count++;
    }
    search->found.is_cut = search->found.is_cut || at < list.count;
    search->found.process_count += result == 0 && at == list.count ? 1 : 0;
    search->found.denied_count += result == EACCES || result == EPERM ? 1 : 0;
    bp_proc_list_release(&list);
    bp_file_close(place.fds_fd);
    return has_memory;
}

bugpack_status bp_open_files_find_ends(bp_open_files *processes, size_t count, uint64_t deadline_ns,
                                       bp_fd_search *ret_search, bugpack_error *error) {
    uint64_t latest_ns = bp_clock_monotonic_ns() + search_max_ns;
    struct search *search = calloc(1, sizeof *search);
    bp_proc_list pids = {.count = 0};
    int proc_fd = -1;
    bool has_memory = search != NULL && list_ends(processes, count, search);
    if (has_memory && search->count > 0) {
        search->found.was_needed = true;
        search->deadline_ns = deadline_ns < latest_ns ? deadline_ns : latest_ns;
        proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int result = proc_fd < 0 ? errno : bp_proc_list_read(proc_fd, NULL, &pids);
        search->found.is_cut = result != 0;
        has_memory = result != ENOMEM;
    }
    size_t at = 0;
    for (; has_memory && at < pids.count && bp_clock_monotonic_ns() <= search->deadline_ns; at++) {
        has_memory = search_process(search, proc_fd, pids.items[at].id);
    }
    if (has_memory) {
        search->found.is_cut = search->found.is_cut || at < pids.count;
        *ret_search = search->found;
    }
    bp_file_close(proc_fd);
    bp_proc_list_release(&pids);
    if (search != NULL) {
        free(search->ends);
    }
    free(search);
    return has_memory ? BUGPACK_OK : bp_fail_memory(error, "find the other ends of pipes");
}
