#include "run/ask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/ask_socket.h"
#include "platform/machine.h"
#include "recorder/session_files.h"

struct list {
    pid_t pid;
    bp_run_answering *sessions;
    size_t count;
};

static bool has_socket(int dir_fd) {
    struct stat info;
    return fstatat(dir_fd, BP_ASK_SOCKET_NAME, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISSOCK(info.st_mode);
}

static bool is_listed(const struct list *list, int dir_fd) {
    struct stat info, other;
    bool is_found = false;
    for (size_t i = 0; !is_found && i < list->count; i++) {
        is_found = fstat(dir_fd, &info) == 0 && fstat(list->sessions[i].dir_fd, &other) == 0 &&
                   info.st_ino == other.st_ino && info.st_dev == other.st_dev;
    }
    return is_found;
}

/* Takes `dir_fd` over. */
static bugpack_status add_session(struct list *list, int dir_fd,
                                  const bp_session_identity *identity, pid_t mapped_pid,
                                  bugpack_error *error) {
    bp_run_answering *sessions =
        realloc(list->sessions, (list->count + 1) * sizeof *list->sessions);
    if (sessions == NULL) {
        bp_file_close(dir_fd);
        return bp_fail_memory(error, "list the sessions");
    }
    list->sessions = sessions;
    bp_run_answering *added = &sessions[list->count++];
    *added = (bp_run_answering){.pid = mapped_pid != 0 ? mapped_pid : (pid_t)identity->pid,
                                .target_pid = (pid_t)identity->target_pid,
                                .is_mapped = mapped_pid != 0,
                                .dir_fd = dir_fd};
    (void)snprintf(added->app_name, sizeof added->app_name, "%s", identity->app_name);
    (void)snprintf(added->target_name, sizeof added->target_name, "%s", identity->target_name);
    return BUGPACK_OK;
}

/* One directory below a base: a session that can be asked is added to the list. Of one whose
 * process has ended, nobody answers. */
static bugpack_status look(struct list *list, int base_fd, const char *name, bugpack_error *error) {
    bp_session_identity identity;
    if (!bp_session_name_read(name, &identity)) {
        return BUGPACK_OK;
    }
    int dir_fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd >= 0 && bp_session_identity_read(dir_fd, &identity, NULL) == BUGPACK_OK &&
        (list->pid == 0 || list->pid == identity.pid || list->pid == identity.target_pid) &&
        has_socket(dir_fd) && (kill((pid_t)identity.pid, 0) == 0 || errno == EPERM)) {
        return add_session(list, dir_fd, &identity, 0, error);
    }
    bp_file_close(dir_fd);
    return BUGPACK_OK;
}

/* Of bp_mapped_dirs. The directory is this user's, or any one's where root names a process. Who
 * answers there has to be that process, which the peer of the socket says. */
static bugpack_status look_mapped(void *context, pid_t pid, int dir_fd, bugpack_error *error) {
    struct list *list = context;
    struct stat info;
    bp_session_identity identity;
    bool is_root_asking = list->pid != 0 && geteuid() == 0;
    if (fstat(dir_fd, &info) == 0 && (info.st_uid == geteuid() || is_root_asking) &&
        bp_session_is_of(dir_fd, pid, &identity) &&
        (list->pid == 0 || list->pid == pid ||
         (identity.pid == pid && list->pid == identity.target_pid)) &&
        has_socket(dir_fd) && !is_listed(list, dir_fd)) {
        return add_session(list, dir_fd, &identity, pid, error);
    }
    bp_file_close(dir_fd);
    return BUGPACK_OK;
}

static bugpack_status search(struct list *list, const bp_ring_base *base, bugpack_error *error) {
    int base_fd = -1;
    bugpack_status status = BUGPACK_OK;
    if (bp_ring_base_open(base, false, &base_fd, NULL) != BUGPACK_OK) {
        return status; /* none of ours is there */
    }
    DIR *listing = bp_file_list_directory(base_fd);
    struct dirent *entry;
    while (status == BUGPACK_OK && listing != NULL && (entry = readdir(listing)) != NULL) {
        status = look(list, base_fd, entry->d_name, error);
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    bp_file_close(base_fd);
    return status;
}

bugpack_status bp_run_ask_list(pid_t pid, bp_run_answering **ret_sessions, size_t *ret_count,
                               bugpack_error *error) {
    struct list list = {.pid = pid};
    unsigned cursor = 0;
    bp_ring_dir *choice = malloc(sizeof *choice);
    bugpack_status status =
        choice == NULL ? bp_fail_memory(error, "list the sessions") : BUGPACK_OK;
    while (status == BUGPACK_OK && bp_ring_dirs_next(&cursor, choice)) {
        const bp_ring_base base = {choice->path, true, false};
        status = search(&list, &base, error);
    }
    free(choice);
    if (status == BUGPACK_OK && (pid == 0 || list.count == 0)) {
        const bp_mapped_dirs dirs = {bp_session_is_name, look_mapped, &list};
        /* Only root may look through the processes of other users. */
        status = bp_mapped_dirs_visit(&dirs, geteuid() == 0 ? 0 : pid, error);
    }
    if (status != BUGPACK_OK) {
        bp_run_ask_free(list.sessions, list.count);
        return status;
    }
    *ret_sessions = list.sessions;
    *ret_count = list.count;
    return BUGPACK_OK;
}

void bp_run_ask_free(bp_run_answering *sessions, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bp_file_close(sessions[i].dir_fd);
    }
    free(sessions);
}

/* Reads until the other end closes. False: the time is up. */
static bool read_answer(int fd, uint64_t deadline_ns, char *answer, size_t answer_bytes) {
    size_t used = 0;
    for (;;) {
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        int ready = poll(&wanted, 1, bp_clock_poll_ms(deadline_ns));
        ssize_t count = ready > 0 ? read(fd, answer + used, answer_bytes - 1 - used) : -1;
        if (ready == 0 || (ready < 0 && errno != EINTR)) {
            return false;
        }
        if (count > 0) {
            used += (size_t)count;
        } else if (count == 0 || (ready > 0 && errno != EINTR)) {
            answer[used] = '\0';
            return true;
        }
    }
}

bugpack_status bp_run_ask(const bp_run_answering *session, uint64_t max_zip_bytes,
                          uint64_t deadline_ns, uint32_t *ret_missing_count, char *ret_path,
                          size_t path_bytes, bugpack_error *error) {
    char answer[8192], request[BP_ASK_REQUEST_BYTES] = "";
    int fd = -1;
    if (max_zip_bytes > 0) {
        (void)snprintf(request, sizeof request, BP_ASK_MAX_SIZE "%" PRIu64, max_zip_bytes);
    }
    bugpack_status status = bp_ask_socket_connect(
        session->dir_fd, session->is_mapped ? session->pid : 0, request, deadline_ns, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bool is_in_time = read_answer(fd, deadline_ns, answer, sizeof answer);
    bp_file_close(fd);
    if (!is_in_time) {
        return bp_fail(error, BUGPACK_ERR_TIMEOUT, "the report is not written yet");
    }
    int number = 0, text_at = 0;
    unsigned missing_count = 0;
    uint64_t limit_bytes = 0;
    char *end = strstr(answer, BP_ASK_LIMIT);
    if (end != NULL) {
        limit_bytes = strtoull(end + strlen(BP_ASK_LIMIT), NULL, 10);
    } else {
        end = strchr(answer, '\n');
    }
    if (end == NULL || sscanf(answer, "%d %u %n", &number, &missing_count, &text_at) != 2 ||
        text_at == 0 || number > 0) {
        return bp_fail(error, BUGPACK_ERR_IO, "it ended before it had written the report");
    }
    *end = '\0';
    if (number != BUGPACK_OK) {
        return bp_fail(error, (bugpack_status)number, "%s", answer + text_at);
    }
    if (max_zip_bytes > 0 && (limit_bytes == 0 || limit_bytes > max_zip_bytes)) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "it does not know a limit of size, and has written the whole report: %s",
                       answer + text_at);
    }
    (void)snprintf(ret_path, path_bytes, "%s", answer + text_at);
    *ret_missing_count = missing_count;
    return BUGPACK_OK;
}
