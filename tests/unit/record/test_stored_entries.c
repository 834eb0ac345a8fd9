/*
 * What a session stored for the report about its death is data from outside: an entry that cannot
 * be one of a report is left out, and so is all that comes after it. The manifest says so.
 */
#include <fcntl.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "report/stored_entries.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

static temp_dir dir;
static bp_tags tags;
static unsigned char file[4096];
static size_t file_bytes;

static void set_up(void) {
    cr_assert(temp_dir_make(&dir));
    bp_tags_init(&tags);
    file_bytes = 32;
}

static void tear_down(void) {
    bp_tags_release(&tags);
    temp_dir_remove(&dir);
}

TestSuite(stored_entries, .init = set_up, .fini = tear_down);

static void put(const void *bytes, size_t byte_count) {
    memcpy(file + file_bytes, bytes, byte_count);
    file_bytes += byte_count;
}

/* An entry as report/stored_entries.c has it. */
static void add_sized(const char *name, const char *text, uint32_t kind, uint64_t text_bytes) {
    const uint32_t head[] = {(uint32_t)strlen(name), kind};
    const uint64_t tail[] = {1795330000000000000u, text_bytes};
    put(head, sizeof head);
    put(tail, sizeof tail);
    put(name, strlen(name));
    put(text, strlen(text));
}

static void add(const char *name, const char *text) {
    add_sized(name, text, 0, strlen(text));
}

/* The entries that a report has of the file, without the manifest, in the order of the zip. */
static char *read_back(uint32_t count) {
    static const char magic[8] = "bpstore";
    const uint32_t numbers[] = {2, count};
    const uint64_t sizes[] = {file_bytes - 32, XXH3_64bits(file + 32, file_bytes - 32)};
    char path[600], name[256];
    uint64_t zip_bytes;
    memcpy(file, magic, sizeof magic);
    memcpy(file + 8, numbers, sizeof numbers);
    memcpy(file + 16, sizes, sizeof sizes);
    int fd = openat(dir.fd, "stored-entries", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert(write(fd, file, file_bytes) == (ssize_t)file_bytes);
    (void)close(fd);
    const bp_bundle_target target = {.dir_fd = dir.fd,
                                     .dir_name = dir.path,
                                     .report_id = "00000000000000000000000000000000",
                                     .wall_ns = 1795330000000000000u};
    bp_bundle *bundle = NULL;
    cr_assert(eq(int, bp_bundle_new(&target, &bundle, NULL), 0));
    cr_assert(eq(int, bp_stored_entries_add(dir.fd, 0, &tags, bundle, NULL), 0));
    cr_assert(eq(int,
                 bp_bundle_publish(bundle, &(bp_trigger_list){0}, "report", ".zip", name,
                                   sizeof name, &zip_bytes, NULL),
                 0));
    bp_bundle_free(bundle);
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    char *list = report_list(path);
    (void)unlink(path);
    return list;
}

static void expect(uint32_t count, const char *expected, const char *what) {
    char *list = read_back(count);
    cr_expect(list != NULL && strcmp(list, expected) == 0, "%s: %s", what, list);
    free(list);
    file_bytes = 32;
}

Test(stored_entries, become_entries_of_the_report) {
    add("process.json", "{\"pid\": 1}");
    add("session.json", "{}");
    add("state.txt", "text\n");
    expect(3, "process.json\nsession.json\nstate.txt\nmanifest.json\n", "all");
    add_sized("session.json", "it failed", 1, strlen("it failed"));
    expect(1, "manifest.json\n", "a reason");
}

Test(stored_entries, give_back_tags) {
    char longest[2 * BUGPACK_TAG_VALUE_MAX_BYTES];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    add_sized("branch", "main", 2, 4);
    add("session.json", "{}");
    add_sized("session.json", longest, 2, strlen(longest));
    add_sized("no key", "", 2, 0);
    add("last.txt", "3");
    expect(5, "session.json\nmanifest.json\n", "a key that is none");
    bp_tag_set *set = bp_tags_hold(&tags);
    cr_assert(set != NULL && set->count == 2);
    cr_expect(eq(str, set->tags[0].key, "branch"));
    cr_expect(eq(str, set->tags[0].value, "main"));
    cr_expect(eq(str, set->tags[1].key, "session.json"));
    cr_expect(eq(sz, strlen(set->tags[1].value), BUGPACK_TAG_VALUE_MAX_BYTES));
    bp_tag_set_drop(set);
    add_sized("first.txt", "1", 3, 1);
    expect(1, "manifest.json\n", "a kind that is none");
}

Test(stored_entries, that_cannot_be_entries_are_left_out) {
    static const char *const names[] = {"../x", "/x", "manifest.json", "crash.json", "a\\b", ""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        add("first.txt", "1");
        add(names[i], "2");
        add("last.txt", "3");
        expect(3, "first.txt\nmanifest.json\n", names[i]);
    }
    add("twice.txt", "1");
    add("TWICE.txt", "2");
    expect(2, "twice.txt\nmanifest.json\n", "twice");
    add("session.json", "{\"a\": }");
    expect(1, "manifest.json\n", "JSON that is none");
}

Test(stored_entries, with_sizes_that_lie_are_left_out) {
    static const uint64_t sizes[] = {5, UINT64_MAX, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        add_sized("a.txt", "1234", 0, sizes[i]);
        expect(1, "manifest.json\n", "size");
    }
    add("a.txt", "1");
    expect(2, "a.txt\nmanifest.json\n", "one too few");
    add("a.txt", "1");
    expect(129, "manifest.json\n", "too many");
    add("a.txt", "1");
    file[8] = 0;
    char *list = read_back(1);
    free(list);
    CLEANUP(close_fd) int fd = openat(dir.fd, "stored-entries", O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < file_bytes; i++) {
        const unsigned char changed = file[i] ^ 0x10;
        bp_bundle *bundle = NULL;
        const bp_bundle_target target = {.dir_fd = dir.fd, .dir_name = dir.path, .report_id = ""};
        cr_assert(pwrite(fd, &changed, 1, (off_t)i) == 1);
        cr_assert(eq(int, bp_bundle_new(&target, &bundle, NULL), 0));
        cr_expect(eq(int, bp_stored_entries_add(dir.fd, 0, &tags, bundle, NULL), 0));
        char missing[64];
        cr_expect(eq(u32, bp_bundle_missing(bundle, missing, sizeof missing), 1));
        bp_bundle_free(bundle);
        cr_assert(pwrite(fd, &file[i], 1, (off_t)i) == 1);
    }
}
