/*
 * Public structs across versions of the library. A struct that starts with `size_t struct_size`
 * grows at its end only, and new fields leave no hole before or after them: a host need not set
 * padding to 0. Only these functions look at the size.
 */
#ifndef BP_BASE_STRUCT_SIZE_H
#define BP_BASE_STRUCT_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

/* What is to be known of a struct to read or write it. */
typedef struct bp_struct {
    const char *name;   /* for messages: "bugpack_options" */
    size_t bytes;       /* of this version */
    size_t least_bytes; /* a smaller one is refused */
} bp_struct;

/* A host has at least everything up to and including `last_field`. */
#define BP_STRUCT(type, last_field)                                                                \
    { #type, sizeof(type), offsetof(type, last_field) + sizeof(((type *)NULL)->last_field) }

/*
 * Copies the host's struct over `to`, which is of this version and initialised: fields that the
 * host does not know stay as they are. INVALID if `given` is NULL, too small, or has a field beyond
 * this version that is not 0. `to` is untouched on failure.
 */
bugpack_status bp_struct_read(const bp_struct *of, void *to, const void *given,
                              bugpack_error *error);

/* The same checks for a struct that is only written; what it holds beyond its size is ignored. */
bugpack_status bp_struct_check(const bp_struct *of, const void *given, bugpack_error *error);

/* Copies `from`, of this version, to a checked struct as far as that reaches. Its size stays. */
void bp_struct_write(const bp_struct *of, void *given, const void *from);

/* The meaning of 0 and BUGPACK_OFF in an integer field of 4 or 8 bytes. */
typedef struct bp_field {
    const char *name;
    size_t offset, bytes;
    uint64_t default_value; /* for 0 */
    uint64_t off_value;     /* for BUGPACK_OFF; BP_FIELD_NEVER_OFF: INVALID */
} bp_field;

#define BP_FIELD_NEVER_OFF UINT64_MAX
#define BP_FIELD(type, field, default_value, off_value)                                            \
    { #field, offsetof(type, field), sizeof(((type *)NULL)->field), default_value, off_value }

/* Replaces 0 and BUGPACK_OFF in these fields of a struct that was read. */
bugpack_status bp_struct_fill(void *fields_of, const bp_field *fields, size_t field_count,
                              bugpack_error *error);

#endif
