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

/* In a volume that a container shares with us, its root is ours, and so is the path. */
Test(calibration, runs_only_a_file_that_this_user_would_load_anyway) {
    static const struct {
        const char *what;
        mode_t mode;
        uid_t owner, user;
        dev_t device; /* of the file that has the name; 0: there is none */
        ino_t inode;
        bool has_our_root, owners_count, is_run;
    } rows[] = {{"root's", 0644, 0, 1000, 7, 42, true, true, true},
                {"the user's own", 0644, 1000, 1000, 7, 42, true, true, true},
                {"another user's, for root", 0644, 1000, 0, 7, 42, true, true, false},
                {"no file of the name", 0644, 0, 0, 0, 0, true, true, false},
                {"another file", 0644, 0, 0, 7, 43, true, true, false},
                {"another device", 0644, 0, 0, 8, 42, true, true, false},
                {"writable by the group", 0664, 0, 0, 7, 42, true, true, false},
                {"writable by all", 0646, 0, 0, 7, 42, true, true, false},
                {"a device", S_IFCHR | 0644, 0, 0, 7, 42, true, true, false},
                {"another root", 0644, 0, 0, 7, 42, false, true, false},
                {"an owner that may be made up", 0644, 0, 0, 7, 42, true, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stat file = {.st_mode = rows[i].mode, .st_dev = 7, .st_ino = 42};
        file.st_mode |= (rows[i].mode & S_IFMT) == 0 ? S_IFREG : 0;
        file.st_uid = rows[i].owner;
        struct stat named = file;
        named.st_dev = rows[i].device;
        named.st_ino = rows[i].inode;
        const bp_calibration_facts facts = {&file, rows[i].device == 0 ? NULL : &named,
                                            rows[i].user, rows[i].has_our_root,
                                            rows[i].owners_count};
        bool is_run = bp_calibration_refusal(&facts) == NULL;
        cr_expect(eq(int, is_run, rows[i].is_run), "%s", rows[i].what);
    }
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

/* What a helper writes, of four words: a mark, where the slot is, and two places. */
#define MARK "bgpgjem1"
#define SLOT "\\170\\317\\014\\0\\0\\0\\0\\0"
#define NUMBER(low, high) "\\" #low "\\" #high "\\0\\0\\0\\0\\0\\0"
#define ANSWER(mark, slot, one, other) "printf '" mark slot one other "'"
#define GOOD ANSWER(MARK, SLOT, NUMBER(070, 003), NUMBER(110, 003)) /* 824 and 840 */

Test(calibration, believes_a_helper_only_if_it_ends_well_in_time_and_briefly) {
    static const char *const bad[] = {
        "echo one",
        "printf %032d 1",
        "printf '" MARK "'",
        ANSWER("bgpgjem2", SLOT, NUMBER(070, 003), NUMBER(110, 003)),
        ANSWER(MARK, NUMBER(170, 317), NUMBER(070, 003), NUMBER(110, 003)),
        ANSWER(MARK, SLOT, NUMBER(070, 003), NUMBER(070, 003)),
        ANSWER(MARK, SLOT, NUMBER(071, 003), NUMBER(110, 003)),
        GOOD "; exit 3",
        GOOD "; kill -9 $$",
        GOOD "; echo",
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
    cr_expect(strstr(outcome_of(GOOD "; exit 71", true), "could not load it: Cannot allocate") !=
              NULL);
    cr_expect(eq(int, waitpid(-1, NULL, WNOHANG), -1), "every child was reaped");
}
