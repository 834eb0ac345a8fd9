/*
 * The files that a process runs code from, as libdwfl unwinds through them. Linux only.
 */
#ifndef BP_STACKS_STACK_FILES_H
#define BP_STACKS_STACK_FILES_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/stacks.h"
#include "platform/crash_page.h"
#include "platform/linux/mapped_files.h"
#include "process/debug_file.h"

/* Bytes of a symbol or a path that are taken. */
#define BP_STACK_NAME_MAX 4096

/* A file is read when the first frame in it is met. */
typedef struct bp_stack_file {
    struct bp_stack_files *all;
    bp_mapped_file mapped;
    bp_stack_module facts; /* its path is that of `mapped` */
    Dwfl_Module *module;
    Elf *elf; /* libdwfl's; NULL before, and where it is not to be read */
    bool was_opened, was_loaded, was_debug_sought;
    bool is_trusted;                /* nobody but root and this user can have written it */
    bool is_chosen;                 /* of `places`: it is whoever chose these that trusts it */
    bool has_debug;                 /* its debug data are few enough to read */
    const unsigned char *functions; /* of its header of unwind tables, where they begin */
    size_t function_count;
    uint64_t functions_base; /* what they are relative to, in the file */
    bool were_functions_sought;
    bool has_table;        /* of unwinding, for running code */
    bool has_debug_frames; /* unwind tables among the debug data are read, for want of others */
} bp_stack_file;

typedef struct bp_stack_files {
    const bp_libdw *dw;
    pid_t pid;
    int process_fd;            /* /proc/<pid>, borrowed; of a dead process, that of our own */
    const bp_crash_page *dead; /* whose maps and build ids these are; NULL: those of process_fd */
    bool is_host;              /* names come from symbol tables, and no debug data are read */
    const atomic_bool *stop;   /* becomes true when nobody waits any more; or NULL */
    bool is_of_report; /* files of this machine with a build id that a report or a core names */
    const struct bp_debug_places *places; /* NULL: none but those of this machine */
    bp_stack_file *items;                 /* ascending by address */
    size_t count;
    bp_mapped_code *code; /* in files, and made at run time; ascending */
    size_t code_count;
    Dwfl *dwfl;
    uint64_t taken_bytes; /* what libdw may read of those that were opened, at most */
    bool lacked_memory;   /* libdw did */
} bp_stack_files;

/* For the end of each of its calls, which began with an errno of 0. libdw goes on without what it
 * found no memory for, and often returns nothing but "not found". malloc(3) leaves ENOMEM. */
static inline void bp_stack_files_note_errno(bp_stack_files *files) {
    files->lacked_memory = files->lacked_memory || errno == ENOMEM;
}

/* Opens each file, and its separate debug data, when libdwfl asks for it. */
extern const Dwfl_Callbacks bp_stack_file_callbacks;

/*
 * Lists the files and hands them to a new Dwfl. 0 or an errno; `files` is to be closed in any case.
 * It starts zeroed, except for what stands in front of `items`, and must stay where it is.
 *
 * Debug data are sought below /usr/lib/debug and beside the file, and never fetched.
 */
int bp_stack_files_open(bp_stack_files *files);
void bp_stack_files_close(bp_stack_files *files);

/*
 * Opens a file by the path that a report or a core names, if it has that build id. The path is from
 * outside: one that could make an automounter ask a machine of its choice, or that is no file of a
 * disk, is not opened. -1.
 */
int bp_stack_file_open_reported(const char *path, const char *build_id);

/* True if libdwfl may be asked about names and lines. Where it lacked memory it is not asked again:
 * it ends the process where it finds none for some of its data (dwarf_new_oom_handler). */
static inline bool bp_stack_file_can_ask(const bp_stack_file *file) {
    return file->module != NULL && file->elf != NULL && !file->all->lacked_memory;
}

/* Tells a Dwfl of a file whose path, place and end are known. */
void bp_stack_file_report(bp_stack_file *file);

/* The file whose code has the address; NULL: none. */
bp_stack_file *bp_stack_files_find(const bp_stack_files *files, uint64_t address);

/* True if code is mapped at the address. */
bool bp_stack_files_have_code(const bp_stack_files *files, uint64_t address);

typedef enum bp_stack_rule {
    BP_STACK_RULE_NONE,     /* no unwind table reaches it */
    BP_STACK_RULE_FOUND,    /* may still need a register that is not known */
    BP_STACK_RULE_SIGNAL,   /* the kernel put it below a handler; else as found */
    BP_STACK_RULE_OUTERMOST /* it has no caller, says the table */
} bp_stack_rule;

/* Opens it, and reads its unwind tables for running code, once. */
void bp_stack_file_load(bp_stack_file *file);

/* The same for a frame at this address, or a call that returns to it, and those of the debug data
 * where the former have no rule. libdwfl would do it in the midst of unwinding, and the system
 * calls for that would overwrite the errno of a lack of memory. */
void bp_stack_file_load_rules(bp_stack_file *file, uint64_t address);

/* The file's rules for unwinding from this address. */
bp_stack_rule bp_stack_file_rule(const bp_stack_file *file, uint64_t address);

/* Where the function begins that has this address, says the header of the unwind tables: also in a
 * file without symbols. The address itself where that is not known. */
uint64_t bp_stack_file_function(bp_stack_file *file, uint64_t address);

/* Fills in the symbol. */
void bp_stack_file_add_symbol(const bp_stack_file *file, bp_stack_place *place);

/*
 * Adds to `out` what is known of its frames, whose places have indices of `files` for modules:
 * symbols and lines until `until_ns` (monotonic), modules, the interpreter. False without memory.
 * This and the rest: stack_names.c.
 */
bool bp_stacks_describe(bp_stack_files *files, uint64_t until_ns, bp_stacks *out);

/* True if this time has come, or nobody waits any more. */
bool bp_stacks_is_over(const bp_stack_files *files, uint64_t deadline_ns);

/* True for a mangled name whose plain form cannot be large: a short one can refer to its own
 * parts again and again, and double with each. Pure. */
bool bp_demangle_is_bounded(const char *name);

/*
 * Rust's older names are also C++ names, which end in a hash and have escapes for what those cannot
 * hold. Writes "r::Reader<T>::fetch_all" in place of
 * "r::Reader$LT$T$GT$::fetch_all::h80c93f7a454da753", and leaves any other name as it is. Pure.
 */
void bp_demangle_rust(char *name);

#endif
