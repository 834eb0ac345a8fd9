#include "base/struct_size.h"
#include "unit/unit.h"

#include <bugpack/bindings.h>

/* No public struct ends in padding: the size of a struct alone says which fields a host knows. */
#define ENDS_WITH(type, last)                                                                      \
    _Static_assert(offsetof(type, last) + sizeof(((type *)NULL)->last) == sizeof(type),            \
                   #type " ends in padding")
ENDS_WITH(bugpack_channel_options, filter_context);
ENDS_WITH(bugpack_disconnect_details, error_kind);
ENDS_WITH(bugpack_error, message);
ENDS_WITH(bugpack_event, duration_ms);
ENDS_WITH(bugpack_heap_state, narenas);
ENDS_WITH(bugpack_options, limits.reserved);
ENDS_WITH(bugpack_pedantic_state, occurrence_count);
ENDS_WITH(bugpack_picture, reserved);
ENDS_WITH(bugpack_recorder_location, reason);
ENDS_WITH(bugpack_recover_options, max_zip_bytes);
ENDS_WITH(bugpack_region, height);
ENDS_WITH(bugpack_report_request, screenshot_release);
ENDS_WITH(bugpack_report_result, not_searched);
ENDS_WITH(bugpack_unpublished, reserved);

/* A struct in three generations. */
typedef struct first {
    size_t struct_size;
    uint64_t interval_ms, limit;
} first;
typedef struct today {
    size_t struct_size;
    uint64_t interval_ms, limit;
    uint64_t bytes;
} today;
typedef struct later {
    size_t struct_size;
    uint64_t interval_ms, limit;
    uint64_t bytes;
    const char *name;
} later;

static const bp_struct of = BP_STRUCT(today);
static const bp_field fields[] = {BP_FIELD(today, interval_ms, 1000, 0, BP_FIELD_MAX32),
                                  BP_FIELD(today, limit, 50, BP_FIELD_NEVER_OFF, 60),
                                  BP_FIELD(today, bytes, (uint64_t)4 << 30, 0, UINT64_MAX)};

Test(struct_size, read_leaves_fields_alone_that_an_older_host_does_not_know) {
    const first given = {.struct_size = sizeof given, .interval_ms = 7, .limit = 8};
    today known = {.bytes = 99};
    cr_assert(zero(int, bp_struct_read(&of, &known, &given, NULL)));
    cr_expect(eq(u64, known.interval_ms, 7));
    cr_expect(eq(u64, known.limit, 8));
    cr_expect(eq(u64, known.bytes, 99));
    cr_expect(eq(sz, known.struct_size, sizeof known));
}

Test(struct_size, read_takes_a_newer_host_unless_it_uses_a_field_that_is_unknown) {
    later given = {.struct_size = sizeof given, .bytes = 3};
    today known = {.bytes = 99};
    cr_assert(zero(int, bp_struct_read(&of, &known, &given, NULL)));
    cr_expect(eq(u64, known.bytes, 3));
    given.bytes = 4;
    given.name = "x";
    cr_assert(eq(int, bp_struct_read(&of, &known, &given, &failure), BUGPACK_ERR_INVALID));
    cr_expect(eq(u64, known.bytes, 3), "untouched on failure");
    cr_expect(ne(ptr, strstr(failure.message, "of today belongs to a field"), NULL), "%s",
              failure.message);
}

Test(struct_size, sizes_that_no_version_has_are_refused) {
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 65537, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const today given = {.struct_size = sizes[i], .bytes = 3};
        today known = {.bytes = 99};
        cr_expect(eq(int, bp_struct_read(&of, &known, &given, &failure), BUGPACK_ERR_INVALID));
        cr_expect(eq(int, bp_struct_check(&of, &given, NULL), BUGPACK_ERR_INVALID));
        cr_expect(eq(u64, known.bytes, 99));
        cr_expect(ne(ptr, strstr(failure.message, "the struct_size of today"), NULL), "%s",
                  failure.message);
    }
    cr_expect(eq(int, bp_struct_check(&of, NULL, NULL), BUGPACK_ERR_INVALID));
}

Test(struct_size, any_size_that_ends_on_a_member_is_taken) {
    static const size_t sizes[] = {sizeof(size_t), offsetof(today, limit), sizeof(first)};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const today given = {.struct_size = sizes[i], .interval_ms = 7, .limit = 8, .bytes = 3};
        today known = {.interval_ms = 97, .limit = 98, .bytes = 99};
        cr_expect(zero(int, bp_struct_read(&of, &known, &given, NULL)), "%zu", sizes[i]);
        cr_expect(eq(u64, known.interval_ms, i > 0 ? 7 : 97));
        cr_expect(eq(u64, known.limit, i > 1 ? 8 : 98));
        cr_expect(eq(u64, known.bytes, 99));
    }
}

/* The host's compiler knows the size, older or newer than the library's. */
Test(struct_size, initialiser_function_writes_as_much_as_the_host_has) {
    struct {
        bugpack_heap_state state;
        uint64_t later, guard;
    } newer = {.later = 5, .guard = 77};
    bugpack_heap_state_init(&newer.state, offsetof(__typeof__(newer), guard));
    cr_expect(eq(sz, newer.state.struct_size, offsetof(__typeof__(newer), guard)));
    cr_expect(eq(u64, newer.state.narenas, BUGPACK_HEAP_UNKNOWN));
    cr_expect(zero(u64, newer.later));
    cr_expect(eq(u64, newer.guard, 77));
    bugpack_heap_state older = {.narenas = 77};
    bugpack_heap_state_init(&older, offsetof(bugpack_heap_state, narenas));
    cr_expect(eq(sz, older.struct_size, offsetof(bugpack_heap_state, narenas)));
    cr_expect(eq(u64, older.mapped_bytes, BUGPACK_HEAP_UNKNOWN));
    cr_expect(eq(u64, older.narenas, 77));
    bugpack_options options = {.struct_size = 3};
    bugpack_options_init(&options, sizeof(size_t) - 1);
    bugpack_options_init(&options, SIZE_MAX);
    bugpack_options_init(NULL, sizeof options);
    cr_expect(eq(sz, options.struct_size, 3), "no size of a struct");
}

Test(struct_size, write_stays_inside_an_older_hosts_struct_and_keeps_its_size) {
    struct {
        first old;
        uint64_t guard;
    } host = {.old = {.struct_size = sizeof host.old}, .guard = 77};
    const today full = {.struct_size = sizeof full, .interval_ms = 1, .limit = 2, .bytes = 3};
    bp_struct_write(&of, &host.old, &full);
    cr_expect(eq(u64, host.old.limit, 2));
    cr_expect(eq(sz, host.old.struct_size, sizeof host.old));
    cr_expect(eq(u64, host.guard, 77));
    later newer = {.struct_size = sizeof newer, .name = "mine"};
    bp_struct_write(&of, &newer, &full);
    cr_expect(eq(u64, newer.bytes, 3));
    cr_expect(eq(sz, newer.struct_size, sizeof newer));
    cr_expect(eq(str, newer.name, "mine"));
}

Test(struct_size, zero_is_the_default_and_off_is_off) {
    today given = {.limit = 3, .bytes = BUGPACK_OFF};
    cr_assert(zero(int, bp_struct_fill(&given, fields, 3, NULL)));
    cr_expect(eq(u64, given.interval_ms, 1000));
    cr_expect(eq(u64, given.limit, 3));
    cr_expect(zero(u64, given.bytes));
    given = (today){.interval_ms = BUGPACK_OFF};
    cr_assert(zero(int, bp_struct_fill(&given, fields, 3, NULL)));
    cr_expect(zero(u64, given.interval_ms));
    cr_expect(eq(u64, given.limit, 50));
    cr_expect(eq(u64, given.bytes, (uint64_t)4 << 30));
}

Test(struct_size, what_cannot_be_off_or_is_too_large_is_refused_by_name) {
    today given = {.limit = BUGPACK_OFF};
    cr_assert(eq(int, bp_struct_fill(&given, fields, 3, &failure), BUGPACK_ERR_INVALID));
    cr_expect(eq(str, failure.message, "limit cannot be BUGPACK_OFF"));
    given = (today){.limit = 61};
    cr_assert(eq(int, bp_struct_fill(&given, fields, 3, &failure), BUGPACK_ERR_INVALID));
    cr_expect(eq(str, failure.message, "limit must be at most 60"));
}

#define EXPECT_INITIALISED(name)                                                                   \
    do {                                                                                           \
        name fresh, empty = {.struct_size = sizeof empty};                                         \
        memset(&fresh, 0x5a, sizeof fresh);                                                        \
        name##_init(&fresh, sizeof fresh);                                                         \
        cr_expect(zero(int, memcmp(&fresh, &empty, sizeof fresh)), #name);                         \
    } while (0)

Test(struct_size, initialiser_functions_leave_all_but_the_size_empty) {
    EXPECT_INITIALISED(bugpack_channel_options);
    EXPECT_INITIALISED(bugpack_disconnect_details);
    EXPECT_INITIALISED(bugpack_event);
    EXPECT_INITIALISED(bugpack_options);
    EXPECT_INITIALISED(bugpack_pedantic_state);
    EXPECT_INITIALISED(bugpack_recorder_location);
    EXPECT_INITIALISED(bugpack_recover_options);
    EXPECT_INITIALISED(bugpack_report_request);
    EXPECT_INITIALISED(bugpack_report_result);
}
