/*
 * Files that say that they need more memory than they have bytes.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heap/jemalloc_find.h"
#include "platform/linux/files.h"
#include "process/elf_object.h"
#include "stacks/stack_files.h"
#include "support/not_tried.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

static const uint64_t limit_bytes = (uint64_t)1 << 30;

/* A header, a program header, two sections, and what a section may begin with. */
struct file {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    Elf64_Shdr sections[2];
    Elf64_Chdr compressed;
    char older[12];
};

static struct file make_file(void) {
    struct file file = {.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                                               ELFDATA2LSB, EV_CURRENT},
                                   .e_type = ET_EXEC,
                                   .e_machine = EM_X86_64,
                                   .e_version = EV_CURRENT,
                                   .e_ehsize = sizeof(Elf64_Ehdr),
                                   .e_phoff = offsetof(struct file, segment),
                                   .e_phentsize = sizeof(Elf64_Phdr),
                                   .e_phnum = 1,
                                   .e_shoff = offsetof(struct file, sections),
                                   .e_shentsize = sizeof(Elf64_Shdr),
                                   .e_shnum = 2},
                        .segment = {.p_type = PT_NOTE, .p_filesz = 16},
                        .sections = {{0},
                                     {.sh_type = SHT_SYMTAB,
                                      .sh_size = 4096,
                                      .sh_entsize = sizeof(Elf64_Sym),
                                      .sh_offset = sizeof(struct file)}},
                        .compressed = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = (uint64_t)1 << 40},
                        .older = {'Z', 'L', 'I', 'B', 0, 0, 1}};
    return file;
}

static int open_sparse(const temp_dir *dir, const struct file *file, uint64_t file_bytes) {
    cr_assert(temp_dir_write(dir, "file", file, sizeof *file));
    int fd = openat(dir->fd, "file", O_RDWR | O_CLOEXEC);
    cr_assert(ge(int, fd, 0));
    cr_assert(eq(int, ftruncate(fd, (off_t)file_bytes), 0));
    return fd;
}

static bool is_within(const temp_dir *dir, const struct file *file) {
    int fd = open_sparse(dir, file, 1 << 20);
    bool is = bp_elf_memory_bytes(fd) <= limit_bytes;
    (void)close(fd);
    return is;
}

static temp_dir directory;

static void make_directory(void) {
    cr_assert(temp_dir_make(&directory));
}

static void remove_directory(void) {
    temp_dir_remove(&directory);
}

TestSuite(elf_bounds, .init = make_directory, .fini = remove_directory);

Test(elf_bounds, takes_a_usual_file_and_this_very_program) {
    struct file file = make_file();
    cr_assert(is_within(&directory, &file));
    CLEANUP(close_fd) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    cr_assert(bp_elf_memory_bytes(fd) <= limit_bytes);
    cr_assert(not(bp_elf_memory_bytes(fd) <= 64));
}

Test(elf_bounds, refuses_symbols_notes_and_debug_data_that_are_too_large) {
    struct file file = make_file();
    file.sections[1].sh_size = limit_bytes;
    cr_assert(not(is_within(&directory, &file)), "symbols, with the note before them");
    file = make_file();
    file.sections[1].sh_size = UINT64_MAX;
    cr_assert(not(is_within(&directory, &file)));
    file = make_file();
    file.segment.p_filesz = UINT64_MAX;
    cr_assert(not(is_within(&directory, &file)), "a note");
    file = make_file();
    file.sections[1].sh_type = SHT_PROGBITS;
    file.sections[1].sh_flags = SHF_COMPRESSED;
    file.sections[1].sh_offset = offsetof(struct file, compressed);
    cr_assert(not(is_within(&directory, &file)), "what decompresses to a terabyte");
    file.sections[1].sh_flags = 0;
    cr_assert(is_within(&directory, &file), "the same, not compressed");
    file.sections[1].sh_offset = offsetof(struct file, older);
    cr_assert(not(is_within(&directory, &file)), "the older way to compress");
}

/* The program itself may be as large as it likes, and so may what has no bytes in the file. */
Test(elf_bounds, counts_neither_code_nor_what_is_not_in_the_file) {
    struct file file = make_file();
    file.sections[1] =
        (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_size = (uint64_t)1 << 40};
    cr_assert(is_within(&directory, &file));
    file.sections[1] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_size = (uint64_t)1 << 40};
    cr_assert(is_within(&directory, &file));
}

Test(elf_bounds, refuses_tables_that_are_longer_than_their_numbers_say) {
    struct file file = make_file();
    file.header.e_shnum = 0;
    cr_assert(not(is_within(&directory, &file)), "the number of sections is elsewhere");
    file = make_file();
    file.header.e_phnum = PN_XNUM;
    cr_assert(not(is_within(&directory, &file)));
    file = make_file();
    file.header.e_shoff = UINT64_MAX - 8;
    cr_assert(not(is_within(&directory, &file)));
    file = make_file();
    file.header.e_shoff = 1 << 20;
    cr_assert(not(is_within(&directory, &file)), "a table behind the end");
    file = make_file();
    file.header.e_shentsize = 1;
    cr_assert(not(is_within(&directory, &file)));
    cr_assert(not(bp_elf_memory_bytes(-1) <= limit_bytes));
}

/* 3 GiB of symbols in a file of one block: they must not be read into memory. */
Test(elf_bounds, keeps_libdw_from_a_file_that_would_fill_the_memory) {
    struct file file = make_file();
    bp_jemalloc_layout layout = {.block = 4711};
    char reason[256] = "";
    file.sections[1].sh_size = (uint64_t)3 << 30;
    CLEANUP(close_fd) int fd = open_sparse(&directory, &file, (uint64_t)4 << 30);
    bp_dwarf_status status = bp_jemalloc_dwarf_read(fd, "/x", &layout, reason, sizeof reason);
    cr_assert(status == BP_DWARF_TOO_MUCH || status == BP_DWARF_NO_LIBRARY);
    cr_assert(ne(int, reason[0], '\0'));
    cr_assert(eq(u64, layout.block, 4711));
}

/* Maps a sparse file of so many bytes as code. Where it is. */
static uint64_t map_sparse(struct file file, uint64_t file_bytes) {
    file.header.e_type = ET_DYN;
    file.header.e_machine = BP_ELF_OWN_MACHINE;
    file.segment =
        (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096, .p_memsz = 4096};
    (void)unlinkat(directory.fd, "file", 0);
    int fd = open_sparse(&directory, &file, file_bytes);
    void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    cr_assert(ne(ptr, code, MAP_FAILED));
    /* Another name each, as the file is opened once more. */
    char name[32];
    (void)snprintf(name, sizeof name, "%p", code);
    cr_assert(eq(int, renameat(directory.fd, "file", directory.fd, name), 0));
    (void)close(fd);
    return (uint64_t)(uintptr_t)code;
}

/* Why the file with this code is not read; "": it is. */
static const char *load(bp_stack_files *files, uint64_t code) {
    bp_stack_file *file = bp_stack_files_find(files, code);
    cr_assert(ne(ptr, file, NULL));
    bp_stack_file_load(file);
    return file->facts.trouble;
}

/* A process may have mapped as many as it likes, and a thread in each. */
Test(elf_bounds, bounds_what_all_files_of_a_process_take_together) {
    enum { file_count = 6, taken_count = 5 };
    bp_stack_files files = {.dw = bp_libdw_get(NULL), .pid = getpid(), .process_fd = -1};
    uint64_t codes[file_count], endless;
    if (files.dw == NULL) {
        not_tried("no libdw");
    }
    struct file file = make_file();
    file.sections[1].sh_size = (uint64_t)200 << 20;
    for (size_t i = 0; i < file_count; i++) {
        codes[i] = map_sparse(file, (uint64_t)201 << 20);
    }
    file.header.e_shoff = file.header.e_shnum = file.header.e_shentsize = 0;
    endless = map_sparse(file, (uint64_t)300 << 20);
    files.process_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cr_assert(eq(int, bp_stack_files_open(&files), 0));
    for (size_t i = 0; i < file_count; i++) {
        const char *wanted = "its symbols and debug data, with those of other files, would take "
                             "over 1 GiB of memory";
        cr_expect(eq(str, load(&files, codes[i]), i < taken_count ? "" : wanted));
    }
    cr_expect(eq(str, load(&files, endless),
                 "it is over 256 MiB, and does not say where its unwind tables end"));
    bp_stack_files_close(&files);
    (void)close(files.process_fd);
}

/* To open a watchdog starts it, and a tape winds: what a name stands for is looked at first. */
Test(elf_bounds, opens_regular_files_only_and_those_through_links_too) {
    char path[300];
    char link[300];
    (void)snprintf(path, sizeof path, "%s/file", directory.path);
    (void)snprintf(link, sizeof link, "%s/link", directory.path);
    cr_assert(eq(int, bp_open_regular(path), -1));
    cr_assert(eq(int, mkfifo(path, 0600), 0));
    int watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    char event[sizeof(struct inotify_event) + 256];
    cr_assert(ge(int, inotify_add_watch(watch_fd, path, IN_OPEN), 0));
    cr_assert(eq(int, bp_open_regular(path), -1));
    cr_assert(eq(i64, read(watch_fd, event, sizeof event), -1));
    cr_assert(eq(int, errno, EAGAIN), "nothing may be opened");
    (void)close(watch_fd);
    cr_assert(eq(int, symlink("/dev/null", link), 0));
    cr_assert(eq(int, bp_open_regular(link), -1));
    cr_assert(eq(int, unlink(link), 0));
    cr_assert(eq(int, unlink(path), 0));
    cr_assert(temp_dir_write(&directory, "file", "x", 1));
    cr_assert(eq(int, symlink("file", link), 0));
    CLEANUP(close_fd) int fd = bp_open_regular(link);
    cr_assert(ge(int, fd, 0));
}
