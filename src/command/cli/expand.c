#include "cli/expand.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/option.h"
#include "cli/output.h"
#include "run/aside.h"

enum { file_max_count = 256, depth_max = 16 };

typedef struct expansion {
    const char *text; /* as it was written */
    bool is_deep;
    bool is_stalled; /* nothing may be looked at */
    bp_cli_take_found *found;
    void *context;
    size_t count;
} expansion;

static bool give(expansion *all, const char *path, const char *relative, size_t found_bytes) {
    struct stat info;
    bool is_stream = strcmp(path, "-") == 0 ||
                     (!all->is_stalled && stat(path, &info) == 0 && S_ISFIFO(info.st_mode));
    const bp_cli_found file = {path, relative, found_bytes, is_stream};
    if (all->count++ == file_max_count) {
        bp_cli_say_usage("'%s' stands for more than %d files", all->text, file_max_count);
        return false;
    }
    return all->found(all->context, &file);
}

/* Gives the files of a directory that is `depth` levels below the named one, whose path is the
 * first `top_bytes` of every path below it. */
static bool walk(expansion *all, const char *directory, size_t top_bytes, int depth) {
    struct dirent **entries = NULL;
    struct stat info;
    size_t length = strlen(directory);
    int count = depth > depth_max ? -1 : scandir(directory, &entries, NULL, alphasort);
    if (count < 0) { /* to be told */
        const char *relative = depth > 0 ? directory + top_bytes : NULL;
        return give(all, directory, relative, depth > 0 ? length - top_bytes : 0);
    }
    bool is_good = true;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *path = NULL;
        if (!is_good || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
            free(entries[i]);
            continue;
        }
        if (asprintf(&path, "%s%s%s", directory, directory[length - 1] == '/' ? "" : "/", name) <
            0) {
            path = NULL;
            is_good = bp_cli_say_no_memory();
        } else if (lstat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            is_good = give(all, path, path + top_bytes, strlen(path + top_bytes));
        } else if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && all->is_deep) {
            is_good = walk(all, path, top_bytes, depth + 1);
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return is_good;
}

/* The part of a path that matched the wildcards of a pattern, from its first such component on: as
 * many slashes are before it. */
static size_t count_found_bytes(const char *pattern, const char *path) {
    size_t begin = strcspn(pattern, "*?[");
    for (size_t i = 0; i < begin; i++) {
        if (pattern[i] == '/') {
            path += strcspn(path, "/");
            path += path[0] == '/';
        }
    }
    return strlen(path);
}

static bool match(expansion *all, const char *pattern) {
    glob_t matches;
    struct stat info;
    int result = glob(pattern, GLOB_NOCHECK, NULL, &matches);
    if (result != 0) {
        bp_cli_say("cannot expand '%s': %s", pattern,
                   result == GLOB_NOSPACE ? "out of memory" : "a directory cannot be read");
        errno = result == GLOB_NOSPACE ? ENOMEM : 0;
        return false;
    }
    bool is_good = true;
    for (size_t i = 0; i < matches.gl_pathc && is_good; i++) {
        const char *path = matches.gl_pathv[i];
        bool is_there = lstat(path, &info) == 0;
        if (!is_there || (!S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode))) {
            is_good = give(all, path, NULL, count_found_bytes(pattern, path));
        }
    }
    globfree(&matches);
    return is_good && (all->count > 0 || give(all, pattern, NULL, 0));
}

static bool expand(expansion *all) {
    const char *text = all->text;
    struct stat info;
    if (!all->is_stalled && stat(text, &info) == 0 && S_ISDIR(info.st_mode)) {
        /* Where there is no file, the report says that it was a directory. */
        size_t length = strlen(text);
        return walk(all, text, length + (text[length - 1] != '/'), 0) &&
               (all->count > 0 || give(all, text, NULL, 0));
    }
    if (all->is_stalled || access(text, F_OK) == 0) {
        return give(all, text, NULL, 0);
    }
    return strpbrk(text, "*?[") != NULL ? match(all, text) : give(all, text, NULL, 0);
}

static bool pass_over(void *unused, const bp_cli_found *file) {
    (void)unused;
    (void)file;
    return true;
}

/* In a child, whose messages go nowhere. */
static void try_to_expand(const void *context, void *answer, int out_fd) {
    expansion all = *(const expansion *)context;
    (void)answer;
    (void)out_fd;
    all.found = pass_over;
    (void)expand(&all);
}

bool bp_cli_expand(const char *text, bool is_deep, bp_cli_take_found *found, void *context) {
    expansion all = {.text = text, .is_deep = is_deep, .found = found, .context = context};
    all.is_stalled = bp_run_stalls(try_to_expand, &all);
    return expand(&all);
}
