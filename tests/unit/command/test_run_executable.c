/*
 * Why the system refuses a file, from files of many kinds.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process/elf_object.h"
#include "run/executable.h"
#include "unit/dir.h"

DIR_SUITE(executable);

static char file[PATH_MAX], reason[BP_EXECUTABLE_REASON_BYTES];

static void make(const char *name, const void *bytes, size_t byte_count) {
    cr_assert(temp_dir_write(&dir, name, bytes, byte_count));
    (void)snprintf(file, sizeof file, "%s/%s", dir.path, name);
    cr_assert(chmod(file, 0700) == 0);
}

/* A program of one segment, which names its loader. */
static void make_elf(unsigned machine, unsigned type, const char *loader) {
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segment;
        char loader[64];
    } elf = {.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                        .e_type = (Elf64_Half)type,
                        .e_machine = (Elf64_Half)machine,
                        .e_phoff = sizeof(Elf64_Ehdr),
                        .e_phentsize = sizeof(Elf64_Phdr),
                        .e_phnum = 1},
             .segment = {.p_type = PT_INTERP, .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)}};
    (void)snprintf(elf.loader, sizeof elf.loader, "%s", loader);
    make("program", &elf, sizeof elf);
}

static const char *explain(int system_errno) {
    bp_run_executable_explain(file, system_errno, reason);
    return reason;
}

Test(executable, names_the_processor_that_a_program_is_for) {
    unsigned other = BP_ELF_OWN_MACHINE == EM_S390 ? EM_RISCV : EM_S390;
    make_elf(other, ET_EXEC, "");
    cr_expect(bp_run_executable_is_binary(file));
    cr_expect(eq(int,
                 strncmp(explain(ENOEXEC), "it is a program for s390x, and this machine is ",
                         strlen("it is a program for s390x, and this machine is ")),
                 0),
              "%s", reason);
    make_elf(4711, ET_EXEC, "");
    cr_expect(ne(ptr, strstr(explain(ENOEXEC), "another processor (ELF machine 4711)"), NULL));
}

Test(executable, names_what_is_no_program) {
    make_elf(BP_ELF_OWN_MACHINE, ET_REL, "");
    cr_expect(eq(str, (char *)explain(ENOEXEC), "it is an object file, and no program"));
    make("windows.exe", "MZ\x90\0\3", 5);
    cr_expect(bp_run_executable_is_binary(file));
    cr_expect(eq(str, (char *)explain(ENOEXEC), "it is a program for Windows"));
    make("cut", ELFMAG, SELFMAG);
    cr_expect(eq(str, (char *)explain(ENOEXEC), strerror(ENOEXEC)));
}

Test(executable, names_the_loader_that_does_not_exist) {
    make_elf(BP_ELF_OWN_MACHINE, ET_DYN, "/nosuch/ld.so");
    cr_expect(eq(str, (char *)explain(ENOENT), "its loader \"/nosuch/ld.so\" does not exist"));
    make_elf(BP_ELF_OWN_MACHINE, ET_DYN, "/");
    cr_expect(eq(str, (char *)explain(ENOENT), strerror(ENOENT)));
}

Test(executable, names_the_interpreter_that_does_not_exist) {
    make("script", "#! /nosuch/python -u\nx\n", 23);
    cr_expect(not(bp_run_executable_is_binary(file)));
    cr_expect(
        eq(str, (char *)explain(ENOENT), "its interpreter \"/nosuch/python\" does not exist"));
    make("windows", "#!/bin/sh\r\necho\r\n", 17);
    cr_expect(ne(ptr, strstr(explain(ENOENT), "carriage return"), NULL), "%s", reason);
    cr_expect(ne(ptr, strstr(reason, "\"/bin/sh\\r\""), NULL), "%s", reason);
    make("without", "echo\n", 5);
    cr_expect(eq(str, (char *)explain(ENOENT), strerror(ENOENT)));
    cr_expect(eq(str, (char *)explain(EACCES), strerror(EACCES)));
}

Test(executable, a_script_may_have_a_nul_behind_its_first_line) {
    make("archive", "#!/bin/sh\nexit\n\0\1", 17);
    cr_expect(not(bp_run_executable_is_binary(file)));
    make("empty", "", 0);
    cr_expect(not(bp_run_executable_is_binary(file)));
    cr_expect(not(bp_run_executable_is_binary("/nosuch")));
}

Test(executable, is_found_as_by_a_shell) {
    char path[PATH_MAX], found[PATH_MAX];
    make("tool", "x", 1);
    (void)snprintf(path, sizeof path, "/nosuch:%s:/", dir.path);
    cr_assert(bp_run_executable_find("tool", path, found));
    cr_expect(eq(str, found, file));
    cr_expect(bp_run_executable_find(file, NULL, found));
    cr_assert(chmod(file, 0600) == 0);
    cr_expect(not(bp_run_executable_find("tool", path, found)));
    cr_expect(not(bp_run_executable_find("tool", NULL, found)));
    cr_expect(not(bp_run_executable_find("/nosuch/tool", path, found)));
}
