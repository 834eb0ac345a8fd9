#include "cli/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/output.h"
#include "run/aside.h"

enum { piece_bytes = 64 * 1024 };

/* /dev/shm holds files. */
static bool is_below_dev(const char *absolute) {
    const char *at = absolute + strspn(absolute, "/");
    bool is_below = strncmp(at, "dev/", 4) == 0 || strcmp(at, "dev") == 0;
    bool is_memory = strncmp(at, "dev/shm", 7) == 0 && (at[7] == '/' || at[7] == '\0');
    return is_below && !is_memory;
}

static bool leads_below_dev(const char *path) {
    char *real = realpath(path, NULL);
    bool is_below = real != NULL && is_below_dev(real);
    free(real);
    return is_below;
}

/* As it is written, where it leads, and where a file would be that is not there yet. */
static bool is_device(const char *path) {
    char *absolute = NULL;
    if (bp_file_absolute_path(path, &absolute, NULL) != BUGPACK_OK) {
        return false;
    }
    bool is_device = is_below_dev(absolute) || leads_below_dev(absolute);
    char *name = strrchr(absolute, '/');
    if (name != NULL) {
        *name = '\0';
        is_device = is_device || leads_below_dev(absolute);
    }
    free(absolute);
    return is_device;
}

/* In a child. */
static void look(const void *path, void *answer, int out_fd) {
    (void)answer;
    (void)out_fd;
    (void)is_device(path);
    bp_file_close(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool bp_cli_check_current_dir(void) {
    if (bp_run_stalls(look, ".")) {
        bp_cli_say("the file system of the current directory does not answer: use --output-dir");
        return false;
    }
    return true;
}

static bool read_path(const bp_cli_option *option, const char *text, void *field,
                      const char *advice) {
    if (bp_run_stalls(look, text)) {
        bp_cli_say_usage("--%s: the file system of '%s' does not answer", option->name, text);
        return false;
    }
    if (is_device(text)) {
        bp_cli_say_usage("--%s: '%s' is no place for a report%s", option->name, text, advice);
        return false;
    }
    return bp_cli_read_text(option, text, field);
}

bool bp_cli_read_output(const bp_cli_option *option, const char *text, void *field) {
    const char *name = bp_file_base_name(text);
    if (!read_path(option, text, field, "; - is standard output")) {
        return false;
    }
    if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        bp_cli_say_usage("--%s: cannot write '%s': it names no file", option->name, text);
        return false;
    }
    return true;
}

bool bp_cli_read_output_dir(const bp_cli_option *option, const char *text, void *field) {
    return read_path(option, text, field, "");
}

bool bp_cli_is_streamed(const char *output_path) {
    return output_path != NULL && strcmp(output_path, "-") == 0;
}

char *bp_cli_streamed_begin(bp_cli_exit *ret_exit) {
    const char *above = getenv("TMPDIR");
    char *dir = NULL;
    above = above != NULL && above[0] == '/' ? above : "/tmp";
    if (isatty(STDOUT_FILENO)) {
        *ret_exit = bp_cli_say_usage("--output - writes the zip to standard output, which is a "
                                     "terminal");
        return NULL;
    }
    *ret_exit = BP_CLI_FAILED;
    if (bp_run_stalls(look, above)) {
        bp_cli_say("the file system of '%s' does not answer: set TMPDIR", above);
        return NULL;
    }
    if (asprintf(&dir, "%s/bugpack-XXXXXX", above) < 0) {
        bp_cli_say("cannot prepare a report: out of memory");
        return NULL;
    }
    if (mkdtemp(dir) == NULL) {
        bp_cli_say("cannot make a directory \"%s\": %s", dir, strerror(errno));
        free(dir);
        return NULL;
    }
    return dir;
}

static bool copy(int fd) {
    char piece[piece_bytes];
    int failure = 0;
    int64_t count = 1;
    for (uint64_t at = 0; count > 0 && failure == 0; at += (uint64_t)count) {
        count = bp_file_read_range(fd, piece, sizeof piece, at);
        failure = count < 0 ? errno : bp_file_write_all(STDOUT_FILENO, piece, (size_t)count);
    }
    if (failure != 0) {
        bp_cli_say("cannot write the report to standard output: %s", strerror(failure));
    }
    return failure == 0;
}

bool bp_cli_streamed_end(char *dir, const char *path) {
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool is_good = path == NULL || fd >= 0;
    if (!is_good) {
        bp_cli_say("cannot read \"%s\": %s", path, strerror(errno));
    }
    if (path != NULL) {
        (void)unlink(path);
    }
    if (dir != NULL) {
        (void)rmdir(dir);
        free(dir);
    }
    is_good = is_good && (fd < 0 || copy(fd));
    bp_file_close(fd);
    return is_good;
}
