/*
 * Which thread of a Java virtual machine waits for the monitor of an object, and which one has it.
 * HotSpot describes its own structures for debuggers (vmStructs.hpp), of which the memory is read
 * without a stop. All of it is the process's, and is checked. Linux only.
 */
#ifndef BP_PROCESS_JAVA_THREADS_H
#define BP_PROCESS_JAVA_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/elf_object.h"
#include "process/remote_memory.h"

typedef struct bp_java_wait {
    uint64_t tid, owner_tid; /* as the process itself counts */
    uint64_t monitor;        /* its address */
} bp_java_wait;

/* Where the virtual machine keeps what is asked for. */
typedef struct bp_java_layout {
    bp_memory_reader *read;
    void *context;
    uint64_t list; /* address of a pointer to the list of threads */
    uint64_t list_length, list_threads;
    uint64_t system_thread, system_tid; /* offsets in a thread, and in its system thread */
    uint64_t pending_monitor, owner;    /* offsets in a thread, and in a monitor */
    uint64_t stack_base, stack_bytes;   /* offsets in a thread: its stack ends at the base */
    bool has_id;                        /* an owner is the number of a thread, as since Java 24 */
    uint64_t id;                        /* its offset in a thread */
} bp_java_layout;

/* Reads it by the table that `libjvm`, loaded at `base`, exports. `layout` has its reader. False
 * where there is none, or without one of these, as before Java 10. */
bool bp_java_layout_read(bp_elf_object *libjvm, uint64_t base, bp_java_layout *layout);

/* The threads that wait for a monitor that another thread of the list has; at most `wait_max`. One
 * reading of memory that changes: who believes it has read the same twice. */
size_t bp_java_find_waits(const bp_java_layout *layout, bp_java_wait *waits, size_t wait_max);

#endif
