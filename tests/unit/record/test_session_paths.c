/* Where a session puts its reports, and where it does not. */
#include <sys/stat.h>

#include "unit/quick_session.h"

SESSION_SUITE(session_paths);

Test(session_paths, gives_a_taken_name_a_number_and_replaces_nothing) {
    open_session();
    char target[512], expected[512];
    (void)snprintf(target, sizeof target, "%s/report.zip", dir.path);
    cr_assert(temp_dir_write(&dir, "report.zip", "mine", 4));
    cr_assert(zero(int, mkfifoat(dir.fd, "report-2.zip", 0600)));
    cr_assert(zero(int, symlinkat("/nonexistent", dir.fd, "report-3.zip")));
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.output_path = target;
    take(&request);
    (void)snprintf(expected, sizeof expected, "%s/report-4.zip", dir.path);
    cr_assert(eq(str, taken.path, expected));
    char kept[8] = "";
    cr_assert(eq(sz, temp_dir_read(&dir, "report.zip", kept, sizeof kept), 4));
    cr_assert(zero(int, memcmp(kept, "mine", 4)));
}

Test(session_paths, makes_private_files_in_a_private_directory_under_any_umask) {
    char reports[512];
    (void)snprintf(reports, sizeof reports, "%s/reports", dir.path);
    options.report_dir = reports;
    options.create_report_dir = true;
    mode_t before = umask(0);
    open_session();
    take(NULL);
    umask(before);
    struct stat info;
    cr_assert(zero(int, stat(taken.path, &info)));
    cr_assert(eq(uint, info.st_mode & 07777u, 0600u));
    cr_assert(zero(int, stat(reports, &info)));
    cr_assert(eq(uint, info.st_mode & 07777u, 0700u));
}

Test(session_paths, finds_its_directory_again_after_the_host_changed_to_another) {
    cr_assert(zero(int, chdir(dir.path)));
    options.report_dir = ".";
    open_session();
    cr_assert(zero(int, chdir("/")));
    take(NULL);
    cr_assert(eq(int, strncmp(taken.path, dir.path, strlen(dir.path)), 0));
}

Test(session_paths, follows_no_link_to_a_directory_whatever_is_behind_its_name) {
    static const char *const endings[] = {"", "/", "//", "/.", "/./", "/.//."};
    cr_assert(zero(int, mkdirat(dir.fd, "real", 0700)));
    cr_assert(zero(int, symlinkat("real", dir.fd, "link")));
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char path[512], expected[512];
        options.report_dir = path;
        (void)snprintf(path, sizeof path, "%s/link%s", dir.path, endings[i]);
        cr_assert(eq(int, bugpack_open(&options, &session, NULL), BUGPACK_ERR_IO));
        (void)snprintf(path, sizeof path, "%s/real%s", dir.path, endings[i]);
        open_session();
        take(NULL);
        (void)snprintf(expected, sizeof expected, "%s/real/viewer-bugreport-", dir.path);
        cr_assert(zero(int, strncmp(taken.path, expected, strlen(expected))), "%s", taken.path);
        bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
        request.output_path = path;
        (void)snprintf(path, sizeof path, "%s/link%s/x.zip", dir.path, endings[i]);
        cr_assert(eq(int, try_report(&request), BUGPACK_ERR_IO));
        bugpack_close(session);
    }
}

Test(session_paths, writes_no_report_whose_path_its_result_cannot_hold) {
    open_session();
    /* A long way to the same directory, which the system takes: it is under PATH_MAX. */
    char path[BUGPACK_REPORT_PATH_BYTES + 128];
    const char *name = strrchr(dir.path, '/');
    size_t length = (size_t)snprintf(path, sizeof path, "%s", dir.path);
    while (length + strlen(name) + 30 < BUGPACK_REPORT_PATH_BYTES) {
        length += (size_t)snprintf(path + length, sizeof path - length, "/..%s", name);
    }
    /* With a number behind it and a NUL it has one byte more than there is room for. */
    int digits = (int)(BUGPACK_REPORT_PATH_BYTES - length - strlen("/-9999.zip"));
    (void)snprintf(path + length, sizeof path - length, "/%0*d.zip", digits, 0);
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.output_path = path;
    cr_assert(eq(int, try_report(&request), BUGPACK_ERR_IO));
    cr_assert(zero(sz, temp_dir_count(&dir)));
    (void)snprintf(path + length, sizeof path - length, "/%0*d.zip", digits - 1, 0);
    take(&request);
}

/* Opens a session that reports into `dir`, or into its default directory. */
static bugpack_status try_report_dir(const char *report_dir) {
    options.app_name = "paths";
    options.report_dir = report_dir;
    options.recorder.is_in_memory = true;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    bugpack_status status = bugpack_open(&options, &session, NULL);
    bugpack_close(session);
    return status;
}

Test(session_paths, refuses_a_given_directory_only_where_everybody_can_replace_files) {
    static const struct {
        mode_t mode;
        bugpack_status status;
    } cases[] = {{0700, BUGPACK_OK},  {0755, BUGPACK_OK},         {0775, BUGPACK_OK},
                 {01777, BUGPACK_OK}, {0777, BUGPACK_ERR_DENIED}, {0703, BUGPACK_ERR_DENIED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(zero(int, fchmod(dir.fd, cases[i].mode)));
        cr_expect(eq(int, try_report_dir(dir.path), (int)cases[i].status), "mode %o",
                  (unsigned)cases[i].mode);
    }
}

Test(session_paths, refuses_a_default_directory_that_is_not_this_users_alone) {
    cr_assert(zero(int, setenv("XDG_STATE_HOME", dir.path, 1)));
    cr_expect(zero(int, try_report_dir(NULL)), "it is made");
    cr_expect(zero(int, try_report_dir(NULL)), "and found again");
    cr_assert(zero(int, fchmodat(dir.fd, "bugpack", 0750, 0)));
    cr_expect(eq(int, try_report_dir(NULL), BUGPACK_ERR_DENIED));
    cr_assert(zero(int, fchmodat(dir.fd, "bugpack", 0700, 0)));
    if (geteuid() == 0) {
        cr_assert(zero(int, fchownat(dir.fd, "bugpack", 65534, 65534, 0)));
        cr_expect(eq(int, try_report_dir(NULL), BUGPACK_ERR_DENIED));
    }
}
