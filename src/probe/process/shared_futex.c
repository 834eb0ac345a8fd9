#include "process/shared_futex.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_list.h"
#include "platform/linux/proc_text.h"

static const uint64_t search_max_ns = 100 * BP_NS_PER_MS;

/* Reads the maps below a directory of /proc. 0 or an errno. */
static int read_maps(int dir_fd, const char *path, bp_buffer *ret_text) {
    static const size_t maps_max_bytes = (size_t)16 << 20;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer_init(ret_text, maps_max_bytes);
    if (bp_file_read_at(dir_fd, path, ret_text, &error) == BUGPACK_OK) {
        return 0;
    }
    return error.system_errno != 0 ? error.system_errno : EIO;
}

/* The map at an address, if it is shared, and anonymous or of a file that only sem_open(3) makes:
 * another one may be open somewhere without being mapped. */
static bool find_map(const bp_buffer *text, uint64_t address, bp_proc_map *ret_map) {
    static const char anonymous[] = "/dev/zero (deleted)", semaphore[] = "/dev/shm/sem.";
    bp_proc_scan scan = {text->data, text->data + text->size};
    bp_proc_map map;
    while (bp_proc_take_map(&scan, &map)) {
        if (map.start <= address && address < map.end) {
            size_t bytes = sizeof semaphore - 1;
            bool is_anonymous = map.path_bytes == sizeof anonymous - 1 &&
                                memcmp(map.path, anonymous, map.path_bytes) == 0;
            *ret_map = map;
            return map.is_shared && (is_anonymous || (map.path_bytes > bytes &&
                                                      memcmp(map.path, semaphore, bytes) == 0));
        }
    }
    return false;
}

static bool has_map(const bp_buffer *text, const bp_proc_map *wanted) {
    bp_proc_scan scan = {text->data, text->data + text->size};
    bp_proc_map map;
    while (bp_proc_take_map(&scan, &map)) {
        if (map.inode == wanted->inode && map.device_major == wanted->device_major &&
            map.device_minor == wanted->device_minor) {
            return true;
        }
    }
    return false;
}

/* True if all other processes were looked at, and none has the map. The newest come first: most
 * often it is a child, or a sibling. Few may look at process 1; a process that is not its child
 * shares memory with it only through its own parent. */
static bool is_mapped_once(int thread_fd, uint64_t pid, const bp_proc_map *map) {
    uint64_t end_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + search_max_ns;
    bp_proc_list pids = {.count = 0};
    bp_proc_stat stat;
    bool is_read = bp_proc_read_stat(thread_fd, &stat, "stat") == 0;
    bool has_parent = is_read && stat.parent_pid != 1;
    /* Hidden processes (hidepid in proc(5)) are not listed, nor is the first then; the number of a
     * parent outside of our namespace is 0. */
    bool is_once = is_read && (stat.parent_pid != 0 || pid == 1) &&
                   bp_proc_list_read(thread_fd, "../../..", &pids) == 0 && pids.count > 0 &&
                   pids.items[0].id == 1;
    for (size_t i = pids.count; is_once && i > 0; i--) {
        char path[48];
        bp_buffer text;
        if (pids.items[i - 1].id == pid) {
            continue;
        }
        (void)snprintf(path, sizeof path, "../../../%" PRIu64 "/maps", pids.items[i - 1].id);
        int result = read_maps(thread_fd, path, &text);
        bool is_nobody = bp_proc_is_gone(result) || (pids.items[i - 1].id == 1 && has_parent);
        is_once = (result == 0 || is_nobody) && !has_map(&text, map) &&
                  bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns;
        bp_buffer_release(&text);
    }
    bp_proc_list_release(&pids);
    return is_once;
}

/* The name of a semaphore's file: the one in maps is that by which it was made (sem_open in
 * sysdeps/pthread/sem_open.c of glibc). False where the folder cannot be read. */
static bool find_name(int thread_fd, uint64_t inode, char ret_name[BP_SHARED_FUTEX_NAME_BYTES]) {
    int fd = bp_proc_open_at(thread_fd, O_RDONLY | O_DIRECTORY, "../../root/dev/shm");
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    ret_name[0] = '\0';
    if (folder == NULL) {
        bp_file_close(fd);
        return false;
    }
    errno = 0;
    for (const struct dirent *entry; ret_name[0] == '\0' && (entry = readdir(folder)) != NULL;) {
        if (entry->d_ino == inode) {
            (void)snprintf(ret_name, BP_SHARED_FUTEX_NAME_BYTES, "%s", entry->d_name);
        }
    }
    bool is_read = errno == 0;
    (void)closedir(folder);
    return is_read;
}

bool bp_shared_futex_is_alone(int thread_fd, uint64_t pid, uint64_t address,
                              char ret_name[BP_SHARED_FUTEX_NAME_BYTES]) {
    bp_buffer text;
    bp_proc_map map;
    bool is_alone = read_maps(thread_fd, "maps", &text) == 0 && find_map(&text, address, &map) &&
                    is_mapped_once(thread_fd, pid, &map);
    ret_name[0] = '\0';
    /* Anonymous memory has an inode of another file system, and no name. */
    if (is_alone && strncmp(map.path, "/dev/shm/", 9) == 0) {
        is_alone = find_name(thread_fd, map.inode, ret_name);
    }
    bp_buffer_release(&text);
    return is_alone;
}
