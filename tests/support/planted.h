/*
 * Secrets to plant: ten of each of 40 shapes.
 */
#ifndef TESTS_SUPPORT_PLANTED_H
#define TESTS_SUPPORT_PLANTED_H

enum { PLANTED_SHAPES = 40, PLANTED_EACH = 10, PLANTED_COUNT = PLANTED_SHAPES * PLANTED_EACH };
enum { PLANTED_BYTES = 128 };

/* The secrets, and each with what stands around it in a log: i % PLANTED_SHAPES is the shape. */
extern char planted_secrets[PLANTED_COUNT][PLANTED_BYTES];
extern char planted_texts[PLANTED_COUNT][2 * PLANTED_BYTES];

/* Makes them, the same ones each time. */
void planted_make(void);

#endif
