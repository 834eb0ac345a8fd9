/*
 * Finds the rings of another process from outside it, with what ring/anchor.h says and no symbols.
 */
#include "ring/anchor.h"

#include <bugpack/bugpack.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/frame.h"
#include "support/temp_dir.h"

static bool read_from(pid_t pid, uint64_t address, void *bytes, size_t byte_count) {
    struct iovec to = {.iov_base = bytes, .iov_len = byte_count};
    struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = byte_count};
    return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)byte_count;
}

/* The anchor that a PT_NOTE segment leads to; 0: none. */
static uint64_t anchor_of_notes(pid_t pid, uint64_t address, uint64_t byte_count) {
    static _Alignas(8) unsigned char notes[4096];
    if (byte_count > sizeof notes || !read_from(pid, address, notes, byte_count)) {
        return 0;
    }
    for (uint64_t at = 0; at + sizeof(ElfW(Nhdr)) <= byte_count;) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof note);
        uint64_t name = at + sizeof note;
        uint64_t descriptor = name + ((note.n_namesz + 3) & ~3u);
        if (note.n_type == BP_ANCHOR_NOTE_TYPE && note.n_namesz == 8 && note.n_descsz == 8 &&
            descriptor + 8 <= byte_count && memcmp(notes + name, "bugpack", 8) == 0) {
            int64_t distance;
            memcpy(&distance, notes + descriptor, sizeof distance);
            return address + descriptor + (uint64_t)distance;
        }
        at = descriptor + ((note.n_descsz + 3) & ~3u);
    }
    return 0;
}

/* The same for an ELF image that is mapped at `base`. */
static uint64_t anchor_of_image(pid_t pid, uint64_t base) {
    ElfW(Ehdr) elf;
    ElfW(Phdr) segments[64];
    if (!read_from(pid, base, &elf, sizeof elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
        elf.e_phnum > 64 ||
        !read_from(pid, base + elf.e_phoff, segments, elf.e_phnum * sizeof segments[0])) {
        return 0;
    }
    uint64_t bias = elf.e_type == ET_DYN ? base : 0;
    uint64_t anchor = 0;
    for (size_t i = 0; i < elf.e_phnum && anchor == 0; i++) {
        if (segments[i].p_type == PT_NOTE) {
            anchor = anchor_of_notes(pid, bias + segments[i].p_vaddr, segments[i].p_memsz);
        }
    }
    return anchor;
}

static uint64_t find_anchor(pid_t pid) {
    char path[64], line[4096 + 128];
    unsigned long long begin, offset;
    uint64_t anchor = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    cr_assert(ne(ptr, maps, NULL));
    while (anchor == 0 && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%llx-%*x %*4c %llx", &begin, &offset) == 2 && offset == 0 &&
            strchr(line, '/') != NULL) {
            anchor = anchor_of_image(pid, begin);
        }
    }
    (void)fclose(maps);
    return anchor;
}

/* A session with one channel, in memory or in files, that stays until it is killed. */
static _Noreturn void be_a_host(const char *report_dir, bool in_memory, int ready_fd) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack *session = NULL;
    bugpack_channel *channel = NULL;
    options.app_name = "anchored";
    options.report_dir = report_dir;
    options.recorder_dir = report_dir;
    options.recorder_in_memory = in_memory;
    if (bugpack_open(&options, &session, NULL) != BUGPACK_OK ||
        bugpack_channel_open(session, "display", NULL, &channel, NULL) != BUGPACK_OK) {
        _exit(1);
    }
    bugpack_log(session, BUGPACK_LEVEL_INFO, "test", "found from outside");
    if (write(ready_fd, "x", 1) != 1) {
        _exit(1);
    }
    for (;;) {
        (void)pause();
    }
}

static bool has_text(const unsigned char *bytes, size_t byte_count, const char *text) {
    return memmem(bytes, byte_count, text, strlen(text)) != NULL;
}

static void expect_rings(pid_t pid) {
    static bp_anchor anchor;
    static unsigned char log[65536];
    uint64_t address = find_anchor(pid);
    cr_assert(ne(u64, address, 0));
    cr_assert(read_from(pid, address, &anchor, sizeof anchor));
    cr_assert(eq(u64, anchor.magic, BP_ANCHOR_MAGIC));
    cr_assert(eq(u32, anchor.version, BP_ANCHOR_VERSION));
    cr_assert(eq(u32, anchor.entry_bytes, sizeof(bp_anchor_entry)));
    cr_assert(eq(u32, anchor.entry_count, BP_ANCHOR_ENTRY_COUNT));
    unsigned kinds = 0, file_count = 0;
    const char *session_id = NULL;
    for (size_t i = 0; i < BP_ANCHOR_ENTRY_COUNT; i++) {
        bp_anchor_entry *entry = &anchor.entries[i];
        bp_frame_page page;
        if (entry->address == 0) {
            continue;
        }
        cr_expect(zero(u32, entry->sequence % 2));
        if (entry->kind == BP_ANCHOR_FILE) {
            char name[BP_ANCHOR_FILE_NAME_BYTES] = "";
            cr_assert(ge(u64, entry->mapped_bytes, sizeof name));
            cr_assert(read_from(pid, entry->address, name, sizeof name));
            cr_expect(memchr(name, '\0', sizeof name) != NULL && name[0] != '\0');
            file_count++;
            continue;
        }
        cr_assert(read_from(pid, entry->address, &page, sizeof page));
        cr_expect(eq(u64, page.magic, BP_FRAME_MAGIC));
        cr_expect(eq(u64, entry->mapped_bytes, BP_FRAME_DATA_START + page.capacity));
        cr_expect(eq(sz, strlen(entry->session_id), 32));
        cr_expect(session_id == NULL || strcmp(session_id, entry->session_id) == 0);
        session_id = entry->session_id;
        kinds |= 1u << entry->kind;
        if (entry->kind == BP_RING_KIND_LOG) {
            cr_assert(read_from(pid, entry->address + BP_FRAME_DATA_START, log, sizeof log));
            cr_expect(has_text(log, sizeof log, "found from outside"));
        }
    }
    cr_expect(gt(u32, file_count, 0));
    cr_expect(eq(u32, kinds,
                 1u << BP_RING_KIND_LOG | 1u << BP_RING_KIND_NOTIFICATIONS |
                     1u << BP_RING_KIND_HISTORY | 1u << BP_RING_KIND_TRAFFIC |
                     1u << BP_RING_KIND_PINS));
}

static void find_rings_of_child(bool in_memory) {
    temp_dir dir;
    int ready[2];
    char byte;
    cr_assert(temp_dir_make(&dir));
    cr_assert(zero(int, pipe(ready)));
    pid_t pid = fork();
    cr_assert(ge(int, pid, 0));
    if (pid == 0) {
        (void)close(ready[0]);
        be_a_host(dir.path, in_memory, ready[1]);
    }
    (void)close(ready[1]);
    ssize_t count = read(ready[0], &byte, 1);
    (void)close(ready[0]);
    if (count == 1) {
        expect_rings(pid);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    temp_dir_remove(&dir);
    cr_assert(eq(int, (int)count, 1), "the child opened no session");
}

Test(anchor, rings_in_memory_are_found_from_outside) {
    find_rings_of_child(true);
}

Test(anchor, rings_in_files_are_found_from_outside) {
    find_rings_of_child(false);
}

/* The entries of this very process, whose list nobody else changes here. */
static size_t count_entries(void) {
    static bp_anchor anchor;
    uint64_t address = find_anchor(getpid());
    size_t count = 0;
    for (; address != 0; address = anchor.next) {
        cr_assert(read_from(getpid(), address, &anchor, sizeof anchor));
        cr_assert(eq(u32, anchor.version, BP_ANCHOR_VERSION));
        for (size_t i = 0; i < BP_ANCHOR_ENTRY_COUNT; i++) {
            cr_expect(zero(u32, anchor.entries[i].sequence % 2));
            count += anchor.entries[i].address != 0;
        }
    }
    return count;
}

Test(anchor, a_closed_ring_is_not_listed_and_a_full_table_gets_a_next_one) {
    static bp_anchor_entry *entries[3 * BP_ANCHOR_ENTRY_COUNT];
    const size_t count = sizeof entries / sizeof entries[0];
    cr_assert(zero(sz, count_entries()));
    for (size_t i = 0; i < count; i++) {
        entries[i] = bp_anchor_add(&entries[i], 4096, "id", BP_RING_KIND_LOG, 0);
        cr_assert(ne(ptr, entries[i], NULL));
    }
    cr_expect(eq(sz, count_entries(), count));
    uint32_t before = entries[7]->sequence;
    bp_anchor_remove(entries[7]);
    bp_anchor_remove(NULL);
    cr_expect(eq(sz, count_entries(), count - 1));
    cr_expect(eq(ptr, bp_anchor_add(entries, 4096, "id", BP_RING_KIND_LOG, 0), entries[7]));
    cr_expect(ne(u32, entries[7]->sequence, before), "a reader sees that it is another ring");
    for (size_t i = 0; i < count; i++) {
        bp_anchor_remove(entries[i]);
    }
    cr_expect(zero(sz, count_entries()));
}
