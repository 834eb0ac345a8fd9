#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/file.h"
#include "cli/option.h"
#include "cli/output.h"
#include "entries/report_file.h"
#include "facts/facts.h"

/* A report, and what came of it. */
typedef struct indexed {
    char *path;
    uint64_t bytes;
    bp_buffer line;
    bugpack_error error;
    bugpack_status status;
} indexed;

/* Reports are read in groups, each by all threads, so that lines come in order and memory is
 * bounded. */
enum { group_max = 512, thread_max = 16, descriptor_max = 16 };

/* A report's line has room for 131,072 names of threads. */
static const size_t line_max_bytes = (size_t)16 << 20;

/* nftw has no context. */
static struct {
    indexed *reports;
    size_t count, capacity;
    bool lacks_memory;
    bool is_refused; /* something that was named */
    bool has_unread; /* a directory below */
    bool has_input;
} list;

static void add_report(const char *path, uint64_t byte_count) {
    char *copy = strdup(path);
    if (copy == NULL || !bp_array_reserve(&list.reports, list.count, &list.capacity)) {
        list.lacks_memory = true;
        free(copy);
    } else {
        list.reports[list.count++] = (indexed){.path = copy, .bytes = byte_count};
    }
}

static int visit(const char *path, const struct stat *info, int kind, struct FTW *place) {
    size_t length = strlen(path);
    if (kind == FTW_DNR) {
        bp_cli_say("cannot read the directory \"%s\"", path);
        list.has_unread = true;
        list.is_refused = place->level == 0;
    } else if (kind == FTW_F && S_ISREG(info->st_mode) && length > 4 &&
               strcmp(path + length - 4, ".zip") == 0) {
        add_report(path, info->st_size > 0 ? (uint64_t)info->st_size : 0);
    } else if (kind != FTW_D && place->level == 0) {
        bp_cli_say("\"%s\" is neither a directory nor a report (*.zip)", path);
        list.is_refused = true;
    }
    return list.lacks_memory || list.is_refused;
}

/* A link that is named is followed, and none below. */
static int walk(const char *path) {
    struct stat info;
    bool is_link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
    char *target = is_link ? realpath(path, NULL) : NULL;
    int result = -1;
    if (!is_link || target != NULL) {
        result = nftw(is_link ? target : path, visit, descriptor_max, FTW_PHYS);
    }
    free(target);
    return result;
}

/* Standard input becomes a copy of itself, whose size is known; it is read once. */
static void add_input(void) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    struct stat info = {.st_size = 0};
    int fd = -1;
    bool is_read = !list.has_input && bp_report_input_open("-", &fd, &error) == BUGPACK_OK;
    if (is_read && fstat(fd, &info) == 0 && dup2(fd, STDIN_FILENO) >= 0) {
        (void)lseek(STDIN_FILENO, 0, SEEK_SET);
        add_report("-", (uint64_t)info.st_size);
    } else {
        bp_cli_say("%s", list.has_input ? "standard input is named twice" : error.message);
        list.is_refused = true;
    }
    list.has_input = true;
    bp_file_close(fd);
}

/* --- reading ------------------------------------------------------------------------------ */

typedef struct report_group {
    indexed *reports;
    size_t count;
    atomic_size_t next;
} report_group;

static void *read_group(void *context) {
    report_group *group = context;
    for (size_t i; (i = atomic_fetch_add(&group->next, 1)) < group->count;) {
        indexed *report = &group->reports[i];
        report->error = (bugpack_error)BUGPACK_ERROR_INIT;
        bp_buffer_init(&report->line, line_max_bytes);
        report->status = bp_index_line(report->path, report->bytes, &report->line, &report->error);
    }
    return NULL;
}

/* Reads a group with as many threads as there are processors; this one is the first of them. */
static void read_all(indexed *reports, size_t count) {
    pthread_t threads[thread_max];
    report_group group = {.reports = reports, .count = count};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t started = 0;
    while (started + 1 < (size_t)(processors > 1 ? processors : 1) && started < thread_max &&
           pthread_create(&threads[started], NULL, read_group, &group) == 0) {
        started++;
    }
    (void)read_group(&group);
    while (started > 0) {
        (void)pthread_join(threads[--started], NULL);
    }
}

/* Prints the lines, and names the reports that have none. Whether all have one. */
static bool print_all(indexed *reports, size_t count) {
    bool has_all = true;
    for (size_t i = 0; i < count; i++) {
        if (reports[i].status == BUGPACK_OK) {
            (void)fwrite(bp_buffer_text(&reports[i].line), 1, reports[i].line.size, stdout);
        } else {
            bp_cli_say("%s", reports[i].error.message);
            has_all = false;
        }
        bp_buffer_release(&reports[i].line);
    }
    return has_all;
}

static int compare_reports(const void *one, const void *other) {
    return strcmp(((const indexed *)one)->path, ((const indexed *)other)->path);
}

static bp_cli_exit index_all(void) {
    bool has_all = !list.has_unread;
    if (list.count > 0) {
        qsort(list.reports, list.count, sizeof *list.reports, compare_reports);
    }
    for (size_t at = 0; at < list.count; at += group_max) {
        size_t count = list.count - at < group_max ? list.count - at : group_max;
        read_all(list.reports + at, count);
        has_all &= print_all(list.reports + at, count);
    }
    bp_cli_exit result = bp_cli_finish_output();
    return result == BP_CLI_COMPLETE && !has_all ? BP_CLI_INCOMPLETE : result;
}

static const bp_cli_option option_rows[] = {BP_CLI_OPTIONS_END};

static bp_cli_exit run(void *none, char **operands) {
    bp_cli_exit result = BP_CLI_COMPLETE;
    (void)none;
    /* libzip asks for the local time of each entry, which nobody looks at. Without TZ, glibc reads
     * the file of the time zone each time, under a lock: a tenth of all CPU time. */
    (void)setenv("TZ", "UTC", 1);
    for (size_t i = 0; result == BP_CLI_COMPLETE && operands[i] != NULL; i++) {
        bool is_input = strcmp(operands[i], "-") == 0;
        if (is_input) {
            add_input();
        }
        if (!is_input && walk(operands[i]) < 0) {
            bp_cli_say("cannot read \"%s\": %s", operands[i], strerror(errno));
            result = BP_CLI_FAILED;
        } else if (list.lacks_memory) {
            bp_cli_say("out of memory");
            result = BP_CLI_FAILED;
        } else if (list.is_refused) {
            result = BP_CLI_FAILED;
        }
    }
    return result == BP_CLI_COMPLETE ? index_all() : result;
}

const bp_cli_command bp_cli_index_command = {
    "index",
    "print one line of JSON for each report",
    "Usage: bugpack index DIR...\n"
    "\n"
    "Print one flat line of JSON for each report in the directories and below them,\n"
    "in the order of their paths. What is no report is named and left out.\n"
    "A report may be named itself; - is standard input.\n",
    option_rows,
    "Exit status: 0 done, 1 failed, 2 usage, 3 something was left out.\n",
    BP_CLI_OTHER_COMMAND - 1,
    .run = run,
    .needed = "a directory"};
