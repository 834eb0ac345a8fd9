/*
 * A host whose parts log with GLib. Its one argument is a directory for reports; it prints the path
 * of one.
 */
#include <stdio.h>

#include <bugpack/bugpack.h>
#include <glib.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        return 2;
    }
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "glib";
    options.report_dir = argv[1];
    options.sample_window_ms = BUGPACK_OFF;
    bugpack_session *session = NULL;
    if (bugpack_open(&options, &session, NULL) != BUGPACK_OK) {
        return 1;
    }
    /* Both ways of GLib, without a cast: the types are the same. */
    g_log_set_default_handler(bugpack_log_glib, session);
    (void)g_log_set_handler("Gdk", G_LOG_LEVEL_MASK | G_LOG_FLAG_FATAL | G_LOG_FLAG_RECURSION,
                            bugpack_log_glib, session);
    g_log("Gtk", G_LOG_LEVEL_CRITICAL, "widget %d is gone", 7);
    g_log("Gdk", G_LOG_LEVEL_WARNING, "no display");
    g_log(NULL, G_LOG_LEVEL_MESSAGE, "no domain");
    g_log("Gtk", G_LOG_LEVEL_INFO, "info");
    g_log("Gtk", G_LOG_LEVEL_DEBUG, "debug");
    g_log("Gtk", 1 << G_LOG_LEVEL_USER_SHIFT, "a level of the program's own");
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    bugpack_status status = bugpack_report(session, NULL, &result);
    bugpack_close(session);
    (void)printf("%s\n", result.path);
    return status == BUGPACK_OK ? 0 : 1;
}
