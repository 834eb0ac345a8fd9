/*
 * Uses a processor in a known way, until it is killed:
 *
 *     spin HOW
 *
 * Most of the time is spent in one function, some in another one.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define OWN __attribute__((noinline, noipa))

static volatile uint64_t sink;

/* In a library without names. */
uint64_t spin_in_library(unsigned rounds);

OWN uint64_t count_primes(unsigned end) {
    uint64_t count = 0;
    for (unsigned i = 2; i < end; i++) {
        bool is_prime = true;
        for (unsigned j = 2; j * j <= i && is_prime; j++) {
            is_prime = i % j != 0;
        }
        count += is_prime;
    }
    return count;
}

OWN uint64_t round_up(unsigned rounds) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < rounds; i++) {
        sum = (sum ^ i) * 2654435761u;
    }
    return sum;
}

OWN void price_all(void) {
    sink += count_primes(4000);
    sink += round_up(6000);
}

OWN void serve(void) {
    for (;;) {
        price_all();
    }
}

/* Deeper than the part of the stack that a sample has. */
OWN uint64_t walk(unsigned depth) {
    volatile unsigned char frame[400];
    frame[0] = (unsigned char)depth;
    return (depth == 0 ? count_primes(4000) : walk(depth - 1)) + frame[0];
}

static void deep(void) {
    for (;;) {
        sink += walk(60);
    }
}

/* Ten calls of a library that has no names for what it does. */
static void library(void) {
    for (;;) {
        sink += spin_in_library(20000);
        sink += round_up(500);
    }
}

/* A loop that was made at run time: dec %rdi; jnz. */
OWN void made(void) {
    static const unsigned char code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    (void)mprotect(page, 4096, PROT_READ | PROT_EXEC);
    void (*call)(uint64_t);
    memcpy(&call, &page, sizeof call);
    for (;;) {
        call(1000000);
    }
}

static void *serve_named(void *name) {
    (void)prctl(PR_SET_NAME, name);
    serve();
    return NULL;
}

static void *round_named(void *name) {
    (void)prctl(PR_SET_NAME, name);
    for (;;) {
        sink += round_up(6000);
    }
    return NULL;
}

static void *price_once(void *argument) {
    for (int i = 0; i < 200; i++) {
        price_all();
    }
    return argument;
}

static void threads(void) {
    pthread_t thread;
    (void)pthread_create(&thread, NULL, serve_named, (void *)(uintptr_t) "pricer; \"a\"");
    (void)pthread_create(&thread, NULL, round_named, (void *)(uintptr_t) "rounder");
    for (;;) {
        (void)pause();
    }
}

static void *wait_long(void *argument) {
    for (;;) {
        (void)pause();
    }
    return argument;
}

/* A hundred threads, of which one runs. */
static void crowd(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 65536);
    for (int i = 0; i < 99; i++) {
        (void)pthread_create(&thread, &attributes, wait_long, NULL);
    }
    serve();
}

/* Threads that live for some milliseconds. */
static void short_threads(void) {
    for (;;) {
        pthread_t thread;
        (void)pthread_create(&thread, NULL, price_once, NULL);
        (void)pthread_join(thread, NULL);
    }
}

static void idle(void) {
    for (;;) {
        (void)pause();
    }
}

int main(int argument_count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } rows[] = {{"serve", serve}, {"deep", deep},       {"library", library},
                {"made", made},   {"threads", threads}, {"short-threads", short_threads},
                {"crowd", crowd}, {"idle", idle}};
    for (size_t i = 0; argument_count > 1 && i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(arguments[1], rows[i].name) == 0) {
            rows[i].run();
        }
    }
    return 2;
}
