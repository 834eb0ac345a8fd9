#include "run/executable.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/utf8.h"
#include "process/elf_object.h"

/* The kernel chooses a file's format by so many bytes (BINPRM_BUF_SIZE, include/uapi/linux). */
enum { start_bytes = 256 };

/* By e_machine; the last is newer than elf.h of Debian 11. */
static const struct {
    unsigned number;
    const char *name;
} processors[] = {{EM_386, "32-bit x86"},     {EM_X86_64, "x86-64"},
                  {EM_ARM, "32-bit ARM"},     {EM_AARCH64, "64-bit ARM (aarch64)"},
                  {EM_PPC, "32-bit PowerPC"}, {EM_PPC64, "64-bit PowerPC"},
                  {EM_S390, "s390x"},         {EM_MIPS, "MIPS"},
                  {EM_RISCV, "RISC-V"},       {258, "LoongArch"}};

/* The beginning of formats that are no ELF. */
static const struct {
    const char *magic, *text;
} formats[] = {{"MZ", "it is a program for Windows"},
               {"\xcf\xfa\xed\xfe", "it is a program for macOS"},
               {"\xca\xfe\xba\xbe", "it is a program for macOS, or a class of Java"}};

bool bp_run_executable_find(const char *command, const char *path, char ret_file[PATH_MAX]) {
    if (strchr(command, '/') != NULL) {
        int length = snprintf(ret_file, PATH_MAX, "%s", command);
        return length < PATH_MAX && access(ret_file, F_OK) == 0;
    }
    while (path != NULL) {
        size_t folder_bytes = strcspn(path, ":");
        struct stat info;
        int length = folder_bytes >= PATH_MAX
                         ? PATH_MAX
                         : snprintf(ret_file, PATH_MAX, "%.*s%s%s", (int)folder_bytes, path,
                                    folder_bytes > 0 ? "/" : "", command);
        if (length < PATH_MAX && stat(ret_file, &info) == 0 && S_ISREG(info.st_mode) &&
            access(ret_file, X_OK) == 0) {
            return true;
        }
        path = path[folder_bytes] == ':' ? path + folder_bytes + 1 : NULL;
    }
    return false;
}

/* Its beginning, with a NUL behind it; the length, 0 where it cannot be read. */
static size_t read_start(const char *file, char start[start_bytes + 1]) {
    int fd = -1;
    memset(start, 0, start_bytes + 1);
    if (bp_file_open_regular(AT_FDCWD, file, &fd, NULL) != BUGPACK_OK) {
        return 0;
    }
    int64_t length = bp_file_read_range(fd, start, start_bytes, 0);
    bp_file_close(fd);
    return length > 0 ? (size_t)length : 0;
}

bool bp_run_executable_is_binary(const char *file) {
    char start[start_bytes + 1];
    size_t length = read_start(file, start);
    const char *newline = memchr(start, '\n', length);
    return memchr(start, '\0', newline != NULL ? (size_t)(newline - start) : length) != NULL;
}

/* False for a file of our processor. */
static bool explain_processor(const unsigned char *start, char *out, size_t out_bytes) {
    const unsigned char *at = start + offsetof(Elf64_Ehdr, e_machine); /* as of Elf32_Ehdr */
    bool is_little = start[EI_DATA] == ELFDATA2LSB;
    unsigned number = is_little ? at[0] | (unsigned)at[1] << 8 : at[1] | (unsigned)at[0] << 8;
    const char *name = NULL;
    struct utsname machine;
    if (number == BP_ELF_OWN_MACHINE || uname(&machine) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof processors / sizeof processors[0]; i++) {
        name = processors[i].number == number ? processors[i].name : name;
    }
    if (name != NULL) {
        (void)snprintf(out, out_bytes, "it is a program for %s, and this machine is %s", name,
                       machine.machine);
    } else {
        (void)snprintf(out, out_bytes,
                       "it is a program for another processor (ELF machine %u), and this machine "
                       "is %s",
                       number, machine.machine);
    }
    return true;
}

/* ENOEXEC: the kernel knows no such format, or does not take this one. */
static bool explain_format(const char *start, size_t length, char *out, size_t out_bytes) {
    const char *text = NULL;
    if (length >= sizeof(Elf32_Ehdr) && memcmp(start, ELFMAG, SELFMAG) == 0) {
        const unsigned char *header = (const unsigned char *)start;
        if (explain_processor(header, out, out_bytes)) {
            return true;
        }
        text = header[offsetof(Elf64_Ehdr, e_type)] == ET_REL
                   ? "it is an object file, and no program"
                   : "it is an ELF file that is damaged, or no program";
    }
    for (size_t i = 0; text == NULL && i < sizeof formats / sizeof formats[0]; i++) {
        bool is_of_format = strncmp(start, formats[i].magic, strlen(formats[i].magic)) == 0;
        text = is_of_format ? formats[i].text : NULL;
    }
    bp_utf8_copy(out, out_bytes, text);
    return text != NULL;
}

/* The interpreter that the file asks for: behind "#!", as the kernel reads it
 * (fs/binfmt_script.c). */
static bool find_script_interpreter(const char *start, char out[PATH_MAX]) {
    if (strncmp(start, "#!", 2) != 0) {
        return false;
    }
    start += 2 + strspn(start + 2, " \t");
    (void)snprintf(out, PATH_MAX, "%.*s", (int)strcspn(start, " \t\n"), start);
    return out[0] != '\0';
}

/* The loader of a dynamic executable of our byte order (PT_INTERP). */
static bool find_loader(const char *file, const char *start, char out[PATH_MAX]) {
    enum { segments_max = 64 };
    bool is_64 = start[EI_CLASS] == ELFCLASS64, is_found = false;
    Elf64_Ehdr header;
    Elf32_Ehdr header_32;
    memcpy(&header, start, sizeof header);
    memcpy(&header_32, start, sizeof header_32);
    uint64_t offset = is_64 ? header.e_phoff : header_32.e_phoff;
    unsigned count = is_64 ? header.e_phnum : header_32.e_phnum;
    size_t row_bytes = is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    int fd = -1;
    if (memcmp(start, ELFMAG, SELFMAG) != 0 ||
        bp_file_open_regular(AT_FDCWD, file, &fd, NULL) != BUGPACK_OK) {
        return false;
    }
    for (unsigned i = 0; !is_found && i < count && i < segments_max; i++) {
        Elf64_Phdr row = {.p_type = PT_NULL};
        Elf32_Phdr row_32 = {.p_type = PT_NULL};
        void *into = is_64 ? (void *)&row : (void *)&row_32;
        if (bp_file_read_range(fd, into, row_bytes, offset + i * row_bytes) != (int64_t)row_bytes) {
            break;
        }
        if ((is_64 ? row.p_type : row_32.p_type) == PT_INTERP) {
            uint64_t at = is_64 ? row.p_offset : row_32.p_offset;
            int64_t length = bp_file_read_range(fd, out, PATH_MAX - 1, at);
            out[length > 0 ? length : 0] = '\0';
            is_found = out[0] != '\0';
        }
    }
    bp_file_close(fd);
    return is_found;
}

/* ENOENT of a file that is there: what it needs is not. */
static bool explain_interpreter(const char *file, const char *start, char *out, size_t out_bytes) {
    char interpreter[PATH_MAX];
    bool is_script = find_script_interpreter(start, interpreter);
    if (!is_script && !find_loader(file, start, interpreter)) {
        return false;
    }
    size_t length = strlen(interpreter);
    bool is_of_windows = is_script && length > 0 && interpreter[length - 1] == '\r';
    if (access(interpreter, F_OK) == 0) {
        return false;
    }
    if (is_of_windows) {
        (void)snprintf(out, out_bytes,
                       "its first line ends with a carriage return, as on Windows, and the "
                       "interpreter \"%.*s\\r\" does not exist",
                       (int)(length - 1 < 100 ? length - 1 : 100), interpreter);
    } else {
        (void)snprintf(out, out_bytes, "its %s \"%.160s\" does not exist",
                       is_script ? "interpreter" : "loader", interpreter);
    }
    return true;
}

void bp_run_executable_explain(const char *file, int system_errno,
                               char ret_reason[BP_EXECUTABLE_REASON_BYTES]) {
    char start[start_bytes + 1];
    size_t length = read_start(file, start);
    bool is_known = (system_errno == ENOEXEC &&
                     explain_format(start, length, ret_reason, BP_EXECUTABLE_REASON_BYTES)) ||
                    (system_errno == ENOENT &&
                     explain_interpreter(file, start, ret_reason, BP_EXECUTABLE_REASON_BYTES));
    if (!is_known) {
        (void)snprintf(ret_reason, BP_EXECUTABLE_REASON_BYTES, "%s", strerror(system_errno));
    }
}
