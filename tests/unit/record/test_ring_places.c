/*
 * Where the rings of a host are that names no directory, what they survive, and that recovery finds
 * them there.
 */
#include <bugpack/bugpack.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "platform/machine.h"
#include "recorder/session_files.h"
#include "support/not_tried.h"
#include "support/report_reader.h"
#include "unit/dir.h"

static void expect_next(unsigned *cursor, const char *path, bool is_common) {
    static bp_ring_dir place;
    cr_assert(bp_ring_dirs_next(cursor, &place), "there is no \"%s\"", path);
    cr_expect(eq(str, place.path, path));
    cr_expect(eq(int, place.is_common, is_common));
}

DIR_SUITE(ring_places);

Test(ring_places, are_tried_in_the_documented_order) {
    static bp_ring_dir place;
    char shm[64];
    unsigned cursor = 0;
    (void)snprintf(shm, sizeof shm, "/dev/shm/bugpack-%u", (unsigned)geteuid());
    cr_assert(zero(int, setenv("XDG_RUNTIME_DIR", "/run/user/7", 1)));
    expect_next(&cursor, "/run/user/7/bugpack", false);
    if (geteuid() == 0) {
        expect_next(&cursor, "/run/bugpack", true);
    }
    expect_next(&cursor, shm, true);
    cr_expect(not(bp_ring_dirs_next(&cursor, &place)));
    cr_expect(not(bp_ring_dirs_next(&cursor, &place)));
}

Test(ring_places, are_the_systems_where_the_environment_names_none) {
    static bp_ring_dir place;
    CLEANUP(free_memory) char *long_path = malloc(2 * PATH_MAX);
    unsigned cursor = 0, count = 0;
    memset(long_path, 'x', 2 * PATH_MAX - 1);
    long_path[0] = '/';
    long_path[2 * PATH_MAX - 1] = '\0';
    for (size_t i = 0; i < 2; i++) {
        cr_assert(zero(int, setenv("XDG_RUNTIME_DIR", i == 0 ? "relative" : long_path, 1)));
        for (cursor = count = 0; bp_ring_dirs_next(&cursor, &place); count++) {
            cr_expect(zero(int, strncmp(place.path, "/run/bugpack", 12) != 0 &&
                                    strncmp(place.path, "/dev/shm/bugpack-", 17) != 0));
        }
        cr_expect(eq(uint, count, geteuid() == 0 ? 2 : 1));
    }
}

Test(ring_places, survive_what_their_path_says) {
    const uint64_t kill = BUGPACK_SURVIVES_KILL, service = BUGPACK_SURVIVES_SERVICE,
                   logout = BUGPACK_SURVIVES_LOGOUT, reboot = BUGPACK_SURVIVES_REBOOT;
    const struct {
        const char *path;
        uint64_t survives;
    } cases[] = {
        {"/run/user/7/bugpack/x", kill | service},     {"/run/xdg/bugpack/x", kill | service},
        {"/run/xdg-other/x", kill | service | logout}, {"/run/bugpack/x", kill | service | logout},
        {"/run/two/bugpack/x", kill | logout},         {"/run/twofold/x", kill | service | logout},
    };
    cr_assert(zero(int, setenv("XDG_RUNTIME_DIR", "/run/xdg/", 1)));
    cr_assert(zero(int, setenv("RUNTIME_DIRECTORY", "/run/one:/run/two", 1)));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = cases[i].path;
        cr_expect(eq(u64, bp_ring_dirs_survival(path, true), cases[i].survives), "%s", path);
        cr_expect(eq(u64, bp_ring_dirs_survival(path, false), cases[i].survives | reboot));
    }
}

static int open_base(const char *path, bool is_chosen, bool is_common) {
    failure = (bugpack_error)BUGPACK_ERROR_INIT;
    const bp_ring_base base = {path, is_chosen, is_common};
    int fd = -1;
    if (bp_ring_base_open(&base, true, &fd, &failure) != BUGPACK_OK) {
        cr_expect(eq(int, fd, -1));
        return failure.system_errno != 0 ? failure.system_errno : -1;
    }
    (void)close(fd);
    return 0;
}

Test(ring_places, are_refused_where_others_can_put_something) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/bugpack", dir.path);
    cr_expect(zero(int, open_base(path, true, false)));
    cr_assert(zero(int, chmod(path, 0755)));
    cr_expect(eq(int, open_base(path, false, false), -1), "others can read it");
    cr_assert(zero(int, rmdir(path)));
    cr_assert(zero(int, symlink("elsewhere", path)));
    cr_expect(eq(int, open_base(path, true, false), EPERM), "a link");
    cr_assert(zero(int, unlink(path)));
    cr_assert(zero(int, chmod(dir.path, 0777)));
    cr_expect(eq(int, open_base(path, true, false), EPERM), "others can replace it");
    cr_expect(zero(int, open_base(path, false, false)), "the host named it");
    cr_assert(zero(int, chmod(dir.path, 01777)));
    cr_expect(zero(int, open_base(path, true, false)), "sticky");
    if (geteuid() == 0) {
        cr_assert(zero(int, chmod(dir.path, 0755)));
        cr_assert(zero(int, chown(path, 65534, 65534)));
        cr_expect(eq(int, open_base(path, true, false), EPERM), "another user's");
        cr_assert(zero(int, chown(path, 0, 0)));
        cr_assert(zero(int, chown(dir.path, 65534, 65534)));
        cr_expect(eq(int, open_base(path, true, false), EPERM), "above it is another user's");
        cr_assert(zero(int, chown(dir.path, 0, 0)));
    }
    if (!bp_ring_dirs_is_in_memory(dir.path)) {
        cr_expect(eq(int, open_base(path, true, true), EPERM), "on a disk");
    }
    (void)snprintf(path, sizeof path, "%s/missing/bugpack", dir.path);
    cr_expect(eq(int, open_base(path, true, false), ENOENT));
}

/* No file that this process writes may be larger than 8 KiB from now on. */
static void limit_file_sizes(void) {
    struct rlimit limit;
    cr_assert(zero(int, getrlimit(RLIMIT_FSIZE, &limit)));
    limit.rlim_cur = 8192;
    (void)signal(SIGXFSZ, SIG_IGN);
    cr_assert(zero(int, setrlimit(RLIMIT_FSIZE, &limit)));
}

/* A session of a name that no other process uses. */
static bugpack_session *open_session(const char *report_dir,
                                     bugpack_diagnostic_callback *on_diagnostic, char *text) {
    static char app[32];
    bugpack_session *session = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    (void)snprintf(app, sizeof app, "places%d", (int)getppid());
    options.app_name = app;
    options.report_dir = report_dir;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    options.on_diagnostic = on_diagnostic;
    options.on_diagnostic_context = text;
    cr_assert(zero(int, bugpack_open(&options, &session, &failure)), "%s", failure.message);
    return session;
}

static void note_path(const bugpack_report_result *result, void *context) {
    cr_expect(zero(int, result->status), "%s", result->error.message);
    (void)snprintf(context, BUGPACK_REPORT_PATH_BYTES, "%s", result->path);
}

/* Kills a host of that environment, and recovers its session; the directory is in `location`. */
static void check_killed_host(bugpack_recorder_location *location) {
    static char path[BUGPACK_REPORT_PATH_BYTES];
    char app[32];
    int ends[2];
    char done;
    cr_assert(zero(int, pipe(ends)));
    (void)snprintf(app, sizeof app, "places%d", (int)getpid());
    pid_t host = fork();
    if (host == 0) {
        bugpack_recorder_location there = BUGPACK_RECORDER_LOCATION_INIT;
        bugpack_session *session = open_session(dir.path, NULL, NULL);
        bugpack_log(session, BUGPACK_LEVEL_INFO, "test", "the last words");
        if (bugpack_recorder_locate(session, &there, NULL) != BUGPACK_OK ||
            write(ends[1], &there, sizeof there) != (ssize_t)sizeof there) {
            _exit(1);
        }
        for (;;) {
            (void)pause();
        }
    }
    (void)close(ends[1]);
    cr_assert(eq(sz, (size_t)read(ends[0], location, sizeof *location), sizeof *location));
    cr_assert(zero(int, kill(host, SIGKILL)));
    cr_assert(zero(sz, (size_t)read(ends[0], &done, 1)), "it is gone when its descriptors are");
    (void)close(ends[0]);
    cr_assert(eq(int, waitpid(host, NULL, 0), host));
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    options.app_name = app;
    options.on_report = note_path;
    options.context = path;
    options.min_free_bytes = BUGPACK_OFF;
    path[0] = '\0';
    cr_expect(zero(int, bugpack_recover(&options, &failure)), "%s", failure.message);
    cr_expect(report_entry_contains(path, "logs.jsonl", "the last words"));
    cr_expect(ne(int, access(location->path, F_OK), 0), "it is removed");
}

Test(ring_places, hold_a_killed_hosts_records_without_an_environment) {
    bugpack_recorder_location location;
    cr_assert(zero(int, unsetenv("XDG_RUNTIME_DIR")));
    cr_assert(zero(int, setenv("HOME", dir.path, 1)));
    if (access("/dev/shm", W_OK) != 0) {
        not_tried("there is no /dev/shm");
    }
    check_killed_host(&location);
    cr_expect(zero(int, strncmp(location.path, "/run/bugpack/", 13) != 0 &&
                            strncmp(location.path, "/dev/shm/bugpack-", 17) != 0),
              "%s", location.path);
    cr_expect(eq(u64, location.survives & (BUGPACK_SURVIVES_KILL | BUGPACK_SURVIVES_REBOOT),
                 BUGPACK_SURVIVES_KILL));
    cr_expect(eq(str, location.reason, ""));
}

static void keep_text(bugpack_level level, const char *text, void *context) {
    char *kept = context;
    if (level == BUGPACK_LEVEL_WARN && kept[0] == '\0') {
        (void)snprintf(kept, 512, "%s", text);
    }
}

/* Of a user of our own, whose directory root has made first. */
Test(ring_places, are_told_at_the_opening_when_somebody_else_has_made_the_directory) {
    bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    char shm[64], text[512] = "";
    uid_t uid = 100000 + (uid_t)getpid();
    if (geteuid() != 0 || access("/dev/shm", W_OK) != 0) {
        cr_skip_test("needs root and /dev/shm");
    }
    (void)snprintf(shm, sizeof shm, "/dev/shm/bugpack-%u", (unsigned)uid);
    cr_assert(zero(int, mkdir(shm, 0700)));
    cr_assert(zero(int, chown(dir.path, uid, uid)));
    cr_assert(zero(int, setresgid(uid, uid, 0)));
    cr_assert(zero(int, setresuid(uid, uid, 0)));
    cr_assert(zero(int, unsetenv("XDG_RUNTIME_DIR")));
    cr_assert(zero(int, setenv("HOME", dir.path, 1)));
    bugpack_session *session = open_session(dir.path, keep_text, text);
    cr_expect(zero(int, bugpack_recorder_locate(session, &location, NULL)));
    cr_expect(eq(str, location.path, ""));
    cr_expect(ne(ptr, strstr(location.reason, "another user's"), NULL), "%s", location.reason);
    cr_expect(ne(ptr, strstr(text, shm), NULL), "%s", text);
    bugpack_close(session);
    cr_assert(zero(int, setresuid(0, 0, 0)));
    cr_expect(zero(int, rmdir(shm)));
}

static void count_report(const bugpack_report_result *result, void *context) {
    ++*(unsigned *)context;
}

/* As of a host that is another user by then. Here the name of what is half removed is taken. */
Test(ring_places, of_a_closed_session_are_no_crash_where_they_could_not_be_removed) {
    bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    char taken[sizeof location.path + 16], app[32];
    unsigned report_count = 0;
    cr_assert(zero(int, setenv("XDG_RUNTIME_DIR", dir.path, 1)));
    bugpack_session *session = open_session(dir.path, NULL, NULL);
    cr_assert(zero(int, bugpack_recorder_locate(session, &location, NULL)));
    /* Its recovery at open is over: that would remove what the name is taken by. */
    cr_assert(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)));
    (void)snprintf(taken, sizeof taken, "%s.done", location.path);
    cr_assert(zero(int, mkdir(taken, 0700)));
    (void)snprintf(taken, sizeof taken, "%s.done/file", location.path);
    cr_assert(zero(int, mkdir(taken, 0700)));
    bugpack_close(session);
    cr_assert(zero(int, access(location.path, F_OK)));
    cr_assert(zero(int, rmdir(taken)));
    (void)snprintf(app, sizeof app, "places%d", (int)getppid());
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    options.app_name = app;
    options.on_report = count_report;
    options.context = &report_count;
    cr_expect(zero(int, bugpack_recover(&options, NULL)));
    cr_expect(zero(uint, report_count));
    cr_expect(ne(int, access(location.path, F_OK), 0), "it is removed");
}

Test(ring_places, are_private_files_in_a_private_directory_whatever_the_umask) {
    bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    struct stat info;
    size_t file_count = 0;
    cr_assert(zero(int, setenv("XDG_RUNTIME_DIR", dir.path, 1)));
    mode_t before = umask(0);
    bugpack_session *session = open_session(dir.path, NULL, NULL);
    (void)umask(before);
    cr_assert(zero(int, bugpack_recorder_locate(session, &location, NULL)));
    cr_assert(zero(int, stat(location.path, &info)));
    cr_expect(eq(uint, info.st_mode & 07777u, 0700u));
    DIR *files = opendir(location.path);
    cr_assert(ne(ptr, files, NULL));
    for (const struct dirent *file; (file = readdir(files)) != NULL;) {
        cr_assert(zero(int, fstatat(dirfd(files), file->d_name, &info, AT_SYMLINK_NOFOLLOW)));
        if (file->d_name[0] != '.') {
            cr_expect(zero(uint, info.st_mode & 0077u), "%s", file->d_name);
            file_count++;
        }
    }
    cr_expect(gt(sz, file_count, 1));
    (void)closedir(files);
    bugpack_close(session);
}

Test(ring_places, are_the_users_own_where_there_is_one) {
    bugpack_recorder_location location;
    cr_assert(zero(int, setenv("XDG_RUNTIME_DIR", dir.path, 1)));
    check_killed_host(&location);
    cr_expect(zero(int, strncmp(location.path, dir.path, strlen(dir.path))), "%s", location.path);
    cr_expect(zero(u64, location.survives & BUGPACK_SURVIVES_LOGOUT));
}

Test(ring_places, are_told_at_the_opening_when_none_serves) {
    char text[512] = "";
    bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    limit_file_sizes();
    bugpack_session *session = open_session(dir.path, keep_text, text);
    cr_expect(ne(ptr, strstr(text, "the rings are in memory and do not survive a crash"), NULL));
    cr_expect(zero(int, bugpack_recorder_locate(session, &location, NULL)));
    cr_expect(eq(str, location.path, ""));
    cr_expect(zero(u64, location.survives));
    cr_expect(ne(ptr, strstr(location.reason, "cannot allocate"), NULL));
    location.struct_size = 7; /* less than its own */
    cr_expect(eq(int, bugpack_recorder_locate(session, &location, NULL), BUGPACK_ERR_INVALID));
    bugpack_close(session);
}

Test(ring_places, are_told_when_a_channel_is_opened_that_gets_none) {
    char text[512] = "";
    bugpack_channel *channel = NULL;
    cr_assert(zero(int, setenv("XDG_RUNTIME_DIR", dir.path, 1)));
    bugpack_session *session = open_session(dir.path, keep_text, text);
    cr_assert(zero(int, bugpack_channel_open(session, "first", NULL, &channel, &failure)));
    cr_expect(eq(str, text, ""));
    limit_file_sizes();
    cr_assert(zero(int, bugpack_channel_open(session, "second", NULL, &channel, &failure)));
    cr_expect(ne(ptr, strstr(text, "the rings of channel \"second\" are in memory"), NULL));
    cr_expect(ne(ptr, strstr(text, "cannot allocate"), NULL), "%s", text);
    bugpack_close(session);
}

/* In memory they serve a report as well, and its manifest says why a crash would have lost them. */
Test(ring_places, that_cannot_be_used_leave_a_whole_report_that_says_so) {
    static const char *const names[] = {"missing/homes", "shared"};
    static const char *const reasons[] = {"No such file or directory", "not this user's alone"};
    cr_assert(zero(int, mkdirat(dir.fd, "shared", 0700) | fchmodat(dir.fd, "shared", 0750, 0)));
    for (size_t i = 0; i < 2; i++) {
        char path[600];
        bugpack_session *session = NULL;
        bugpack_channel *channel = NULL;
        bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
        bugpack_options options = BUGPACK_OPTIONS_INIT;
        (void)snprintf(path, sizeof path, "%s/%s", dir.path, names[i]);
        options.app_name = "places";
        options.report_dir = dir.path;
        options.recorder.dir = path;
        options.sample_window_ms = BUGPACK_OFF;
        cr_assert(zero(int, bugpack_open(&options, &session, NULL)));
        cr_assert(zero(int, bugpack_channel_open(session, "net", NULL, &channel, NULL)));
        bugpack_log(session, BUGPACK_LEVEL_INFO, "test", "kept all the same");
        bugpack_traffic(channel, BUGPACK_SENT, 1, "test", "kept", 4);
        cr_assert(zero(int, bugpack_report(session, NULL, &result, NULL)));
        bugpack_close(session);
        cr_expect(zero(u32, result.missing_count), "%s", result.missing);
        cr_expect(report_entry_contains(result.path, "logs.jsonl", "kept all the same"));
        char *manifest = report_read(result.path, "manifest.json", NULL);
        const char *at = manifest;
        for (unsigned rings = 0; rings < 3; rings++, at++) {
            at = strstr(at, "a crash would have lost it: ");
            cr_assert(ne(ptr, (void *)at, NULL), "log, notifications and traffic have a line each");
        }
        cr_expect(ne(ptr, strstr(manifest, reasons[i]), NULL), "%s", manifest);
        free(manifest);
    }
}
