#include "probe/system_package.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "platform/linux/files.h"
#include "probe/tool.h"

static const size_t list_bytes_max = (size_t)8 << 20;
static const size_t status_bytes_max = (size_t)64 << 20;

/* An answer takes 20 ms. One that waits for a lock would hold up the entries that come next. */
static const uint64_t rpm_max_ns = 5 * BP_NS_PER_SEC;

/* Since Linux 5.6; before that, nothing of another root is opened. */
int bp_system_open_below(int root_fd, const char *path, int flags) {
    const struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
}

int bp_system_open(int root_fd, const char *path) {
    int path_fd = bp_system_open_below(root_fd, path, O_PATH);
    return path_fd < 0 ? -1 : bp_reopen_regular(path_fd);
}

/* Reads a file whole into a buffer that is used again. */
static bool read_whole(int fd, const char *name, bp_buffer *text) {
    bp_buffer_clear(text);
    bool is_read = fd >= 0 && bp_file_read_fd(fd, name, text, NULL) == BUGPACK_OK;
    bp_file_close(fd);
    return is_read;
}

/* /usr/bin/ls is /bin/ls in the list of a package from before the directories were merged. */
static bool has_file(const bp_buffer *list, const char *path) {
    static const char merged[] = "/usr";
    return bp_dpkg_list_has(list->data, list->size, path) ||
           (strncmp(path, merged, sizeof merged - 1) == 0 &&
            bp_dpkg_list_has(list->data, list->size, path + sizeof merged - 1));
}

static bool find_list(int lists_fd, const char *path, uint64_t deadline_ns,
                      bp_package *ret_package) {
    bool is_found = false;
    bp_buffer list;
    bp_package package;
    bp_buffer_init(&list, list_bytes_max);
    DIR *lists = fdopendir(lists_fd);
    while (lists != NULL && !is_found && bp_clock_monotonic_ns() <= deadline_ns) {
        const struct dirent *entry = readdir(lists);
        if (entry == NULL) {
            break;
        }
        if (bp_dpkg_name(entry->d_name, &package)) {
            int path_fd = openat(dirfd(lists), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
            int fd = path_fd < 0 ? -1 : bp_reopen_regular(path_fd);
            is_found = read_whole(fd, entry->d_name, &list) && has_file(&list, path);
        }
    }
    if (lists != NULL) {
        (void)closedir(lists);
    } else {
        bp_file_close(lists_fd);
    }
    bp_buffer_release(&list);
    if (is_found) {
        *ret_package = package;
    }
    return is_found;
}

/* Packages have files elsewhere, too, but no programs (Debian policy 9.1): to search costs more
 * than all the rest of system.json. */
static bool may_be_packaged(const char *path) {
    static const char *const places[] = {"/usr/", "/bin/", "/sbin/", "/lib", "/opt/"};
    static const char local[] = "/usr/local/";
    bool is_there = false;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        is_there = is_there || strncmp(path, places[i], strlen(places[i])) == 0;
    }
    return is_there && strncmp(path, local, sizeof local - 1) != 0;
}

bool bp_system_find_package(int root_fd, const char *path, uint64_t deadline_ns,
                            bp_package *ret_package) {
    static const char status_path[] = "var/lib/dpkg/status";
    bp_package package;
    int lists_fd = !may_be_packaged(path)
                       ? -1
                       : bp_system_open_below(root_fd, "var/lib/dpkg/info", O_RDONLY | O_DIRECTORY);
    if (lists_fd < 0 || !find_list(lists_fd, path, deadline_ns, &package)) {
        return false;
    }
    bp_buffer status;
    bp_buffer_init(&status, status_bytes_max);
    bool is_found = read_whole(bp_system_open(root_fd, status_path), status_path, &status) &&
                    bp_dpkg_find(status.data, status.size, &package);
    bp_buffer_release(&status);
    if (is_found) {
        *ret_package = package;
    }
    return is_found;
}

/* Of SQLite, of ndb and of Berkeley DB (lib/backend in the sources of rpm); the directory was
 * another one before rpm 4.17. NULL: there is none. */
static const char *find_rpm_database(void) {
    static const char *const directories[] = {"/usr/lib/sysimage/rpm", "/var/lib/rpm"};
    static const char *const files[] = {"rpmdb.sqlite", "Packages.db", "Packages"};
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
        for (size_t k = 0; k < sizeof files / sizeof files[0]; k++) {
            char path[64];
            (void)snprintf(path, sizeof path, "%s/%s", directories[i], files[k]);
            if (access(path, F_OK) == 0) {
                return directories[i];
            }
        }
    }
    return NULL;
}

bool bp_system_ask_rpm(const char *path, uint64_t deadline_ns, bp_package *ret_package,
                       bool *ret_is_late) {
    static char words[][64] = {"rpm",           "--query",     "--file",
                               "--queryformat", BP_RPM_FORMAT, "--dbpath"};
    static char home[] = "HOME=/dev/null", locale[] = "LC_ALL=C"; /* home has macros and aliases */
    char *environment[] = {home, locale, NULL};
    char answer[4096];
    size_t length;
    uint64_t latest_ns = bp_clock_monotonic_ns() + rpm_max_ns;
    const char *database = may_be_packaged(path) ? find_rpm_database() : NULL;
    char *arguments[] = {words[0],
                         words[1],
                         words[2],
                         words[3],
                         words[4],
                         words[5],
                         (char *)(uintptr_t)database,
                         (char *)(uintptr_t)path,
                         NULL};
    const bp_tool rpm = {.path = "/usr/bin/rpm",
                         .arguments = arguments,
                         .environment = environment,
                         .extra_fd = -1,
                         .deadline_ns = latest_ns < deadline_ns ? latest_ns : deadline_ns};
    int result = database == NULL ? ENOENT : bp_tool_run(&rpm, answer, sizeof answer, &length);
    *ret_is_late = result == ETIMEDOUT;
    return result == 0 && bp_rpm_parse(answer, length, ret_package);
}
