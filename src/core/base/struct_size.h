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

/* The facts about a struct that reading and writing it needs. */
typedef struct bp_struct {
    const char *name; /* for messages: "bugpack_options" */
    size_t bytes;     /* of this version */
} bp_struct;

#define BP_STRUCT(type)                                                                            \
    { #type, sizeof(type) }

/* The structs that hosts pass: bp_of_bugpack_options and so on. */
#define BP_PUBLIC_STRUCTS(ROW)                                                                     \
    ROW(bugpack_disconnect_details)                                                                \
    ROW(bugpack_event)                                                                             \
    ROW(bugpack_pedantic_state)                                                                    \
    ROW(bugpack_heap_state)                                                                        \
    ROW(bugpack_recover_options)                                                                   \
    ROW(bugpack_report_request)                                                                    \
    ROW(bugpack_report_result)                                                                     \
    ROW(bugpack_options)                                                                           \
    ROW(bugpack_recorder_location)                                                                 \
    ROW(bugpack_channel_options)
#define BP_DECLARE_STRUCT(type) extern const bp_struct bp_of_##type;
BP_PUBLIC_STRUCTS(BP_DECLARE_STRUCT)

/* Sets a struct of the host's size to 0, and its struct_size. False, and nothing is written, if
 * there is no struct or the size is none. */
bool bp_struct_init(void *fresh, size_t struct_size);

/*
 * Copies the host's struct over `to`, which is of this version and initialised: fields that the
 * host does not know stay as they are. INVALID if `given` is NULL, has a size of no struct, or a
 * field beyond this version that is not 0. `to` is untouched on failure.
 */
bugpack_status bp_struct_read(const bp_struct *of, void *to, const void *given,
                              bugpack_error *error);

/* The same checks for a struct that is only written; what it holds beyond its size is ignored. */
bugpack_status bp_struct_check(const bp_struct *of, const void *given, bugpack_error *error);

/* Copies `from`, of this version, to a checked struct as far as that reaches. Its size stays. */
void bp_struct_write(const bp_struct *of, void *given, const void *from);

/* The meaning of 0 and of BUGPACK_OFF in a field of 64 bits, and its bound. */
typedef struct bp_field {
    const char *name; /* with that of the struct inside, as "recorder.profile_hz" */
    size_t offset;
    uint64_t default_value; /* for 0 */
    uint64_t off_value;     /* for off; BP_FIELD_NEVER_OFF: INVALID */
    uint64_t max_value;     /* INVALID above */
} bp_field;

#define BP_FIELD_NEVER_OFF UINT64_MAX
#define BP_FIELD_MAX32                                                                             \
    (UINT32_MAX - 1) /* of a setting that is kept in 32 bits, where a limit of                     \
                      * UINT32_MAX may mean none */
#define BP_FIELD(type, field, default_value, off_value, max_value)                                 \
    { #field, offsetof(type, field), default_value, off_value, max_value }

/* Replaces 0 and off in these fields of a struct that was read. */
bugpack_status bp_struct_fill(void *fields_of, const bp_field *fields, size_t field_count,
                              bugpack_error *error);

#endif
