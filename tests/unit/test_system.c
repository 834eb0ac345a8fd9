/*
 * What machine this is, from recorded texts and from hostile ones; system.json as printed.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/system_samples.h"

/* A recording below fixtures/system. */
static const char *recorded(const char *name, size_t *ret_bytes) {
    static char text[16384];
    char path[512];
    (void)snprintf(path, sizeof path, "%s/system/%s", BUGPACK_FIXTURES, name);
    FILE *file = fopen(path, "rb");
    cr_assert(file != NULL, "%s", path);
    *ret_bytes = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    return text;
}

Test(os_release, is_read_without_quotes) {
    size_t bytes;
    char value[64];
    const char *text = recorded("os-release", &bytes);
    cr_expect(bp_os_release_find(text, bytes, "ID", value, sizeof value));
    cr_expect(eq(str, value, "debian"));
    cr_expect(bp_os_release_find(text, bytes, "PRETTY_NAME", value, sizeof value));
    cr_expect(eq(str, value, "Debian GNU/Linux 12 (bookworm)"));
    cr_expect(bp_os_release_find(text, bytes, "VERSION_ID", value, sizeof value));
    cr_expect(eq(str, value, "12"));
    cr_expect(not(bp_os_release_find(text, bytes, "VARIANT", value, sizeof value)));
}

Test(os_release, takes_escapes_cuts_what_is_long_and_ends_with_the_text) {
    char value[8] = "before";
    static const char text[] = "A=\"x\\\"y\"\nB='a\\b'\nC=123456789\nD=\"open";
    cr_expect(bp_os_release_find(text, sizeof text - 1, "A", value, sizeof value));
    cr_expect(eq(str, value, "x\"y"));
    cr_expect(bp_os_release_find(text, sizeof text - 1, "B", value, sizeof value));
    cr_expect(eq(str, value, "a\\b"));
    cr_expect(bp_os_release_find(text, sizeof text - 1, "C", value, sizeof value));
    cr_expect(eq(str, value, "1234567"));
    cr_expect(bp_os_release_find(text, sizeof text - 1, "D", value, sizeof value));
    cr_expect(eq(str, value, "open"));
    cr_expect(bp_os_release_find("E=\"", 3, "E", value, sizeof value));
    cr_expect(eq(str, value, ""));
}

Test(load, is_read_from_a_recording_and_from_no_truncation) {
    size_t bytes;
    bp_load load = {.thread_count = 7};
    const char *text = recorded("loadavg", &bytes);
    const char *slash = strchr(text, '/');
    for (size_t length = 0; length <= (size_t)(slash - text); length++) {
        cr_expect(not(bp_load_parse(text, length, &load)), "%zu", length);
    }
    cr_expect(eq(u64, load.thread_count, 7));
    cr_assert(bp_load_parse(text, bytes, &load));
    char again[64];
    (void)snprintf(again, sizeof again, "%llu.%02llu %llu.%02llu", /* as it was written */
                   (unsigned long long)load.centi[0] / 100, (unsigned long long)load.centi[0] % 100,
                   (unsigned long long)load.centi[1] / 100,
                   (unsigned long long)load.centi[1] % 100);
    cr_expect(eq(int, strncmp(text, again, strlen(again)), 0));
    cr_expect(load.runnable_count > 0 && load.thread_count >= load.runnable_count);
    static const char hostile[] = "99999999999999999999.00 1.0 1.00 1/2 3\n";
    cr_expect(not(bp_load_parse(hostile, sizeof hostile - 1, &load)));
}

Test(cpu_model, is_the_first_one) {
    size_t bytes;
    char model[16];
    const char *text = recorded("cpuinfo", &bytes);
    cr_expect(bp_cpu_model_find(text, bytes, model, sizeof model));
    cr_expect(eq(str, model, "AMD EPYC"));
    cr_expect(not(bp_cpu_model_find("CPU part\t: 0xd0c\n", 17, model, sizeof model)));
}

Test(dpkg, finds_a_file_as_a_whole_line_alone) {
    size_t bytes;
    const char *text = recorded("coreutils.list", &bytes);
    cr_expect(bp_dpkg_list_has(text, bytes, "/bin/cat"));
    cr_expect(bp_dpkg_list_has(text, bytes, "/."));
    cr_expect(not(bp_dpkg_list_has(text, bytes, "/bin/ca")));
    cr_expect(not(bp_dpkg_list_has(text, bytes, "bin/cat")));
    cr_expect(not(bp_dpkg_list_has(text, bytes, "")));
    cr_expect(not(bp_dpkg_list_has(text, 0, "/bin/cat")));
    cr_expect(bp_dpkg_list_has("/a/bb\n/a/b", 10, "/a/b"), "the last line has no newline");
}

static bp_package found(const char *list) {
    bp_package package;
    size_t bytes;
    const char *text = recorded("dpkg-status", &bytes);
    cr_assert(bp_dpkg_name(list, &package));
    if (!bp_dpkg_find(text, bytes, &package)) {
        cr_expect(eq(str, package.version, ""));
    }
    return package;
}

Test(dpkg, knows_the_version_of_an_installed_package) {
    cr_expect(eq(str, found("coreutils.list").version, "9.1-1"));
    cr_expect(eq(str, found("coreutils.list").architecture, "amd64"));
    cr_expect(not(eq(str, found("libc6:amd64.list").version, "")));
    cr_expect(eq(str, found("libc6:arm64.list").version, ""), "of another architecture");
    cr_expect(eq(str, found("redis-server.list").version, ""), "removed but for its settings");
    cr_expect(eq(str, found("coreutil.list").version, ""));
    bp_package package = {.name = "before"};
    cr_expect(not(bp_dpkg_name(".list", &package)));
    cr_expect(not(bp_dpkg_name("coreutils.md5sums", &package)));
    cr_expect(eq(str, package.name, "before"));
}

Test(dpkg, makes_nothing_of_any_truncated_status) {
    size_t bytes;
    const char *text = recorded("dpkg-status", &bytes);
    for (size_t length = 0; length < bytes; length += 7) {
        char *exact = malloc(length + 1); /* a sanitizer sees a byte too far */
        bp_package package = {.name = "zlib1g"};
        memcpy(exact, text, length);
        (void)bp_dpkg_find(exact, length, &package);
        free(exact);
    }
}

static const char *parsed(const char *text) {
    static char line[400];
    bp_package package;
    if (!bp_rpm_parse(text, strlen(text), &package)) {
        return "none";
    }
    cr_expect(package.is_rpm);
    (void)snprintf(line, sizeof line, "%s %s [%s]", package.name, package.version,
                   package.architecture);
    return line;
}

Test(rpm, names_the_one_package_of_a_file) {
    cr_expect(eq(str, (char *)parsed("bash\t5.2-1\tx86_64\n"), "bash 5.2-1 [x86_64]"));
    cr_expect(eq(str, (char *)parsed("zlib\t2:1-3\ti686\nzlib\t2:1-3\tx86_64\n"), "zlib 2:1-3 []"),
              "of two architectures");
    cr_expect(eq(str, (char *)parsed("zlib\t1\ti686\nzlib\t2\ti686\n"), "none"));
    cr_expect(eq(str, (char *)parsed("one\t1\ti686\ntwo\t1\ti686\n"), "none"));
}

Test(rpm, makes_no_package_of_other_text) {
    static const char *const others[] = {"",
                                         "\n",
                                         "bash\t5.2-1\n",
                                         "bash\t\tx86_64\n",
                                         "file /usr/bin/env is not owned by any package\n",
                                         "bash\t(none)\tx86_64\n",
                                         "a\tb\tc\td\n",
                                         "bash\t5.2-1\tx86_64\n\n"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        cr_expect(eq(str, (char *)parsed(others[i]), "none"), "%s", others[i]);
    }
}

Test(mounts, are_read_only_by_the_options_of_the_file_system) {
    static const char text[] =
        "107 87 7:1 / /mnt/ro rw,relatime shared:1 - ext4 /dev/loop1 rw,errors=remount-ro,"
        "emergency_ro\n"
        "108 87 7:2 / /mnt rw,relatime - ext4 /dev/loop2 rw,errors=remount-ro\n"
        "109 87 7:3 / /a ro,relatime - ext4 /dev/loop3 rw\n"
        "110 87 7:4 /\\040 /b rw - ext4 /dev/loop4 ro,relatime\n"
        "111 87 0:5 / / 7:2 - tmpfs - ro\n7:2 - ro";
    static const bool are_read_only[] = {true, false, false, true};
    for (unsigned i = 0; i < 4; i++) {
        cr_expect(eq(int, bp_mount_is_read_only(text, sizeof text - 1, 7, i + 1), are_read_only[i]),
                  "7:%u", i + 1);
    }
    cr_expect(not(bp_mount_is_read_only(text, 0, 7, 1)));
}

Test(system_json, has_what_is_known_and_nothing_else) {
    bp_buffer text;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer_init(&text, 65536);
    cr_assert(eq(int, (int)sample_system_print(true, &text, &error), BUGPACK_OK));
    cr_expect(strstr(text.data, "\"avg1\": 14.1,") != NULL);
    cr_expect(strstr(text.data, "\"hostname\": \"vm\"") != NULL);
    cr_expect(strstr(text.data, "\"max_bytes\": null") != NULL);
    cr_expect(strstr(text.data, "\"manager\": \"dpkg\"") != NULL);
    cr_expect(strstr(text.data, "\"used_percent\": 75,") != NULL);
    cr_expect(strstr(text.data, "\"free_inodes\": 0") != NULL);
    cr_expect(strstr(text.data, "\"available_bytes\": 0,\n      \"read_only\": true") != NULL,
              "neither used_percent nor inodes");
    cr_expect(strstr(text.data, "\"of\": [],\n      \"file\": \"/mnt/spool\"") != NULL);
    bp_buffer_clear(&text);
    cr_assert(eq(int, (int)sample_system_print(false, &text, &error), BUGPACK_OK));
    cr_expect(strstr(text.data, "hostname") == NULL && strstr(text.data, "load") == NULL &&
              strstr(text.data, "own_namespaces") == NULL && strstr(text.data, "cgroups") == NULL &&
              strstr(text.data, "filesystems") == NULL);
    bp_buffer_release(&text);
}
