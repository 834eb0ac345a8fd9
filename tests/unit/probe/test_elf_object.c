/*
 * ELF files of all kinds: libraries of this machine, and what somebody could put in their place.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>

#include "process/elf_object.h"
#include "process/thread_pointers.h"
#include "unit/dir.h"

/* The C library that this test itself runs on. */
static int open_libc(uint64_t *ret_base) {
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "getpid");
    cr_assert(ne(int, dladdr(symbol, &info), 0));
    *ret_base = (uint64_t)(uintptr_t)info.dli_fbase;
    int fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
    cr_assert(ge(int, fd, 0));
    return fd;
}

DIR_SUITE(elf_object);

Test(elf_object, finds_the_symbols_that_the_loader_finds) {
    static const char *const names[] = {"getpid", "qsort", "environ", "__nptl_rtld_global"};
    bp_elf_object elf;
    Elf64_Sym symbol = {.st_value = 4711};
    uint64_t base;
    CLEANUP(close_fd) int fd = open_libc(&base);
    cr_assert(eq(int, bp_elf_object_read(fd, &elf), BP_ELF_OK));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_assert(bp_elf_find_symbol(&elf, names[i], &symbol), "%s", names[i]);
    }
    cr_assert(bp_elf_find_symbol(&elf, "getgid", &symbol));
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    cr_assert(eq(u64, base + symbol.st_value, (uint64_t)(uintptr_t)dlsym(libc, "getgid")));
    cr_assert(not(bp_elf_find_symbol(&elf, "bugpack_is_not_in_libc", &symbol)));
    cr_assert(not(bp_elf_find_symbol(&elf, "", &symbol)));
    (void)dlclose(libc);
}

Test(elf_object, reads_how_the_c_library_keeps_its_threads) {
    bp_elf_object elf;
    bp_libc_layout layout;
    uint64_t base;
    CLEANUP(close_fd) int fd = open_libc(&base);
    cr_assert(eq(int, bp_elf_object_read(fd, &elf), BP_ELF_OK));
    cr_assert(bp_libc_layout_read(&elf, &layout));
    cr_assert(gt(u64, layout.descriptor_bytes, layout.descriptor_tid));
    cr_assert(ne(u64, layout.lists[0], layout.lists[1]));
}

/* An executable with two segments: notes, and one of a kind that is given. */
static bool is_static_glibc(uint32_t other, uint32_t note_type) {
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segments[3];
        uint32_t notes[4 + 8];
    } file = {.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                         .e_machine = BP_ELF_OWN_MACHINE,
                         .e_phoff = offsetof(__typeof__(file), segments),
                         .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = 3},
              .segments = {{.p_type = PT_LOAD, .p_filesz = sizeof file},
                           {.p_type = PT_NOTE,
                            .p_vaddr = offsetof(__typeof__(file), notes),
                            .p_filesz = sizeof file.notes},
                           {.p_type = other}},
              .notes = {4, 0, 77, 0x554e47, 4, 16, note_type, 0x554e47, 0, 3, 2, 0}};
    bp_elf_object elf;
    int fd = memfd_create("elf", MFD_CLOEXEC);
    cr_assert(eq(sz, (size_t)write(fd, &file, sizeof file), sizeof file));
    cr_assert(eq(int, bp_elf_object_read(fd, &elf), BP_ELF_OK));
    bool is_it = bp_elf_is_static_glibc(&elf);
    (void)close(fd);
    return is_it;
}

Test(elf_object, with_the_note_of_glibc_and_without_a_loader_is_static) {
    cr_expect(is_static_glibc(PT_NULL, NT_GNU_ABI_TAG));
    cr_expect(not(is_static_glibc(PT_INTERP, NT_GNU_ABI_TAG)));
    cr_expect(not(is_static_glibc(PT_NULL, NT_GNU_BUILD_ID)), "as of musl");
}

Test(elf_object, every_cut_of_a_file_is_refused_or_read_within_its_bounds) {
    static char bytes[1 << 16];
    uint64_t base;
    int libc_fd = open_libc(&base);
    ssize_t byte_count = pread(libc_fd, bytes, sizeof bytes, 0);
    (void)close(libc_fd);
    cr_assert(eq(i64, byte_count, (int64_t)sizeof bytes));
    for (size_t length = 0; length < sizeof bytes;
         length = length < 1024 ? length + 61 : length + 6007) {
        bp_elf_object elf;
        Elf64_Sym symbol;
        uint64_t slot;
        int64_t addend;
        cr_assert(temp_dir_write(&dir, "cut", bytes, length));
        int fd = openat(dir.fd, "cut", O_RDONLY | O_CLOEXEC);
        if (length < sizeof(Elf64_Ehdr)) {
            cr_assert(eq(int, bp_elf_object_read(fd, &elf), BP_ELF_BAD));
        } else if (bp_elf_object_read(fd, &elf) == BP_ELF_OK) {
            (void)bp_elf_find_symbol(&elf, "getpid", &symbol);
            cr_assert(not(bp_elf_find_tls_slot(&elf, &slot, &addend)));
        }
        (void)close(fd);
    }
}

/* Any header and table may lie: nothing may crash, and nothing may run for ever. */
Test(elf_object, survives_bytes_that_lie) {
    static char bytes[8192];
    uint64_t base;
    uint32_t random = 4711;
    int libc_fd = open_libc(&base);
    cr_assert(eq(i64, pread(libc_fd, bytes, sizeof bytes, 0), (int64_t)sizeof bytes));
    (void)close(libc_fd);
    for (unsigned i = 0; i < 500; i++) {
        char copy[sizeof bytes];
        bp_elf_object elf;
        Elf64_Sym symbol;
        uint64_t slot;
        int64_t addend;
        memcpy(copy, bytes, sizeof copy);
        for (unsigned j = 0; j < 8; j++) {
            random = random * 1664525u + 1013904223u;
            copy[16 + random % 1000] = (char)(random >> 24);
        }
        cr_assert(temp_dir_write(&dir, "lie", copy, sizeof copy));
        CLEANUP(close_fd) int fd = openat(dir.fd, "lie", O_RDONLY | O_CLOEXEC);
        if (bp_elf_object_read(fd, &elf) == BP_ELF_OK) {
            (void)bp_elf_find_symbol(&elf, "getpid", &symbol);
            (void)bp_elf_find_tls_slot(&elf, &slot, &addend);
            cr_assert(le(sz, elf.segment_count, BP_ELF_SEGMENT_MAX));
        }
    }
}

Test(elf_object, tells_another_machine_from_a_broken_file) {
    Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                         .e_machine = EM_S390,
                         .e_phentsize = sizeof(Elf64_Phdr)};
    static const struct {
        size_t byte;
        unsigned char value;
    } changes[] = {{EI_CLASS, ELFCLASS32}, {EI_DATA, ELFDATA2MSB}};
    bp_elf_object elf;
    for (size_t i = 0; i < 3; i++) {
        Elf64_Ehdr copy = header;
        if (i > 0) {
            copy.e_machine = BP_ELF_OWN_MACHINE;
            copy.e_ident[changes[i - 1].byte] = changes[i - 1].value;
        }
        cr_assert(temp_dir_write(&dir, "other", &copy, sizeof copy));
        CLEANUP(close_fd) int fd = openat(dir.fd, "other", O_RDONLY | O_CLOEXEC);
        cr_assert(eq(int, bp_elf_object_read(fd, &elf), BP_ELF_OTHER_MACHINE));
    }
}
