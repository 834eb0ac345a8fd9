/*
 * What is believed of a calibration, and which library is run for one.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "heap/calibration.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

static const bp_calibration sample = {824, 840};
static const char sample_text[] =
    "bugpack-jemalloc 1\nslot ccf78\nallocated 824\ndeallocated 840\n";

Test(calibration, prints_and_parses_the_same_text) {
    char text[BP_CALIBRATION_TEXT_BYTES];
    bp_calibration parsed = {0, 0};
    bp_calibration_format(0xccf78, &sample, text);
    cr_assert(eq(str, text, sample_text));
    cr_assert(bp_calibration_parse(text, strlen(text), 0xccf78, &parsed));
    cr_assert(eq(i64, parsed.allocated_place, 824));
    cr_assert(eq(i64, parsed.deallocated_place, 840));
}

Test(calibration, refuses_every_other_text_and_leaves_output_alone) {
    static const char *const bad[] = {
        "",
        "bugpack-jemalloc 1\n",
        "bugpack-jemalloc 2\nslot ccf78\nallocated 824\ndeallocated 840\n",
        "bugpack-jemalloc 1\nslot ccf70\nallocated 824\ndeallocated 840\n",
        "bugpack-jemalloc 1\nslot ccf78\nallocated 824\ndeallocated 840",
        "bugpack-jemalloc 1\nslot ccf78\nallocated 824\ndeallocated 840\n\n",
        "bugpack-jemalloc 1\nslot ccf78\nallocated 824\ndeallocated 840\nx\n",
        "bugpack-jemalloc 1 \nslot ccf78\nallocated 824\ndeallocated 840\n",
        "bugpack-jemalloc 1\nslot 0xccf78\nallocated 824\ndeallocated 840\n",
        "bugpack-jemalloc 1\nslot ccf78\nallocated +824\ndeallocated 840\n",
        "bugpack-jemalloc 1\nslot ccf78\nallocated 825\ndeallocated 840\n",
        "bugpack-jemalloc 1\nslot ccf78\nallocated 824\ndeallocated 824\n",
        "bugpack-jemalloc 1\nslot ccf78\nallocated 824\ndeallocated 65536\n",
        "bugpack-jemalloc 1\nslot ccf78\nallocated -99999999\ndeallocated 840\n",
    };
    bp_calibration parsed = {1, 2};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert(not(bp_calibration_parse(bad[i], strlen(bad[i]), 0xccf78, &parsed)), "%s",
                  bad[i]);
    }
    cr_assert(not(bp_calibration_parse(sample_text, sizeof sample_text, 0xccf78, &parsed)),
              "the NUL at the end");
    cr_assert(eq(i64, parsed.allocated_place, 1));
}

static const char *refusal(const struct stat *mapped, const struct stat *named, uid_t user) {
    const bp_calibration_facts facts = {mapped, named, user, true, true};
    return bp_calibration_refusal(&facts);
}

Test(calibration, runs_only_a_file_that_this_user_would_load_anyway) {
    struct stat file = {.st_mode = S_IFREG | 0644, .st_dev = 7, .st_ino = 42, .st_uid = 0};
    struct stat other = file;
    cr_assert(eq(ptr, refusal(&file, &file, 1000), NULL));
    file.st_uid = 1000;
    cr_assert(eq(ptr, refusal(&file, &file, 1000), NULL));
    /* Another user's, also for root: to run it would be to run whatever that user put there. */
    cr_assert(ne(ptr, refusal(&file, &file, 0), NULL));
    file.st_uid = 0;
    cr_assert(ne(ptr, refusal(&file, NULL, 0), NULL));
    other.st_ino = 43;
    cr_assert(ne(ptr, refusal(&file, &other, 0), NULL));
    other.st_ino = 42;
    other.st_dev = 8;
    cr_assert(ne(ptr, refusal(&file, &other, 0), NULL));
    file.st_mode = S_IFREG | 0664;
    cr_assert(ne(ptr, refusal(&file, &file, 0), NULL));
    file.st_mode = S_IFREG | 0646;
    cr_assert(ne(ptr, refusal(&file, &file, 0), NULL));
    file.st_mode = S_IFCHR | 0644;
    cr_assert(ne(ptr, refusal(&file, &file, 0), NULL));
}

/* In a volume that a container shares with us, its root is ours, and so is the path. */
Test(calibration, runs_no_file_of_a_process_with_another_root) {
    struct stat file = {.st_mode = S_IFREG | 0644, .st_dev = 7, .st_ino = 42, .st_uid = 0};
    const bp_calibration_facts facts = {&file, &file, 0, false, true};
    cr_assert(ne(ptr, bp_calibration_refusal(&facts), NULL));
}

Test(calibration, runs_no_file_whose_owner_another_user_may_have_made_up) {
    struct stat file = {.st_mode = S_IFREG | 0644, .st_dev = 7, .st_ino = 42, .st_uid = 0};
    const bp_calibration_facts facts = {&file, &file, 0, true, false};
    cr_assert(ne(ptr, bp_calibration_refusal(&facts), NULL));
}

Test(calibration, believes_the_owners_of_the_root_file_system_and_none_without_a_descriptor) {
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert(ge(int, fd, 0));
    cr_assert(bp_calibration_owners_count(fd));
    cr_assert(eq(int, close(fd), 0));
    cr_assert(not(bp_calibration_owners_count(-1)));
}

/* What a helper that is this shell script is refused for, within 20 ms where it would not end;
 * "" where it is believed. */
static const char *outcome_of(const char *script, bool ends) {
    static char reason[256];
    CLEANUP(temp_dir_remove) temp_dir dir;
    char path[PATH_MAX];
    char text[256];
    bp_calibration found = {0, 0};
    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof path, "%s/helper", dir.path);
    (void)snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    if (script[0] != '\0') {
        cr_assert(temp_dir_write(&dir, "helper", text, strlen(text)));
        cr_assert(eq(int, fchmodat(dir.fd, "helper", 0700, 0), 0));
    }
    reason[0] = '\0';
    bool is_believed = bp_calibration_run(path, STDIN_FILENO, 0xccf78, "", ends ? 60000 : 20,
                                          &found, reason, sizeof reason);
    cr_expect(eq(int, is_believed, reason[0] == '\0'));
    cr_expect(eq(i64, found.allocated_place, is_believed ? 824 : 0));
    return reason;
}

#define GOOD "printf 'bugpack-jemalloc 1\\nslot ccf78\\nallocated 824\\ndeallocated 840\\n'"

Test(calibration, believes_a_helper_only_if_it_ends_well_in_time_and_briefly) {
    static const char *const bad[] = {"echo one", GOOD "; exit 3", GOOD "; kill -9 $$",
                                      GOOD "; printf %0200d 1"};
    static const char *const slow[] = {"exec sleep 60", GOOD "; exec sleep 60",
                                       "exec >&-; exec sleep 60",
                                       "trap '' TERM; while :; do :; done"};
    cr_expect(eq(str, (char *)outcome_of(GOOD, true), ""));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(strstr(outcome_of(bad[i], true), "no answer that makes sense") != NULL, "%s",
                  bad[i]);
    }
    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++) {
        cr_expect(strstr(outcome_of(slow[i], false), "did not end in time") != NULL, "%s", slow[i]);
    }
    cr_expect(strstr(outcome_of("", true), "could not be started: No such file") != NULL);
    cr_expect(eq(int, waitpid(-1, NULL, WNOHANG), -1), "every child was reaped");
}
