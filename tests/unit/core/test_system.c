/*
 * What machine this is, from recorded texts and from hostile ones; system.json as printed.
 */
#include "support/system_samples.h"
#include "unit/unit.h"

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
    BUFFER(text, 65536);
    cr_assert(eq(int, sample_system_print(true, &text, &failure), BUGPACK_OK));
    cr_expect(strstr(text.data, "\"avg1\": 14.1,") != NULL);
    cr_expect(strstr(text.data, "\"hostname\": \"vm\"") != NULL);
    cr_expect(strstr(text.data, "\"max_bytes\": null") != NULL);
    cr_expect(strstr(text.data, "\"used_percent\": 75,") != NULL);
    cr_expect(strstr(text.data, "\"free_inodes\": 0") != NULL);
    cr_expect(strstr(text.data, "\"available_bytes\": 0,\n      \"read_only\": true") != NULL,
              "neither used_percent nor inodes");
    cr_expect(strstr(text.data, "\"of\": [],\n      \"file\": \"/mnt/spool\"") != NULL);
    bp_buffer_clear(&text);
    cr_assert(eq(int, sample_system_print(false, &text, &failure), BUGPACK_OK));
    cr_expect(strstr(text.data, "hostname") == NULL && strstr(text.data, "load") == NULL &&
              strstr(text.data, "cgroups") == NULL && strstr(text.data, "filesystems") == NULL);
}

Test(system, a_path_is_on_the_last_file_system_of_the_longest_mount_point) {
    static const char text[] = "27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
                               "63 27 0:39 / /mnt/nas rw,relatime shared:7 master:1 - fuse.sshfs "
                               "nas:/export rw,user_id=0\n"
                               "64 27 0:40 / /mnt rw - tmpfs none rw\n"
                               "65 64 0:41 / /mnt rw - nfs4 10.0.0.1:/mnt rw\n"
                               "66 27 0:42 / /mnt/my\\040disk rw - nfs4 nas:/a\\134b\\043c rw\n"
                               "malformed\n"
                               "67 27 0:43 / /cut\\04 rw - nfs4 nas:/cut\\ rw\n";
    static const struct {
        const char *path, *point, *type, *source;
        uint64_t minor;
    } cases[] = {{"/mnt/nas/a", "/mnt/nas", "fuse.sshfs", "nas:/export", 39},
                 {"/mnt/nas", "/mnt/nas", "fuse.sshfs", "nas:/export", 39},
                 {"/mnt/nasal", "/mnt", "nfs4", "10.0.0.1:/mnt", 41},
                 {"/mnt/my disk/a", "/mnt/my disk", "nfs4", "nas:/a\\b#c", 42},
                 {"/mnt/my\\040disk", "/mnt", "nfs4", "10.0.0.1:/mnt", 41},
                 {"/cut\\04", "/cut\\04", "nfs4", "nas:/cut\\", 43},
                 {"/home", "/", "ext4", "/dev/vda", 1}};
    bp_mount mount;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(bp_mount_find(text, sizeof text - 1, cases[i].path, &mount));
        cr_expect(eq(str, mount.point, (char *)cases[i].point));
        cr_expect(eq(str, mount.type, (char *)cases[i].type));
        cr_expect(eq(str, mount.source, (char *)cases[i].source));
        cr_expect(eq(u64, mount.minor, cases[i].minor));
    }
    cr_expect(not(bp_mount_find(text, sizeof text - 1, "relative", &mount)));
    cr_expect(not(bp_mount_find(text, 0, "/", &mount)));
}
