/*
 * The smallest host: it has nothing but the installed headers and library. Its one argument is a
 * directory for reports.
 */
#include <stdio.h>
#include <string.h>

#include <bugpack/bugpack.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        (void)fprintf(stderr, "usage: consumer DIRECTORY\n");
        return 2;
    }
    if (strcmp(bugpack_version(), BUGPACK_VERSION) != 0) {
        (void)fprintf(stderr, "headers %s, library %s\n", BUGPACK_VERSION, bugpack_version());
        return 1;
    }
    if (strcmp(bugpack_status_name(BUGPACK_ERR_TIMEOUT), "timed out") != 0) {
        (void)fprintf(stderr, "unexpected status name\n");
        return 1;
    }
    (void)printf("bugpack %s, reports in %s\n", bugpack_version(), argv[1]);
    return 0;
}
