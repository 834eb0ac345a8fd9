#include "unit/proc_recording.h"
#include "unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

static void read_file(const char *path, char *out, size_t out_bytes) {
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert(fd >= 0, "%s: %s", path, strerror(errno));
    ssize_t length = read(fd, out, out_bytes - 1);
    cr_assert(length > 0 && (size_t)length < out_bytes - 1, "%s has %zd bytes", path, length);
    out[length] = '\0';
}

/* Finds "\nkey " or a text that begins with "key ", and returns what follows. */
static const char *find_value(const char *text, const char *key) {
    size_t key_bytes = strlen(key);
    while (text != NULL && (strncmp(text, key, key_bytes) != 0 || text[key_bytes] != ' ')) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    cr_assert(text != NULL, "there is no \"%s\"", key);
    return text + key_bytes + 1;
}

static uint64_t number_of(const char *text, const char *key) {
    return strtoull(find_value(text, key), NULL, 10);
}

static bp_proc_root open_root(const char *path, const char *label, const char *clocks) {
    char name[512];
    bp_proc_root root = {.is_recording = true,
                         .ticks_per_sec = number_of(clocks, "ticks_per_sec"),
                         .page_bytes = number_of(clocks, "page_bytes")};
    (void)snprintf(name, sizeof name, "%s/%s", path, label);
    root.fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    cr_assert(root.fd >= 0, "%s: %s", name, strerror(errno));
    (void)snprintf(name, sizeof name, "%s_monotonic_ns", label);
    root.monotonic_ns = number_of(clocks, name);
    (void)snprintf(name, sizeof name, "%s_boottime_ns", label);
    root.boottime_ns = number_of(clocks, name);
    (void)snprintf(name, sizeof name, "%s_wall_ns", label);
    root.wall_ns = number_of(clocks, name);
    return root;
}

void recording_open(const char *name, proc_recording *ret_recording) {
    char path[256];
    char file[300];
    char clocks[2048];
    (void)snprintf(path, sizeof path, "%s/proc/%s", BUGPACK_FIXTURES, name);
    (void)snprintf(file, sizeof file, "%s/clocks.txt", path);
    read_file(file, clocks, sizeof clocks);
    ret_recording->pid = (pid_t)number_of(clocks, "pid");
    ret_recording->first = open_root(path, "first", clocks);
    ret_recording->second = open_root(path, "second", clocks);
    (void)snprintf(file, sizeof file, "%s/expected.txt", path);
    read_file(file, ret_recording->expected, sizeof ret_recording->expected);
}

void recording_close(proc_recording *recording) {
    (void)close(recording->first.fd);
    (void)close(recording->second.fd);
}

void recording_expect(const proc_recording *recording, const char *key, char *out,
                      size_t out_bytes) {
    const char *value = find_value(recording->expected, key);
    (void)snprintf(out, out_bytes, "%.*s", (int)strcspn(value, "\n"), value);
}

void made_proc_init(made_proc *made) {
    const char *top = getenv("TMPDIR");
    (void)snprintf(made->path, sizeof made->path, "%.40s/bugpack-proc-XXXXXX",
                   top != NULL && strlen(top) <= 40 ? top : "/tmp");
    cr_assert(mkdtemp(made->path) != NULL, "%s: %s", made->path, strerror(errno));
    made->root = (bp_proc_root){.is_recording = true,
                                .ticks_per_sec = 100,
                                .page_bytes = 4096,
                                .monotonic_ns = 5000000000,
                                .boottime_ns = 60000000000,
                                .wall_ns = 1700000000000000000};
    made->root.fd = open(made->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert(made->root.fd >= 0);
    cr_assert(mkdirat(made->root.fd, "7", 0700) == 0);
    cr_assert(mkdirat(made->root.fd, "7/task", 0700) == 0);
    cr_assert(mkdirat(made->root.fd, "7/task/7", 0700) == 0);
    made_proc_write(made, "7/stat", MADE_STAT("S", "50", "1000"));
    made_proc_write(made, "7/task/7/stat", MADE_STAT("S", "50", "1000"));
    made_proc_write(made, "7/statm", "100 25 5 1 0 7 0\n");
    made_proc_write(made, "7/status", "Name:\tmade\nTgid:\t7\nPid:\t7\n");
}

void made_proc_write(const made_proc *made, const char *name, const char *text) {
    CLEANUP(close_fd)
    int fd = openat(made->root.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert(fd >= 0, "%s: %s", name, strerror(errno));
    cr_assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

void made_proc_remove(const made_proc *made, const char *name) {
    cr_assert(unlinkat(made->root.fd, name, 0) == 0, "%s: %s", name, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    return remove(path);
}

void made_proc_release(made_proc *made) {
    (void)close(made->root.fd);
    (void)nftw(made->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
