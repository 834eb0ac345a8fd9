/**
 * What the unit tests use of Criterion, for builds where Criterion cannot be had or costs too much:
 * other processors, and the sanitizers. Criterion starts the program anew for each test, which
 * takes 0.2 s of CPU under the address sanitizer; here each test is a fork.
 *
 * Comparisons name their type first, as in Criterion: eq(int, a, b). A failed one prints both
 * values.
 */
#ifndef BUGPACK_TEST_RUNNER_H
#define BUGPACK_TEST_RUNNER_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A test, or what the tests of a suite have unless they say otherwise. */
struct cr_test {
    const char *suite;
    const char *name; /* NULL: a suite's */
    void (*run)(void);
    void (*init)(void);
    void (*fini)(void);
    unsigned timeout; /* seconds; 0 is none */
    struct cr_test *next;
};

void cr_add(struct cr_test *test);

#define CR_ADD(symbol, ...)                                                                        \
    static struct cr_test symbol = {__VA_ARGS__};                                                  \
    __attribute__((constructor)) static void symbol##_add(void) {                                  \
        cr_add(&symbol);                                                                           \
    }
#define TestSuite(suite_name, ...)                                                                 \
    CR_ADD(cr_suite_##suite_name, .suite = #suite_name, __VA_ARGS__)                               \
    static_assert(true, "")
#define Test(suite_name, test_name, ...)                                                           \
    static void suite_name##_##test_name##_test(void);                                             \
    CR_ADD(cr_test_##suite_name##_##test_name, .suite = #suite_name, .name = #test_name,           \
           .run = suite_name##_##test_name##_test, __VA_ARGS__)                                    \
    static void suite_name##_##test_name##_test(void)

enum cr_verdict { CR_FAIL, CR_FAIL_AND_LEAVE, CR_SKIP };

/** Prints `condition`, the values last compared and the message; leaves the test unless it is
 * CR_FAIL. */
__attribute__((format(printf, 5, 6))) void cr_say(enum cr_verdict verdict, const char *file,
                                                  int line, const char *condition,
                                                  const char *format, ...);

/** Forgets which values were compared, so that a condition without a comparison shows none. */
bool cr_begin(void);

#define CR_CHECK(verdict, condition, text, ...)                                                    \
    ((void)((cr_begin() && (condition)) ||                                                         \
            (cr_say(verdict, __FILE__, __LINE__, text, " " __VA_ARGS__), false)))
#define cr_expect(condition, ...) CR_CHECK(CR_FAIL, condition, #condition, ##__VA_ARGS__)
#define cr_assert(condition, ...) CR_CHECK(CR_FAIL_AND_LEAVE, condition, #condition, ##__VA_ARGS__)
#define cr_fail(...) cr_say(CR_FAIL, __FILE__, __LINE__, "", " " __VA_ARGS__)
#define cr_fatal(...) cr_say(CR_FAIL_AND_LEAVE, __FILE__, __LINE__, "", " " __VA_ARGS__)
#define cr_skip(...) cr_say(CR_SKIP, __FILE__, __LINE__, "", " " __VA_ARGS__)
#define cr_skip_test(...) cr_skip(__VA_ARGS__)

enum cr_order { CR_EQ, CR_NE, CR_LT, CR_LE, CR_GT, CR_GE };

bool cr_compare_signed(enum cr_order order, intmax_t a, intmax_t b);
bool cr_compare_unsigned(enum cr_order order, uintmax_t a, uintmax_t b);
bool cr_dbl(enum cr_order order, double a, double b);
bool cr_str(enum cr_order order, const char *a, const char *b);
bool cr_ptr(enum cr_order order, const void *a, const void *b);

#define CR_NUMBER(name, type, kind)                                                                \
    static inline bool cr_##name(enum cr_order order, type a, type b) {                            \
        return cr_compare_##kind(order, a, b);                                                     \
    }
CR_NUMBER(chr, char, signed)
CR_NUMBER(int, int, signed)
CR_NUMBER(i32, int32_t, signed)
CR_NUMBER(i64, int64_t, signed)
CR_NUMBER(uint, unsigned, unsigned)
CR_NUMBER(ulong, unsigned long, unsigned)
CR_NUMBER(u8, uint8_t, unsigned)
CR_NUMBER(u16, uint16_t, unsigned)
CR_NUMBER(u32, uint32_t, unsigned)
CR_NUMBER(u64, uint64_t, unsigned)
CR_NUMBER(sz, size_t, unsigned)

#define eq(type, a, b) cr_##type(CR_EQ, a, b)
#define ne(type, a, b) cr_##type(CR_NE, a, b)
#define lt(type, a, b) cr_##type(CR_LT, a, b)
#define le(type, a, b) cr_##type(CR_LE, a, b)
#define gt(type, a, b) cr_##type(CR_GT, a, b)
#define ge(type, a, b) cr_##type(CR_GE, a, b)
#define zero(type, a) cr_##type(CR_EQ, a, 0)
#define not(condition) (!(condition))
#define epsilon_eq(type, a, b, epsilon) (cr_##type(CR_EQ, a, b) || fabs((a) - (b)) <= (epsilon))

#endif
